/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * kofi_ring: the provider kofi_loop, compiled so that its wires do not ring themselves. Interrupts do it for them, some time
 * later: by turns a timer of high resolution, within its interrupt, and one of the kernel's wheel, in a
 * soft interrupt. It has the name of kofi_loop and is loaded in its place.
 */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#define RINGERS	 16
#define LATER_NS (300 * NSEC_PER_USEC)

struct wire;
/* of kofi; those of kofi_loop's files under other names (Kbuild) */
void engine_wire_wake(struct wire *wire);
void platform_free(void *ptr);
void ring_wire_wake(struct wire *wire);
void ring_free(void *ptr);

/* What rings for a wire, which has one from its first ring until it is freed. */
struct ringer {
	struct wire *wire;
	struct hrtimer hard;
	struct timer_list soft;
	/* the next ring is in a soft interrupt */
	bool softly;
};

/* Protects which wires have one, and starting its timers. */
static DEFINE_SPINLOCK(ringers_lock);
static struct ringer ringers[RINGERS];

static unsigned long hard_rings, soft_rings, wrong_rings;
module_param(hard_rings, ulong, 0400);
MODULE_PARM_DESC(hard_rings, "Rings within an interrupt");
module_param(soft_rings, ulong, 0400);
MODULE_PARM_DESC(soft_rings, "Rings in a soft interrupt");
module_param(wrong_rings, ulong, 0400);
MODULE_PARM_DESC(wrong_rings, "Rings of neither kind, or of wires for which there is no timer");

static enum hrtimer_restart ring_hard(struct hrtimer *timer)
{
	struct ringer *r = container_of(timer, struct ringer, hard);

	if (in_hardirq())
		hard_rings++;
	else
		wrong_rings++;
	engine_wire_wake(r->wire);
	return HRTIMER_NORESTART;
}

static void ring_soft(struct timer_list *timer)
{
	struct ringer *r = from_timer(r, timer, soft);

	if (in_serving_softirq() && !in_hardirq())
		soft_rings++;
	else
		wrong_rings++;
	engine_wire_wake(r->wire);
}

/* With the lock. The ringer of @wire, NULL: a free one; or NULL. */
static struct ringer *ringer_of(const void *wire)
{
	struct ringer *r;

	for (r = ringers; r < ringers + RINGERS; r++)
		if (r->wire == wire)
			return r;
	return NULL;
}

/* With the lock. A ringer for @wire, or NULL if all are taken. */
static struct ringer *ringer_new(struct wire *wire)
{
	struct ringer *spare = ringer_of(NULL);

	if (!spare)
		return NULL;
	hrtimer_init(&spare->hard, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	spare->hard.function = ring_hard;
	timer_setup(&spare->soft, ring_soft, 0);
	spare->wire = wire;
	return spare;
}

/* One that is due already is put off: it rings once for both. */
void ring_wire_wake(struct wire *wire)
{
	struct ringer *r;

	spin_lock(&ringers_lock);
	r = ringer_of(wire);
	if (!r)
		r = ringer_new(wire);
	if (!r) {
		wrong_rings++;
	} else {
		if (r->softly)
			mod_timer(&r->soft, jiffies + 1);
		else
			hrtimer_start(&r->hard, ns_to_ktime(LATER_NS), HRTIMER_MODE_REL_HARD);
		r->softly = !r->softly;
	}
	spin_unlock(&ringers_lock);
}

/* No ring is under way when a wire is freed: the last step of its close(), when nobody has it ring any more. */
void ring_free(void *ptr)
{
	struct ringer *r = NULL;

	spin_lock(&ringers_lock);
	if (ptr)
		r = ringer_of(ptr);
	spin_unlock(&ringers_lock);
	if (r) {
		hrtimer_cancel(&r->hard);
		del_timer_sync(&r->soft);
		spin_lock(&ringers_lock);
		r->wire = NULL;
		spin_unlock(&ringers_lock);
	}
	platform_free(ptr);
}
