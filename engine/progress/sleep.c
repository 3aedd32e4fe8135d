/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting in blocking calls: they spin for a while, because sleeping and being woken takes longer
 * than most answers, and then sleep. Called by programs on any thread, without the domain held.
 */
#include <rdma/fi_errno.h>
#include "arm.h"
#include "guard.h"
#include "progress.h"
#include "sleep.h"
#include "waiting.h"

/* Sleep of a thread that nothing can wake */
#define NAP_NS 1000000u
/* Rounds that move nothing, after one that moved something, before the thread sleeps again */
#define IDLE_LOOKS 32u

/*
 * Returns true if one of the last rounds moved something: mostly more follows within the time of a
 * wake-up, and the thread does not sleep yet. Returns false if other threads make rounds of the
 * domain too, or want this core.
 */
static bool engine_sleeper_lingers(struct engine_sleeper *s)
{
	uint32_t rounds = atomic_load_explicit(&s->wait->domain->rounds, memory_order_relaxed);
	bool alone = rounds - s->rounds <= 1;

	s->rounds = rounds;
	if (!alone || s->crowded)
		s->looks = 0;
	else if (!s->wait->domain->idle)
		s->looks = IDLE_LOOKS;
	else if (s->looks)
		s->looks--;
	return s->looks;
}

/*
 * Arm the wires, and register the thread as a sleeper. The caller holds the domain. Returns the
 * time to sleep, ns, or 0: the thread does not sleep, and is not registered.
 */
static uint64_t engine_sleeper_enter(struct engine_sleeper *s, struct platform_wakers *on)
{
	uint64_t ns;

	if (engine_sleeper_lingers(s))
		return 0;
	ns = engine_wires_arm(s->wait->domain);
	if (!ns)
		return 0;
	engine_wait_add(s->wait, true);
	engine_channel_enter(s->channel, on);
	ns = s->there(s->arg) ? 0 : engine_sleeper_ns(s, ns);
	if (ns)
		return ns;
	engine_channel_leave(s->channel);
	engine_wait_drop(s->wait, true);
	return 0;
}

/* The thread has slept, or is cancelled in its sleep. */
static void engine_sleeper_leave(void *arg)
{
	struct engine_sleeper *s = arg;
	struct engine_domain *domain = s->wait->domain;

	engine_use(domain);
	engine_channel_leave(s->channel);
	engine_wait_drop(s->wait, true);
	engine_domain_clock(domain);
	engine_unuse(domain);
}

/* @ret: of platform_sleep() */
static void engine_sleeper_slept(struct engine_sleeper *s, int ret)
{
	s->interrupted |= ret == -FI_EINTR && !s->patient;
}

void engine_sleeper_wait(struct engine_sleeper *s)
{
	struct engine_domain *domain = s->wait->domain;
	struct platform_wakers on;
	uint64_t ns;

	if (engine_sleeper_spins(s))
		return;
	engine_use(domain);
	ns = engine_sleeper_enter(s, &on);
	engine_unuse(domain);
	if (!ns) {
		platform_relax();
		return;
	}
	on.cancelled = engine_sleeper_leave;
	on.arg = s;
	engine_sleeper_slept(s, platform_sleep(&on, ns));
	engine_sleeper_leave(s);
}

void engine_sleeper_sleep(struct engine_sleeper *s, struct platform_wakers *on, int armed)
{
	uint64_t ns = engine_sleeper_ns(s, armed ? NAP_NS : UINT64_MAX);

	if (armed == -FI_EAGAIN || !ns)
		return;
	if (armed) {
		on->bell = NULL;
		on->descriptor = -1;
	}
	engine_sleeper_slept(s, platform_sleep(on, ns));
}
