/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Breaks the TCP connections of the process that it is part of, and of its children, at random
 * times and in the ways that networks and hosts do: a thread that looks for the sockets by their
 * descriptors. Started before main() where BREAK_US is set, the mean time between two breaks in
 * microseconds; BREAK_SEED chooses which. Prints how many there were when the process exits.
 *
 * Connections that are being made are left alone: where both sides connect at once, one that breaks
 * then may end with an error.
 *
 * The thread ends before its process forks, and begins anew in both: it allocates while it begins,
 * and the child of a process in which another thread holds a sanitizer's allocator waits for ever.
 */
#define _GNU_SOURCE
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "breaks.h"
#include "seeded.h"

/* Of <netinet/tcp.h>, which <linux/tcp.h> excludes */
#define ESTABLISHED 1
#define CLOSE_WAIT  8 /* the other side has ended it */

#define FD_MAX 512
/* More than either side says before the connection is up, bytes */
#define GREETING_LEN 4096u

static unsigned long mean_us;
static _Atomic unsigned long breaks;
static uint64_t seed;
static pthread_t thread;
static atomic_bool over;
/* Held by who forks */
static pthread_mutex_t forks = PTHREAD_MUTEX_INITIALIZER;

/* Each process breaks others. */
static void seed_process(void)
{
	seed += (uint64_t)getpid() * 2654435761u;
}

static uint32_t rnd(uint32_t below)
{
	return (uint32_t)seeded_below(&seed, below);
}

/* Returns the state of a connection over which both sides have sent packets, or 0. */
static int state_of(int fd)
{
	struct tcp_info info = { 0 };
	int value = 0;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &len) || value != IPPROTO_TCP)
		return 0;
	len = sizeof(info);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    info.tcpi_bytes_received <= GREETING_LEN || info.tcpi_bytes_acked <= GREETING_LEN)
		return 0;
	return info.tcpi_state;
}

int breaks_find(int *fds, int most, bool ended)
{
	int cnt = 0, state;

	for (int fd = 0; fd < FD_MAX && cnt < most; fd++) {
		state = state_of(fd);
		if (state == ESTABLISHED || (ended && state == CLOSE_WAIT))
			fds[cnt++] = fd;
	}
	return cnt;
}

void breaks_do(int fd, enum break_kind kind)
{
	static const struct sockaddr none = { .sa_family = AF_UNSPEC };

	switch (kind) {
	case BREAK_BOTH:
		shutdown(fd, SHUT_RDWR);
		break;
	case BREAK_WRITE:
		shutdown(fd, SHUT_WR);
		break;
	case BREAK_READ:
		shutdown(fd, SHUT_RD);
		break;
	default: /* TSan would see a new socket in connect() */
		(void)syscall(SYS_connect, fd, &none, sizeof(none));
	}
	atomic_fetch_add(&breaks, 1);
}

static void *breaker(void *arg)
{
	struct timespec pause = { 0 };
	int fds[FD_MAX], cnt;

	while (!atomic_load(&over)) {
		pause.tv_nsec = (long)rnd((uint32_t)(2 * mean_us)) * 1000 + 1000;
		nanosleep(&pause, NULL);
		cnt = breaks_find(fds, FD_MAX, false);
		if (cnt)
			breaks_do(fds[rnd((uint32_t)cnt)], rnd(BREAK_KINDS));
	}
	return NULL;
}

static void begin(void)
{
	atomic_store(&over, false);
	if (pthread_create(&thread, NULL, breaker, NULL))
		abort();
}

static void before_fork(void)
{
	pthread_mutex_lock(&forks);
	atomic_store(&over, true);
	pthread_join(thread, NULL);
}

static void in_parent(void)
{
	begin();
	pthread_mutex_unlock(&forks);
}

static void in_child(void)
{
	atomic_store(&breaks, 0);
	seed_process();
	in_parent();
}

static void tell(void)
{
	fprintf(stderr, "process %d: %lu breaks\n", (int)getpid(), atomic_load(&breaks));
}

__attribute__((constructor)) static void breaks_begin(void)
{
	const char *us = getenv("BREAK_US"), *number = getenv("BREAK_SEED");

	if (!us || (mean_us = strtoul(us, NULL, 10)) < 1 || mean_us > 400000)
		return;
	seed = number ? strtoull(number, NULL, 0) : 88172645463325252u;
	seed_process();
	pthread_atfork(before_fork, in_parent, in_child);
	atexit(tell);
	begin();
}
