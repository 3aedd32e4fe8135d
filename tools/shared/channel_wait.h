/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The waits of a channel, for the one file that moves its messages: included there, behind
 *
 *	static inline int channel_progress(struct channel *ch)
 *
 * which takes at most one completion and returns 1, 0 when there was none, or a negative fi_errno. A
 * wait is what is timed: nothing of it may be a call that the compiler can't see.
 */
#include <err.h>
#include <rdma/fi_errno.h>
#include <sched.h>

#include "channel.h"
#include "clock.h"

/* What a wait does when nothing came: seldom looks at the clock. */
static inline int channel_idle(struct channel *ch, struct channel_patience *patience)
{
	if (ch->side->yields)
		sched_yield();
	if (++patience->spins % 16384)
		return 0;
	if (!patience->give_up_ns)
		patience->give_up_ns = clock_ns() + ch->opt.timeout_s * 1000000000ull;
	if (oob_gone(&ch->side->oob)) {
		warnx("the other side has gone");
		return -FI_ESHUTDOWN;
	}
	if (patience->endless || clock_ns() < patience->give_up_ns)
		return 0;
	warnx("nothing completed for %u s", ch->opt.timeout_s);
	return -FI_ETIMEDOUT;
}

int channel_idle_turn(struct channel *ch, struct channel_patience *patience)
{
	return channel_idle(ch, patience);
}

static inline int channel_round(struct channel *ch, struct channel_patience *patience)
{
	int rc = channel_progress(ch);

	return rc ? rc : channel_idle(ch, patience);
}

int channel_turn(struct channel *ch, struct channel_patience *patience)
{
	return channel_round(ch, patience);
}

int channel_wait(struct channel *ch, uint64_t tx, uint64_t rx)
{
	struct channel_patience patience = { 0 };
	int rc;

	while (ch->tx_done < tx || ch->rx_done < rx) {
		rc = channel_round(ch, &patience);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int channel_wait_op(struct channel *ch, const struct channel_op *op)
{
	struct channel_patience patience = { 0 };
	int rc;

	while (op->busy) {
		rc = channel_round(ch, &patience);
		if (rc < 0)
			return rc;
	}
	return 0;
}
