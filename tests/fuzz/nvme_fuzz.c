/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: the software NVMe controller, to which a borrower of a queue pair, and an owner, write what the input
 * says: commands, PRP lists, doorbells, registers. Commands begin as an honest one would make them and are changed
 * field by field. Between them the controller makes rounds, leases end, windows go.
 *
 * Checked: nothing crashes or hangs, memory of nobody else's domain changes, and an honest borrower beside the hostile
 * one is served to the end, unless the owner has reset the controller.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "input.h"
#include "nvmed.h"
#include "schedule.h"

#define AREA	  (256u << 10) /* of each domain */
#define BASE	  0x100000u
#define NAMESPACE (1u << 20)
#define SIZE	  16u
#define ROUNDS	  64
#define HOSTILE	  1u
#define HONEST	  2u

/* A domain's memory: the submission queue, the completion queue, a list, then data */
#define SQ_AT	0u
#define CQ_AT	0x1000u
#define LIST_AT 0x2000u
#define DATA_AT 0x4000u

static struct {
	struct nvmed *c;
	uint8_t *areas[3];
	int fds[3];
	uint32_t tails[3];
	bool was_reset;
} f;

static void area_open(uint32_t i)
{
	f.fds[i] = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	MUST(f.fds[i] >= 0 && !ftruncate(f.fds[i], AREA));
	MUST(!fcntl(f.fds[i], F_ADD_SEALS, F_SEAL_SHRINK));
	f.areas[i] = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED, f.fds[i], 0);
	MUST(f.areas[i] != MAP_FAILED);
}

static void area_clear(uint32_t i)
{
	memset(f.areas[i], 0, AREA);
	f.tails[i] = 0;
}

/* As the slot does it: there is no memory without a deadline. */
static void map(uint32_t domain)
{
	int fd = lease_get(f.c, domain) ? dup(f.fds[domain]) : -1;
	const struct domain_request req = { .addr = BASE,
					    .len = AREA,
					    .access = SLOT_DMA_READ | SLOT_DMA_WRITE,
					    .fds = &fd,
					    .fd_cnt = 1 };

	if (fd >= 0 && domain_map(&f.c->leases.each[domain].domain, &req))
		close(fd);
}

static void rounds(int n)
{
	while (n--) {
		schedule_round(f.c);
		nvmed_chores(f.c);
	}
}

static void put(uint32_t area, const struct nvme_sqe *sqe)
{
	memcpy(f.areas[area] + SQ_AT + f.tails[area] * sizeof(*sqe), sqe, sizeof(*sqe));
	f.tails[area] = (f.tails[area] + 1) % SIZE;
}

static void ring(uint32_t area, uint32_t tail)
{
	if (f.c->bells[area].page)
		doorbell_store(&f.c->bells[area].page->sq_tail, tail);
}

/* What was posted is taken without a look. */
static void take(uint32_t area)
{
	if (f.c->cqs[area])
		doorbell_store(&f.c->bells[area].page->cq_head, f.c->cqs[area]->tail);
}

static void admin(const struct nvme_sqe *sqe)
{
	put(0, sqe);
	ring(0, f.tails[0]);
	rounds(4);
	take(0);
}

static void lease_begin(uint32_t i)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_LEASE_ARM,
				.cdw10 = i,
				.cdw11 = f.c->leases.each[i].generation + 1,
				.cdw12 = NVME_LEASE_MS_MAX };

	admin(&sqe);
	area_clear(i);
	map(i);
	sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_CREATE_CQ,
				 .prp1 = BASE + CQ_AT,
				 .cdw10 = i | (SIZE - 1) << 16,
				 .cdw11 = NVME_QUEUE_CONTIGUOUS,
				 .cdw14 = i };
	admin(&sqe);
	sqe.opcode = NVME_ADMIN_CREATE_SQ;
	sqe.prp1 = BASE + SQ_AT;
	sqe.cdw11 |= i << 16;
	admin(&sqe);
}

