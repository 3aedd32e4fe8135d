/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The key table (tables/mr.c) in all executions that C11 allows: a reader that looks a key up while
 * the owner removes and inserts regions finds one region whole, or none; and the owner waits for a
 * reader that has marked itself.
 */
#include "mr.h"
#include "weak.h"

static _Alignas(64) unsigned char slab[MR_SLAB_FIRST * sizeof(struct mr_line)];
static _Alignas(64) unsigned char arena[16384];
static size_t used;
static struct mr_table table;
static struct mr_reader reader;
static uint32_t first, second;
static char object;
static const uint64_t bases[] = { 0x10000, 0x20000, 0x30000 };

void *platform_alloc(size_t len)
{
	void *at = arena + used;

	used += (len + 63) & ~(size_t)63;
	weak_require(used <= sizeof(arena));
	return at;
}

void platform_free(void *ptr)
{
}

/* A reader that tries again finds what it would have found had it begun later. */
void weak_relax(void)
{
	weak_assume(false);
}

static void *slab_alloc(void *arg, uint32_t number)
{
	weak_require(!number);
	return slab;
}

static void slab_free(void *arg, uint32_t number, void *memory)
{
}

static uint32_t insert(unsigned which, uint64_t key)
{
	struct iovec iov = { (void *)(uintptr_t)bases[which], 100 + which };
	struct mr_spec spec = { .iov = &iov,
				.iov_cnt = 1,
				.access = FI_REMOTE_WRITE,
				.iova = which,
				.key = key,
				.object = &object,
				.live = true };
	uint32_t index = 0;

	weak_require(!mr_insert(&table, &spec, &index));
	return index;
}

static void set_up(enum mr_keys keys)
{
	static const struct mr_memory shared = { slab_alloc, slab_free, NULL };
	struct mr_header *header = (struct mr_header *)(void *)slab;
	struct mr_line *line = (struct mr_line *)(void *)slab + 1;

	memset(slab, 0, sizeof(slab));
	memset(arena, 0, sizeof(arena));
	used = 0;
	mr_init(&table, keys, &shared);
	weak_name("mr_header.seq", &header->seq, sizeof(header->seq));
	weak_name("mr_line.seq", &line->seq, sizeof(line->seq));
	weak_name("mr_line.fields", &line->key,
		  offsetof(struct mr_line, next) - offsetof(struct mr_line, key));
	weak_name("mr_line.next", &line->next, sizeof(line->next));
}

static bool is_whole(const struct mr_view *view, unsigned which)
{
	return view->base == bases[which] && view->len == 100 + which && view->iova == which &&
	       view->access == FI_REMOTE_WRITE;
}

/* Keys that the table issues: the slot of a key that is removed gets another one. */
static uint64_t issued[2];

static void set_up_issued(void)
{
	set_up(MR_KEYS_ISSUED);
	first = insert(0, 0);
	issued[0] = mr_at(&table, first)->key;
	issued[1] = issued[0] + (1u << MR_SLOT_BITS);
	weak_require(!mr_reader_init(&reader, slab));
}

static void renewer(void)
{
	mr_remove(&table, first);
	weak_require(insert(1, 0) == first);
	weak_require(mr_at(&table, first)->key == issued[1]);
}

static void set_up_removed(void)
{
	set_up_issued();
	mr_remove(&table, first);
}

static void inserter(void)
{
	weak_require(insert(1, 0) == first);
}

static void finder_of_old(void)
{
	struct mr_view view;

	if (!mr_reader_find(&reader, issued[0], &view))
		weak_require(is_whole(&view, 0));
}

static void finder_of_new(void)
{
	struct mr_view view;

	if (!mr_reader_find(&reader, issued[1], &view))
		weak_require(is_whole(&view, 1));
}

static const struct weak_test removed = { "a key that is removed leads to its region",
					  set_up_issued,
					  { renewer, finder_of_old },
					  NULL };

static const struct weak_test inserted = { "a key that is inserted leads to its region",
					   set_up_removed,
					   { inserter, finder_of_new },
					   NULL };

/* A direct user marks itself and checks; the owner invalidates and looks for marks. */
static _Atomic int mark;
static int checked, seen; /* each written by one thread */

static void set_up_mark(void)
{
	set_up_issued();
	atomic_init(&mark, 0);
	checked = seen = 0;
}

static void user(void)
{
	struct mr_view view;

	weak_assume(!mr_reader_find(&reader, issued[0], &view));
	atomic_store_explicit(&mark, 1, memory_order_seq_cst);
	checked = mr_reader_check(&reader, &view);
}

static void invalidator(void)
{
	mr_invalidate(&table, first);
	seen = atomic_load_explicit(&mark, memory_order_seq_cst);
}

static void is_waited_for(void)
{
	weak_require(!checked || seen);
}

static const struct weak_test marks = {
	"who uses a region is seen", set_up_mark, { user, invalidator }, is_waited_for
};

/* Given keys: the one that stays is chained behind one that is removed, whose slot goes to another chain. */
static uint64_t key_in(uint32_t bucket, uint64_t from)
{
	while (mr_bucket(from, MR_SLAB_FIRST) != bucket)
		from++;
	return from;
}

static uint64_t staying, leaving, coming;

static void set_up_given(void)
{
	set_up(MR_KEYS_GIVEN);
	staying = key_in(5, 1);
	leaving = key_in(5, staying + 1);
	coming = key_in(6, 1);
	second = 0;
	first = insert(0, staying);
	second = insert(1, leaving);
	weak_name("mr_line.next",
		  slab + second * sizeof(struct mr_line) + offsetof(struct mr_line, next), 4);
	weak_require(!mr_reader_init(&reader, slab));
}

static void mover(void)
{
	mr_remove(&table, second);
	weak_require(insert(2, coming) == second);
}

static void finder_of_staying(void)
{
	struct mr_view view;

	weak_require(!mr_reader_find(&reader, staying, &view));
	weak_require(is_whole(&view, 0));
}

static const struct weak_test chains = {
	"a key that stays is found", set_up_given, { mover, finder_of_staying }, NULL
};

int main(void)
{
	static const struct weak_test *const tests[] = { &removed, &inserted, &marks, &chains,
							 NULL };
	static const struct weak_ordering orderings[] = {
		{ "R:mr_line.fields", &removed }, { "A:mr_line.fields", &removed },
		{ "R:mr_line.seq", &inserted },	  { "A:mr_line.seq", &inserted },
		{ "F:mr_line.seq", &marks },	  { "R:mr_header.seq", &chains },
		{ "A:mr_header.seq", &chains },	  { "R:mr_line.next", &chains },
		{ "A:mr_line.next", &chains },	  { NULL, NULL },
	};

	return weak_main(tests, orderings);
}
