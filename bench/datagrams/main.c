/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft-datagrams - what datagrams of 8 bytes cost between two processes over the loopback interface:
 * by the provider udp of the libfabric that is loaded, or by a socket. Both sides poll.
 *
 * usage: weft-datagrams udp|socket|batch [COUNT]
 *
 * Prints the time of one way of a datagram that is answered, and the time per datagram of bursts of
 * 32, of which four are under way, in ns. bench/datagrams/compare takes turns.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "way.h"

/* Less than what a socket keeps, so that nothing is lost */
#define UNDER_WAY  4
#define PATIENCE_S 60

static const struct way *way;

void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "weft-datagrams: %s failed\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void await(int cnt)
{
	while (cnt)
		cnt -= way->receive(cnt);
}

/* One way, in ns. */
static double answered(int side, int cnt)
{
	uint64_t begin = now_ns();

	for (int i = 0; i < cnt; i++) {
		if (side)
			await(1);
		way->send(1);
		if (!side)
			await(1);
	}
	return (double)(now_ns() - begin) / cnt / 2;
}

/* Each burst is answered by one datagram. Returns ns per datagram. */
static double bursts(int side, int cnt)
{
	uint64_t begin = now_ns();
	int sent = 0;

	for (int i = 0; i < cnt; i++) {
		if (side) {
			await(BURST);
			way->send(1);
			continue;
		}
		for (; sent < cnt && sent < i + UNDER_WAY; sent++)
			way->send(BURST);
		await(1);
	}
	return (double)(now_ns() - begin) / cnt / BURST;
}

/* A core for each side. One that is refused leaves both where the kernel puts them. */
static void take_core(int side)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(side, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void run(int side, int beside, int cnt)
{
	struct sockaddr_in name, peer;
	double one, many;

	alarm(PATIENCE_S);
	way->open(&name);
	must(write(beside, &name, sizeof(name)) == sizeof(name) &&
		     read(beside, &peer, sizeof(peer)) == sizeof(peer),
	     "the exchange of addresses");
	way->meet(&peer);
	take_core(side);
	answered(side, cnt / 10 + 1);
	one = answered(side, cnt);
	bursts(side, cnt / 100 + 1);
	many = bursts(side, cnt / 10 + 1);
	if (!side)
		printf("%.0f %.0f\n", one, many);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int cnt = argc > 2 ? atoi(argv[2]) : 20000, beside[2], status;
	pid_t pid;

	way = !strcmp(name, "udp")	? &way_udp
	      : !strcmp(name, "socket") ? &way_socket
	      : !strcmp(name, "batch")	? &way_batch
					: NULL;
	must(way && cnt > 0, "the command line: udp, socket or batch, and a count");
	/* Two cores have to be there, or those that poll wait for each other. */
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return 77;
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, beside), "socketpair");
	pid = fork();
	must(pid >= 0, "fork");
	run(!pid, beside[!pid], cnt);
	if (!pid)
		_exit(0);
	must(waitpid(pid, &status, 0) == pid && !status, "the other side");
	return 0;
}
