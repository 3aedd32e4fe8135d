/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait objects of completion queues and counters: the descriptors that programs block on. Each
 * such object has a struct engine_wait_obj.
 *
 * The lock of a wait set has rank 0: its holder may take a domain after it, never before.
 */
#ifndef WEFT_WAIT_OBJ_H
#define WEFT_WAIT_OBJ_H

#include "engine.h"

/* The calls that open such objects, as log lines name them. */
#define OPEN_WAIT "fi_cq_open, fi_cntr_open or fi_eq_open with a wait object"

/*
 * engine_wait_obj_open - initialize the wait object of a new queue or counter
 * @fid, @domain: the object and its domain
 * @obj, @set:    as in its attributes
 *
 * Called as the last step that may fail. A domain in which many objects have a descriptor gets a
 * thread. The caller does not hold the domain. Returns 0, -FI_ENOSYS for a wait object that is not
 * offered, -FI_EINVAL, or another -FI_E*.
 */
int engine_wait_obj_open(struct engine_wait_obj *w, struct fid *fid,
			 struct engine_domain *domain, enum fi_wait_obj obj,
			 struct fid_wait *set);

/*
 * engine_wait_obj_enter, engine_wait_obj_leave - hold the wait set and then the domain, to close
 * the object
 * engine_wait_obj_forget - remove it from all sets, between the two; no thread finds it afterwards
 * engine_wait_obj_close - close its descriptor; nothing is held
 */
void engine_wait_obj_enter(struct engine_wait_obj *w);
void engine_wait_obj_leave(struct engine_wait_obj *w);
void engine_wait_obj_forget(struct engine_wait_obj *w);
void engine_wait_obj_close(struct engine_wait_obj *w);

/*
 * engine_wait_obj_control - FI_GETWAIT and FI_GETWAITOBJ of the object; -FI_ENOSYS for another
 * command
 *
 * An object that was opened with FI_WAIT_UNSPEC gets its descriptor at the first FI_GETWAIT; an
 * object in a wait set has that of the set.
 */
int engine_wait_obj_control(struct engine_wait_obj *w, int command, void *arg);

/*
 * engine_wait_type_check - check the wait_obj of the attributes of a call
 * @family, @subsys, @call: as for engine_refuse()
 * @is_set: they are those of a wait set, which is not FI_WAIT_NONE and in no other set
 *
 * Returns 0, -FI_ENOSYS for one that is not offered, or -FI_EINVAL.
 */
int engine_wait_type_check(const struct engine_family *family, enum fi_log_subsys subsys,
			   const char *call, enum fi_wait_obj obj, bool is_set);

/*
 * engine_wait_obj_type - returns what FI_GETWAITOBJ reports of an object opened with @obj: in a
 * set, that of @set
 */
enum fi_wait_obj engine_wait_obj_type(enum fi_wait_obj obj, const struct engine_waitset *set);

/* engine_wait_obj_blocks - returns true if the object's own blocking call is allowed */
static inline bool engine_wait_obj_blocks(const struct engine_wait_obj *w)
{
	return w->obj != FI_WAIT_NONE;
}

/*
 * engine_wait_obj_signal - end the waits for a queue: of threads in its own blocking calls and in
 *			    those of its wait set, and of programs on its descriptor
 * @signals: of the queue; those of its wait set are counted too
 * Called on any thread.
 */
void engine_wait_obj_signal(struct engine_wait_obj *w, struct engine_signals *signals);

/* engine_signals_cnt - returns the number of signals so far */
static inline uint32_t engine_signals_cnt(const struct engine_signals *signals)
{
	/*
	 * A:engine_signals.cnt  what the program did before the signal; pairs R:engine_signals.cnt
	 * F:engine_signals.cnt  a channel that was opened before; pairs F:engine_channel.opened
	 */
	return atomic_load_explicit(&signals->cnt, memory_order_seq_cst);
}

/*
 * engine_signals_there - returns true if a wait that began when there were @before signals ends
 * A signal without a wait ends the next one; a signal with several waits ends each of them.
 * engine_signals_obey - the same, and the wait does end
 */
static inline bool engine_signals_there(const struct engine_signals *signals, uint32_t before)
{
	uint32_t cnt = engine_signals_cnt(signals);

	return cnt != before ||
	       cnt != atomic_load_explicit(&signals->done, memory_order_relaxed);
}

static inline bool engine_signals_obey(struct engine_signals *signals, uint32_t before)
{
	uint32_t cnt = engine_signals_cnt(signals);

	if (cnt == before && cnt == atomic_load_explicit(&signals->done, memory_order_relaxed))
		return false;
	atomic_store_explicit(&signals->done, cnt, memory_order_relaxed);
	return true;
}

/*
 * engine_wait_obj_ready - returns true if the queue has an entry, or the counter a change that the
 * program has not read
 * engine_wait_obj_check - the same, after a round of progress if there is nothing yet
 * The caller holds the domain.
 */
bool engine_wait_obj_ready(const struct engine_wait_obj *w);
bool engine_wait_obj_check(struct engine_wait_obj *w);

/*
 * engine_wait_obj_trywait - fi_trywait on the object
 * The caller does not hold the domain. Returns what fi_trywait returns.
 */
int engine_wait_obj_trywait(struct engine_wait_obj *w);

#endif
