/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hostile_queue LENDER CASE [SEED] - what a borrower writes into queues and doorbells and must not
 *
 * Each command has the status that NVMe specifies, and the queue goes on. hostile_test.py looks at who is beside it, and
 * at the lender's log.
 */
#define _GNU_SOURCE
#include "raw.h"
#include "seeded.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weft/nvme.h>

#define BLOCKS_MAX (256u * 8)  /* of the longest command */
#define FREE_LBA   (48u << 11) /* from here on are blocks that nobody else uses */

static const char *path;
static uint64_t seed;

static uint64_t any(void)
{
	return seeded_random(&seed) >> 16;
}

static uint64_t *list_of(struct raw *r, uint32_t page)
{
	return (uint64_t *)(r->mem + page * NVME_PAGE);
}

/* The list of the longest command, as it must be. */
static void fill_list(struct raw *r)
{
	uint32_t i;

	for (i = 0; i < 255; i++)
		list_of(r, RAW_LIST)[i] = raw_page(r, RAW_DATA + 1 + i);
}

static void still_works(struct raw *r)
{
	struct nvme_sqe sqe = raw_read(r, BLOCKS_MAX);

	fill_list(r);
	raw_is("a command that is right", raw_do(r, &sqe), 0);
}

/* A command that differs from one that is right in a few bytes */
static void has_status(struct raw *r, const char *what, struct nvme_sqe sqe, int want)
{
	raw_is(what, raw_do(r, &sqe), want);
}

static void prps(void)
{
	struct raw r = raw_pair(path);
	struct nvme_sqe one = raw_read(&r, 8), two = raw_read(&r, 16);
	struct nvme_sqe all = raw_read(&r, BLOCKS_MAX), sqe;
	const uint64_t end = raw_page(&r, RAW_PAGES);
	int status;

	fill_list(&r);
	still_works(&r);
	sqe = one, sqe.prp1 += 2;
	has_status(&r, "PRP 1 of half a word", sqe, NVME_SC_INVALID_PRP_OFFSET);
	sqe = two, sqe.prp2 += 512;
	has_status(&r, "PRP 2 inside a page", sqe, NVME_SC_INVALID_PRP_OFFSET);
	sqe = all, sqe.prp2 += 4;
	has_status(&r, "a list at half an entry", sqe, NVME_SC_INVALID_PRP_OFFSET);
	sqe = one, sqe.prp1 = end;
	has_status(&r, "a page behind the window", sqe, NVME_SC_DATA_TRANSFER);
	sqe = one, sqe.prp1 = r.addr - NVME_PAGE;
	has_status(&r, "a page before the window", sqe, NVME_SC_DATA_TRANSFER);
	sqe = one, sqe.prp1 = UINT64_MAX - NVME_PAGE + 1;
	has_status(&r, "the last page there is", sqe, NVME_SC_DATA_TRANSFER);
	sqe = one, sqe.prp1 = 0;
	has_status(&r, "address 0", sqe, NVME_SC_DATA_TRANSFER);
	sqe = two, sqe.prp2 = end;
	has_status(&r, "PRP 2 behind the window", sqe, NVME_SC_DATA_TRANSFER);
	sqe = all, sqe.prp2 = end;
	has_status(&r, "a list behind the window", sqe, NVME_SC_DATA_TRANSFER);
	list_of(&r, RAW_LIST)[100] += 8;
	has_status(&r, "an entry inside a page", all, NVME_SC_INVALID_PRP_OFFSET);
	list_of(&r, RAW_LIST)[100] = end;
	has_status(&r, "an entry behind the window", all, NVME_SC_DATA_TRANSFER);
	fill_list(&r);
	/* The list's last entry leads to the list: it has an entry of each page of data before that. */
	sqe = all, sqe.prp2 = raw_page(&r, RAW_LIST) + NVME_PAGE - 8;
	list_of(&r, RAW_LIST)[511] = raw_page(&r, RAW_LIST);
	has_status(&r, "a list that leads to itself", sqe, 0);
	/* What is read is stored over the list that is being read. */
	for (uint32_t i = 0; i < 255; i++)
		list_of(&r, RAW_LIST)[i] = raw_page(&r, RAW_LIST);
	status = raw_do(&r, &all);
	must(!status || status == NVME_SC_DATA_TRANSFER || status == NVME_SC_INVALID_PRP_OFFSET,
	     "a list of itself: %x", status);
	still_works(&r);
}

