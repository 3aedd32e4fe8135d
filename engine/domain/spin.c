/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Blocking calls spin before they sleep, where sleeping and being woken takes longer than most answers: for
 * PLATFORM_SPIN_NS at most. Called by blocking calls on any thread, without the domain held.
 */
#include "waiting.h"

#define SPIN_MIN_NS 2000u
/* Consecutive spins in vain after which the next one is half as long */
#define VAIN_MAX 4u
/* Turns between yields */
#define YIELD_TURNS 16u
/* Duration of a yield from which on other threads want this core */
#define CROWDED_NS 20000u

void engine_sleeper_init(struct engine_sleeper *s, struct engine_channel *channel, int timeout)
{
	*s = (struct engine_sleeper){ .channel = channel, .end_ns = UINT64_MAX };
	if (timeout >= 0)
		s->end_ns = platform_now_ns() + (uint64_t)timeout * 1000000u;
}

uint64_t engine_sleeper_ns(const struct engine_sleeper *s, uint64_t most)
{
	uint64_t now;

	if (s->end_ns == UINT64_MAX)
		return most;
	now = platform_now_ns();
	if (s->end_ns <= now)
		return 0;
	return s->end_ns - now < most ? s->end_ns - now : most;
}

bool engine_sleeper_spins(struct engine_sleeper *s)
{
	uint32_t most = atomic_load_explicit(&s->channel->spin_ns, memory_order_relaxed);
	uint64_t now;

	if (!PLATFORM_SPIN_NS)
		return false;
	now = platform_now_ns();
	if (!s->begin_ns)
		s->begin_ns = now;
	if (s->crowded || now - s->begin_ns >= (most ? most : PLATFORM_SPIN_NS))
		return false;
	if (++s->turns % YIELD_TURNS) {
		platform_relax();
		return true;
	}
	platform_yield();
	s->crowded = platform_now_ns() - now > CROWDED_NS;
	return true;
}

/*
 * A wait that ended within PLATFORM_SPIN_NS sets the time to spin to that; after several longer ones it
 * halves.
 */
void engine_sleeper_end(const struct engine_sleeper *s)
{
	struct engine_channel *channel = s->channel;
	uint32_t most = atomic_load_explicit(&channel->spin_ns, memory_order_relaxed);
	uint32_t vain = atomic_load_explicit(&channel->vain, memory_order_relaxed);

	if (!s->begin_ns)
		return;
	if (!most || platform_now_ns() - s->begin_ns < PLATFORM_SPIN_NS) {
		vain = 0;
		most = PLATFORM_SPIN_NS;
	} else if (vain < VAIN_MAX) {
		vain++;
	} else if (most > SPIN_MIN_NS) {
		most /= 2;
	}
	atomic_store_explicit(&channel->vain, vain, memory_order_relaxed);
	atomic_store_explicit(&channel->spin_ns, most, memory_order_relaxed);
}