static void enable(void)
{
	area_clear(0);
	registers_write(f.c, NVME_REG_AQA, 4, (SIZE - 1) << 16 | (SIZE - 1));
	registers_write(f.c, NVME_REG_ASQ, 8, BASE + SQ_AT);
	registers_write(f.c, NVME_REG_ACQ, 8, BASE + CQ_AT);
	registers_write(f.c, NVME_REG_CC, 4,
			NVME_CC_EN | NVME_SQE_SHIFT << NVME_CC_IOSQES_SHIFT |
				NVME_CQE_SHIFT << NVME_CC_IOCQES_SHIFT);
}

static uint64_t some_addr(void)
{
	static const uint64_t odd[] = { 0,	    1,		BASE - 1,	BASE + AREA,
					UINT64_MAX, 1ull << 63, BASE + AREA - 4 };
	uint8_t how = input_byte();

	if (how >= 0xf0)
		return odd[how % (sizeof(odd) / sizeof(odd[0]))];
	if (how >= 0xe0)
		return input_long();
	return BASE + (how & 0x3fu) * 0x1000u + (how & 0x40 ? input_byte() * 4u : 0);
}

/* A list; often its last entry leads to another one, or to itself. */
static void list(uint32_t area)
{
	uint32_t at = input_byte() % 4 ? 0 : 0x1000 - 8 * (1 + input_byte() % 4),
		 cnt = input_byte();

	for (uint32_t i = 0; i < cnt && at + 8 * i < 0x2000; i++) {
		uint64_t entry = some_addr();

		memcpy(f.areas[area] + LIST_AT + at + 8 * i, &entry, sizeof(entry));
	}
}

static struct nvme_sqe io_command(void)
{
	static const uint8_t opcodes[] = { NVME_IO_READ,  NVME_IO_WRITE,	NVME_IO_COMPARE,
					   NVME_IO_FLUSH, NVME_IO_WRITE_ZEROES, NVME_IO_DSM,
					   NVME_IO_READ,  NVME_IO_WRITE };
	struct nvme_sqe sqe = { .opcode = opcodes[input_byte() % sizeof(opcodes)],
				.cid = input_byte(),
				.nsid = 1,
				.prp1 = BASE + DATA_AT,
				.prp2 = BASE + LIST_AT };
	uint8_t what = input_byte();

	sqe.cdw10 = input_byte() * 8u;
	sqe.cdw12 = what & 1 ? input_byte() * 8u : 7;
	if (sqe.opcode == NVME_IO_DSM)
		sqe.cdw11 = NVME_DSM_DEALLOCATE;
	if (what & 2)
		sqe.prp1 = some_addr();
	if (what & 4)
		sqe.prp2 = some_addr();
	if (what & 8)
		((uint8_t *)&sqe)[input_byte() % sizeof(sqe)] ^= input_byte();
	return sqe;
}

static struct nvme_sqe admin_command(void)
{
	static const uint8_t opcodes[] = { 0x00, 0x01, 0x02, 0x04, 0x05, 0x06,
					   0x08, 0x09, 0x0a, 0x0c, 0xc0, 0xc4 };
	struct nvme_sqe sqe = { .opcode = opcodes[input_byte() % sizeof(opcodes)],
				.cid = input_byte(),
				.prp1 = some_addr(),
				.prp2 = BASE + LIST_AT,
				.cdw10 = input_byte() | (uint32_t)input_byte() << 16,
				.cdw11 = input_byte() | (uint32_t)input_byte() << 16,
				.cdw12 = input_byte(),
				.cdw14 = input_byte() % 4 };

	if (input_byte() & 1)
		((uint8_t *)&sqe)[input_byte() % sizeof(sqe)] ^= input_byte();
	/* What would end the honest borrower is the owner's right, and not tried here. */
	if ((sqe.opcode == NVME_ADMIN_DELETE_SQ || sqe.opcode == NVME_ADMIN_DELETE_CQ) &&
	    (sqe.cdw10 & 0xffff) == HONEST)
		sqe.cdw10 = HOSTILE;
	if ((sqe.opcode == NVME_ADMIN_LEASE_ARM || sqe.opcode == NVME_ADMIN_LEASE_END) &&
	    sqe.cdw10 == HONEST)
		sqe.cdw10 = HOSTILE;
	return sqe;
}

