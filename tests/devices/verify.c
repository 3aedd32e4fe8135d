/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads and writes that are checked; verify.h has the contract. */
#include "verify.h"
#include "seeded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (VERIFY_UNIT / sizeof(uint64_t))

/* Of a buffer before a read, and of pages that no command names. */
#define EMPTY  0xeeeeeeeeeeeeeeeeULL
#define CANARY 0xca9a41e5ca9a41e5ULL

static uint32_t any(struct verifier *v, uint32_t below)
{
	return (uint32_t)seeded_below(&v->seed, below);
}

static uint64_t word_of(uint32_t unit, uint32_t generation, uint64_t word)
{
	return ((uint64_t)unit << 32 | generation << 10 | word) * 0x9e3779b97f4a7c15ULL;
}

void verify_fill(void *mem, uint32_t unit, uint32_t generation)
{
	uint64_t *words = mem, i;

	for (i = 0; i < WORDS; i++)
		words[i] = word_of(unit, generation, i);
}

static int wrong(const char *what, uint32_t unit, uint64_t word, uint64_t is, uint64_t want)
{
	fprintf(stderr,
		"%s: unit %" PRIu32 " word %" PRIu64 " is %016" PRIx64 ", not %016" PRIx64 "\n",
		what, unit, word, is, want);
	return -EILSEQ;
}

static int check(const void *mem, uint32_t unit, uint32_t generation)
{
	const uint64_t *words = mem;
	uint64_t i;

	for (i = 0; i < WORDS; i++)
		if (words[i] != word_of(unit, generation, i))
			return wrong("what was read", unit, i, words[i],
				     word_of(unit, generation, i));
	return 0;
}

static void set(void *mem, uint64_t value)
{
	uint64_t *words = mem, i;

	for (i = 0; i < WORDS; i++)
		words[i] = value;
}

static uint8_t *buffer_of(const struct verifier *v, uint32_t slot)
{
	return v->mem + VERIFY_UNIT + slot * VERIFY_SLOT_LEN;
}

/* The page before the first buffer is number 0, the one behind buffer @i is i + 1. */
static uint8_t *page_of(const struct verifier *v, uint32_t i)
{
	return v->mem + i * VERIFY_SLOT_LEN;
}

int verify_pages(const struct verifier *v)
{
	uint32_t i;
	uint64_t w;

	for (i = 0; i <= v->depth; i++) {
		const uint64_t *words = (const uint64_t *)page_of(v, i);

		for (w = 0; w < WORDS; w++)
			if (words[w] != CANARY)
				return wrong("a page of no command", i, w, words[w], CANARY);
	}
	return 0;
}

int verify_init(struct verifier *v, struct weft_nvme *qp, void *mem, uint32_t depth,
		uint32_t first, uint32_t cnt, bool own)
{
	uint32_t i;

	*v = (struct verifier){ .qp = qp,
				.mem = mem,
				.depth = depth,
				.first = first,
				.cnt = cnt,
				.seed = first ^ (uint64_t)(uintptr_t)v };
	if (own) {
		v->generations = calloc(cnt, sizeof(*v->generations));
		v->busy = calloc(cnt, sizeof(*v->busy));
		if (!v->generations || !v->busy) {
			verify_fini(v);
			return -ENOMEM;
		}
	}
	for (i = 0; i <= depth; i++)
		set(page_of(v, i), CANARY);
	return 0;
}

void verify_fini(struct verifier *v)
{
	free(v->generations);
	free(v->busy);
}

int verify_prepare(struct verifier *v)
{
	uint32_t at, i, cnt;
	int err = 0;

	for (at = 0; !err && at < v->cnt; at += cnt) {
		cnt = v->cnt - at < VERIFY_UNITS ? v->cnt - at : VERIFY_UNITS;
		for (i = 0; i < cnt; i++)
			verify_fill(buffer_of(v, 0) + i * VERIFY_UNIT, v->first + at + i, 0);
		err = weft_nvme_write(v->qp, 1, (uint64_t)(v->first + at) * VERIFY_BLOCKS,
				      cnt * VERIFY_BLOCKS, buffer_of(v, 0));
	}
	return err;
}

static bool is_busy(const struct verifier *v, uint32_t unit, uint32_t units)
{
	while (v->busy && units)
		if (v->busy[unit + --units])
			return true;
	return false;
}

static uint32_t generation_of(const struct verifier *v, uint32_t unit)
{
	return v->generations ? v->generations[unit] : 0;
}

/* A command that names no unit of another one, where the part is this verifier's own. */
static void make(struct verifier *v, uint32_t at)
{
	struct verify_slot *slot = &v->slots[at];
	bool writes = any(v, 2);
	uint32_t i;

	do {
		slot->units = any(v, 3) ? 1 : 1 + any(v, VERIFY_UNITS);
		if (slot->units > v->cnt)
			slot->units = 1;
		slot->unit = any(v, v->cnt - slot->units + 1);
	} while (is_busy(v, slot->unit, slot->units));
	for (i = 0; i < slot->units; i++) {
		uint32_t unit = slot->unit + i;

		if (writes && v->generations)
			v->generations[unit]++;
		if (v->busy)
			v->busy[unit] = true;
		if (writes)
			verify_fill(buffer_of(v, at) + i * VERIFY_UNIT, v->first + unit,
				    generation_of(v, unit));
		else
			set(buffer_of(v, at) + i * VERIFY_UNIT, EMPTY);
	}
	slot->command = (struct weft_nvme_command){
		.opcode = writes ? WEFT_NVME_WRITE : WEFT_NVME_READ,
		.nsid = 1,
		.lba = (uint64_t)(v->first + slot->unit) * VERIFY_BLOCKS,
		.blocks = slot->units * VERIFY_BLOCKS,
		.buf = buffer_of(v, at),
		.arg = slot,
	};
}

int verify_submit(struct verifier *v)
{
	uint32_t i;
	ssize_t n;

	for (i = 0; i < v->depth; i++) {
		if (v->slots[i].busy)
			continue;
		make(v, i);
		n = weft_nvme_submit(v->qp, &v->slots[i].command, 1);
		if (n != 1)
			return (int)n;
		v->slots[i].busy = true;
		v->under_way++;
	}
	return 0;
}

static int check_slot(const struct verifier *v, const struct verify_slot *slot)
{
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < slot->units; i++)
		err = check((uint8_t *)slot->command.buf + i * VERIFY_UNIT,
			    v->first + slot->unit + i, generation_of(v, slot->unit + i));
	return err;
}

int verify_done(struct verifier *v, const struct weft_nvme_completion *done, size_t cnt)
{
	size_t i;
	int err;

	for (i = 0; i < cnt; i++) {
		struct verify_slot *slot = done[i].arg;
		uint32_t u;

		slot->busy = false;
		v->under_way--;
		for (u = 0; v->busy && u < slot->units; u++)
			v->busy[slot->unit + u] = false;
		if (done[i].status == -ECANCELED) {
			v->cancelled++;
			continue;
		}
		/* A write has its bytes still: the device reads them, and nothing more. */
		err = done[i].status ? done[i].status : check_slot(v, slot);
		if (err)
			return err;
		v->ended++;
	}
	return v->cancelled && !v->under_way ? -ECANCELED : 0;
}
