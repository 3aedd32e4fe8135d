/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of a lent device share; lent.h is what others see.
 */
#ifndef WEFT_DEVICES_LENDER_LENT_TYPES_H
#define WEFT_DEVICES_LENDER_LENT_TYPES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "admin.h"
#include "function.h"
#include "journal.h"
#include "lease.h"
#include "lent.h"

/* Windows of a lease begin here; each next one is above all before it, so that no address comes twice. */
#define LENT_ADDR_BASE	(1ULL << 32)
#define LENT_ADDR_LIMIT (1ULL << 52)
#define LENT_LEASES	(NVME_LEASES + 1)

/*
 * struct lent_record - a lease, by its number
 * @deadline_ms: of CLOCK_BOOTTIME, about: the controller's counts
 * @next_addr:   of the next window
 * @holders:     connections with which it ends, if it is not kept
 * @complained:  there was a log line about what it rang
 * @ends:        the controller was told to end it
 * @enders:      threads that wait until it has; if there are none, the controller's event tells
 */
struct lent_record {
	struct journal_lease kept;
	uint64_t deadline_ms;
	uint64_t next_addr;
	uint32_t queue_pairs;
	uint32_t holders;
	uint32_t enders;
	bool complained;
	bool ends;
};

/* struct lent_controller - a controller that was taken; @adopted: with what its owner before left */
struct lent_controller {
	struct function *function;
	struct admin *admin;
	struct weft_device_info info;
	bool adopted;
};

/*
 * struct lent - a device
 * @lock:     of all below, and of the function; the only one of its kind that a thread holds. It is held while the
 *	      controller is waited for, but not while that waits for commands under way
 * @failed:   0, or why the controller is not there; the keeper looks for another one
 * @last:     number that was lent last: the next lease takes one behind it
 * @next_addr: of the next window of any lease, where they share a device's addresses
 * @owner:    by queue pair, and @granules by granule: the lease that has it, 0: none
 * @serial:   of the run of the controller that they are about
 * @errors:   entries of the controller's error log that were seen; @errors_due: there are more. @errors_ms: the next time
 *	      that it is read
 * @shown_lock: of @shown, which lent_info() returns without waiting for the controller; within @lock
 * @wake:     has the keeper look again; @stop: it is to end
 */
struct lent {
	pthread_mutex_t lock;
	const char *slot;
	const char *state;
	uint64_t node;
	void (*tell)(void *arg, struct lent *lent, uint32_t kind, uint32_t lease);
	void *arg;
	struct function *function;
	struct admin *admin;
	int failed;
	struct weft_device_info info;
	uint32_t last;
	struct lent_record leases[LENT_LEASES];
	uint64_t next_addr;
	uint16_t *owner;
	uint16_t *granules;
	uint32_t granule_cnt;
	uint64_t serial;
	uint64_t errors;
	bool errors_due;
	uint64_t errors_ms;
	pthread_mutex_t shown_lock;
	struct weft_device_info shown;
	pthread_t keeper;
	bool has_keeper;
	int wake;
	atomic_bool stop;
};

uint64_t lent_now_ms(void);

/* lent_lock, lent_unlock - the latter has others see what has changed */
void lent_lock(struct lent *lent);
void lent_unlock(struct lent *lent);

/*
 * lent_enter - take the lock and find the lease
 * Returns 0 and the record, with the lock held; or -errno without.
 */
int lent_enter(struct lent *lent, const struct lent_lease *lease, struct lent_record **record);

/* lent_enter_ending - the same, also for one whose end waits for commands under way */
int lent_enter_ending(struct lent *lent, const struct lent_lease *lease,
		      struct lent_record **record);

/* The following are called with the lock held. */

/* struct lent_wait - asking the controller again and again: @until_ms, and the next pause */
struct lent_wait {
	uint64_t until_ms;
	uint32_t pause_us;
};

struct lent_wait lent_wait_begin(uint32_t ms);

/*
 * lent_give_way - let others have the device, before the controller is asked again about a lease
 * Returns 0, with the lock held again; or, with the lock held as well: -ESTALE: the lease has ended meanwhile; -ENODEV: the
 * controller is not there any more; -EINPROGRESS: the time is over.
 */
int lent_give_way(struct lent *lent, const struct lent_lease *lease, struct lent_wait *wait);

/* lent_write_journal - returns 0 or -errno, with a log line */
int lent_write_journal(struct lent *lent);

/* lent_forget - what a lease had is free; the controller has ended it */
void lent_forget(struct lent *lent, uint32_t lease);

/*
 * lent_adopt - take over the leases that the controller has and the journal knows, and end the others
 * @ended: out: numbers of those that the journal knows and the controller has not. Returns how many, or -errno
 */
int lent_adopt(struct lent *lent, uint32_t *ended);

/*
 * lent_collect - forget leases that have ended at the controller, but for those whose end a thread waits for (@enders)
 * @ended: out: their numbers. Returns how many, or -errno
 */
int lent_collect(struct lent *lent, uint32_t *ended);

/* lent_runs - whether the controller has a lease. Returns 0, -ESTALE, or another error */
int lent_runs(struct lent *lent, uint32_t lease);

/* lent_report - read the error log, and have a log line for each lease that rang what it must not */
void lent_report(struct lent *lent);

/* lent_check - have @failed say so if @err means that the controller is not used any more; returns @err */
int lent_check(struct lent *lent, int err);

#endif
