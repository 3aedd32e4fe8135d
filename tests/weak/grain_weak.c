/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Holders of a grain (mem/pin/grain.h) in all executions that C11 allows: one holds it and uses what
 * the device has, others use it too, and one ends its registration and begins another. Whoever has
 * it finds it registered. membarrier(2) is weak_barrier().
 */
#include "grain.h"
#include "weak.h"

static struct grain grain;
static struct {
	uint64_t handle;
} device; /* of the grain's pages; 0: none */
static bool ended;

int platform_membarrier(void)
{
	weak_fence_name("grain.end");
	weak_barrier();
	weak_fence_name(NULL);
	return 0;
}

void weak_relax(void)
{
	weak_assume(false);
}

static void set_up(void)
{
	memset(&grain, 0, sizeof(grain));
	grain.handle = 7;
	device.handle = 7;

	ended = false;
	atomic_init(&grain.word, WORD_READY);
	weak_name("grain.word", &grain.word, sizeof(grain.word));
	weak_name("grain.held", &grain.held, sizeof(grain.held));
}

/* What is held is registered, and is not ended meanwhile: that would be a data race. */
static void use(void)
{
	weak_require(device.handle == grain.handle && device.handle == 7);
}

static void hold(void)
{
	if (!grain_hold(&grain))
		return;
	use();
	grain_unhold(&grain);
}

static void hold_twice(void)
{
	hold();
	hold();
}

/* What a thread that was refused does with the lock: it has a user until the holder is counted. */
static void use_then_hold(void)
{
	if (!grain_use(&grain))
		return;
	grain_hold_more(&grain);
	grain_unuse(&grain);
	use();
	grain_unhold(&grain);
}

static void end(void)
{
	ended = grain_end(&grain, true);
	if (ended)
		device.handle = 0;
}

static void all_is_told(void)
{
	uint64_t word = atomic_load_explicit(&grain.word, memory_order_relaxed);

	weak_require(!atomic_load_explicit(&grain.held, memory_order_relaxed));
	weak_require(ended ? !(word & WORD_READY) : word & WORD_READY);
	weak_require(!(word & WORD_ENDING) && !(word & WORD_USERS));
}

static const struct weak_test held = {
	"what is held stays registered", set_up, { hold_twice, end }, all_is_told
};

static const struct weak_test used = {
	"so does what is used until it is held", set_up, { use_then_hold, end }, all_is_told
};

int main(void)
{
	static const struct weak_test *const tests[] = { &held, &used, NULL };
	static const struct weak_ordering orderings[] = {
		{ "F:grain.end", &held },
		{ "R:grain.held", &held },
		{ "A:grain.held", &held },
		{ NULL, NULL },
	};

	return weak_main(tests, orderings);
}
