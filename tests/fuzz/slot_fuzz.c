/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: what an owner says on the slot of the software NVMe controller, with descriptors of every kind beside it.
 * Messages begin as an honest owner would make them and are changed field by field; between them the controller makes
 * rounds.
 *
 * Checked: nothing crashes or hangs, each message is answered, and no descriptor is left when the controller ends.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "input.h"
#include "nvmed.h"
#include "schedule.h"
#include "slot_answer.h"

#define LEN (128u << 10)

enum file_kind {
	SEALED,
	SEALED_TOO,
	READ_ONLY,
	UNSEALED,
	SHORT,
	EVENT,
	PIPE,
	FILES,
};

static int files[FILES];

static int file_open_kind(int seals, off_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	MUST(fd >= 0 && !ftruncate(fd, len) && !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static void files_open(void)
{
	int pipes[2];

	if (files[SEALED])
		return;
	files[SEALED] = file_open_kind(F_SEAL_SHRINK, LEN);
	files[SEALED_TOO] = file_open_kind(F_SEAL_SHRINK, LEN);
	files[READ_ONLY] = file_open_kind(F_SEAL_SHRINK | F_SEAL_WRITE, LEN);
	files[UNSEALED] = file_open_kind(0, LEN);
	files[SHORT] = file_open_kind(F_SEAL_SHRINK, 100);
	files[EVENT] = eventfd(0, EFD_CLOEXEC);
	MUST(!pipe2(pipes, O_CLOEXEC));
	files[PIPE] = pipes[0];
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int cnt = 0;

	MUST(d);
	while (readdir(d))
		cnt++;
	closedir(d);
	return cnt;
}

static uint64_t some_addr(void)
{
	uint8_t how = input_byte();

	return how & 0x80 ? input_long() : (how & 0x0fu) * 0x10000u;
}

/* The registers that set something going, with values that do */
static void register_access(struct slot_message *m)
{
	static const struct {
		uint32_t at, len;
		uint64_t value;
	} honest[] = {
		{ NVME_REG_AQA, 4, 0x000f000f },
		{ NVME_REG_ASQ, 8, 0x10000 },
		{ NVME_REG_ACQ, 8, 0x11000 },
		{ NVME_REG_CC, 4, 0x00460001 },
		{ NVME_REG_CC, 4, 0 },
		{ NVME_REG_CC, 4, 0x00464001 },
		{ NVME_REG_CMBMSC, 8, 0x100003 },
		{ NVME_REG_DOORBELLS, 4, 1 },
	};
	uint8_t which = input_byte() % (sizeof(honest) / sizeof(honest[0]));

	m->addr = honest[which].at;
	m->len = honest[which].len;
	if (m->kind == SLOT_WRITE)
		m->value = honest[which].value;
}

static uint32_t message(struct slot_message *m, int *fds)
{
	uint32_t cnt = 0;

	*m = (struct slot_message){ .version = SLOT_VERSION,
				    .kind = (uint16_t)(1 + input_byte() % (SLOT_KINDS - 1)),
				    .seq = input_byte() };
	switch (m->kind) {
	case SLOT_READ:
	case SLOT_WRITE:
		register_access(m);
		break;
	case SLOT_MAP:
		cnt = 1 + (input_byte() & 0x80 ? input_byte() % SLOT_FDS_MAX : 0);
		m->access = 1 + input_byte() % 3;
		/* fallthrough */
	case SLOT_UNMAP:
		m->domain = input_byte() % 8 ? 0 : 1;
		m->addr = some_addr();
		m->len = (1 + input_byte() % 2) * 0x10000u;
		break;
	case SLOT_VECTOR:
		m->index = input_byte() % 6;
		cnt = input_byte() & 1;
		break;
	case SLOT_REGION:
		m->index = input_byte() & 2;
		m->addr = m->index ? input_byte() % 3 * 0x8000u
				   : 0x1000u + input_byte() % 6 * 0x1000u;
		m->len = m->index ? 0x8000 : 0x1000;
		m->value = m->index && input_byte() & 1;
		break;
	case SLOT_DOMAIN:
	case SLOT_QUEUE:
		m->index = input_byte() % 6;
		break;
	}
	for (uint32_t i = 0; i < cnt; i++)
		fds[i] = fcntl(
			files[m->kind == SLOT_VECTOR && input_byte() % 4 ? EVENT
									 : input_byte() % FILES],
			F_DUPFD_CLOEXEC, 0);
	m->fd_cnt = cnt;
	if (input_byte() & 1)
		((uint8_t *)m)[input_byte() % sizeof(*m)] ^= input_byte();
	return cnt;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct nvmed_config config = { .queue_cnt = 4,
					     .block = 512,
					     .cmb_len = 64 << 10,
					     .granule = 32 << 10,
					     .serial = "FUZZ" };
	struct slot_answer a = { .run = 1 };
	struct nvmed *c;
	struct backend *b;
	int before;

	files_open();
	before = descriptors();
	input_begin(data, len);
	MUST(!backend_memory_open(1 << 20, &b));
	MUST(!nvmed_create(&config, b, &c));
	while (input_left()) {
		struct slot_message m;
		int fds[SLOT_FDS_MAX];
		uint32_t cnt = message(&m, fds);

		slot_answer(c, &m, fds, cnt, &a);
		MUST(a.message.version == SLOT_VERSION && a.message.status <= 0);
		MUST(a.message.kind == m.kind && a.message.seq == m.seq);
		MUST(!a.message.status || !a.message.fd_cnt);
		for (uint32_t i = 0; i < a.message.fd_cnt; i++)
			MUST(fcntl(a.fds[i], F_GETFD) >= 0);
		schedule_round(c);
		nvmed_chores(c);
	}
	nvmed_destroy(c);
	MUST(descriptors() == before);
	return 0;
}
