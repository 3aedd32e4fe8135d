/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* TCP sockets between two processes that are compared; line.h has the contract. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "line.h"

double line_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double time_ns(struct timeval t)
{
	return (double)t.tv_sec * 1e9 + (double)t.tv_usec * 1e3;
}

double line_cpu_ns(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return time_ns(use.ru_utime) + time_ns(use.ru_stime);
}

int line_read(int fd, void *addr, size_t len)
{
	ssize_t n;

	for (size_t at = 0; at < len; at += (size_t)n) {
		n = recv(fd, (char *)addr + at, len - at, 0);
		if (n <= 0)
			return n ? -errno : -EPIPE;
	}
	return 0;
}

int line_write(int fd, const void *addr, size_t len)
{
	ssize_t n;

	for (size_t at = 0; at < len; at += (size_t)n) {
		n = send(fd, (const char *)addr + at, len - at, MSG_NOSIGNAL);
		if (n < 0)
			return -errno;
	}
	return 0;
}

int line_connect(const struct addrinfo *to)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!connect(fd, to->ai_addr, to->ai_addrlen))
		return fd;
	close(fd);
	return -1;
}

/* Returns a listening socket, or -1 with the reason printed. */
static int listen_at(const struct addrinfo *at)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd >= 0 && !bind(fd, at->ai_addr, at->ai_addrlen) && !listen(fd, SOMAXCONN))
		return fd;
	perror("listen");
	return -1;
}

int line_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of one member of the samples, found by its place in the struct. */
static double median(const struct line_cost *samples, unsigned cnt, size_t member)
{
	double sorted[LINE_ROUNDS_MAX];

	for (unsigned i = 0; i < cnt; i++)
		memcpy(&sorted[i], (const char *)&samples[i] + member, sizeof(sorted[i]));
	qsort(sorted, cnt, sizeof(*sorted), by_value);
	return cnt % 2 ? sorted[cnt / 2] : (sorted[cnt / 2 - 1] + sorted[cnt / 2]) / 2;
}

struct line_cost line_medians(const struct line_cost *samples, unsigned cnt)
{
	return (struct line_cost){
		.wall_ns = median(samples, cnt, offsetof(struct line_cost, wall_ns)),
		.send_cpu_ns = median(samples, cnt, offsetof(struct line_cost, send_cpu_ns)),
		.recv_cpu_ns = median(samples, cnt, offsetof(struct line_cost, recv_cpu_ns)),
	};
}

/* A receiver of our own, over the loopback interface. Returns an exit status. */
static int run_here(const struct line_sides *sides)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct addrinfo info = { .ai_family = AF_INET,
				 .ai_addr = (struct sockaddr *)&addr,
				 .ai_addrlen = sizeof(addr) };
	int listener = listen_at(&info), status;
	socklen_t len = sizeof(addr);
	pid_t child;

	if (listener < 0 || getsockname(listener, info.ai_addr, &len))
		return 2;
	child = fork();
	if (child < 0)
		return 2;
	if (!child)
		_exit(sides->serve(listener));
	close(listener);
	status = sides->measure(sides->arg, &info);
	if (status)
		kill(child, SIGTERM);
	waitpid(child, NULL, 0);
	return status;
}

bool line_request_read(struct line_request *request, int argc, char **argv, const char *flag)
{
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--rounds=", 9))
			request->rounds = (unsigned)strtoul(argv[i] + 9, NULL, 10);
		else if (!strcmp(argv[i], "--listen"))
			request->listens = true;
		else if (flag && !strcmp(argv[i], flag))
			request->flag = true;
		else if (argv[i][0] == '-' || request->host)
			return false;
		else
			request->host = argv[i];
	}
	return request->rounds && request->rounds <= LINE_ROUNDS_MAX &&
	       !(request->host && request->listens);
}

int line_run(const struct line_sides *sides, const struct line_request *request)
{
	const char *host = request->host;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = request->listens ? AI_PASSIVE : 0 };
	struct addrinfo *info;
	int listener;

	if (!host && !request->listens)
		return run_here(sides);
	if (getaddrinfo(host, sides->port, &hints, &info)) {
		fprintf(stderr, "%s: no such host\n", host ? host : "");
		return 2;
	}
	if (host)
		return sides->measure(sides->arg, info);
	listener = listen_at(info);
	return listener < 0 ? 2 : sides->serve(listener);
}
