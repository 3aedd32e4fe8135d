/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plain TCP sockets between the two processes of a measurement, which block, and what a process has
 * used. Any thread.
 */
#ifndef WEFT_BENCH_LINE_H
#define WEFT_BENCH_LINE_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>

/* line_now_ns - CLOCK_MONOTONIC; line_cpu_ns - processor time of all threads, the kernel's included */
double line_now_ns(void);
double line_cpu_ns(void);

/* line_read, line_write - all @len bytes. Returns 0, or -errno: -EPIPE at the other side's end */
int line_read(int fd, void *addr, size_t len);
int line_write(int fd, const void *addr, size_t len);

/* line_connect - returns a connected socket that does not wait to gather, or -1 with errno set */
int line_connect(const struct addrinfo *to);

/* line_accept - returns such a socket of a listener, or -1 with errno set */
int line_accept(int listener);

#define LINE_ROUNDS_MAX 200u

/* What one sample took. */
struct line_cost {
	double wall_ns;
	double send_cpu_ns;
	double recv_cpu_ns;
};

/* line_medians - of each figure by itself; @cnt: 1 to LINE_ROUNDS_MAX */
struct line_cost line_medians(const struct line_cost *samples, unsigned cnt);

/* What a command line asks for. */
struct line_request {
	unsigned rounds; /* 1 to LINE_ROUNDS_MAX */
	const char *host; /* measure with the one that listens there; NULL and not @listens: with a process of our own */
	bool listens;
	bool flag; /* FLAG is among them */
};

/*
 * line_request_read - read [--rounds=N] [FLAG] [--listen | HOST] over what @request has
 * @flag: NULL: there is none
 *
 * Returns false for anything else.
 */
bool line_request_read(struct line_request *request, int argc, char **argv, const char *flag);

struct line_sides {
	/* serve - take the sender's connections, and receive. Returns an exit status */
	int (*serve)(int listener);
	/* measure - connect, send, and print. Returns an exit status */
	int (*measure)(void *arg, const struct addrinfo *to);
	void *arg;
	const char *port;
};

/* line_run - run the side that is asked for. Returns an exit status, with the reason printed */
int line_run(const struct line_sides *sides, const struct line_request *request);

#endif
