/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft-peers: what many connected peers of one endpoint of tcp cost in memory and time, without the
 * kernel's share: the provider and the engine are the real ones, and their sockets are made up
 * (sockets.h).
 *
 *	weft-peers [PEERS]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "clock.h"
#include "end.h"
#include "sockets.h"

#define PEERS	  100000u
#define FEW	  1u
#define ROUNDS	  200000u /* calls that are timed */
#define GIVE_UP_S 60u
#define SHARE	  64u /* peers that are being connected at a time */

static void send_to(struct end *e, fi_addr_t to, uint32_t *done)
{
	static uint64_t word;
	ssize_t ret;

	while ((ret = fi_tsend(e->ep, &word, sizeof(word), NULL, to, 1, NULL)) == -FI_EAGAIN)
		*done += end_turn(e);
	CHECK(!ret);
}

/* A real peer, whose answer the others give too. */
static void meet(struct end *e, struct end *real)
{
	uint64_t give_up = clock_ns() + GIVE_UP_S * 1000000000ull, in;
	fi_addr_t to = end_insert(e, real);
	uint32_t done = 0;

	CHECK(!fi_trecv(real->ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	sockets_record();
	send_to(e, to, &done);
	while (done < 2) {
		done += end_turn(e) + end_turn(real);
		CHECK(clock_ns() < give_up);
	}
	CHECK(sockets_recorded());
}

/* Memory of this process in bytes: what it has allocated, and what of it was touched. */
struct size {
	size_t allocated, resident;
};

static struct size size_now(void)
{
	struct mallinfo2 info = mallinfo2();
	struct size size = { .allocated = info.uordblks + info.hblkhd };
	FILE *file = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	CHECK(file && fscanf(file, "%*u %zu", &pages) == 1);
	fclose(file);
	size.resident = pages * (size_t)sysconf(_SC_PAGESIZE);
	return size;
}

/* Of this process: others may use the core meanwhile. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static fi_addr_t insert(struct end *e, uint32_t idx)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(5000),
				  .sin_addr.s_addr = htonl(0x0b000001u + idx) };
	fi_addr_t addr;

	CHECK(fi_av_insert(e->av, &at, 1, &addr, 0, NULL) == 1);
	return addr;
}

/* Sends the first message to each: its connection is made meanwhile. */
static void connect_all(struct end *e, fi_addr_t first, uint32_t cnt)
{
	uint64_t give_up = clock_ns() + (GIVE_UP_S + cnt / 100) * 1000000000ull;
	uint32_t done = 0;

	for (uint32_t i = 0; i < cnt; i++) {
		send_to(e, first + i, &done);
		while (i - done >= SHARE && done < i)
			done += end_turn(e);
	}
	while (done < cnt) {
		done += end_turn(e);
		CHECK(clock_ns() < give_up);
	}
}

static double time_idle(struct end *e)
{
	uint64_t began = cpu_ns();

	for (uint32_t i = 0; i < ROUNDS; i++)
		CHECK(!end_turn(e));
	return (double)(cpu_ns() - began) / ROUNDS;
}

/* Messages to peers in a random order: what finding them costs, and what is no longer cached. */
static double time_sends(struct end *e, fi_addr_t first, uint32_t cnt)
{
	uint64_t began = cpu_ns(), seed = 1;
	uint32_t done = 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		send_to(e, first + (seed >> 33) % cnt, &done);
		while (i - done >= SHARE && done < i)
			done += end_turn(e);
	}
	while (done < ROUNDS)
		done += end_turn(e);
	return (double)(cpu_ns() - began) / ROUNDS;
}

int main(int argc, char **argv)
{
	uint32_t cnt = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : PEERS;
	double idle_few, idle_many, send_few, send_many;
	struct size before, inserted, connected;
	struct end e = { 0 }, real = { 0 };
	uint64_t t[3];
	fi_addr_t first;

	CHECK(cnt);
	end_open(&e, "tcp", FI_SOCKADDR_IN);
	end_open(&real, "tcp", FI_SOCKADDR_IN);
	meet(&e, &real);
	CHECK(!sockets_pretend(cnt + FEW));
	first = insert(&e, 0);
	connect_all(&e, first, FEW);
	idle_few = time_idle(&e);
	send_few = time_sends(&e, first, FEW);
	before = size_now();
	t[0] = cpu_ns();
	for (uint32_t i = 0; i < cnt; i++)
		CHECK(insert(&e, i + FEW) == first + FEW + i);
	t[1] = cpu_ns();
	inserted = size_now();
	connect_all(&e, first + FEW, cnt);
	t[2] = cpu_ns();
	connected = size_now();
	idle_many = time_idle(&e);
	send_many = time_sends(&e, first + FEW, cnt);
	printf("%u peers. An address: %zu bytes, %.2f us. A connected peer: %zu bytes, of them %zu touched; %.2f us\n",
	       cnt, (inserted.allocated - before.allocated) / cnt,
	       (double)(t[1] - t[0]) / cnt / 1e3,
	       (connected.allocated - inserted.allocated) / cnt,
	       (connected.resident - inserted.resident) / cnt,
	       (double)(t[2] - t[1]) / cnt / 1e3);
	printf("an empty fi_cq_read: %.0f ns with one, %.0f ns with all\n", idle_few, idle_many);
	printf("fi_tsend of 8 bytes, its system call left out: %.0f ns to one, %.0f ns to all at random\n",
	       send_few, send_many);
	printf("%" PRIu64 " bytes were sent\n", sockets_sent());
	return 0;
}
