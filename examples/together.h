/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes that begin together: each opens a transport, registers its window, tells the others its
 * name and the window's handle, and opens all of them as peers. They are forked and tell each other
 * by memory that they share; between hosts a job launcher does both. For an example of one file,
 * each process with one thread.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/btl.h>

#define TOGETHER_MAX 16

/* What a process does: @to is the window of each by rank, its own too. Returns 0 if all is well. */
typedef int together_part(int rank, struct weft_btl_ctx *ctx, const struct weft_btl_target *to);

/* What the others need to reach a process. */
struct together_told {
	char name[WEFT_BTL_NAME_MAX], handle[WEFT_BTL_HANDLE_MAX];
	size_t name_len;
	uint64_t addr;
};

static struct together {
	struct together_told told[TOGETHER_MAX];
	int met, cnt;
} * together;

static void together_check(int ret)
{
	if (ret)
		errx(1, "%s", fi_strerror(-ret));
}

/* Waits for all processes, for the n-th time. */
static void together_meet(int times)
{
	__atomic_add_fetch(&together->met, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&together->met, __ATOMIC_SEQ_CST) < times * together->cnt)
		usleep(100);
}

/* One of the processes. */
static int together_be(int rank, void *window, size_t len, together_part *part)
{
	struct together_told *own = &together->told[rank];
	struct weft_btl_target to[TOGETHER_MAX];
	struct weft_btl_ctx *ctx;
	struct weft_btl_mem *mem;
	struct weft_btl *btl;
	int ret;

	together_check(weft_btl_open(NULL, &btl));
	together_check(weft_btl_ctx_open(btl, &ctx));
	together_check(
		weft_btl_mem_open(btl, window, len, FI_REMOTE_READ | FI_REMOTE_WRITE, &mem));
	own->name_len = sizeof(own->name);
	together_check(weft_btl_name(btl, own->name, &own->name_len));
	weft_btl_mem_handle(mem, own->handle);
	own->addr = (uintptr_t)window;
	together_meet(1);
	for (int i = 0; i < together->cnt; i++) {
		struct together_told *told = &together->told[i];

		to[i] = (struct weft_btl_target){ .handle = told->handle, .addr = told->addr };
		together_check(weft_btl_peer_open(btl, told->name, told->name_len, &to[i].peer));
	}
	ret = part(rank, ctx, to);
	/* until then others may reach the window */
	together_meet(2);
	for (int i = 0; i < together->cnt; i++)
		weft_btl_peer_close(to[i].peer);
	together_check(weft_btl_mem_close(mem));
	together_check(weft_btl_ctx_close(ctx));
	together_check(weft_btl_close(btl));
	return ret;
}

/*
 * Runs @part in @cnt processes, TOGETHER_MAX at most, each with a window of its own at @window.
 * Returns 0 if it has returned 0 in each.
 */
static int together_run(int cnt, void *window, size_t len, together_part *part)
{
	int failed = 0, status;

	together = mmap(NULL, sizeof(*together), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (together == MAP_FAILED)
		err(1, "mmap");
	together->cnt = cnt;
	for (int rank = 0; rank < cnt; rank++)
		if (!fork())
			exit(together_be(rank, window, len, part) ? 1 : 0);
	while (wait(&status) > 0)
		failed |= status;
	return failed ? 1 : 0;
}
