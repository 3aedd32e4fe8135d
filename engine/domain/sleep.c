/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Blocking calls: they look again and again for a while, since to sleep and to be woken costs more than
 * most answers take, and then sleep. Called by programs on any thread, without the domain.
 */
#include "guard.h"
#include "progress.h"
#include "sleep.h"

#define SPIN_MAX_NS 50000u
#define SPIN_MIN_NS 2000u
#define VAIN_MAX    4u	   /* times in a row, before it is tried for half as long */
#define YIELD_TURNS 16u	   /* looks between yields */
#define CROWDED_NS  20000u /* a yield that takes so long: others want this core */
#define IDLE_LOOKS  32u	   /* that find nothing, after one that did, before one sleeps again */

uint64_t engine_end_ns(int timeout)
{
	return timeout < 0 ? UINT64_MAX : platform_now_ns() + (uint64_t)timeout * 1000000u;
}

bool engine_spin(struct engine_spin *spin, struct engine_patience *patience)
{
	uint32_t most = atomic_load_explicit(&patience->spin_ns, memory_order_relaxed);
	uint64_t now = platform_now_ns();

	if (!spin->begin_ns)
		spin->begin_ns = now;
	if (spin->over || now - spin->begin_ns >= (most ? most : SPIN_MAX_NS))
		return false;
	if (++spin->turns % YIELD_TURNS) {
		platform_relax();
		return true;
	}
	platform_yield();
	spin->over = platform_now_ns() - now > CROWDED_NS;
	return true;
}

/* Had it ended within the longest time that is worth while, that time is right; else ever less. */
void engine_spin_end(const struct engine_spin *spin, struct engine_patience *patience)
{
	uint32_t most = atomic_load_explicit(&patience->spin_ns, memory_order_relaxed);
	uint32_t vain = atomic_load_explicit(&patience->vain, memory_order_relaxed);

	if (!spin->begin_ns)
		return;
	if (!most || platform_now_ns() - spin->begin_ns < SPIN_MAX_NS) {
		vain = 0;
		most = SPIN_MAX_NS;
	} else if (vain < VAIN_MAX) {
		vain++;
	} else if (most > SPIN_MIN_NS) {
		most /= 2;
	}
	atomic_store_explicit(&patience->vain, vain, memory_order_relaxed);
	atomic_store_explicit(&patience->spin_ns, most, memory_order_relaxed);
}

/*
 * Has one of the last looks moved something? More follows mostly, within what a wake-up costs. Where others
 * make rounds of the domain too, or want this core, nobody looks on.
 */
static bool engine_sleeper_lingers(struct engine_sleeper *s)
{
	uint32_t rounds = atomic_load_explicit(&s->domain->rounds, memory_order_relaxed);
	bool alone = rounds - s->rounds <= 1;

	s->rounds = rounds;
	if (!alone || s->spin.over)
		s->looks = 0;
	else if (!s->domain->idle)
		s->looks = IDLE_LOOKS;
	else if (s->looks)
		s->looks--;
	return s->looks;
}

/* Arm, and say that we sleep. Returns for how long, or 0: do not. The caller holds the domain. */
static uint64_t engine_sleeper_enter(struct engine_sleeper *s, int *on, int *cnt)
{
	uint64_t now, ns;

	if (engine_sleeper_lingers(s))
		return 0;
	ns = engine_waiter_arm(s->domain);
	if (!ns)
		return 0;
	engine_armed_add(s->domain, s->armed, true);
	*cnt = engine_waiter_enter(s->domain, on);
	now = platform_now_ns();
	if (s->there(s->arg) || now >= s->end_ns)
		ns = 0;
	else if (s->end_ns - now < ns)
		ns = s->end_ns - now;
	if (ns)
		return ns;
	engine_waiter_leave(s->domain);
	engine_armed_drop(s->domain, s->armed, true);
	return 0;
}

void engine_sleeper_wait(struct engine_sleeper *s)
{
	struct engine_domain *domain = s->domain;
	int on[2], cnt = 0;
	uint64_t ns;

	if (engine_spin(&s->spin, &domain->waiter.patience))
		return;
	engine_use(domain);
	ns = engine_sleeper_enter(s, on, &cnt);
	engine_unuse(domain);
	if (!ns) {
		platform_relax();
		return;
	}
	platform_sleep(on, cnt, ns);
	engine_use(domain);
	engine_waiter_leave(domain);
	engine_armed_drop(domain, s->armed, true);
	engine_domain_clock(domain);
	engine_unuse(domain);
}
