/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The keeper's thread. It takes the arena's lock for short steps, and allocates nothing: what it would
 * wait for may wait for it. It is a plain thread, not one that works in rounds: fork() would wait for
 * the end of a round, whose locks the forking thread may hold.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "decay.h"
#include "keeper.h"
#include "limit.h"
#include "psi.h"
#include "ranges.h"
#include "retain.h"
#include "setting.h"

#define DECAY_MS_DEFAULT 10000u
#define DECAY_S_MAX	 86400u
/*
 * Limits are read so often, which is also how long a shortage that the kernel does not tell is not seen: more
 * often where a program that touches new memory as fast as it can is sooner at its limit.
 */
#define ROUND_MS     250u
#define ROUND_MS_MIN 20u
#define TOUCH_PER_MS ((size_t)4 << 20)
/* So long nothing has been kept when the thread ends. */
#define IDLE_NS 1000000000u

/* After the kernel has refused a thread, none is asked for so long. */
#define REFUSED_NS 1000000000u

struct keeper {
	struct arena *arena;
	struct decay decay;
	/* a step of the decay, and when the last one was */
	uint64_t step_ns, stepped_ns;
	/* when something was kept last */
	uint64_t kept_ns;
	/* until the next round */
	uint32_t round_ms;
};

/*
 * Triggers: of the machine, and of the control group. They are opened once and never closed, since
 * the program may have closed them, and opened files of its own under their numbers. The child of a fork has its
 * parent's, of which each report reaches only one.
 */
#define TRIGGERS 2
static int triggers[TRIGGERS] = { -1, -1 };
static bool triggers_open;
/* When a thread was refused last; 0: never. */
static _Atomic uint64_t refused_ns;

static void triggers_start(void)
{
	char path[PATH_MAX];

	if (triggers_open)
		return;
	triggers_open = true;
	triggers[0] = sys_psi_open("/proc/pressure/memory");
	if (!limit_group_file("/proc/self/cgroup", "/sys/fs/cgroup", "memory.pressure", path,
			      sizeof(path)))
		triggers[1] = sys_psi_open(path);
}

/* Has the limits hold that there are now. Returns the bytes that may be kept. */
static size_t limits_read(struct keeper *k)
{
	struct arena *arena = k->arena;
	struct limit limit;
	size_t ms;

	limit_process(&limit);
	platform_lock(&arena->lock);
	retain_limit_locked(arena, &limit);
	platform_unlock(&arena->lock);
	ms = limit.room / TOUCH_PER_MS;
	k->round_ms = ms > ROUND_MS	  ? ROUND_MS
		      : ms < ROUND_MS_MIN ? ROUND_MS_MIN
					  : (uint32_t)ms;
	return atomic_load_explicit(&arena->allowed, memory_order_relaxed);
}

/* Returns what may be kept after as many steps of the decay as it is time for. */
static size_t decay_steps(struct keeper *k, size_t unused, size_t kept)
{
	uint64_t now = platform_now_ns(), steps;
	size_t keep = kept;

	if (!k->step_ns)
		return 0;
	steps = (now - k->stepped_ns) / k->step_ns;
	k->stepped_ns += steps * k->step_ns;
	for (steps = steps < DECAY_STEPS ? steps : DECAY_STEPS; steps; steps--)
		keep = decay_step(&k->decay, unused, kept);
	return keep;
}

/* Gives back what has been free for long. */
static void decay(struct keeper *k)
{
	struct arena_ranges *r = k->arena->ranges;
	size_t keep, kept, unused;

	platform_lock(&k->arena->lock);
	kept = r->quarantined;
	unused = r->least < kept ? r->least : kept;
	r->least = kept;
	platform_unlock(&k->arena->lock);
	keep = decay_steps(k, unused, kept);
	/* less than a grain waits until there is more of it, or nothing else */
	if (!keep || kept - keep >= RETAIN_GRAIN)
		decay_gone(&k->decay, arena_trim(k->arena, keep));
}

/* Returns the bytes that the allocator on top keeps once it has given back what is beyond @allowed. */
static size_t allocator_give(struct arena *arena, size_t allowed)
{
	size_t (*give)(size_t allowed);

	platform_lock(&arena->lock);
	give = arena->give;
	platform_unlock(&arena->lock);
	return give ? give(allowed) : 0;
}

