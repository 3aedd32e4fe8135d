/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * borrower NAME - a process with the lenders of a directory open, for directory_test.py
 *
 * Each line of standard input is a command; each is answered with a line: its result, 0 or a negative errno, and what it
 * has. NAME is weft_lender_open()'s.
 *
 *	list		the devices, as NAME=STATE
 *	borrow DEVICE MS   and read from it without a pause, by a thread, until it is returned
 *	reads		how many were done, and the first error
 *	return
 *	share		export a segment, import it, and compare
 *	events		those that have come, as their numbers
 *	close
 */
#define _GNU_SOURCE
#include "../open_eq.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/fi_domain.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/nvme.h>

#define LEN    4096u
#define LISTED 16u

static struct weft_lender *lender;
static struct fid_eq *eq;

/* struct use - a device that is read from */
static struct {
	struct weft_device *dev;
	struct weft_segment *seg;
	struct weft_window *window;
	struct weft_nvme *qp;
	pthread_t thread;
	atomic_bool stop;
	atomic_int err;
	atomic_ulong reads;
} use;

static void *read_on(void *arg)
{
	void *buf = weft_segment_mem(use.seg);
	int err;

	while (!atomic_load(&use.stop)) {
		err = weft_nvme_read(use.qp, 1, 0, LEN / 512, buf);
		if (err) {
			atomic_store(&use.err, err);
			break;
		}
		atomic_fetch_add(&use.reads, 1);
		/* The test's other processes are to run too. */
		usleep(200);
	}
	return NULL;
}

static int use_begin(void)
{
	int err = weft_segment_alloc(NULL, LEN, 0, &use.seg);

	if (!err)
		err = weft_window_open(use.dev, use.seg, WEFT_WINDOW_RW, &use.window);
	if (!err)
		err = weft_nvme_open(use.dev, NULL, &use.qp);
	if (err)
		die("a queue pair", err);
	atomic_store(&use.stop, false);
	atomic_store(&use.err, 0);
	atomic_store(&use.reads, 0);
	return -pthread_create(&use.thread, NULL, read_on, NULL);
}

static void do_list(void)
{
	static const char *const states[] = { "free", "shared", "exclusive", "failed" };
	struct weft_device_info infos[LISTED];
	size_t cnt = LISTED, i;
	int err = weft_device_list(lender, infos, &cnt);

	printf("%d", err);
	for (i = 0; !err && i < cnt; i++)
		printf(" %s=%s", infos[i].name, states[infos[i].state]);
	printf("\n");
}

static void do_borrow(const char *name, unsigned ms)
{
	struct weft_borrow_attr attr = { .size = sizeof(attr), .name = name, .ms = ms };
	int err;

	if (!strcmp(name, "-"))
		attr.name = NULL;
	err = weft_device_borrow(lender, &attr, &use.dev);
	if (!err)
		err = use_begin();
	printf("%d %s\n", err, err ? "" : weft_device_info(use.dev)->name);
}

static void do_return(void)
{
	atomic_store(&use.stop, true);
	pthread_join(use.thread, NULL);
	weft_nvme_close(use.qp);
	printf("%d\n", weft_device_return(use.dev));
	weft_segment_free(use.seg);
}

static void do_share(void)
{
	struct weft_segment *seg, *same;
	struct weft_address addr;
	int err = weft_segment_alloc(NULL, LEN, 0, &seg);

	if (!err)
		err = weft_segment_export(lender, seg, 0, &addr);
	if (!err)
		err = weft_segment_import(lender, &addr, &same);
	if (!err) {
		memset(weft_segment_mem(seg), 0x5a, LEN);
		err = memcmp(weft_segment_mem(seg), weft_segment_mem(same), LEN) ? -EIO : 0;
		weft_segment_free(same);
		weft_segment_free(seg);
	}
	printf("%d\n", err);
}

static void do_events(void)
{
	struct weft_event event;
	uint32_t number;

	printf("0");
	while (fi_eq_read(eq, &number, &event, sizeof(event), 0) == sizeof(event))
		printf(" %u", event.kind);
	printf("\n");
}

static void obey(const char *command, const char *name, unsigned ms)
{
	if (!strcmp(command, "list"))
		do_list();
	else if (!strcmp(command, "borrow"))
		do_borrow(name, ms);
	else if (!strcmp(command, "reads"))
		printf("%d %lu\n", atomic_load(&use.err), atomic_load(&use.reads));
	else if (!strcmp(command, "return"))
		do_return();
	else if (!strcmp(command, "share"))
		do_share();
	else if (!strcmp(command, "events"))
		do_events();
	else if (!strcmp(command, "close"))
		printf("%d\n", weft_lender_close(lender));
	else
		die(command, -EINVAL);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct weft_lender_attr attr = { .size = sizeof(attr) };
	char line[256], command[64], name[128];
	unsigned ms;
	int err;

	if (argc != 2)
		die("borrower NAME", -EINVAL);
	open_eq(&eq);
	attr.eq = eq;
	err = weft_lender_open(argv[1], &attr, &lender);
	printf("%d\n", err);
	fflush(stdout);
	while (!err && fgets(line, sizeof(line), stdin)) {
		*name = 0;
		ms = 0;
		if (sscanf(line, "%63s %127s %u", command, name, &ms) > 0)
			obey(command, name, ms);
	}
	return err ? 1 : 0;
}
