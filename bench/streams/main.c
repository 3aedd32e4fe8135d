/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft-streams - whether large messages between two processes gain by several TCP sockets: each side
 * has one thread, as an endpoint has, which moves a part of the message over each socket. One, two
 * and four sockets take turns in each round, over connections of that round; messages are sent one at
 * a time, each answered, and several at a time.
 *
 * 'weft-streams' measures over the loopback interface, 'weft-streams --listen' on one host and
 * 'weft-streams HOST' on another one between them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "line.h"

#define KIB	     ((size_t)1 << 10)
#define MIB	     ((size_t)1 << 20)
#define LEN_MAX	     (16 * MIB)
#define BUFS	     4u
#define SAMPLE_LEN   (64 * MIB)
#define WINDOW_FIRST (4 << 20)
#define FDS_MAX	     4
#define PORT	     "7432"

enum { WAYS = 4, SIZES = 3, WINDOWS = 2 };

static const struct way {
	const char *name;
	int fd_cnt;
} ways[WAYS] = {
	{ "1 socket", 1 },
	{ "2 sockets", 2 },
	{ "4 sockets", 4 },
	/* the first one again: what lies between two of a kind is noise */
	{ "1 socket again", 1 },
};

static const size_t sizes[SIZES] = { 64 * KIB, MIB, 16 * MIB };
static const uint64_t windows[WINDOWS] = { 1, BUFS }; /* messages without an answer */

/* In place of a way: new connections follow, or nothing. */
#define ROUND_ENDS ((uint64_t)WAYS)
#define ALL_ENDS   ((uint64_t)WAYS + 1)

/* Asks for @cnt messages of @len bytes to be received over the sockets of a way. */
struct order {
	uint64_t way;
	uint64_t len;
	uint64_t cnt;
};

/* The answer to one message. */
struct answer {
	/* parts without the number of their message */
	uint64_t bad;
	/* the receiver's, since the order */
	uint64_t cpu_ns;
};

/* The sockets of a round: all of each way, and one for orders and answers. */
struct round {
	int control;
	int fds[WAYS][FDS_MAX];
};

struct bench {
	char *mem;
	struct round round;
	struct line_cost samples[SIZES][WINDOWS][WAYS][LINE_ROUNDS_MAX];
	unsigned rounds;
};

static size_t part_begin(size_t len, int idx, int cnt)
{
	return len * (size_t)idx / (size_t)cnt;
}

