/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The waits of a channel. Included by the file that implements a channel, after its definition of
 *
 *	static inline int channel_progress(struct channel *ch)
 *
 * which takes at most one completion and returns 1, 0 if there was none, or a negative fi_errno. Waits
 * are timed, so all of it is inlined.
 */
#include <err.h>
#include <rdma/fi_errno.h>
#include <sched.h>

#include "channel.h"
#include "clock.h"

/* One step of a wait without a completion. Reads the clock once in 16384 steps. */
static inline int channel_idle(struct channel *ch, struct channel_deadline *deadline)
{
	if (ch->side->yields)
		sched_yield();
	if (++deadline->spins % 16384)
		return 0;
	if (!deadline->give_up_ns)
		deadline->give_up_ns = clock_ns() + ch->opt.timeout_s * 1000000000ull;
	if (oob_gone(&ch->side->oob)) {
		warnx("the other side has ended");
		return -FI_ESHUTDOWN;
	}
	if (deadline->endless || clock_ns() < deadline->give_up_ns)
		return 0;
	warnx("nothing completed for %u s", ch->opt.timeout_s);
	return -FI_ETIMEDOUT;
}

int channel_idle_turn(struct channel *ch, struct channel_deadline *deadline)
{
	return channel_idle(ch, deadline);
}

static inline int channel_round(struct channel *ch, struct channel_deadline *deadline)
{
	int rc = channel_progress(ch);

	return rc ? rc : channel_idle(ch, deadline);
}

int channel_turn(struct channel *ch, struct channel_deadline *deadline)
{
	return channel_round(ch, deadline);
}

int channel_wait(struct channel *ch, uint64_t tx, uint64_t rx)
{
	struct channel_deadline deadline = { 0 };
	int rc;

	while (ch->tx_done < tx || ch->rx_done < rx) {
		rc = channel_round(ch, &deadline);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int channel_wait_op(struct channel *ch, const struct channel_op *op)
{
	struct channel_deadline deadline = { 0 };
	int rc;

	while (op->busy) {
		rc = channel_round(ch, &deadline);
		if (rc < 0)
			return rc;
	}
	return 0;
}