static void lbas(void)
{
	struct raw r = raw_pair(path);
	struct nvme_sqe sqe = raw_read(&r, 8);
	struct lease_message msg = { .kind = LEASE_LIST };
	struct weft_device_info info;
	uint8_t data[LEASE_DATA_MAX];

	raw_is("the device", raw_ask(&r, &msg, data, NULL), 0);
	memcpy(&info, data, sizeof(info));
	for (int opcode = 0; opcode < 2; opcode++) {
		sqe.opcode = opcode ? NVME_IO_WRITE : NVME_IO_READ;
		sqe.cdw10 = (uint32_t)info.blocks - 7;
		has_status(&r, "the end is passed", sqe, NVME_SC_LBA_RANGE);
		sqe.cdw10 = (uint32_t)info.blocks;
		has_status(&r, "an LBA behind the end", sqe, NVME_SC_LBA_RANGE);
		sqe.cdw10 = sqe.cdw11 = UINT32_MAX;
		has_status(&r, "the last LBA there is", sqe, NVME_SC_LBA_RANGE);
		sqe.cdw11 = 0;
	}
	sqe = raw_read(&r, 8);
	sqe.nsid = 0;
	has_status(&r, "no namespace", sqe, NVME_SC_INVALID_NAMESPACE);
	sqe.nsid = UINT32_MAX;
	has_status(&r, "all namespaces", sqe, NVME_SC_INVALID_NAMESPACE);
	sqe = raw_read(&r, 65536);
	has_status(&r, "more than a command may have", sqe, NVME_SC_INVALID_FIELD);
	sqe = raw_read(&r, 8);
	for (unsigned bit = 0; bit < 8; bit++) {
		sqe.flags = (uint8_t)(1u << bit);
		if (sqe.flags & 0xc3)
			has_status(&r, "fused, or with an SGL", sqe, NVME_SC_INVALID_FIELD);
	}
	still_works(&r);
}

/* On a queue for I/O there is nothing that configures the controller. */
static void admin_commands(void)
{
	static const uint8_t opcodes[] = { NVME_ADMIN_GET_LOG_PAGE,
					   NVME_ADMIN_IDENTIFY,
					   NVME_ADMIN_DELETE_CQ,
					   NVME_ADMIN_CREATE_CQ,
					   NVME_ADMIN_ABORT,
					   NVME_ADMIN_SET_FEATURES,
					   NVME_ADMIN_GET_FEATURES,
					   NVME_ADMIN_ASYNC_EVENT,
					   0x10,
					   0x80,
					   0x84,
					   0xc0,
					   0xc4,
					   0xff };
	struct raw r = raw_pair(path);
	struct nvme_sqe sqe = raw_read(&r, 8);

	for (size_t i = 0; i < sizeof(opcodes); i++) {
		int status;

		sqe.opcode = opcodes[i];
		sqe.cdw10 = FREE_LBA;
		/* Some numbers are commands of both kinds of queues, of which these are in range. */
		status = raw_do(&r, &sqe);
		if (opcodes[i] != NVME_IO_READ && opcodes[i] != NVME_IO_COMPARE &&
		    opcodes[i] != NVME_IO_WRITE_ZEROES && opcodes[i] != NVME_IO_DSM)
			raw_is("an admin command", status, NVME_SC_INVALID_OPCODE);
	}
	still_works(&r);
}

/* Values that no doorbell may have; between them the queue is used as it must be. */
static void wild_doorbells(void)
{
	static const uint32_t wild[] = { RAW_ENTRIES, RAW_ENTRIES + 1, 4096,	   65535,
					 65536,	      0x7fffffff,      0x80000000, UINT32_MAX };
	struct raw r = raw_pair(path);
	uint32_t i, n;

	for (n = 0; n < 200; n++) {
		for (i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
			raw_ring(&r, wild[i]);
			__atomic_store_n(&r.doorbells->cq_head, wild[i], __ATOMIC_RELEASE);
		}
		/* Entries that have not been completed, which are more than there are. */
		__atomic_store_n(&r.doorbells->cq_head, (r.cq_head + 5) % RAW_ENTRIES,
				 __ATOMIC_RELEASE);
		sched_yield();
		still_works(&r);
	}
}

/* The words that are the controller's, and its eventfd, are the borrower's to spoil: it alone has them. */
static void words_of_the_controller(void)
{
	struct raw r = raw_pair(path);
	uint64_t cnt;
	uint32_t i;

	for (i = 0; i < 1000; i++) {
		/* Not 0: that would say that the controller need not be woken. */
		memset((uint8_t *)r.doorbells + 4, (int)(1 + any() % 255), 2044);
		memset((uint8_t *)r.doorbells + 2052, (int)(1 + any() % 255), 2044);
		must(read(r.kick, &cnt, sizeof(cnt)) == sizeof(cnt) || errno == EAGAIN,
		     "the eventfd");
		still_works(&r);
	}
}

