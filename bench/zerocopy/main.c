/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft-zerocopy - what large messages through a TCP socket cost when the kernel copies them, and when
 * it is given references to their pages: MSG_ZEROCOPY, io_uring's fixed buffers, sendfile(2). It says
 * whether a wire could gain by the latter on a network. All take turns in each round, over
 * connections of that round.
 *
 * 'weft-zerocopy' measures over the loopback, 'weft-zerocopy --listen' on one host and
 * 'weft-zerocopy HOST' on another one between them.
 *
 * Every page of a message bears the message's number, and the receiver looks at each: a buffer that is
 * stored to while it is still being sent is found out. The receiver answers each message, and the
 * sender goes on while it has buffers that are free.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "line.h"
#include "ways.h"

#define KIB	   ((size_t)1 << 10)
#define MIB	   ((size_t)1 << 20)
#define PAGE	   (4 * KIB)
#define LEN_MAX	   (4 * MIB)
#define BUFS	   8u
#define SAMPLE_LEN (64 * MIB)
#define SAMPLE_KIB ((double)SAMPLE_LEN / (double)KIB)
#define PORT	   "7431"

enum { SIZES = 4 };

static const size_t sizes[SIZES] = { 64 * KIB, 256 * KIB, MIB, 4 * MIB };

/* In place of a way: new connections follow, or nothing. */
#define ROUND_ENDS ((uint64_t)WAYS)
#define ALL_ENDS   ((uint64_t)WAYS + 1)

/* Asks for @cnt messages of @len bytes to be received. */
struct order {
	uint64_t len;
	uint64_t cnt;
};

/* The answer to one message. */
struct answer {
	/* pages without the number of their message */
	uint64_t bad;
	/* the receiver's, since the order */
	uint64_t cpu_ns;
};

struct bench {
	struct memory memory;
	/* of one round: a connection may be slow or fast from its beginning */
	struct sender senders[WAYS];
	/* the number of the next message over each socket */
	uint64_t next[WAYS];
	/* why a way is not measured, or 0 */
	int refused[WAYS];
	struct line_cost samples[SIZES][WAYS][LINE_ROUNDS_MAX];
	/* notifications of all rounds, and those that said that the kernel has copied */
	uint64_t told[WAYS];
	uint64_t copied[WAYS];
	unsigned rounds;
};

static void stamp(char *addr, size_t len, uint64_t number)
{
	for (size_t at = 0; at < len; at += PAGE)
		memcpy(addr + at, &number, sizeof(number));
}

static uint64_t bad_pages(const char *addr, size_t len, uint64_t number)
{
	uint64_t bad = 0;

	for (size_t at = 0; at < len; at += PAGE)
		bad += memcmp(addr + at, &number, sizeof(number)) != 0;
	return bad;
}

/* Receives what one order asks for. Returns 0 or -errno. */
static int receive(int fd, char *mem, const struct order *order, uint64_t *number)
{
	double start = line_cpu_ns();

	for (uint64_t i = 0; i < order->cnt; i++, ++*number) {
		char *addr = mem + *number % BUFS * LEN_MAX;
		struct answer answer;
		int err = line_read(fd, addr, order->len);

		if (err)
			return err;
		answer.bad = bad_pages(addr, order->len, *number);
		answer.cpu_ns = (uint64_t)(line_cpu_ns() - start);
		err = line_write(fd, &answer, sizeof(answer));
		if (err)
			return err;
	}
	return 0;
}

/* Serves the sockets of one round, which the sender uses one at a time. Returns 0 or -errno. */
static int serve_round(const int *fds, char *mem, uint64_t *way)
{
	uint64_t numbers[WAYS] = { 0 };
	struct order order = { 0 };
	int err;

	for (;;) {
		err = line_read(fds[0], way, sizeof(*way));
		if (err || *way >= WAYS)
			return err;
		err = line_read(fds[*way], &order, sizeof(order));
		if (!err && order.len > LEN_MAX)
			err = -EMSGSIZE;
		if (!err)
			err = receive(fds[*way], mem, &order, &numbers[*way]);
		if (err)
			return err;
	}
}