/* Moves what the socket takes or has of its part. Returns 1 if it was anything, 0, or -errno. */
static int move_some(int fd, char *mem, size_t *at, size_t end, bool out)
{
	ssize_t n = out ? send(fd, mem + *at, end - *at, MSG_DONTWAIT | MSG_NOSIGNAL)
			: recv(fd, mem + *at, end - *at, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	*at += (size_t)n;
	return n ? 1 : -EPIPE;
}

/* Sends or receives a message, a part over each socket. Returns 0 or -errno. */
static int move(const int *fds, int cnt, char *mem, size_t len, bool out)
{
	struct pollfd pfds[FDS_MAX];
	size_t at[FDS_MAX];
	int left = cnt;

	for (int i = 0; i < cnt; i++) {
		at[i] = part_begin(len, i, cnt);
		pfds[i] = (struct pollfd){ .fd = fds[i], .events = out ? POLLOUT : POLLIN };
	}
	while (left) {
		bool any = false;

		for (int i = 0; i < cnt; i++) {
			size_t end = part_begin(len, i + 1, cnt);
			int ret = at[i] < end ? move_some(fds[i], mem, &at[i], end, out) : 0;

			if (ret < 0)
				return ret;
			any |= ret;
			if (ret && at[i] == end) {
				pfds[i].fd = -1;
				left--;
			}
		}
		if (left && !any)
			poll(pfds, (nfds_t)cnt, -1);
	}
	return 0;
}

static void stamp(char *mem, size_t len, int cnt, uint64_t number)
{
	for (int i = 0; i < cnt; i++)
		memcpy(mem + part_begin(len, i, cnt), &number, sizeof(number));
}

static uint64_t bad_parts(const char *mem, size_t len, int cnt, uint64_t number)
{
	uint64_t bad = 0;

	for (int i = 0; i < cnt; i++)
		bad += memcmp(mem + part_begin(len, i, cnt), &number, sizeof(number)) != 0;
	return bad;
}

/* ---- the receiver ---- */

static int receive(const struct round *round, char *mem, const struct order *order)
{
	int cnt = ways[order->way].fd_cnt, err = 0;
	double start = line_cpu_ns();

	for (uint64_t i = 0; i < order->cnt && !err; i++) {
		char *addr = mem + i % BUFS * LEN_MAX;
		struct answer answer;

		err = move(round->fds[order->way], cnt, addr, order->len, false);
		answer.bad = bad_parts(addr, order->len, cnt, i);
		answer.cpu_ns = (uint64_t)(line_cpu_ns() - start);
		if (!err)
			err = line_write(round->control, &answer, sizeof(answer));
	}
	return err;
}

/* Returns 0 with what ended the round, or -errno. */
static int serve_round(const struct round *round, char *mem, uint64_t *end)
{
	struct order order;
	int err;

	for (;;) {
		err = line_read(round->control, &order, sizeof(order));
		*end = order.way;
		if (err || order.way >= WAYS)
			return err;
		err = order.len > LEN_MAX ? -EMSGSIZE : receive(round, mem, &order);
		if (err)
			return err;
	}
}

static char *memory(void)
{
	char *mem = mmap(NULL, BUFS * LEN_MAX, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

/* Opens all sockets of a round by @open, the control first. Returns 0 or -errno. */
static int round_open(struct round *round, int (*open)(const void *arg), const void *arg)
{
	int *fds[1 + WAYS * FDS_MAX] = { &round->control }, cnt = 1;

	for (int way = 0; way < WAYS; way++)
		for (int i = 0; i < ways[way].fd_cnt; i++)
			fds[cnt++] = &round->fds[way][i];
	for (int i = 0; i < cnt; i++) {
		*fds[i] = open(arg);
		if (*fds[i] >= 0)
			continue;
		cnt = errno;
		while (i--)
			close(*fds[i]);
		return -cnt;
	}
	return 0;
}

static void round_close(const struct round *round)
{
	close(round->control);
	for (int way = 0; way < WAYS; way++)
		for (int i = 0; i < ways[way].fd_cnt; i++)
			close(round->fds[way][i]);
}

/* As the tcp wire's data lanes do: the kernel grows a receive buffer, but begins with 64 KiB. */
static int open_accepted(const void *listener)
{
	int fd = line_accept(*(const int *)listener), len = WINDOW_FIRST, one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &len, sizeof(len));
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
	return fd;
}

static int open_connected(const void *to)
{
	return line_connect(to);
}

/* Returns an exit status. */
static int serve(int listener)
{
	char *mem = memory();
	uint64_t end = ROUND_ENDS;
	struct round round;
	int err = mem ? 0 : -ENOMEM;

	while (!err && end == ROUND_ENDS) {
		err = round_open(&round, open_accepted, &listener);
		if (err)
			break;
		err = serve_round(&round, mem, &end);
		round_close(&round);
	}
	return err ? 2 : 0;
}

/* ---- the sender ---- */

static int take_answer(const struct round *round, struct answer *answer)
{
	int err = line_read(round->control, answer, sizeof(*answer));

	return err ? err : answer->bad ? -EILSEQ : 0;
}

static int send_messages(struct bench *b, const struct order *order, uint64_t window,
			 struct answer *answer)
{
	int cnt = ways[order->way].fd_cnt, err = 0;
	uint64_t answers = 0;

	for (uint64_t i = 0; i < order->cnt && !err; i++) {
		char *addr = b->mem + i % BUFS * LEN_MAX;

		if (i - answers == window) {
			err = take_answer(&b->round, answer);
			answers++;
		}
		stamp(addr, order->len, cnt, i);
		if (!err)
			err = move(b->round.fds[order->way], cnt, addr, order->len, true);
	}
	for (; !err && answers < order->cnt; answers++)
		err = take_answer(&b->round, answer);
	return err;
}

static int sample(struct bench *b, int way, size_t len, uint64_t window, struct line_cost *cost)
{
	struct order order = { (uint64_t)way, len, SAMPLE_LEN / len };
	struct answer answer = { 0 };
	double start, cpu;
	int err = line_write(b->round.control, &order, sizeof(order));

	start = line_now_ns();
	cpu = line_cpu_ns();
	if (!err)
		err = send_messages(b, &order, window, &answer);
	cost->wall_ns = line_now_ns() - start;
	cost->send_cpu_ns = line_cpu_ns() - cpu;
	cost->recv_cpu_ns = (double)answer.cpu_ns;
	return err;
}

/* One sample of each. Returns 0, or -errno with the reason printed. */
static int run_round(struct bench *b, unsigned round)
{
	for (unsigned i = 0; i < SIZES * WINDOWS * WAYS; i++) {
		unsigned way = (i + round) % WAYS, window = i / WAYS % WINDOWS;
		unsigned size = i / WAYS / WINDOWS;
		int err = sample(b, (int)way, sizes[size], windows[window],
				 &b->samples[size][window][way][round]);

		if (err) {
			fprintf(stderr, "streams: %s: %s\n", ways[way].name,
				err == -EILSEQ ? "other bytes arrived" : strerror(-err));
			return err;
		}
	}
	return 0;
}

/* The time of one message and its processor time at both sides, and how they compare with one socket's. */
static void print_way(const struct bench *b, int size, int window, int way)
{
	struct line_cost cost = line_medians(b->samples[size][window][way], b->rounds);
	struct line_cost one = line_medians(b->samples[size][window][0], b->rounds);

	printf("%6zu KiB, %llu at a time  %-14s %9.1f  %5.2f  %5.2f\n", sizes[size] / KIB,
	       (unsigned long long)windows[window], ways[way].name,
	       cost.wall_ns / 1e3 * (double)sizes[size] / (double)SAMPLE_LEN,
	       cost.wall_ns / one.wall_ns,
	       (cost.send_cpu_ns + cost.recv_cpu_ns) / (one.send_cpu_ns + one.recv_cpu_ns));
}

static void print_all(const struct bench *b)
{
	printf("%u rounds, medians; times that of one socket\n%41s  %8s  %5s  %5s\n", b->rounds,
	       "", "us", "times", "CPU");
	for (int i = 0; i < SIZES * WINDOWS * WAYS; i++)
		print_way(b, i / WAYS / WINDOWS, i / WAYS % WINDOWS, i % WAYS);
}

/* Returns an exit status. */
static int measure(void *arg, const struct addrinfo *to)
{
	struct bench *b = arg;

	for (unsigned round = 0; round < b->rounds; round++) {
		struct order end = { round + 1 == b->rounds ? ALL_ENDS : ROUND_ENDS, 0, 0 };
		int err = round_open(&b->round, open_connected, to);

		if (err) {
			fprintf(stderr, "streams: connect: %s\n", strerror(-err));
			return 2;
		}
		if (run_round(b, round) || line_write(b->round.control, &end, sizeof(end)))
			return 1;
		round_close(&b->round);
	}
	print_all(b);
	return 0;
}

static void usage(void)
{
	fprintf(stderr, "Usage: weft-streams [--rounds=N] [--listen | HOST]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static struct bench b;
	const struct line_sides sides = {
		.serve = serve, .measure = measure, .arg = &b, .port = PORT
	};
	struct line_request request = { .rounds = 15 };

	if (!line_request_read(&request, argc, argv, NULL))
		usage();
	b.rounds = request.rounds;
	b.mem = memory();
	if (!b.mem) {
		perror("streams: memory");
		return 2;
	}
	return line_run(&sides, &request);
}
