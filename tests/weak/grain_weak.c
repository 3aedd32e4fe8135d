/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Holders of a grain (mem/pin/grain.h) in all executions that C11 allows: one holds it and uses what
 * the device has, others use it too, and one ends its registration and begins another. Whoever has
 * it finds it registered. membarrier(2) is weak_barrier(), or there is none, or it is forbidden when it is
 * used, and a clock makes one.
 */
#include "grain.h"
#include "weak.h"

#include <rdma/fi_errno.h>

static struct grain grain;
static struct {
	uint64_t handle;
} device; /* of the grain's pages; 0: none */
static bool ended;
static _Atomic bool barriers;
static bool forbidden; /* membarrier(2) */
static uint32_t clock_reads;

int platform_membarrier(void)
{
	if (forbidden)
		return -FI_EPERM;
	weak_fence_name("grain.end");
	weak_barrier();
	weak_fence_name(NULL);
	return 0;
}

/* Once platform_settle() has waited, what others have stored is visible. */
int clock_gettime(clockid_t id, struct timespec *now)
{
	*now = (struct timespec){ .tv_sec = clock_reads++ };
	if (clock_reads < 2)
		return 0;
	weak_fence_name("grain.settle");
	weak_barrier();
	weak_fence_name(NULL);
	return 0;
}

void platform_yield(void)
{
	weak_assume(false);
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
	forbidden = false;
	clock_reads = 0;
	atomic_init(&barriers, true);
	atomic_init(&grain.word, WORD_READY);
	weak_name("grain.barriers", &barriers, sizeof(barriers));
	weak_name("grain.word", &grain.word, sizeof(grain.word));
	weak_name("grain.held", &grain.held, sizeof(grain.held));
}

static void set_up_without(void)
{
	set_up();
	atomic_init(&barriers, false);
}

static void set_up_forbidden(void)
{
	set_up();
	forbidden = true;
}

/* What is held is registered, and is not ended meanwhile: that would be a data race. */
static void use(void)
{
	weak_require(device.handle == grain.handle && device.handle == 7);
}

static void hold(void)
{
	weak_fence_name("grain.fence");
	if (!grain_hold(&grain, &barriers))
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
	weak_fence_name("grain.fence");
	ended = grain_end(&grain, &barriers);
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

static const struct weak_test without = { "without a barrier what is held stays registered",
					  set_up_without,
					  { hold_twice, end },
					  all_is_told };

static const struct weak_test late = { "so it does where the barrier is forbidden later",
				       set_up_forbidden,
				       { hold_twice, end },
				       all_is_told };

int main(void)
{
	static const struct weak_test *const tests[] = { &held, &used, &without, &late, NULL };
	static const struct weak_ordering orderings[] = {
		{ "F:grain.end", &held },    { "R:grain.held", &held },
		{ "A:grain.held", &held },   { "F:grain.fence", &without },
		{ "F:grain.settle", &late }, { NULL, NULL },
	};

	return weak_main(tests, orderings);
}
