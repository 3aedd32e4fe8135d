/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A counter that several processes share, and a ring in which each stores a value at the next one, by libweft-btl
 * alone: cc btl.c -lweft-btl. The processes find each other by memory that they share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/btl.h>

#define PROCESSES 4
#define ADDS	  1000
#define CHECK(call)                                                             \
	do {                                                                    \
		int ret_ = (call);                                              \
		if (ret_) {                                                     \
			fprintf(stderr, "%s: %s\n", #call, fi_strerror(-ret_)); \
			exit(1);                                                \
		}                                                               \
	} while (0)

struct process {
	char name[WEFT_BTL_NAME_MAX], handle[WEFT_BTL_HANDLE_MAX];
	size_t name_len;
	uint64_t addr;
};

static struct table {
	struct process processes[PROCESSES];
	int written, done;
} * table;

static void barrier(int *count)
{
	__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < PROCESSES)
		usleep(100);
}

static void run(int rank)
{
	static uint64_t window[2]; /* the counter of rank 0; what the neighbour stores */
	struct process *own = &table->processes[rank];
	uint64_t one = 1, value = (uint64_t)rank;
	struct weft_btl_op add = { 0 }, put = { 0 }, *ended;
	struct weft_btl_target to[PROCESSES];
	struct weft_btl_mem *mem;
	struct weft_btl_ctx *ctx;
	struct weft_btl *btl;

	CHECK(weft_btl_open(NULL, &btl));
	CHECK(weft_btl_ctx_open(btl, &ctx));
	CHECK(weft_btl_mem_open(btl, window, sizeof(window), FI_REMOTE_READ | FI_REMOTE_WRITE,
				&mem));
	own->name_len = sizeof(own->name);
	CHECK(weft_btl_name(btl, own->name, &own->name_len));
	weft_btl_mem_handle(mem, own->handle);
	own->addr = (uintptr_t)window;
	barrier(&table->written);

	for (int i = 0; i < PROCESSES; i++) {
		struct process *p = &table->processes[i];

		to[i] = (struct weft_btl_target){ .handle = p->handle, .addr = p->addr };
		CHECK(weft_btl_peer_open(btl, p->name, p->name_len, &to[i].peer));
	}
	for (int i = 0; i < ADDS; i++) {
		CHECK(weft_btl_atomic(ctx, &to[0], FI_SUM, FI_UINT64, &one, &add));
		while (!weft_btl_poll(ctx, &ended, 1))
			;
	}
	to[(rank + 1) % PROCESSES].addr += sizeof(uint64_t);
	CHECK(weft_btl_put(ctx, &to[(rank + 1) % PROCESSES], &value, sizeof(value), NULL, &put));
	weft_btl_flush(ctx, NULL);
	barrier(&table->done);
	printf("rank %d: counter %lu, from the neighbour %lu\n", rank, window[0], window[1]);
	for (int i = 0; i < PROCESSES; i++)
		weft_btl_peer_close(to[i].peer);
	CHECK(weft_btl_mem_close(mem));
	CHECK(weft_btl_ctx_close(ctx));
	CHECK(weft_btl_close(btl));
}

int main(void)
{
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	for (int rank = 0; rank < PROCESSES; rank++)
		if (!fork()) {
			run(rank);
			exit(0);
		}
	for (int status = 0, failed = 0;; failed |= status)
		if (wait(&status) < 0)
			return failed ? 1 : 0;
}
