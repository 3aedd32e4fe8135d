/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * driven LENDER - a borrower that does what a test says, line by line
 *
 * Each line of standard input is a command, and is answered by a line: its result, 0 or a negative errno, and what it has.
 * LENDER is weft_lender_open()'s. Only one thing of each kind is open at a time.
 *
 *	borrow MS SHARED KEPT		the lease
 *	attach TICKET			a lease that is kept, by its ticket
 *	ticket
 *	alloc | import NODE SEGMENT GENERATION	memory for commands, in a segment of its own or of another process
 *	export				NODE SEGMENT GENERATION
 *	fill SEED | check SEED		the segment; check: -EILSEQ and the first byte that is not so
 *	window | unwindow
 *	pair DEPTH BLOCKING | unpair
 *	run HOW FIRST CNT		use units of the device from FIRST on, in a thread, until there is an error or 'stop';
 *					see the table of runs
 *	state				the first error of the thread, and the commands that have ended
 *	stop				the same, once the thread has ended
 *	burst FIRST CNT			begin as many commands as may be there, and look at none
 *	renew MS | share | return
 *	events				those that have come, as KIND:LEASE:DEVICE:NODE
 */
#define _GNU_SOURCE
#include "open_eq.h"
#include "verify.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_domain.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEN VERIFY_LEN(VERIFY_DEPTH)

/* How long a thread waits before it looks whether it is to stop; those that have no limit are stopped by an error alone. */
#define LOOK_MS 100

static struct {
	struct weft_lender *lender;
	struct fid_eq *eq;
	struct weft_device *dev;
	struct weft_segment *seg;
	struct weft_window *window;
	struct weft_nvme *qp;
	struct verifier v;
	uint32_t depth, first, cnt;
	pthread_t thread;
	bool running;
	atomic_bool stop;
	atomic_int err;
	_Atomic uint64_t ended;
} me;

/* Take what has ended, and check it. Returns how much, or a negative errno */
static ssize_t checked(ssize_t n, const struct weft_nvme_completion *done)
{
	int err = n > 0 ? verify_done(&me.v, done, (size_t)n) : 0;

	atomic_store(&me.ended, me.v.ended);
	return err ? err : n;
}

/* Looks all the time. */
static int by_polling(void)
{
	struct weft_nvme_completion done[VERIFY_DEPTH];
	int err = verify_submit(&me.v);
	ssize_t n = 0;

	while (!err && !n && !atomic_load(&me.stop))
		n = checked(weft_nvme_poll(me.qp, done, VERIFY_DEPTH), done);
	return err ? err : n < 0 ? (int)n : 0;
}

/* Sleeps on the descriptor, without a limit. */
static int by_sleeping(void)
{
	struct weft_nvme_completion done[VERIFY_DEPTH];
	struct pollfd p = { .fd = weft_nvme_fd(me.qp), .events = POLLIN };
	int err = verify_submit(&me.v);
	ssize_t n = 0;

	while (!err && !n) {
		n = checked(weft_nvme_poll(me.qp, done, VERIFY_DEPTH), done);
		if (!n)
			poll(&p, 1, -1);
	}
	return err ? err : n < 0 ? (int)n : 0;
}

/* Waits in the library, without a limit. */
static int by_waiting(void)
{
	struct weft_nvme_completion done[VERIFY_DEPTH];
	int err = verify_submit(&me.v);
	ssize_t n = err ? 0 : checked(weft_nvme_wait(me.qp, done, VERIFY_DEPTH, -1), done);

	return err ? err : n < 0 ? (int)n : 0;
}

/* A read at a time. */
static int by_reading(void)
{
	uint32_t unit = me.first + (uint32_t)(atomic_fetch_add(&me.ended, 1) % me.cnt);
	uint64_t want[VERIFY_UNIT / 8];
	int err = weft_nvme_read(me.qp, 1, (uint64_t)unit * VERIFY_BLOCKS, VERIFY_BLOCKS,
				 weft_segment_mem(me.seg));

	verify_fill(want, unit, 0);
	if (!err && memcmp(want, weft_segment_mem(me.seg), sizeof(want)))
		err = -EILSEQ;
	return err;
}