/* An eventfd whose counter is full, so that a write to it blocks. */
static void full_vector(void)
{
	struct raw r = raw_pair(path);
	struct lease_message msg = raw_named(&r, LEASE_QUEUES);
	uint64_t full = UINT64_MAX - 1;
	struct raw blocked = r;
	int fd = eventfd(0, 0);

	must(fd >= 0 && write(fd, &full, sizeof(full)) == sizeof(full), "an eventfd");
	msg.flags = WEFT_NVME_BLOCKING;
	msg.count = RAW_ENTRIES;
	msg.addr = raw_page(&r, RAW_DATA + 254);
	msg.offset = raw_page(&r, RAW_DATA + 255);
	msg.fd_cnt = 1;
	raw_is("a queue pair", raw_ask(&r, &msg, NULL, &fd), 0);
	blocked.kick = r.got[1];
	blocked.doorbells = mmap(NULL, msg.len, PROT_READ | PROT_WRITE, MAP_SHARED, r.got[0],
				 (off_t)msg.addr);
	must(blocked.doorbells != MAP_FAILED, "doorbells");
	blocked.mem += RAW_DATA * NVME_PAGE + 254 * NVME_PAGE;
	for (int i = 0; i < 200; i++) {
		struct nvme_sqe sqe = { .opcode = NVME_IO_FLUSH, .nsid = 1 };

		raw_is("a flush", raw_do(&blocked, &sqe), 0);
	}
	raw_is("a read on the other pair",
	       raw_do(&r, &(struct nvme_sqe){ .opcode = NVME_IO_FLUSH, .nsid = 1 }), 0);
}

/* The queue's memory goes while there are commands: the queue is lost, and nothing else. */
static void queue_memory_closed(void)
{
	struct raw r = raw_pair(path), next;
	struct lease_message msg = raw_named(&r, LEASE_UNWINDOW);
	uint32_t i;

	for (i = 0; i + 1 < RAW_ENTRIES; i++) {
		struct nvme_sqe sqe = raw_read(&r, BLOCKS_MAX);

		sqe.cid = (uint16_t)i;
		memcpy(r.mem + i * sizeof(sqe), &sqe, sizeof(sqe));
	}
	fill_list(&r);
	raw_ring(&r, RAW_ENTRIES - 1);
	msg.addr = r.addr;
	msg.len = RAW_PAGES * NVME_PAGE;
	raw_is("the end of the window", raw_ask(&r, &msg, NULL, NULL), 0);
	memset(r.mem, 0x5a, RAW_PAGES * NVME_PAGE);
	for (i = 0; i < RAW_ENTRIES; i++)
		raw_ring(&r, i);
	/* Where all have been fetched there are more. */
	raw_ring(&r, RAW_ENTRIES / 2);
	next = raw_pair(path);
	for (i = 0; i < 100; i++)
		still_works(&next);
	for (i = 0; i < RAW_PAGES * NVME_PAGE; i++)
		must(r.mem[i] == 0x5a, "memory that was unmapped is written to at %u", i);
}

static atomic_bool stop;

/*
 * Bytes of queues, lists and data, but not of opcodes and LBAs: what others have on the device a borrower may write, and
 * they would have to complain.
 */
static void *scribble(void *arg)
{
	struct raw *r = arg;
	uint64_t state = seed;

	while (!atomic_load(&stop)) {
		uint64_t at = seeded_below(&state, 8 * NVME_PAGE);

		if (at < NVME_PAGE &&
		    (at % 64 == 0 || at % 64 >= offsetof(struct nvme_sqe, cdw10)))
			continue;
		r->mem[at] = (uint8_t)seeded_random(&state);
	}
	return NULL;
}

/* Entries, lists and doorbells change all the time, also while the controller reads them. */
static void everything_changes(void)
{
	struct raw r = raw_pair(path), next;
	pthread_t thread;
	uint32_t i;

	must(!pthread_create(&thread, NULL, scribble, &r), "a thread");
	for (i = 0; i < 100000; i++) {
		struct nvme_sqe sqe = raw_read(&r, 1 + (uint32_t)(any() % BLOCKS_MAX));

		sqe.opcode = (uint8_t)(any() % NVME_IO_DSM);
		sqe.cdw10 = FREE_LBA + (uint32_t)(any() % 2048);
		if (any() % 4 == 0)
			sqe.prp2 ^= any() & 0xffff;
		memcpy(r.mem + (i % RAW_ENTRIES) * sizeof(sqe), &sqe, sizeof(sqe));
		raw_ring(&r, (uint32_t)(any() % 4 ? (i + 1) % RAW_ENTRIES : any()));
		__atomic_store_n(&r.doorbells->cq_head, (uint32_t)any() % (RAW_ENTRIES + 1),
				 __ATOMIC_RELEASE);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	next = raw_pair(path);
	still_works(&next);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "prps", prps },
	{ "lbas", lbas },
	{ "admin_commands", admin_commands },
	{ "wild_doorbells", wild_doorbells },
	{ "words_of_the_controller", words_of_the_controller },
	{ "full_vector", full_vector },
	{ "queue_memory_closed", queue_memory_closed },
	{ "everything_changes", everything_changes },
};

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 3)
		return 2;
	path = argv[1];
	seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[2])) {
			cases[i].run();
			raw_done();
			return 0;
		}
	return 2;
}
