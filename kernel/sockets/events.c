/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sets of sockets that tell which have events; net_socket.h has the contract. A socket of a set
 * has an entry in its own wait queue, which Linux calls when something happens: in an
 * interrupt, mostly. That puts the socket into the set's list, and rings for who sleeps.
 * Whoever takes events asks the sockets in the list what they have, and leaves those there that
 * have something: until that is handled they are found again. Process context, but for the
 * entries.
 */
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "socket.h"

/* Events of one look, as the provider bounds them */
#define TAKE_MAX 64
/* What is found without being asked for */
#define ALWAYS ((__force u32)(EPOLLERR | EPOLLHUP))

/* As in epoll_ctl(2) */
enum {
	HOLD_ADD = 1,
	HOLD_DEL = 2,
	HOLD_MOD = 3,
};

static DEFINE_XARRAY_ALLOC(sets);

static struct kofi_events *set_of(int number)
{
	return xa_load(&sets, number);
}

int sys_events_open(void)
{
	struct kofi_events *set = kzalloc(sizeof(*set), GFP_KERNEL);
	u32 number;

	if (!set)
		return -ENOMEM;
	spin_lock_init(&set->lock);
	INIT_LIST_HEAD(&set->ready);
	if (!xa_alloc(&sets, &number, set, xa_limit_31b, GFP_KERNEL))
		return number;
	kfree(set);
	return -ENOMEM;
}

void sys_events_close(int number)
{
	kfree(xa_erase(&sets, number));
}

/* Something may have happened at @s. */
static void post_locked(struct kofi_events *set, struct kofi_socket *s)
{
	if (list_empty(&s->ready))
		list_add_tail(&s->ready, &set->ready);
	if (set->ring)
		set->ring(set->arg);
}

/* Called by Linux with the lock of the socket's queue held, in any context. */
static int happened(wait_queue_entry_t *waiter, unsigned int mode, int sync, void *key)
{
	struct kofi_socket *s = container_of(waiter, struct kofi_socket, waiter);
	u32 mask = (__force u32)key_to_poll(key);
	struct kofi_events *set = s->set;
	unsigned long flags;

	spin_lock_irqsave(&set->lock, flags);
	if (!mask || mask & (s->events | ALWAYS))
		post_locked(set, s);
	spin_unlock_irqrestore(&set->lock, flags);
	return 1;
}

static void hold_change(struct kofi_events *set, struct kofi_socket *s,
			const struct sys_event *event)
{
	unsigned long flags;

	spin_lock_irqsave(&set->lock, flags);
	s->events = event->events;
	s->what = event->data.ptr;
	post_locked(set, s);
	spin_unlock_irqrestore(&set->lock, flags);
}

static void hold_add(struct kofi_events *set, struct kofi_socket *s,
		     const struct sys_event *event)
{
	s->set = set;
	init_waitqueue_func_entry(&s->waiter, happened);
	add_wait_queue(&s->sock->wq.wait, &s->waiter);
	/* The entry before the look that follows; pairs with the barrier of Linux' wake-up. */
	smp_mb();
	hold_change(set, s, event);
}

void kofi_events_leave(struct kofi_socket *s)
{
	struct kofi_events *set = s->set;
	unsigned long flags;

	if (!set)
		return;
	/* No call of the entry is made afterwards, nor under way. */
	remove_wait_queue(&s->sock->wq.wait, &s->waiter);
	spin_lock_irqsave(&set->lock, flags);
	list_del_init(&s->ready);
	spin_unlock_irqrestore(&set->lock, flags);
	s->set = NULL;
}

int sys_events_hold(int number, int op, int fd, struct sys_event *event)
{
	struct kofi_socket *s = kofi_socket_of(fd);
	struct kofi_events *set = set_of(number);

	if (op == HOLD_DEL)
		kofi_events_leave(s);
	else if (s->set)
		hold_change(set, s, event);
	else
		hold_add(set, s, event);
	return 0;
}

/* Takes one from the list. Returns NULL if it is empty. */
static struct kofi_socket *ready_pop(struct kofi_events *set)
{
	struct kofi_socket *s;

	spin_lock_irq(&set->lock);
	s = list_first_entry_or_null(&set->ready, struct kofi_socket, ready);
	if (s)
		list_del_init(&s->ready);
	spin_unlock_irq(&set->lock);
	return s;
}

static u32 events_of(struct kofi_socket *s)
{
	u32 all = (__force u32)s->sock->ops->poll(NULL, s->sock, NULL);

	return all & (s->events | ALWAYS);
}

int sys_events_take(int number, struct sys_event *events, int max)
{
	struct kofi_events *set = set_of(number);
	struct kofi_socket *found[TAKE_MAX], *s;
	int cnt = 0, i;

	max = min(max, TAKE_MAX);
	while (cnt < max && (s = ready_pop(set))) {
		events[cnt].events = events_of(s);
		events[cnt].data.ptr = s->what;
		if (events[cnt].events)
			found[cnt++] = s;
	}
	spin_lock_irq(&set->lock);
	for (i = 0; i < cnt; i++)
		if (list_empty(&found[i]->ready))
			list_add_tail(&found[i]->ready, &set->ready);
	spin_unlock_irq(&set->lock);
	return cnt;
}

bool sys_events_arm(int number, void (*ring)(void *arg), void *arg)
{
	struct kofi_events *set = set_of(number);
	struct sys_event event;
	bool silent;

	if (sys_events_take(number, &event, 1))
		return false;
	spin_lock_irq(&set->lock);
	silent = list_empty(&set->ready);
	if (silent) {
		set->ring = ring;
		set->arg = arg;
	}
	spin_unlock_irq(&set->lock);
	return silent;
}

void sys_events_disarm(int number, void *arg)
{
	struct kofi_events *set = set_of(number);

	spin_lock_irq(&set->lock);
	if (set->arg == arg)
		set->ring = NULL;
	spin_unlock_irq(&set->lock);
}

bool kofi_events_left(void)
{
	return !xa_empty(&sets);
}