/* Reads of which nobody looks at the bytes: the segment is stored to by the device alone. */
static int by_streaming(void)
{
	static struct weft_nvme_completion done[VERIFY_DEPTH];
	static uint32_t under_way;
	ssize_t n = 0;

	while (n >= 0 && under_way < me.depth) {
		struct weft_nvme_command command = {
			.opcode = WEFT_NVME_READ,
			.nsid = 1,
			.lba = (uint64_t)me.first * VERIFY_BLOCKS,
			.blocks = VERIFY_UNITS * VERIFY_BLOCKS,
			.buf = (uint8_t *)weft_segment_mem(me.seg) + under_way * VERIFY_SLOT_LEN,
		};

		n = weft_nvme_submit(me.qp, &command, 1);
		under_way += n == 1;
	}
	if (n >= 0)
		n = weft_nvme_wait(me.qp, done, VERIFY_DEPTH, LOOK_MS);
	if (n < 0)
		return (int)n;
	under_way -= (uint32_t)n;
	atomic_fetch_add(&me.ended, (uint64_t)n);
	while (n)
		if (done[--n].status)
			return done[n].status;
	return 0;
}

/* No command, but calls that the lender answers. */
static int by_calling(void)
{
	int err = weft_window_close(me.window);

	if (!err)
		err = weft_window_open(me.dev, me.seg, WEFT_WINDOW_RW, &me.window);
	atomic_fetch_add(&me.ended, 1);
	return err;
}

static const struct run {
	const char *name;
	int (*step)(void);
	bool verifies;
	bool own;
} runs[] = {
	{ "poll", by_polling, true, false },  { "sleep", by_sleeping, true, false },
	{ "wait", by_waiting, true, false },  { "own", by_waiting, true, true },
	{ "read", by_reading, false, false }, { "stream", by_streaming, false, false },
	{ "call", by_calling, false, false },
};

static const struct run *run_now;

/* Commands that were under way when the lease ended may be at the controller still, until the pair says that it is over. */
static void drain(void)
{
	struct weft_nvme_completion done[VERIFY_DEPTH];

	while (weft_nvme_wait(me.qp, done, VERIFY_DEPTH, -1) >= 0)
		;
}

static void *run(void *arg)
{
	int err = 0;

	while (!err && !atomic_load(&me.stop)) {
		err = run_now->step();
		if (!err && run_now->verifies)
			err = verify_pages(&me.v);
	}
	if (run_now->step != by_calling && (err == -ESTALE || err == -ECANCELED))
		drain();
	atomic_store(&me.err, err);
	return NULL;
}

static int do_run(const char *how, uint32_t first, uint32_t cnt)
{
	size_t i;
	int err;

	for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		if (!strcmp(runs[i].name, how))
			run_now = &runs[i];
	me.first = first;
	me.cnt = cnt;
	atomic_store(&me.stop, false);
	atomic_store(&me.err, 0);
	atomic_store(&me.ended, 0);
	err = verify_init(&me.v, me.qp, weft_segment_mem(me.seg), me.depth, first, cnt,
			  run_now->own);
	if (!err && run_now->step != by_calling)
		err = verify_prepare(&me.v);
	if (!err)
		err = -pthread_create(&me.thread, NULL, run, NULL);
	me.running = !err;
	return err;
}

static int do_burst(uint32_t first, uint32_t cnt)
{
	int err = verify_init(&me.v, me.qp, weft_segment_mem(me.seg), me.depth, first, cnt,
			      false);

	if (!err)
		err = verify_prepare(&me.v);
	return err ? err : verify_submit(&me.v);
}

static void do_stop(void)
{
	atomic_store(&me.stop, true);
	if (me.running) {
		pthread_join(me.thread, NULL);
		verify_fini(&me.v);
	}
	me.running = false;
}

static void do_borrow(uint32_t ms, uint32_t shared, uint32_t kept)
{
	struct weft_borrow_attr attr = { .size = sizeof(attr),
					 .ms = ms,
					 .flags = shared ? WEFT_BORROW_SHARED : 0,
					 .keep = kept };
	int err = weft_device_borrow(me.lender, &attr, &me.dev);

	printf("%d %u\n", err, err ? 0 : weft_device_lease(me.dev));
}

static int do_pair(uint32_t depth, uint32_t blocking)
{
	struct weft_nvme_attr attr = { .size = sizeof(attr),
				       .depth = depth,
				       .flags = blocking ? WEFT_NVME_BLOCKING : 0 };

	me.depth = depth;
	return weft_nvme_open(me.dev, &attr, &me.qp);
}

static void do_export(void)
{
	struct weft_address addr = { 0 };
	int err = weft_segment_export(me.lender, me.seg, 0, &addr);

	printf("%d %" PRIu64 " %u %u\n", err, addr.node, addr.segment, addr.generation);
}

