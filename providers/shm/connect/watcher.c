/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which endpoint reads the sockets while all sleep. Called by socket.c, with its lock. */
#include "watcher.h"
#include "channel.h"
#include "conn.h"

/* Sleep of an endpoint that has to read the sockets by itself. */
#define NAP_NS 10000000u

/* The endpoint whose poll set holds the sockets; NULL: none. */
static struct pshm_socket_state *watcher;
/* Those that are PSHM_ASLEEP; number of those that are PSHM_NAPPING. */
static struct list asleep = { &asleep, &asleep };
static uint32_t napping;

static struct pshm_wire *wire_of(struct pshm_socket_state *s)
{
	return container_of(s, struct pshm_wire, sockets);
}

/* Returns true if the watcher sleeps, and is woken by input of the sockets. */
static bool watcher_sleeps(void)
{
	return watcher && watcher->state == PSHM_ASLEEP && !pshm_channels_paused();
}

/* Makes @s the watcher. Returns false when the kernel has no room for that. */
static bool watcher_set(struct pshm_socket_state *s)
{
	if (watcher == s)
		return true;
	if (s->poll_set < 0 || platform_poll_set_add(s->poll_set, pshm_channels_watch()))
		return false;
	if (watcher && watcher->poll_set != s->poll_set)
		platform_poll_set_remove(watcher->poll_set, pshm_channels_watch());
	watcher = s;
	return true;
}

static void watcher_clear(void)
{
	platform_poll_set_remove(watcher->poll_set, pshm_channels_watch());
	watcher = NULL;
}

static void state_set(struct pshm_socket_state *s, enum pshm_sleep_state state)
{
	napping -= s->state == PSHM_NAPPING;
	if (s->state == PSHM_ASLEEP)
		list_remove(&s->asleep);
	s->state = state;
	napping += state == PSHM_NAPPING;
	if (state == PSHM_ASLEEP)
		list_add_tail(&asleep, &s->asleep);
}

void pshm_watcher_wake(struct pshm_socket_state *s)
{
	if (s->bell >= 0 && pshm_inbox_wake_due(wire_of(s)->inbox))
		sys_fifo_ring(s->bell);
}

void pshm_watcher_choose(void)
{
	struct pshm_socket_state *s;

	if (napping || list_empty(&asleep) || watcher_sleeps())
		return;
	s = container_of(asleep.next, struct pshm_socket_state, asleep);
	if (!pshm_channels_paused() && watcher_set(s))
		return;
	/* it has to read the sockets by itself from now on */
	state_set(s, PSHM_NAPPING);
	pshm_watcher_wake(s);
}

void pshm_watcher_join(struct pshm_socket_state *s)
{
	list_init(&s->asleep);
	s->bell = s->poll_set = -1;
	s->state = PSHM_AWAKE;
	s->slept_long = false;
}

void pshm_watcher_leave(struct pshm_socket_state *s)
{
	state_set(s, PSHM_AWAKE);
	if (watcher == s)
		watcher_clear();
	pshm_watcher_choose();
}

void pshm_watcher_bell(struct pshm_socket_state *s, int bell, int poll_set)
{
	if (watcher == s && s->poll_set != poll_set)
		watcher_clear();
	s->bell = bell;
	s->poll_set = poll_set;
}

uint64_t pshm_watcher_sleep(struct pshm_socket_state *s)
{
	uint64_t now = platform_now_ns();

	if (s->state == PSHM_AWAKE)
		s->sleep_ns = now;
	else if (now - s->sleep_ns >= NAP_NS)
		s->slept_long = true;
	if (!watcher_sleeps() && (s->slept_long || !watcher))
		watcher_set(s);
	state_set(s, !pshm_channels_paused() &&
				     (s == watcher || (s->slept_long && watcher_sleeps()))
			     ? PSHM_ASLEEP
			     : PSHM_NAPPING);
	return s->state == PSHM_ASLEEP ? UINT64_MAX : NAP_NS;
}

void pshm_watcher_woken(struct pshm_socket_state *s)
{
	if (s->state == PSHM_AWAKE)
		return;
	s->slept_long = platform_now_ns() - s->sleep_ns >= NAP_NS;
	state_set(s, PSHM_AWAKE);
	pshm_watcher_choose();
}

void pshm_watcher_replace(void)
{
	if (!watcher_sleeps())
		return;
	state_set(watcher, PSHM_ASLEEP); /* to the end of the list */
	watcher_set(container_of(asleep.next, struct pshm_socket_state, asleep));
}

void pshm_watcher_forget(void)
{
	struct list *node;

	watcher = NULL;
	napping = 0;
	while ((node = list_pop(&asleep)))
		list_init(node);
}
