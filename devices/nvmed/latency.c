/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For measurements: an owner that reads 4 KiB at random from a controller that runs, spinning, beside a copy of as much.
 *
 * usage: latency SOCKET [DEPTH [SECONDS [BYTES]]]
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host_side.h"

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void copy(uint32_t len)
{
	enum { AREA = 64 << 20, ROUNDS = 200000 };
	uint8_t *from = malloc(AREA), *to = malloc(AREA);
	uint64_t begin, seed = 1;

	if (!from || !to)
		exit(1);
	memset(from, 1, AREA);
	memset(to, 2, AREA);
	begin = now_ns();
	for (int i = 0; i < ROUNDS; i++) {
		seed = seed * 6364136223846793005ull + 1;
		memcpy(to, from + (seed >> 33) % (AREA / len) * len, len);
		__asm__ volatile("" ::"r"(to) : "memory");
	}
	printf("memcpy of %u bytes: %.0f ns\n", len, (double)(now_ns() - begin) / ROUNDS);
	free(from);
	free(to);
}

enum { SAMPLES = 1 << 20 };

int main(int argc, char **argv)
{
	uint32_t depth = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
	uint64_t span = (argc > 3 ? (uint64_t)atoi(argv[3]) : 2) * 1000000000u;
	uint32_t len = argc > 4 ? (uint32_t)atoi(argv[4]) : 4096;
	uint64_t begin, end, seed = 7, cnt = 0, blocks, *began;
	struct host h;
	struct host_pair admin, pair;
	struct nvme_sqe *sqes;
	uint32_t *samples = malloc(SAMPLES * sizeof(*samples));
	uint64_t addr;

	if (argc < 2 || host_connect(&h, argv[1], NULL, NULL) || host_attach(&h))
		return 1;
	if (host_enable(&h, &admin, 32) || host_pair_create(&h, &admin, &pair, 1, 1024, 0, -1))
		return 1;
	addr = host_take(&h, NVME_PAGE);
	if (host_run(&admin,
		     &(struct nvme_sqe){ .opcode = NVME_ADMIN_IDENTIFY, .nsid = 1, .prp1 = addr },
		     NULL))
		return 1;
	blocks = ((struct nvme_id_ns *)host_at(&h, addr))->nsze;
	copy(len);
	sqes = calloc(depth, sizeof(*sqes));
	began = calloc(65536, sizeof(*began));
	if (!samples || !sqes || !began)
		return 1;
	for (uint32_t i = 0; i < depth; i++) {
		sqes[i] = host_rw(&h, NVME_IO_READ, 0, len / 512, host_take(&h, len), len);
	}
	/* So that memory is there */
	for (uint64_t lba = 0; lba < blocks; lba += 2048) {
		struct nvme_sqe w = host_rw(&h, NVME_IO_WRITE, lba, 2048, HOST_BASE, 1 << 20);

		if (host_run(&pair, &w, NULL))
			return 1;
		h.used -= NVME_PAGE;
	}
	begin = end = now_ns();
	for (uint32_t i = 0; i < depth; i++)
		began[host_submit(&pair, &sqes[i])] = begin;
	host_ring(&pair);
	while (end - begin < span) {
		struct nvme_cqe cqe;
		uint32_t done = 0;

		while (done < depth && host_poll(&pair, &cqe)) {
			struct nvme_sqe *sqe = &sqes[cqe.cid % depth];

			if (NVME_CQE_STATUS(cqe.status))
				return 1;
			end = now_ns();
			samples[cnt++ % SAMPLES] = (uint32_t)(end - began[cqe.cid]);
			seed = seed * 6364136223846793005ull + 1;
			sqe->cdw10 = (uint32_t)((seed >> 33) % (blocks / (len / 512)) *
						(len / 512));
			began[host_submit(&pair, sqe)] = end;
			done++;
		}
		if (done)
			host_ring(&pair);
	}
	if (cnt < SAMPLES)
		qsort(samples, cnt, sizeof(*samples), by_value);
	else
		qsort(samples, SAMPLES, sizeof(*samples), by_value);
	cnt = cnt < 1 ? 1 : cnt;
	printf("depth %u: %.0f IOPS, median %u ns, p99 %u ns\n", depth,
	       (double)cnt * 1e9 / (double)(end - begin),
	       samples[(cnt < SAMPLES ? cnt : SAMPLES) / 2],
	       samples[(cnt < SAMPLES ? cnt : SAMPLES) * 99 / 100]);
	host_pair_forget(&pair);
	host_pair_forget(&admin);
	host_close(&h);
	return 0;
}