static void doorbells(uint32_t area)
{
	struct slot_doorbells *page = f.c->bells[area].page;

	if (!page)
		return;
	if (input_byte() & 1)
		doorbell_store(&page->sq_tail,
			       input_byte() & 1 ? input_byte() % SIZE : input_word());
	else
		doorbell_store(&page->cq_head,
			       input_byte() & 1 ? input_byte() % SIZE : input_word());
}

static void register_write(void)
{
	uint32_t at = (input_byte() & 0x1f) * 4u;

	if (at == NVME_REG_CC && input_byte() % 4)
		return;
	if (at == NVME_REG_CC)
		f.was_reset = true;
	registers_write(f.c, at, 4, input_word());
}

/* The hostile borrower's time is over, or the owner's patience; then it gets another lease. */
static void hostile_again(void)
{
	struct lease *l = &f.c->leases.each[HOSTILE];

	if (l->state == LEASE_RUNS) {
		l->deadline = f.c->leases.next = f.c->now;
		leases_due(f.c);
		rounds(8);
	}
	MUST(f.was_reset || l->state == LEASE_NONE);
	MUST(f.was_reset || !l->domain.cnt);
	if (l->state == LEASE_NONE)
		lease_begin(HOSTILE);
}

static void window_goes(void)
{
	if (!domain_unmap(&f.c->leases.each[HOSTILE].domain, BASE, AREA))
		queues_remap(f.c, &f.c->leases.each[HOSTILE]);
	else
		map(HOSTILE);
}

static void one_step(void)
{
	struct nvme_sqe sqe;

	switch (input_byte() % 12) {
	case 0:
		sqe = admin_command();
		admin(&sqe);
		break;
	case 1:
		doorbells(HOSTILE);
		break;
	case 2:
		register_write();
		break;
	case 3:
		hostile_again();
		break;
	case 4:
		window_goes();
		break;
	case 5:
		list(HOSTILE);
		break;
	case 6:
		rounds(1 + input_byte() % ROUNDS);
		take(HOSTILE);
		break;
	case 7:
		f.areas[HOSTILE][input_word() % AREA] = input_byte();
		break;
	default:
		sqe = io_command();
		put(HOSTILE, &sqe);
		ring(HOSTILE, f.tails[HOSTILE]);
	}
}

/* The honest borrower, whose memory nobody has touched, reads what it wrote. */
static void honest(void)
{
	struct nvme_sqe sqe = { .opcode = NVME_IO_WRITE,
				.nsid = 1,
				.prp1 = BASE + DATA_AT,
				.cdw10 = NAMESPACE / 512 - 8,
				.cdw12 = 7 };
	const struct nvme_cqe *cq = (const struct nvme_cqe *)(f.areas[HONEST] + CQ_AT);

	for (uint32_t i = DATA_AT; i < AREA; i++)
		MUST(f.areas[HONEST][i] == 0);
	memset(f.areas[HONEST] + DATA_AT, 0x5a, 4096);
	put(HONEST, &sqe);
	sqe.opcode = NVME_IO_READ;
	sqe.prp1 += 4096;
	put(HONEST, &sqe);
	ring(HONEST, f.tails[HONEST]);
	for (int n = 0; n < 10000 && !(cq[1].status & 1); n++)
		rounds(1);
	MUST(cq[0].status == 1 && cq[1].status == 1);
	MUST(!memcmp(f.areas[HONEST] + DATA_AT, f.areas[HONEST] + DATA_AT + 4096, 4096));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct nvmed_config config = { .queue_cnt = 4,
					     .block = 512,
					     .cmb_len = 64 << 10,
					     .granule = 32 << 10,
					     .serial = "FUZZ" };
	struct backend *b;

	input_begin(data, len);
	f.was_reset = false;
	for (uint32_t i = 0; i < 3; i++)
		if (!f.areas[i])
			area_open(i);
	MUST(!backend_memory_open(NAMESPACE, &b));
	MUST(!nvmed_create(&config, b, &f.c));
	map(0);
	enable();
	lease_begin(HONEST);
	lease_begin(HOSTILE);
	MUST(f.c->sqs[HONEST] && f.c->sqs[HOSTILE]);
	while (input_left())
		one_step();
	if (!f.was_reset && f.c->regs.csts == NVME_CSTS_RDY)
		honest();
	nvmed_destroy(f.c);
	return 0;
}