static void do_fill(uint8_t seed)
{
	memset(weft_segment_mem(me.seg), seed, weft_segment_len(me.seg));
	printf("0\n");
}

static void do_check(uint8_t seed)
{
	const uint8_t *mem = weft_segment_mem(me.seg);
	size_t i;

	for (i = 0; i < weft_segment_len(me.seg) && mem[i] == seed; i++)
		;
	printf("%d %zu\n", i < weft_segment_len(me.seg) ? -EILSEQ : 0, i);
}

static void do_events(void)
{
	struct weft_event event;
	uint32_t number;

	printf("0");
	while (fi_eq_read(me.eq, &number, &event, sizeof(event), 0) == sizeof(event))
		if (number == WEFT_DEVICE_EVENT)
			printf(" %u:%u:%" PRIu64 ":%" PRIu64, event.kind, event.lease,
			       event.device, event.node);
	printf("\n");
}

static void do_ticket(void)
{
	char ticket[WEFT_TICKET_MAX];

	weft_device_ticket(me.dev, ticket);
	printf("0 %s\n", ticket);
}

/* Commands that answer with their result alone. */
static int plain(const char *command, const char *word, const uint64_t *n)
{
	if (!strcmp(command, "alloc"))
		return weft_segment_alloc(NULL, LEN, 0, &me.seg);
	if (!strcmp(command, "import"))
		return weft_segment_import(
			me.lender,
			&(struct weft_address){ .node = n[0],
						.segment = (uint32_t)n[1],
						.generation = (uint32_t)n[2] },
			&me.seg);
	if (!strcmp(command, "attach"))
		return weft_device_attach(me.lender, word, &me.dev);
	if (!strcmp(command, "window"))
		return weft_window_open(me.dev, me.seg, WEFT_WINDOW_RW, &me.window);
	if (!strcmp(command, "unwindow"))
		return weft_window_close(me.window);
	if (!strcmp(command, "pair"))
		return do_pair((uint32_t)n[0], (uint32_t)n[1]);
	if (!strcmp(command, "unpair"))
		return weft_nvme_close(me.qp);
	if (!strcmp(command, "run"))
		return do_run(word, (uint32_t)n[1], (uint32_t)n[2]);
	if (!strcmp(command, "burst"))
		return do_burst((uint32_t)n[0], (uint32_t)n[1]);
	if (!strcmp(command, "renew"))
		return weft_device_renew(me.dev, (uint32_t)n[0]);
	if (!strcmp(command, "share"))
		return weft_device_share(me.dev);
	if (!strcmp(command, "return"))
		return weft_device_return(me.dev);
	die(command, -EINVAL);
	return 0;
}

static void obey(char *line)
{
	char *rest, *command = strtok_r(line, " \n", &rest), *word[3] = { 0 };
	uint64_t n[3] = { 0 };
	int i;

	for (i = 0; i < 3 && (word[i] = strtok_r(NULL, " \n", &rest)); i++)
		n[i] = strtoull(word[i], NULL, 10);
	if (!command)
		return;
	if (!strcmp(command, "borrow"))
		do_borrow((uint32_t)n[0], (uint32_t)n[1], (uint32_t)n[2]);
	else if (!strcmp(command, "export"))
		do_export();
	else if (!strcmp(command, "fill"))
		do_fill((uint8_t)n[0]);
	else if (!strcmp(command, "check"))
		do_check((uint8_t)n[0]);
	else if (!strcmp(command, "events"))
		do_events();
	else if (!strcmp(command, "ticket"))
		do_ticket();
	else if (!strcmp(command, "stop") || !strcmp(command, "state")) {
		if (!strcmp(command, "stop"))
			do_stop();
		printf("%d %" PRIu64 "\n", atomic_load(&me.err), atomic_load(&me.ended));
	} else {
		printf("%d\n", plain(command, word[0], n));
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct weft_lender_attr attr = { .size = sizeof(attr) };
	char line[512];
	int err;

	if (argc != 2)
		die("driven LENDER", -EINVAL);
	open_eq(&me.eq);
	attr.eq = me.eq;
	err = weft_lender_open(argv[1], &attr, &me.lender);
	printf("%d\n", err);
	fflush(stdout);
	while (!err && fgets(line, sizeof(line), stdin))
		obey(line);
	return err ? 1 : 0;
}
