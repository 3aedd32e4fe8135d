/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much of the backend a queue may use while others want less than their share. Turns alone (schedule.h) are fair among
 * queues that always have something to begin. A queue that waits for one command before it begins the next one has nothing
 * to begin most of the time, and a queue with many commands would take all of that time: it is held back here, by as much
 * as the others would wait for it. A queue that is alone, and queues that all have many commands, are not held back.
 *
 * A backend with pieces under way is shared by bytes under way: what waits in a device is served at a rate in proportion
 * to them. All hot queues together have twice the product of the rate and the time of a piece on an idle device, as both
 * are measured; each may have an equal part of that, and no less than the least of the others has under way at once.
 * A backend that carries pieces out at once is shared by its time: what queues that want less have used lately, and some
 * more, is kept for them, up to an equal share each; those that want more get the rest.
 *
 * The loop's thread. Source: Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 2016, for rate, time and
 * the factor of two; Heo et al., IOCost: Block IO Control for Containers in Datacenters, ASPLOS 2022, for giving away what
 * is not used.
 */
#ifndef WEFT_NVMED_SHARE_H
#define WEFT_NVMED_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct nvmed;
struct piece;
struct sq;

#define SHARE_ONE     65536u
#define SHARE_SAMPLES 16u

/*
 * struct share - of the controller
 * @limit:     bytes that a queue may have under way; UINT64_MAX: no queue is held back
 * @few:       bytes that are under way where no queue has more than those that are not held back, about
 * @rate:      bytes in a second that were moved lately while @limit was set
 * @moved:     of them since @rate_at
 * @base_ns:   of a piece while few are under way; @samples: that were measured since @sample_at, the next time @sample_due
 * @due:       when time is shared anew
 * @allowed:   of the time that passes, in parts of SHARE_ONE, for a queue that wants more than it gets
 * @speed:     of a backend that carries out at once: cost in a second
 */
struct share {
	uint64_t limit;
	uint64_t few;
	uint64_t rate;
	uint64_t rate_at;
	uint64_t moved;
	uint64_t base_ns;
	uint64_t sample_at;
	uint64_t sample_due;
	uint32_t sample_cnt;
	uint32_t samples[SHARE_SAMPLES];
	uint64_t due;
	uint64_t allowed;
	uint64_t speed;
};

/*
 * struct sq_share - of a submission queue
 * @wants:     it had more to begin when its turn ended
 * @held:      its turn ended because it is held back
 * @under:     bytes under way; @peak: lately at once
 * @used:      cost since time was shared last; @usage: in such a time lately
 * @was_held:  since then
 * @credit:    cost that it may use; @filled: when it was last added to
 */
struct sq_share {
	bool wants;
	bool held;
	bool was_held;
	uint64_t under;
	uint64_t peak;
	uint64_t used;
	uint64_t usage;
	int64_t credit;
	uint64_t filled;
};

/* share_init - nothing is known */
void share_init(struct nvmed *c);

/* share_round - a round of turns begins */
void share_round(struct nvmed *c);

/* share_most - bytes that the next piece of a queue may have; 0: the queue is held back */
uint64_t share_most(struct nvmed *c, struct sq *sq);

/* share_waits - whether a queue is held back until something under way ends */
bool share_waits(const struct nvmed *c, const struct sq *sq);

/* share_used - a piece that share_most() has allowed has begun, at this cost; others of the queue that take no piece, too */
void share_used(struct nvmed *c, struct sq *sq, uint64_t cost);

/* share_began, share_ended - a piece of a queue is under way, and no longer */
void share_began(struct nvmed *c, struct sq *sq, struct piece *p);
void share_ended(struct nvmed *c, struct sq *sq, const struct piece *p);

#endif
