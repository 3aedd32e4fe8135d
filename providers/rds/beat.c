/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Beats: a thread that tells the other end of each conn that this one lives, whether or not its consumer makes
 * progress. RDS says of nobody that he is dead: what is sent to a host that has stopped waits for it, and what is sent
 * to a socket that is gone is lost. The thread is there while a conn is up.
 */
#include "conn.h"
#include "rds.h"

/* Beats in the time after which a peer is dead */
#define BEATS 4u
/* Time until a round that finds the lock taken tries again */
#define TRY_NS 1000000u

/* Protects what follows; held while the thread starts and stops, and through forks. Ranks after the domains'. */
static struct platform_lock beats_lock;
static struct list beats = { &beats, &beats };
static struct platform_thread beats_thread;

static uint64_t beats_round(void *arg)
{
	struct rds_beat *beat;

	if (!platform_trylock(&beats_lock))
		return TRY_NS;
	list_for_each_entry(beat, &beats, node) {
		struct rds_head head = { .magic = RDS_MAGIC,
					 .version = RDS_VERSION,
					 .op = RDS_ALIVE,
					 .to = beat->id };
		struct iovec iov = { &head, sizeof(head) };

		/* Who has no room for it has something else to receive. */
		rds_socket_send(beat->fd, &beat->to, &iov, 1);
	}
	platform_unlock(&beats_lock);
	return RDS_DEAD_NS / BEATS;
}

static void fork_hold(struct platform_hold *hold)
{
	platform_lock(&beats_lock);
}

/* The child of a fork has no such thread, and its copies of conns are the parent's. */
static void fork_release(struct platform_hold *hold, bool child)
{
	while (child && list_pop(&beats))
		;
	platform_unlock(&beats_lock);
}

/* Behind the domains, whose conns begin and end beats */
static struct platform_hold fork_holder = {
	.rank = PLATFORM_HOLD_INNER - 1,
	.hold = fork_hold,
	.release = fork_release,
};

void rds_beats_init(void)
{
	platform_lock_init(&beats_lock);
	platform_hold_watch(&fork_holder);
}

void rds_beats_fini(void)
{
	platform_hold_unwatch(&fork_holder);
	platform_lock_fini(&beats_lock);
}

int rds_beat_begin(struct rds_beat *beat)
{
	static const struct platform_work work = { .name = "weft-rds", .round = beats_round };
	int ret = 0;

	platform_lock(&beats_lock);
	if (list_empty(&beats))
		ret = platform_thread_start(&beats_thread, &work);
	if (!ret)
		list_add_tail(&beats, &beat->node);
	platform_unlock(&beats_lock);
	return ret;
}

void rds_beat_end(struct rds_beat *beat)
{
	platform_lock(&beats_lock);
	if (!list_empty(&beat->node)) {
		list_remove(&beat->node);
		if (list_empty(&beats))
			platform_thread_stop(&beats_thread);
	}
	platform_unlock(&beats_lock);
}
