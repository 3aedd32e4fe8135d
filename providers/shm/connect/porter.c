/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who looks at the sockets while endpoints sleep. Called by socket.c, with its lock. */
#include "porter.h"
#include "channel.h"
#include "conn.h"

#define NAP_NS 10000000u /* between looks of who is not woken when something comes */

static struct pshm_listed *porter; /* the sockets are in its poll_set; NULL: in none */
static struct list sound = { &sound, &sound };
static uint32_t napping;

static struct pshm_wire *wire_of(struct pshm_listed *l)
{
	return container_of(l, struct pshm_wire, listed);
}

/* Does somebody sleep who is woken when anything comes? */
static bool porter_sleeps(void)
{
	return porter && porter->rest == PSHM_SOUND && !pshm_channels_paused();
}

/* Returns false when the kernel has no room for it. */
static bool porter_is(struct pshm_listed *l)
{
	if (porter == l)
		return true;
	if (l->poll_set < 0 || platform_poll_set_add(l->poll_set, pshm_channels_watch()))
		return false;
	if (porter && porter->poll_set != l->poll_set)
		platform_poll_set_remove(porter->poll_set, pshm_channels_watch());
	porter = l;
	return true;
}

static void porter_end(void)
{
	platform_poll_set_remove(porter->poll_set, pshm_channels_watch());
	porter = NULL;
}

static void rest_set(struct pshm_listed *l, enum pshm_rest rest)
{
	napping -= l->rest == PSHM_NAPS;
	if (l->rest == PSHM_SOUND)
		list_remove(&l->asleep);
	l->rest = rest;
	napping += rest == PSHM_NAPS;
	if (rest == PSHM_SOUND)
		list_push(&sound, &l->asleep);
}

void pshm_porter_wake(struct pshm_listed *l)
{
	if (l->bell >= 0 && pshm_inbox_wake_due(wire_of(l)->inbox))
		sys_fifo_ring(l->bell);
}

void pshm_porter_settle(void)
{
	struct pshm_listed *l;

	if (napping || list_empty(&sound) || porter_sleeps())
		return;
	l = container_of(sound.next, struct pshm_listed, asleep);
	if (!pshm_channels_paused() && porter_is(l))
		return;
	/* it is to look now and then */
	rest_set(l, PSHM_NAPS);
	pshm_porter_wake(l);
}

void pshm_porter_join(struct pshm_listed *l)
{
	list_init(&l->asleep);
	l->bell = l->poll_set = -1;
	l->rest = PSHM_AWAKE;
	l->quiet = false;
}

void pshm_porter_leave(struct pshm_listed *l)
{
	rest_set(l, PSHM_AWAKE);
	if (porter == l)
		porter_end();
	pshm_porter_settle();
}

void pshm_porter_bell(struct pshm_listed *l, int bell, int poll_set)
{
	if (porter == l && l->poll_set != poll_set)
		porter_end();
	l->bell = bell;
	l->poll_set = poll_set;
}

uint64_t pshm_porter_rest(struct pshm_listed *l)
{
	uint64_t now = platform_now_ns();

	if (l->rest == PSHM_AWAKE)
		l->since_ns = now;
	else if (now - l->since_ns >= NAP_NS)
		l->quiet = true;
	if (!porter_sleeps() && (l->quiet || !porter))
		porter_is(l);
	rest_set(l, !pshm_channels_paused() && (l == porter || (l->quiet && porter_sleeps()))
			    ? PSHM_SOUND
			    : PSHM_NAPS);
	return l->rest == PSHM_SOUND ? UINT64_MAX : NAP_NS;
}

void pshm_porter_up(struct pshm_listed *l)
{
	if (l->rest == PSHM_AWAKE)
		return;
	l->quiet = platform_now_ns() - l->since_ns >= NAP_NS;
	rest_set(l, PSHM_AWAKE);
	pshm_porter_settle();
}

void pshm_porter_missed(void)
{
	if (!porter_sleeps())
		return;
	rest_set(porter, PSHM_SOUND); /* the last one who will be the porter again */
	porter_is(container_of(sound.next, struct pshm_listed, asleep));
}

void pshm_porter_forget(void)
{
	struct list *node;

	porter = NULL;
	napping = 0;
	while ((node = list_pop(&sound)))
		list_init(node);
}
