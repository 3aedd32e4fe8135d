/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ringer: a thread that calls engine_wire_wake() for the fake wires without a descriptor, and
 * holds nothing then. It runs while such a wire is open. Called with the wires' lock; the ringer's
 * own lock ranks after that.
 */
#include <pthread.h>
#include "fake_conn.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct list rings = { &rings, &rings }; /* struct fake_wire, by ring */
static struct fake_wire *ringing;	       /* the one whose call is under way, or NULL */
static uint32_t joined;
static bool ends;
static pthread_t thread;

/* Mostly at once, now and then when the sleeper is about to arm again. */
static void linger(uint32_t turn)
{
	uint64_t end = platform_now_ns() + turn * 7919u % 30000u;

	while (turn % 3 == 0 && platform_now_ns() < end)
		platform_relax();
}

static void *ring_all(void *arg)
{
	uint32_t turn = 0;

	pthread_mutex_lock(&lock);
	while (!ends) {
		struct list *node = list_pop(&rings);

		if (!node) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		ringing = container_of(node, struct fake_wire, ring);
		pthread_mutex_unlock(&lock);
		linger(turn++);
		engine_wire_wake(&ringing->wire);
		pthread_mutex_lock(&lock);
		ringing = NULL;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

void fake_ringer_join(struct fake_wire *wire)
{
	list_init(&wire->ring);
	if (joined++)
		return;
	ends = false;
	if (pthread_create(&thread, NULL, ring_all, NULL))
		abort();
}

void fake_ringer_part(struct fake_wire *wire)
{
	pthread_mutex_lock(&lock);
	list_remove(&wire->ring);
	while (ringing == wire)
		pthread_cond_wait(&changed, &lock);
	ends = !--joined;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	if (!joined)
		pthread_join(thread, NULL);
}

void fake_ringer_ring(struct fake_wire *wire)
{
	pthread_mutex_lock(&lock);
	if (list_empty(&wire->ring))
		list_add_tail(&rings, &wire->ring);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}
