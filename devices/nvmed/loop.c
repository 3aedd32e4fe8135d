/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Rounds, and sleeping */
#include "loop.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "nvmed.h"
#include "schedule.h"
#include "slot/fence.h"

/* Rounds between two looks at the clock, and time between two at descriptors: a system call costs as much as a command */
#define CLOCK_ROUNDS 32u
#define POLL_NS	     50000u

/* Waits in a row in which spinning was in vain, after which each next one spins for half as long */
#define VAIN_MAX    4u
#define SPIN_MIN_NS 2000u

#define EVENTS_MAX 16

#if defined(__x86_64__)
static inline void relax(void)
{
	__builtin_ia32_pause();
}
#elif defined(__aarch64__)
static inline void relax(void)
{
	__asm__ volatile("yield");
}
#else
static inline void relax(void)
{
}
#endif

static int watch(struct loop *l, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event ev = { .events = events, .data.u64 = tag };

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int descriptors_watch(struct loop *l, int signal)
{
	const struct backend_ops *ops = l->c->backend->ops;
	int backend = ops->event(l->c->backend);
	int ret = watch(l, l->timer, EPOLLIN | EPOLLET, NVMED_TAG_TIMER);

	if (!ret && backend >= 0)
		ret = watch(l, backend, ops->due ? EPOLLIN | EPOLLET : EPOLLIN,
			    NVMED_TAG_BACKEND);
	if (!ret && ops->due && ops->alarm(l->c->backend) >= 0)
		ret = watch(l, ops->alarm(l->c->backend), EPOLLIN, NVMED_TAG_BACKEND);
	if (!ret && signal >= 0)
		ret = watch(l, signal, EPOLLIN, NVMED_TAG_SIGNAL);
	return ret;
}

int loop_init(struct loop *l, struct nvmed *c, const char *path, int signal)
{
	int ret;

	*l = (struct loop){
		.c = c, .signal = signal, .armed = UINT64_MAX, .spin_ns = c->config.spin_ns
	};
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		return -errno;
	l->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->timer < 0) {
		ret = -errno;
		goto err_epoll;
	}
	c->epoll = l->epoll;
	ret = descriptors_watch(l, signal);
	if (ret)
		goto err_timer;
	ret = slot_open(&l->slot, c, path);
	if (ret)
		goto err_timer;
	l->polled = l->moved = nvmed_clock(c);
	return 0;

err_timer:
	c->epoll = -1;
	close(l->timer);
err_epoll:
	close(l->epoll);
	return ret;
}

void loop_fini(struct loop *l)
{
	slot_close(&l->slot);
	l->c->epoll = -1;
	close(l->timer);
	close(l->epoll);
}

/* Look at descriptors, for at most @ms; -1: until one is ready. Returns whether the slot may have something */
static bool descriptors_wait(struct loop *l, int ms)
{
	struct epoll_event events[EVENTS_MAX];
	int cnt = epoll_wait(l->epoll, events, EVENTS_MAX, ms);
	bool slot = false;

	for (int i = 0; i < cnt; i++) {
		slot |= events[i].data.u64 == NVMED_TAG_SLOT;
		l->stop |= events[i].data.u64 == NVMED_TAG_SIGNAL;
		if (events[i].data.u64 == NVMED_TAG_TIMER)
			l->armed = 0;
	}
	return slot;
}

/* Deadlines that have passed, whatever else is to be done. Returns the next one */
static uint64_t deadlines(struct loop *l)
{
	uint64_t next = vectors_due(l->c), backend = nvmed_due(l->c);

	leases_due(l->c);
	l->stop |= l->c->backend->gone;
	if (backend < next)
		next = backend;
	return l->c->leases.next < next ? l->c->leases.next : next;
}

/*
 * Deadlines, before sleeping: one that has passed makes chores, which no wake-up would come for. Returns the next one,
 * or 0: there are such chores.
 */
static uint64_t deadline_next(struct loop *l)
{
	struct nvmed *c = l->c;
	bool left = c->chores, made;
	uint64_t next;

	c->chores = false;
	next = deadlines(l);
	made = c->chores;
	c->chores |= left;
	return made ? 0 : next;
}

static bool look_around(struct loop *l)
{
	bool any = false;

	l->rounds = 0;
	nvmed_clock(l->c);
	deadlines(l);
	if (l->c->now - l->polled >= POLL_NS) {
		l->polled = l->c->now;
		if (descriptors_wait(l, 0))
			any = slot_progress(&l->slot);
	}
	return any;
}

bool loop_round(struct loop *l)
{
	struct nvmed *c = l->c;
	bool moved = schedule_round(c);

	if (c->backend->ops->depth)
		moved |= nvmed_reap(c);
	if (c->remote)
		moved |= c->remote->ops->poll(c->remote);
	if (c->chores)
		nvmed_chores(c);
	if (++l->rounds >= CLOCK_ROUNDS)
		moved |= look_around(l);
	return moved;
}

static void set_asleep(struct nvmed *c, uint32_t asleep)
{
	for (uint32_t i = 0; i <= c->config.queue_cnt; i++)
		if (c->bells[i].page)
			doorbell_store(&c->bells[i].page->asleep, asleep);
}

static void timer_set(struct loop *l, uint64_t when)
{
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(when / 1000000000u),
					       .tv_nsec = (long)(when % 1000000000u) } };

	if (when == l->armed)
		return;
	if (when == UINT64_MAX)
		at = (struct itimerspec){ 0 };
	timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &at, NULL);
	l->armed = when;
}

/* A wait is over: where spinning for all of the time that is configured would have ended it, it is worth that. */
static void spin_adapt(struct loop *l, uint64_t waited)
{
	if (waited < l->c->config.spin_ns) {
		l->spin_ns = l->c->config.spin_ns;
		l->vain = 0;
	} else if (l->vain < VAIN_MAX) {
		l->vain++;
	} else if (l->spin_ns > SPIN_MIN_NS) {
		l->spin_ns /= 2;
	}
}

static void loop_sleep(struct loop *l)
{
	struct nvmed *c = l->c;
	uint64_t since = l->moved, next;
	bool slot = false;

	set_asleep(c, 1);
	/*
	 * F:asleep  this store before the last look at doorbells; pairs F:asleep of a queue's owner, between its doorbell
	 * and its load of this: one of both sees what the other has stored.
	 */
	slot_fence();
	c->chores |= c->events.pending_cnt != 0;
	nvmed_chores(c);
	if (!schedule_look(c) && !nvmed_reap(c) && (next = deadline_next(l)) &&
	    (!c->remote || c->remote->ops->sleep(c->remote))) {
		timer_set(l, next);
		vectors_rest(c);
		slot = descriptors_wait(l, -1);
	}
	set_asleep(c, 0);
	l->polled = l->moved = nvmed_clock(c);
	spin_adapt(l, l->moved - since);
	if (slot)
		slot_progress(&l->slot);
}

void loop_step(struct loop *l)
{
	if (loop_round(l)) {
		l->moved = UINT64_MAX;
		return;
	}
	if (l->moved == UINT64_MAX)
		l->moved = nvmed_clock(l->c);
	else if (l->spin_ns < l->c->config.spin_ns)
		nvmed_clock(l->c);
	relax();
	/* Else the clock was read by a look around, at most CLOCK_ROUNDS ago. */
	if (l->c->now - l->moved >= l->spin_ns && l->c->now > l->moved)
		loop_sleep(l);
}