/* Serves a sender. Returns an exit status. */
static int serve(int listener)
{
	char *mem = mmap(NULL, BUFS * LEN_MAX, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int fds[WAYS], err = mem == MAP_FAILED ? -ENOMEM : 0;
	uint64_t way = ROUND_ENDS;

	while (!err && way == ROUND_ENDS) {
		for (int i = 0; i < WAYS; i++) {
			fds[i] = line_accept(listener);
			if (fds[i] < 0)
				return 2;
		}
		err = serve_round(fds, mem, &way);
		for (int i = 0; i < WAYS; i++)
			close(fds[i]);
	}
	return err ? 2 : 0;
}

/* Takes one answer. Returns 0 or -errno. */
static int take_answer(struct sender *sender, struct answer *answer)
{
	int err = line_read(sender->fd, answer, sizeof(*answer));

	return err ? err : answer->bad ? -EILSEQ : 0;
}

/* Sends @cnt messages of @len bytes. Returns 0 or -errno. */
static int send_messages(struct bench *b, int way, size_t len, uint64_t cnt,
			 struct answer *answer)
{
	struct sender *sender = &b->senders[way];
	uint64_t answers = 0;
	int err = 0;

	for (uint64_t i = 0; i < cnt && !err; i++) {
		uint64_t number = b->next[way]++;
		size_t at = number % BUFS * LEN_MAX;

		if (i - answers == BUFS) {
			err = take_answer(sender, answer);
			answers++;
		}
		if (!err)
			err = ways[way].settle(sender, BUFS - 1);
		if (err)
			return err;
		stamp(b->memory.mem + at, len, number);
		err = ways[way].send(sender, at, len);
	}
	for (; !err && answers < cnt; answers++)
		err = take_answer(sender, answer);
	return err ? err : ways[way].settle(sender, 0);
}

static int sample(struct bench *b, int way, size_t len, struct line_cost *cost)
{
	struct order order = { len, SAMPLE_LEN / len };
	uint64_t which = (uint64_t)way;
	struct answer answer = { 0 };
	double start, cpu;
	int err = line_write(b->senders[0].fd, &which, sizeof(which));

	if (!err)
		err = line_write(b->senders[way].fd, &order, sizeof(order));
	start = line_now_ns();
	cpu = line_cpu_ns();
	if (!err)
		err = send_messages(b, way, len, order.cnt, &answer);
	cost->wall_ns = line_now_ns() - start;
	cost->send_cpu_ns = line_cpu_ns() - cpu;
	cost->recv_cpu_ns = (double)answer.cpu_ns;
	return err;
}

/* The figures of one way, and how they compare with those of the first. */
static void print_way(const struct bench *b, int size, int way)
{
	struct line_cost cost = line_medians(b->samples[size][way], b->rounds);
	struct line_cost plain = line_medians(b->samples[size][0], b->rounds);
	double cpu_ns = cost.send_cpu_ns + cost.recv_cpu_ns;

	printf("%8zu KiB  %-17s %6.2f GB/s  %5.2f  %6.1f  %6.1f  %5.2f", sizes[size] / KIB,
	       ways[way].name, (double)SAMPLE_LEN / cost.wall_ns, plain.wall_ns / cost.wall_ns,
	       cost.send_cpu_ns / SAMPLE_KIB, cost.recv_cpu_ns / SAMPLE_KIB,
	       cpu_ns / (plain.send_cpu_ns + plain.recv_cpu_ns));
	if (b->copied[way])
		printf("  %3.0f %% copied",
		       100.0 * (double)b->copied[way] / (double)b->told[way]);
	printf("\n");
}

static void print_all(const struct bench *b)
{
	printf("%u rounds\n%38s  %5s  %6s  %6s  %5s\n", b->rounds, "median", "times", "sender",
	       "recvr", "times");
	printf("%38s  %5s  %14s\n", "", "", "CPU ns/KiB");
	for (int i = 0; i < SIZES * WAYS; i++)
		if (!b->refused[i % WAYS])
			print_way(b, i / WAYS, i % WAYS);
	for (int way = 0; way < WAYS; way++)
		if (b->refused[way])
			printf("%s: refused: %s\n", ways[way].name, strerror(-b->refused[way]));
}

static bool open_memory(struct memory *memory, bool huge)
{
	memory->len = BUFS * LEN_MAX;
	memory->file = memfd_create("zerocopy", MFD_CLOEXEC | (huge ? MFD_HUGETLB : 0));
	if (memory->file < 0 || ftruncate(memory->file, (off_t)memory->len))
		return false;
	memory->mem = mmap(NULL, memory->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			   memory->file, 0);
	return memory->mem != MAP_FAILED;
}

/* Connects all, and finds out which the kernel refuses. Returns 0 or -errno. */
static int begin_round(struct bench *b, const struct addrinfo *to)
{
	for (int way = 0; way < WAYS; way++) {
		b->next[way] = 0;
		b->senders[way] = (struct sender){ .memory = &b->memory,
						   .fd = line_connect(to) };
		if (b->senders[way].fd < 0)
			return -errno;
		b->refused[way] = ways[way].open(&b->senders[way]);
	}
	return 0;
}

static int end_round(struct bench *b, bool last)
{
	uint64_t mark = last ? ALL_ENDS : ROUND_ENDS;
	int err = line_write(b->senders[0].fd, &mark, sizeof(mark));

	for (int way = 0; way < WAYS; way++) {
		b->told[way] += b->senders[way].told;
		b->copied[way] += b->senders[way].copied;
		if (!b->refused[way])
			ways[way].close(&b->senders[way]);
		close(b->senders[way].fd);
	}
	return err;
}

/* One sample of each way, of each size. Returns 0, or -errno with the reason printed. */
static int run_round(struct bench *b, unsigned round)
{
	for (unsigned i = 0; i < SIZES * WAYS; i++) {
		unsigned size = i / WAYS, way = (i + round) % WAYS;
		int err;

		if (b->refused[way])
			continue;
		err = sample(b, (int)way, sizes[size], &b->samples[size][way][round]);
		if (err) {
			fprintf(stderr, "zerocopy: %s: %s\n", ways[way].name,
				err == -EILSEQ ? "other bytes arrived" : strerror(-err));
			return err;
		}
	}
	return 0;
}

/* Returns an exit status. */
static int measure(void *arg, const struct addrinfo *to)
{
	struct bench *b = arg;

	for (unsigned round = 0; round < b->rounds; round++) {
		int err = begin_round(b, to);

		if (err) {
			fprintf(stderr, "zerocopy: connect: %s\n", strerror(-err));
			return 2;
		}
		if (run_round(b, round) || end_round(b, round + 1 == b->rounds))
			return 1;
	}
	print_all(b);
	return 0;
}

static void usage(void)
{
	fprintf(stderr, "Usage: weft-zerocopy [--rounds=N] [--huge] [--listen | HOST]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static struct bench b;
	const struct line_sides sides = {
		.serve = serve, .measure = measure, .arg = &b, .port = PORT
	};
	struct line_request request = { .rounds = 15 };

	if (!line_request_read(&request, argc, argv, "--huge"))
		usage();
	b.rounds = request.rounds;
	if (!request.listens && !open_memory(&b.memory, request.flag)) {
		perror("zerocopy: memory");
		return 2;
	}
	return line_run(&sides, &request);
}