/* Returns whether anything is kept afterwards. */
static bool round_of(struct keeper *k, bool pressure)
{
	size_t allowed = limits_read(k), kept;

	if (pressure)
		allowed = 0;
	kept = allocator_give(k->arena, allowed);
	decay(k);
	arena_trim(k->arena, allowed > kept ? allowed - kept : 0);
	platform_lock(&k->arena->lock);
	kept += k->arena->ranges->quarantined;
	platform_unlock(&k->arena->lock);
	return kept;
}

/*
 * Ends the keeper, but for what was freed meanwhile. Returns false if there is such, which no other
 * keeper takes care of; and where the kernel has no membarrier(2), without which that can't be known.
 */
static bool end(struct keeper *k)
{
	_Atomic bool *runs = &k->arena->keeper_runs;

	atomic_store_explicit(runs, false, memory_order_relaxed);
	/* B:keeper.runs  who frees something after it finds no keeper; what was freed before is found here */
	if (!platform_membarrier() && !round_of(k, false))
		return true;
	return atomic_exchange_explicit(runs, true, memory_order_relaxed);
}

/*
 * The keeper begins as the thread that started it is scheduled, which may be for real time, or bound to the
 * processor that it has to itself. What is refused stays as it is.
 */
static void be_scheduled_as_others(void)
{
	const struct sched_param param = { .sched_priority = 0 };
	cpu_set_t cpus;

	sched_setscheduler(0, SCHED_OTHER, &param);
	/* those of the thread that the process began with */
	if (!sched_getaffinity(getpid(), sizeof(cpus), &cpus))
		sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void *keeper_main(void *arg)
{
	struct keeper k = { .arena = arg };

	pthread_setname_np(pthread_self(), "weft-mem-keeper");
	be_scheduled_as_others();
	k.step_ns = k.arena->decay_ms * 1000000ull / DECAY_STEPS;
	k.stepped_ns = k.kept_ns = platform_now_ns();
	triggers_start();
	for (bool pressure = false;;) {
		if (round_of(&k, pressure))
			k.kept_ns = platform_now_ns();
		if (platform_now_ns() - k.kept_ns > IDLE_NS && end(&k))
			return NULL;
		/* after pressure the next round comes in time, whatever a descriptor says that is not ours any more */
		pressure = sys_psi_wait(triggers, pressure ? 0 : TRIGGERS, (int)k.round_ms);
	}
}

/*
 * A thread that takes no signals of the program. Its stack is one that threads of the program have, since it contains their
 * thread-local variables. Returns 0 or an errno.
 */
static int thread_start(struct arena *arena)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, keeper_main, arena);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

/* Called by who has freed something and finds no keeper. */
static void keeper_start(struct arena *arena)
{
	uint64_t last = atomic_load_explicit(&refused_ns, memory_order_relaxed);

	if (arena->lost ||
	    atomic_exchange_explicit(&arena->keeper_runs, true, memory_order_relaxed))
		return;
	if (!last || platform_now_ns() - last > REFUSED_NS) {
		if (!thread_start(arena))
			return;
		atomic_store_explicit(&refused_ns, platform_now_ns(), memory_order_relaxed);
	}
	atomic_store_explicit(&arena->keeper_runs, false, memory_order_relaxed);
	/* There may be no more threads: nothing is kept. */
	allocator_give(arena, 0);
	arena_trim(arena, 0);
}

/* Returns the setting, which is in seconds. */
static uint32_t decay_ms(void)
{
	static const char name[] = "FI_MEM_DECAY";
	const char *text = getenv(name);
	unsigned long seconds = 0;
	char *rest = NULL;

	if (!text)
		return DECAY_MS_DEFAULT;
	if (*text >= '0' && *text <= '9')
		seconds = strtoul(text, &rest, 10);
	if (!rest || *rest) {
		setting_ignored(name, text, "a number of seconds");
		return DECAY_MS_DEFAULT;
	}
	return (uint32_t)(seconds < DECAY_S_MAX ? seconds : DECAY_S_MAX) * 1000;
}

void keeper_init(struct arena *arena)
{
	struct limit limit;

	limit_process(&limit);
	retain_limit_locked(arena, &limit);
	arena->decay_ms = decay_ms();
	arena->keeper_start = keeper_start;
	platform_membarrier_open();
}

void keeper_fork_child(struct arena *arena)
{
	atomic_store_explicit(&arena->keeper_runs, false, memory_order_relaxed);
}
