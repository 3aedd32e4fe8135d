/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: what a borrower of another host says to the software NVMe controller, over a provider that is the target's.
 * Messages begin as an honest borrower would make them and are changed byte by byte; what the session begins ends in any
 * order, with errors, or not at all; the pair goes at any time.
 *
 * Checked: nothing crashes or hangs, nothing is transferred but in the session's own memory, what is said to the borrower
 * is as wire.h says, and nothing is left when the session has ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <rdma/fi_errno.h>

#include "fake_port.h"
#include "fuzz.h"
#include "input.h"
#include "nvme/lease.h"
#include "rig.h"
#include "target.h"
#include "wire.h"

#define LEASE 1u
#define PAIR  2u
#define DEPTH 8u
#define BLOCK 512u

/* struct message - from the borrower, as long as one may be, and longer */
union message {
	struct remote_head head;
	struct remote_connect connect;
	uint8_t bytes[12288];
};

static struct rig rig;
static struct remote_place place;

static int refuse(void)
{
	uint8_t how = input_left() ? input_byte() : 0;

	return how < 240 ? 0 : how < 250 ? -FI_EAGAIN : -FI_ENOTCONN;
}

static void fill_some(void *mem, size_t len)
{
	uint8_t *at = mem;
	size_t i;

	/* Entries of a queue near the borrower, or data. */
	for (i = 0; i < len; i++)
		at[i] = i < 256 ? input_byte() : 0;
}

static struct nvme_sqe some_command(void)
{
	static const uint8_t opcodes[] = { NVME_IO_READ,  NVME_IO_WRITE,	NVME_IO_COMPARE,
					   NVME_IO_FLUSH, NVME_IO_WRITE_ZEROES, NVME_IO_DSM };
	struct nvme_sqe sqe = { .opcode = opcodes[input_byte() % sizeof(opcodes)],
				.cid = input_byte() % (DEPTH + 1),
				.nsid = 1,
				.cdw10 = input_byte(),
				.prp1 = input_byte(),
				.prp2 = input_byte() };
	uint8_t what = input_byte();

	sqe.cdw12 = what & 1 ? input_byte() * 16u : what & 2;
	if (what & 4)
		sqe.mptr = REMOTE_INLINE;
	if (what & 8)
		((uint8_t *)&sqe)[input_byte() % sizeof(sqe)] ^= input_byte();
	return sqe;
}

/* Commands, with the data of those that have it along. Returns the bytes of the message */
static size_t submit(union message *m)
{
	size_t at = sizeof(m->head), len;
	uint32_t cnt = 1 + input_byte() % 4;

	for (m->head.count = 0; m->head.count < cnt; m->head.count++) {
		struct nvme_sqe sqe = some_command();

		len = sqe.mptr == REMOTE_INLINE ? REMOTE_PAD(remote_data_len(&sqe, BLOCK)) : 0;
		if (sizeof(sqe) + len > sizeof(*m) - at)
			break;
		memcpy(m->bytes + at, &sqe, sizeof(sqe));
		at += sizeof(sqe) + len;
	}
	return at;
}

static void say(void)
{
	static union message m;
	size_t len = sizeof(m.head);

	memset(&m, 0, sizeof(m));
	m.head = (struct remote_head){ REMOTE_VERSION, 1 + input_byte() % REMOTE_END, 0,
				       place.key };
	switch (m.head.kind) {
	case REMOTE_CONNECT:
		len = sizeof(m.connect);
		m.connect.name_len = 16;
		if (input_byte() & 1) {
			m.connect.entries = 2 + input_byte() % DEPTH;
			m.connect.sq_addr = m.connect.cq_addr = 0x1000;
		}
		break;
	case REMOTE_SUBMIT:
		len = submit(&m);
		break;
	case REMOTE_DOORBELL:
		m.head.count = input_byte() % (DEPTH + 2);
		break;
	default:
		break;
	}
	if (input_byte() & 1)
		m.bytes[input_word() % len] ^= input_byte();
	if (input_byte() > 240)
		len = input_word() % sizeof(m);
	fake_port_message(&m, len);
}

/* What the controller has said is whole. */
static void check_said(void)
{
	struct remote_complete m;
	size_t len = fake_port_said(&m, sizeof(m));
	uint32_t i;

	if (!len)
		return;
	MUST(len >= sizeof(m.head));
	MUST(m.head.version == REMOTE_VERSION && remote_key_same(&m.head.key, &place.key));
	MUST(m.head.kind == REMOTE_CONNECTED || m.head.kind == REMOTE_COMPLETE ||
	     m.head.kind == REMOTE_END);
	MUST(m.head.kind == REMOTE_COMPLETE ? m.head.count && m.head.count <= REMOTE_COMPLETE_MAX
					    : !m.head.count);
	MUST(len == sizeof(m.head) + m.head.count * sizeof(m.entries[0]));
	for (i = 0; i < m.head.count; i++)
		MUST(!NVME_CQE_PHASE(m.entries[i].status));
}

static void one_step(void)
{
	uint8_t how = input_byte();

	if (how < 160)
		say();
	else if (how < 240)
		fake_port_finish(input_byte(), how < 230 ? 0 : FI_EIO, fill_some);
	else if (how == 255 && rig.c->cqs[PAIR] && input_byte() % 4 == 0)
		rig_admin(&rig,
			  (struct nvme_sqe){ .opcode = NVME_ADMIN_LEASE_END,
					     .cdw10 = LEASE,
					     .cdw11 = rig.c->leases.each[LEASE].generation },
			  NULL);
	rig_rounds(&rig, 1 + how % 3);
	check_said();
}

static void begin(void)
{
	uint32_t len = sizeof(place);

	fake_port_begin(refuse);
	rig_open_enabled(&rig, RIG_MEMORY, NULL);
	MUST(!target_create(rig.c, NULL, NULL, &rig.c->remote));
	MUST(!rig_admin(&rig,
			(struct nvme_sqe){ .opcode = NVME_ADMIN_LEASE_ARM,
					   .cdw10 = LEASE,
					   .cdw11 = 1,
					   .cdw12 = 60000 },
			NULL));
	MUST(!rig.c->remote->ops->open(rig.c->remote, LEASE, PAIR, DEPTH, &place, &len));
	MUST(len == sizeof(place));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct remote *remote;

	input_begin(NULL, 0);
	begin();
	input_begin(data, len);
	while (input_left())
		one_step();
	while (fake_port_under_way()) {
		fake_port_finish(0, 0, fill_some);
		rig_rounds(&rig, 2);
	}
	rig_rounds(&rig, 50);
	remote = rig.c->remote;
	target_destroy(remote);
	rig.c->remote = NULL;
	MUST(!fake_port_left());
	rig_close(&rig);
	return 0;
}
