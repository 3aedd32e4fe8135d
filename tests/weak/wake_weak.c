/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wakes by wires (engine/domain/channel.c) in all executions that C11 allows: engine_channel_wake()
 * beside a thread that arms the wires and goes to sleep, over a poll set and over a bell alone, which
 * another thread silences. What a wire has is of no ordering of its own here; a system call on a
 * descriptor takes its lock, which orders as acquire and release do. Threads here make no promises
 * (weak.h), so that the end of a call never passes its ring: R: and A:engine_channel.waking, which
 * forbid that, can't be shown to be needed.
 */
#include "weak.h"
#include "mutex.h"

#include <rdma/fi_errno.h>
#include "waiting.h"

#define POLL_SET 7
#define BELL	 8

static struct engine_channel channel;
static _Atomic int rung[2]; /* the poll set, the bell */
static bool has_poll_sets;
static _Atomic int work[2]; /* of two wires */
static bool seen[2];

/* The system */

uint32_t platform_forks(void)
{
	return 0;
}

int platform_bell_open(struct platform_bell *out)
{
	out->descriptor = BELL;
	return 0;
}

void platform_bell_ring(const struct platform_bell *bell)
{
	weak_require(bell->descriptor == BELL);
	atomic_exchange_explicit(&rung[1], 1, memory_order_acq_rel);
}

void platform_bell_clear(const struct platform_bell *bell)
{
	weak_require(bell->descriptor == BELL);
	atomic_exchange_explicit(&rung[1], 0, memory_order_acq_rel);
}

int platform_poll_set_open(const struct platform_bell *bell, int *poll_set)
{
	*poll_set = has_poll_sets ? POLL_SET : *poll_set;
	return has_poll_sets ? 0 : -FI_ENOSYS;
}

int platform_poll_set_add(int poll_set, int fd)
{
	return 0;
}

void platform_poll_set_ring(int poll_set, const struct platform_bell *bell)
{
	weak_require(poll_set == POLL_SET && bell->descriptor == BELL);
	atomic_exchange_explicit(&rung[0], 1, memory_order_acq_rel);
}

void platform_poll_set_clear(int poll_set, const struct platform_bell *bell)
{
	weak_require(poll_set == POLL_SET && bell->descriptor == BELL);
	atomic_exchange_explicit(&rung[0], 0, memory_order_acq_rel);
}

int platform_timer_open(int *timer)
{
	*timer = POLL_SET + 2;
	return 0;
}

void weak_relax(void)
{
	weak_assume(false);
}

int engine_domain_channel(struct engine_domain *d)
{
	return 0;
}

/* Not called: opening fails nowhere, and nothing forks. */

void platform_bell_close(struct platform_bell *bell)
{
	weak_require(false);
}

void platform_poll_set_close(int poll_set)
{
	weak_require(false);
}

int platform_descriptor_renew(int old, int fresh)
{
	weak_require(false);
	return 0;
}

/* The threads */

static void set_up(bool poll_sets)
{
	has_poll_sets = poll_sets;
	for (int i = 0; i < 2; i++) {
		atomic_init(&rung[i], 0);
		atomic_init(&work[i], 0);
		seen[i] = false;
	}
	mutex_init();
	engine_channel_init(&channel, ENGINE_CHANNEL_DOMAIN);
	weak_require(!engine_channel_open(&channel, NULL));
	weak_name("engine_channel.wake_pending", (const void *)&channel.wake_pending,
		  sizeof(channel.wake_pending));
}

static void set_up_poll_set(void)
{
	set_up(true);
}

/* A thread that was woken for another reason has not reported yet that it is awake. */
static void set_up_bell(void)
{
	struct platform_wakers on;

	set_up(false);
	engine_channel_enter(&channel, &on);
	engine_channel_ring(&channel);
}

/* Returns true if a wire has something that was not seen before. */
static bool arm(void)
{
	bool any = false;

	engine_channel_rearm(&channel);
	for (int i = 0; i < 2; i++) {
		if (seen[i] || !atomic_load_explicit(&work[i], memory_order_relaxed))
			continue;
		any = seen[i] = true;
	}
	return any;
}

static void sleeper(void)
{
	struct platform_wakers on;

	while (arm())
		;
	engine_channel_enter(&channel, &on);
}

static void wake(int wire)
{
	atomic_store_explicit(&work[wire], 1, memory_order_relaxed);
	engine_channel_wake(&channel);
}

static void one_wire(void)
{
	wake(0);
}

static void other_wire(void)
{
	wake(1);
}

static void leaver(void)
{
	engine_channel_leave(&channel);
}

static bool rings(void)
{
	return atomic_load_explicit(&rung[!has_poll_sets], memory_order_relaxed);
}

/* The sleeper is woken; and one that arms after that, when nothing more comes, is not. */
static void is_woken(void)
{
	for (int i = 0; i < 2; i++)
		weak_require(seen[i] || !atomic_load_explicit(&work[i], memory_order_relaxed) ||
			     rings());
	engine_channel_leave(&channel);
	engine_channel_rearm(&channel);
	weak_require(!rings());
}

static const struct weak_test poll_set = { "two wakes beside a thread that arms",
					   set_up_poll_set,
					   { sleeper, one_wire, other_wire },
					   is_woken };

static const struct weak_test bell = { "a wake beside a thread that arms and one that leaves",
				       set_up_bell,
				       { sleeper, one_wire, leaver },
				       is_woken };

int main(void)
{
	static const struct weak_test *const tests[] = { &poll_set, &bell, NULL };
	static const struct weak_ordering orderings[] = {
		{ "R:engine_channel.wake_pending", &poll_set },
		{ "A:engine_channel.wake_pending", &poll_set },
		{ NULL, NULL },
	};

	return weak_main(tests, orderings);
}
