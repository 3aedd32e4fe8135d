/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * remote_share LENDER PART [ROUNDS [blocking]] - one of several borrowers of a device, with a part of it each
 *
 * Writes blocks of its part and reads them back, four at a time, and checks each byte. With ROUNDS it borrows, does that and gives
 * back so often, and says how many descriptors it has after the fifth and later rounds, at least and at most. Else it says
 * 'ready', begins when there is a line on standard input, says how many reads were right at each further one, and ends with 'end'.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/nvme.h>

#define DEPTH	4u
#define LEN	8192u
#define BLOCK	512u
#define PART	(1u << 20)
#define WAIT_MS 30000
/* Many of these share a processor, and renewals are late there. */
#define LEASE_MS 60000

struct use {
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_nvme *qp;
	struct weft_segment *seg;
	struct weft_window *window;
	uint8_t *mem;
	uint32_t part;
	uint32_t round;
};

static void must(const char *what, long err)
{
	if (!err)
		return;
	printf("%s: %ld\n", what, err);
	exit(1);
}

static void use_begin(struct use *u, const char *lender, bool blocking)
{
	struct weft_borrow_attr borrow = { .size = sizeof(borrow),
					   .flags = WEFT_BORROW_SHARED,
					   .ms = LEASE_MS };
	struct weft_nvme_attr attr = { .size = sizeof(attr),
				       .depth = DEPTH,
				       .flags = blocking ? WEFT_NVME_BLOCKING : 0 };

	must("open", weft_lender_open(lender, NULL, &u->lender));
	must("borrow", weft_device_borrow(u->lender, &borrow, &u->dev));
	must("queue pair", weft_nvme_open(u->dev, &attr, &u->qp));
	must("segment", weft_segment_alloc(NULL, DEPTH * LEN, 0, &u->seg));
	must("window", weft_window_open(u->dev, u->seg, WEFT_WINDOW_RW, &u->window));
	u->mem = weft_segment_mem(u->seg);
}

static void use_end(struct use *u)
{
	must("window", weft_window_close(u->window));
	must("segment", weft_segment_free(u->seg));
	must("queue pair", weft_nvme_close(u->qp));
	must("return", weft_device_return(u->dev));
	must("close", weft_lender_close(u->lender));
}

/* The four at their places of this round, all at once */
static void carry_out(struct use *u, uint8_t opcode)
{
	struct weft_nvme_command commands[DEPTH];
	struct weft_nvme_completion done[DEPTH];
	uint32_t begun = 0, ended = 0;
	ssize_t n;

	for (uint32_t i = 0; i < DEPTH; i++)
		commands[i] = (struct weft_nvme_command){
			.opcode = opcode,
			.nsid = 1,
			.lba = ((uint64_t)u->part * PART +
				(u->round * DEPTH + i) % (PART / LEN) * LEN) /
			       BLOCK,
			.blocks = LEN / BLOCK,
			.buf = u->mem + i * LEN,
		};
	while (ended < DEPTH) {
		if (begun < DEPTH) {
			n = weft_nvme_submit(u->qp, commands + begun, DEPTH - begun);
			if (n > 0)
				begun += (uint32_t)n;
		}
		n = weft_nvme_wait(u->qp, done, DEPTH, WAIT_MS);
		if (n <= 0)
			must("wait", n ? n : 1);
		ended += (uint32_t)n;
		while (n--)
			must("a command", done[n].status);
	}
}

static uint32_t value_of(const struct use *u, size_t i)
{
	return (uint32_t)i * 2654435761u ^ u->part << 24 ^ u->round;
}

static void go(struct use *u)
{
	uint32_t *words = (uint32_t *)u->mem;
	size_t i;

	u->round++;
	for (i = 0; i < DEPTH * LEN / 4; i++)
		words[i] = value_of(u, i);
	carry_out(u, WEFT_NVME_WRITE);
	memset(u->mem, 0xee, DEPTH * LEN);
	carry_out(u, WEFT_NVME_READ);
	for (i = 0; i < DEPTH * LEN / 4; i++)
		must("other bytes were read", words[i] != value_of(u, i));
}

static int descriptor_cnt(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int cnt = 0;

	while (dir && readdir(dir))
		cnt++;
	if (dir)
		closedir(dir);
	return cnt;
}

static void rounds(struct use *u, const char *lender, int cnt)
{
	int least = 0, most = 0;

	for (int i = 0; i < cnt; i++) {
		int now;

		use_begin(u, lender, i % 2);
		go(u);
		use_end(u);
		now = descriptor_cnt();
		least = i <= 4 || now < least ? now : least;
		most = i <= 4 || now > most ? now : most;
	}
	printf("%d %d\n", least, most);
}

/* Whether a line says that it is to end; others ask how many reads were right. */
static bool ends(const struct use *u)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		return feof(stdin);
	if (!strcmp(line, "end\n"))
		return true;
	printf("%u\n", u->round);
	fflush(stdout);
	return false;
}

static bool line_waits(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

int main(int argc, char **argv)
{
	static struct use u;
	char line[16];

	if (argc < 3)
		return 2;
	u.part = (uint32_t)atoi(argv[2]);
	if (argc > 3 && atoi(argv[3])) {
		rounds(&u, argv[1], atoi(argv[3]));
		return 0;
	}
	use_begin(&u, argv[1], argc > 4);
	printf("ready\n");
	fflush(stdout);
	setvbuf(stdin, NULL, _IONBF, 0);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	do
		go(&u);
	while (!line_waits() || !ends(&u));
	printf("%u\n", u.round);
	use_end(&u);
	return 0;
}
