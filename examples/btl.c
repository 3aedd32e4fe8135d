/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Heat in a ring of cells that processes share, by libweft-btl alone:
 *	cc btl.c $(pkg-config --cflags --libs weft-btl)
 * Each process has some cells and a ghost at either end, a copy of the neighbour's last one, into
 * which that neighbour puts it after each step. A counter of the first process, to which all add,
 * tells when a step is over. The result has to be that of one process. together.h opens the
 * transports.
 */
#include <stdio.h>
#include "together.h"

enum { PROCESSES = 4, CELLS = 8, STEPS = 100, ALL = PROCESSES * CELLS };

/*
 * What the others write: a counter, and cells between two ghosts. A step reads one row and writes
 * the other.
 */
static struct window {
	uint64_t counter;
	double rows[2][CELLS + 2];
} window;

/*
 * Waits for the operation that a call has begun.
 * Returns whether the call has to be made again: the device is full.
 */
static int again(struct weft_btl_ctx *ctx, int ret)
{
	struct weft_btl_op *op;

	while (!weft_btl_poll(ctx, &op, 1) && !ret)
		;
	together_check(ret == -FI_EAGAIN ? 0 : ret ? ret : op->status);
	return ret;
}

/* Adds 1 to a counter, and returns when all have: when it is @wanted. */
static void count_to(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, uint64_t wanted)
{
	struct weft_btl_op op = { 0 };

	for (uint64_t add = 1, seen = 0; seen < wanted; seen += add, add = 0)
		while (again(ctx, weft_btl_fetch_atomic(ctx, to, FI_SUM, FI_UINT64, &add, &seen,
							&op)))
			;
}

/*
 * Puts a cell at a ghost of another process, whose window is where the own one is: they were
 * forked.
 */
static void put_ghost(struct weft_btl_ctx *ctx, struct weft_btl_target to, const double *edge,
		      const double *ghost)
{
	struct weft_btl_op op = { 0 };

	to.addr = (uintptr_t)ghost;
	while (again(ctx, weft_btl_put(ctx, &to, edge, sizeof(*edge), NULL, &op)))
		;
}

static void step(const double *from, double *row, int cells)
{
	for (int i = 1; i <= cells; i++)
		row[i] = from[i] + (from[i - 1] - 2 * from[i] + from[i + 1]) / 4;
}

/*
 * The steps of one process, and of all its cells by itself.
 * Returns how many of its cells are wrong.
 */
static int heat(int rank, struct weft_btl_ctx *ctx, const struct weft_btl_target *to)
{
	double serial[2][ALL + 2] = { { [1] = 100, [ALL + 1] = 100 } };
	int wrong = 0;

	memcpy(window.rows[0], &serial[0][rank * CELLS], sizeof(window.rows[0]));
	for (int i = 0; i < STEPS; i++) {
		double *row = window.rows[(i + 1) % 2], *whole = serial[(i + 1) % 2];

		step(window.rows[i % 2], row, CELLS);
		put_ghost(ctx, to[(rank + PROCESSES - 1) % PROCESSES], &row[1], &row[CELLS + 1]);
		put_ghost(ctx, to[(rank + 1) % PROCESSES], &row[CELLS], &row[0]);
		count_to(ctx, &to[0], (uint64_t)(i + 1) * PROCESSES);
		step(serial[i % 2], whole, ALL);
		whole[0] = whole[ALL];
		whole[ALL + 1] = whole[1];
	}
	for (int i = 1; i <= CELLS; i++)
		wrong += window.rows[STEPS % 2][i] != serial[STEPS % 2][rank * CELLS + i];
	printf("rank %d: %d of %d cells are wrong after %d steps\n", rank, wrong, CELLS, STEPS);
	return wrong;
}

int main(void)
{
	return together_run(PROCESSES, &window, sizeof(window), heat);
}
