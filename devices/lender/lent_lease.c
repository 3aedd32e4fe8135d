/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Leases on a lent device: beginning, renewing and ending them, and taking over those of the lender before. lent.h has
 * the contract.
 *
 * The journal is written before the controller is told of a new lease, and after it has ended one: a lease that the
 * journal does not know is ended when a lender adopts the controller.
 */
#define _GNU_SOURCE
#include "lent_types.h"
#include "log.h"
#include "message.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_ENTRIES (NVME_PAGE / sizeof(struct nvme_lease_log))

/* Generations above the one that should do, which are tried: up to 2^31 above, so that no clock is too wrong. */
#define GENERATION_TRIES 13

/* Pauses while commands under way are waited for: each is twice as long as the one before. */
#define PAUSE_MIN_US 50u
#define PAUSE_MAX_US 6400u /* PAUSE_MIN_US << 7 */

int lent_write_journal(struct lent *lent)
{
	struct journal_lease kept[LENT_LEASES];
	uint32_t i;
	int err;

	for (i = 0; i < LENT_LEASES; i++)
		kept[i] = lent->leases[i].kept;
	err = journal_write(lent->state, lent->info.id, kept, LENT_LEASES);
	if (err)
		lender_log("%s: the journal can't be written: %s", lent->info.name,
			   strerror(-err));
	return err;
}

/* As lent_enter_ending(), also where the controller is not there. */
static int enter(struct lent *lent, const struct lent_lease *lease, struct lent_record **out)
{
	struct lent_record *record;
	int err = 0;

	if (!lease->lease || lease->lease >= LENT_LEASES)
		return -ESTALE;
	record = &lent->leases[lease->lease];
	lent_lock(lent);
	/* One without a token is nobody's: it ends. */
	if (!record->kept.used || record->kept.generation != lease->generation ||
	    lease_token_is_none(&record->kept.token))
		err = -ESTALE;
	else if (!lease_token_is_none(&lease->token) &&
		 !lease_token_same(&lease->token, &record->kept.token))
		err = -EACCES;
	if (err)
		lent_unlock(lent);
	else
		*out = record;
	return err;
}

int lent_enter_ending(struct lent *lent, const struct lent_lease *lease,
		      struct lent_record **out)
{
	int err = enter(lent, lease, out);

	if (err || !lent->failed)
		return err;
	lent_unlock(lent);
	return -ENODEV;
}

int lent_enter(struct lent *lent, const struct lent_lease *lease, struct lent_record **out)
{
	int err = lent_enter_ending(lent, lease, out);

	if (err || !(*out)->ends)
		return err;
	lent_unlock(lent);
	return -ESTALE;
}

struct lent_wait lent_wait_begin(uint32_t ms)
{
	return (struct lent_wait){ lent_now_ms() + ms, PAUSE_MIN_US };
}

int lent_give_way(struct lent *lent, const struct lent_lease *lease, struct lent_wait *wait)
{
	const struct journal_lease *kept = &lent->leases[lease->lease].kept;

	if (lent_now_ms() >= wait->until_ms)
		return -EINPROGRESS;
	lent_unlock(lent);
	nanosleep(&(struct timespec){ .tv_nsec = wait->pause_us * 1000L }, NULL);
	if (wait->pause_us < PAUSE_MAX_US)
		wait->pause_us *= 2;
	lent_lock(lent);
	if (!kept->used || kept->generation != lease->generation)
		return -ESTALE;
	return lent->failed ? -ENODEV : 0;
}

void lent_forget(struct lent *lent, uint32_t lease)
{
	struct lent_record *record = &lent->leases[lease];
	uint32_t i;

	for (i = 1; lent->owner && i <= lent->info.queue_pairs; i++)
		if (lent->owner[i] == lease) {
			lent->owner[i] = 0;
			lent->info.queue_pairs_free++;
		}
	for (i = 0; lent->granules && i < lent->granule_cnt; i++)
		if (lent->granules[i] == lease)
			lent->granules[i] = 0;
	record->kept = (struct journal_lease){ .generation = record->kept.generation };
	record->queue_pairs = 0;
	record->holders = 0;
	record->enders = 0;
	record->complained = false;
	record->ends = false;
}

/* @cqe: out */
static int command(struct lent *lent, uint8_t opcode, uint32_t lease, uint32_t ms,
		   struct nvme_cqe *cqe)
{
	struct nvme_sqe sqe = {
		.opcode = opcode,
		.cdw10 = lease,
		.cdw11 = lent->leases[lease].kept.generation,
		.cdw12 = ms,
	};

	return lent_check(lent, admin_command(lent->admin, &sqe, NULL, cqe));
}

/* @status: out */
static int arm(struct lent *lent, uint32_t lease, uint32_t ms, uint16_t *status)
{
	struct nvme_cqe cqe;
	int err = command(lent, NVME_ADMIN_LEASE_ARM, lease, ms, &cqe);

	if (!err)
		*status = NVME_CQE_STATUS(cqe.status) & (uint16_t)~NVME_SC_DNR;
	return err;
}

/*
 * Have the controller end a lease, and see whether it has. Returns 0: it has, maybe by itself; -EINPROGRESS: commands are under
 * way
 */
static int end(struct lent *lent, uint32_t lease)
{
	struct nvme_cqe cqe;
	int err = command(lent, NVME_ADMIN_LEASE_END, lease, 0, &cqe);

	if (!err && !NVME_CQE_STATUS(cqe.status) && cqe.result & NVME_UNDER_WAY)
		return -EINPROGRESS;
	return err;
}

/* Whether another one may be borrowed beside those that run. */
static int fits(const struct lent *lent, uint32_t flags)
{
	uint32_t i;

	for (i = 1; i < LENT_LEASES; i++)
		if (lent->leases[i].kept.used &&
		    !(flags & lent->leases[i].kept.flags & LEASE_SHARED))
			return -EBUSY;
	return 0;
}

/* The free number behind the one that was lent last, so that one is not used again soon. 0: there is none. */
static uint32_t free_number(const struct lent *lent)
{
	uint32_t i, lease;

	for (i = 0; i < NVME_LEASES; i++) {
		lease = 1 + (lent->last + i) % NVME_LEASES;
		if (!lent->leases[lease].kept.used)
			return lease;
	}
	return 0;
}

/* Above every earlier one, also where a journal was lost: seconds of the clock. */
static uint32_t next_generation(const struct lent_record *record)
{
	uint32_t now = (uint32_t)time(NULL);

	return now > record->kept.generation ? now : record->kept.generation + 1;
}

/*
 * Have the controller begin a lease. It knows the generations of leases that have ended, which a lender that lost its
 * journal does not: other ones are tried then, ever further above.
 */
static int begin(struct lent *lent, uint32_t lease, uint32_t ms)
{
	struct lent_record *record = &lent->leases[lease];
	uint16_t status = 0;
	int err, tries;

	for (tries = 0; tries < GENERATION_TRIES; tries++) {
		uint32_t step = 1u << (3 * tries < 30 ? 3 * tries : 30);

		err = lent_write_journal(lent);
		if (!err)
			err = arm(lent, lease, ms, &status);
		if (err || !status)
			return err;
		if (status != NVME_SC_INVALID_FIELD ||
		    record->kept.generation > UINT32_MAX - step)
			break;
		record->kept.generation += step;
	}
	lender_log("%s: lease %u can't begin: status 0x%x", lent->info.name, lease, status);
	return -EIO;
}

static int borrow(struct lent *lent, const struct lent_borrower *by, uint32_t flags,
		  uint32_t ms, struct lent_lease *out)
{
	uint32_t lease = free_number(lent);
	struct lent_record *record = &lent->leases[lease];
	struct lease_token token;
	int err = fits(lent, flags);

	if (err)
		return err;
	if (!lease)
		return -ENOSPC;
	err = lease_token_make(&token);
	if (err)
		return err;
	*record = (struct lent_record){
		.kept = { .used = 1,
			  .generation = next_generation(record),
			  .token = token,
			  .flags = flags,
			  .uid = by->uid,
			  .pid = by->pid },
		.deadline_ms = lent_now_ms() + ms,
		.next_addr = LENT_ADDR_BASE,
		.holders = !(flags & LEASE_KEPT),
	};
	err = begin(lent, lease, ms);
	if (err) {
		/* What the controller may have begun is ended when it is there again. */
		lent_forget(lent, lease);
		lent_write_journal(lent);
		return err;
	}
	lent->last = lease;
	*out = (struct lent_lease){ lease, record->kept.generation, token };
	return 0;
}

int lent_borrow(struct lent *lent, const struct lent_borrower *by, uint32_t flags, uint32_t ms,
		struct lent_lease *lease)
{
	int err;

	if (!ms || ms > NVME_LEASE_MS_MAX || flags & ~(LEASE_SHARED | LEASE_KEPT))
		return -EINVAL;
	lent_lock(lent);
	err = lent->failed ? -ENODEV : borrow(lent, by, flags, ms, lease);
	lent_unlock(lent);
	return err;
}

int lent_renew(struct lent *lent, const struct lent_lease *lease, uint32_t ms)
{
	struct lent_record *record;
	uint16_t status = 0;
	int err;

	if (!ms || ms > NVME_LEASE_MS_MAX)
		return -EINVAL;
	err = lent_enter(lent, lease, &record);
	if (err)
		return err;
	err = arm(lent, lease->lease, ms, &status);
	if (!err && status)
		err = -ESTALE;
	if (!err)
		record->deadline_ms = lent_now_ms() + ms;
	lent_unlock(lent);
	return err;
}

int lent_share(struct lent *lent, const struct lent_lease *lease)
{
	struct lent_record *record;
	uint32_t before;
	int err = lent_enter(lent, lease, &record);

	if (err)
		return err;
	before = record->kept.flags;
	record->kept.flags |= LEASE_SHARED;
	err = lent_write_journal(lent);
	if (err)
		record->kept.flags = before;
	lent_unlock(lent);
	return err;
}

/*
 * Where the controller is not there the lease is forgotten: what the controller may still have is not in the journal then,
 * and is ended by its next owner.
 */
static int end_and_forget(struct lent *lent, const struct lent_lease *lease, uint32_t wait_ms)
{
	struct lent_record *record = &lent->leases[lease->lease];
	struct lent_wait wait = lent_wait_begin(wait_ms);
	int err = lent->failed ? -ENODEV : end(lent, lease->lease);

	record->ends = true;
	while (err == -EINPROGRESS) {
		record->enders++;
		err = lent_give_way(lent, lease, &wait);
		/* Another thread has seen its end, or that of the controller, and forgotten it. */
		if (err == -ESTALE)
			return lent->failed ? -ENODEV : -ESTALE;
		/* None, if the controller was adopted meanwhile, which begins the record anew. */
		if (record->enders)
			record->enders--;
		if (err == -EINPROGRESS)
			return err;
		if (!err)
			err = end(lent, lease->lease);
	}
	lent_forget(lent, lease->lease);
	lent_write_journal(lent);
	return err;
}

int lent_end(struct lent *lent, const struct lent_lease *lease, uint32_t wait_ms)
{
	struct lent_record *record;
	int err = enter(lent, lease, &record);

	if (err)
		return err;
	err = end_and_forget(lent, lease, wait_ms);
	lent_unlock(lent);
	return err;
}

int lent_hold(struct lent *lent, const struct lent_lease *lease)
{
	struct lent_record *record;
	int err = lent_enter(lent, lease, &record);

	if (err)
		return err;
	record->holders++;
	lent_unlock(lent);
	return 0;
}

void lent_let_go(struct lent *lent, const struct lent_lease *lease)
{
	struct lent_record *record;

	if (enter(lent, lease, &record))
		return;
	if (record->holders && !--record->holders)
		end_and_forget(lent, lease, LENT_WAIT_MS);
	lent_unlock(lent);
}

static void describe(const struct lent *lent, uint32_t lease, struct lent_state *state)
{
	const struct lent_record *record = &lent->leases[lease];
	uint64_t now = lent_now_ms();

	*state = (struct lent_state){
		.lease = { lease, record->kept.generation, record->kept.token },
		.borrower = { record->kept.pid, record->kept.uid },
		.flags = record->kept.flags,
		.ms = record->deadline_ms > now ? (uint32_t)(record->deadline_ms - now) : 0,
		.queue_pairs = record->queue_pairs,
	};
}

int lent_state(struct lent *lent, struct lent_state *state)
{
	struct lent_record *record;
	struct lent_lease lease = state->lease;
	int err = lent_enter(lent, &lease, &record);

	if (err)
		return err;
	describe(lent, lease.lease, state);
	lent_unlock(lent);
	return 0;
}

int lent_next(struct lent *lent, uint32_t after, struct lent_state *state)
{
	uint32_t lease = after < LENT_LEASES ? after + 1 : LENT_LEASES;

	lent_lock(lent);
	while (lease < LENT_LEASES && !lent->leases[lease].kept.used)
		lease++;
	if (lease < LENT_LEASES)
		describe(lent, lease, state);
	lent_unlock(lent);
	return lease < LENT_LEASES ? 0 : -ENOENT;
}

/*
 * A part of the log of leases. -ENOENT: it is not that long any more
 * @retain: an event that the log tells about is not taken for seen
 */
static int read_part(struct lent *lent, uint32_t at, bool retain, struct nvme_lease_log *page)
{
	struct nvme_sqe sqe = {
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.cdw10 = NVME_LOG_LEASES | (retain ? NVME_LOG_RETAIN : 0) |
			 (NVME_PAGE / 4 - 1) << 16,
		.cdw12 = at,
	};
	struct nvme_cqe cqe;
	int err = lent_check(lent, admin_command(lent->admin, &sqe, page, &cqe));

	if (!err && NVME_CQE_STATUS(cqe.status))
		err = at ? -ENOENT : -EIO;
	return err;
}

/* Read the log once: out: by number. Returns how many parts it has, or -errno */
static int read_once(struct lent *lent, bool retain, struct nvme_lease_log *running)
{
	struct nvme_lease_log page[LOG_ENTRIES];
	uint32_t at, i;
	int err, parts = 0;

	memset(running, 0, LENT_LEASES * sizeof(*running));
	for (at = 0; at < LENT_LEASES * sizeof(*page); at += sizeof(page)) {
		err = read_part(lent, at, retain, page);
		if (err)
			return err == -ENOENT ? parts : err;
		parts++;
		for (i = 0; i < LOG_ENTRIES; i++) {
			if (!page[i].lease)
				return parts;
			if (page[i].lease < LENT_LEASES)
				running[page[i].lease] = page[i];
		}
	}
	return parts;
}

static bool is_same(const struct nvme_lease_log *a, const struct nvme_lease_log *b)
{
	uint32_t i;

	for (i = 0; i < LENT_LEASES; i++)
		if (a[i].generation != b[i].generation)
			return false;
	return true;
}

/*
 * Read the controller's leases: out: by number, how long each still runs, with its generation; zero: it does not.
 * A lease that ends meanwhile has those behind it move, maybe from a part that is yet to be read into one that was: what
 * is in several parts is read until it is the same twice.
 */
static int read_running(struct lent *lent, bool retain, struct nvme_lease_log *running)
{
	struct nvme_lease_log before[LENT_LEASES];
	int parts = read_once(lent, retain, running);

	while (parts > 1) {
		memcpy(before, running, sizeof(before));
		parts = read_once(lent, retain, running);
		if (parts > 1 && is_same(before, running))
			break;
	}
	return parts < 0 ? parts : 0;
}

int lent_runs(struct lent *lent, uint32_t lease)
{
	struct nvme_lease_log running[LENT_LEASES];
	int err = read_running(lent, true, running);

	if (err)
		return err;
	return running[lease].generation == lent->leases[lease].kept.generation ? 0 : -ESTALE;
}

int lent_collect(struct lent *lent, uint32_t *ended)
{
	struct nvme_lease_log running[LENT_LEASES];
	uint32_t lease;
	int n = 0, err = read_running(lent, false, running);

	if (err)
		return err;
	for (lease = 1; lease < LENT_LEASES; lease++) {
		struct lent_record *record = &lent->leases[lease];

		if (!record->kept.used || record->enders ||
		    running[lease].generation == record->kept.generation)
			continue;
		lent_forget(lent, lease);
		ended[n++] = lease;
	}
	if (n)
		lent_write_journal(lent);
	return n;
}

/* Above every address that the domain of a lease has in use. */
static int find_next_addr(struct lent *lent, uint32_t lease)
{
	struct lent_record *record = &lent->leases[lease];
	struct function_mapping mapping = { .domain = lease };
	int fds[SLOT_FDS_MAX], err;
	uint32_t i;

	for (i = 0;; i++) {
		err = lent->function->ops->mapping(lent->function, i, &mapping, fds);
		if (err)
			return err == -ENOENT ? 0 : err;
		while (mapping.fd_cnt)
			close(fds[--mapping.fd_cnt]);
		/* Above are those of the controller itself. */
		if (mapping.addr < LENT_ADDR_LIMIT &&
		    mapping.addr + mapping.len > record->next_addr)
			record->next_addr = mapping.addr + mapping.len;
		if (mapping.addr + mapping.len > lent->next_addr)
			lent->next_addr = mapping.addr + mapping.len;
	}
}

static int adopt_queues(struct lent *lent)
{
	struct function_queue queue;
	uint32_t qid;
	int err;

	for (qid = 1; qid <= lent->info.queue_pairs; qid++) {
		err = lent->function->ops->queue(lent->function, (uint16_t)qid, &queue);
		if (err == -ENOENT)
			continue;
		if (err)
			return err;
		if (!queue.domain || queue.domain >= LENT_LEASES)
			continue;
		lent->owner[qid] = (uint16_t)queue.domain;
		lent->leases[queue.domain].queue_pairs++;
		lent->info.queue_pairs_free--;
	}
	return 0;
}

/* A lease that runs, and that the journal knows. */
static int adopt_lease(struct lent *lent, uint32_t lease, const struct journal_lease *kept,
		       const struct nvme_lease_log *running)
{
	struct lent_record *record = &lent->leases[lease];

	/* Of the same lender's it goes on with what its borrower has of it. */
	if (!record->kept.used || record->kept.generation != kept->generation)
		*record = (struct lent_record){ .next_addr = LENT_ADDR_BASE };
	record->kept = *kept;
	record->deadline_ms = lent_now_ms() + running->remaining_ms;
	record->queue_pairs = 0;
	return find_next_addr(lent, lease);
}

/* One that runs, and that nobody knows. While commands are under way it has its number, and is nobody's. */
static int end_unknown(struct lent *lent, const struct nvme_lease_log *running)
{
	struct lent_record *record = &lent->leases[running->lease];
	int err;

	*record = (struct lent_record){ .kept = { .generation = running->generation } };
	lender_log("%s: lease %u is not in the journal, and is ended", lent->info.name,
		   running->lease);
	err = end(lent, running->lease);
	if (err != -EINPROGRESS)
		return err;
	record->kept.used = 1;
	record->ends = true;
	return 0;
}

int lent_adopt(struct lent *lent, uint32_t *ended)
{
	struct journal_lease kept[LENT_LEASES];
	struct nvme_lease_log running[LENT_LEASES];
	uint32_t lease;
	int n = 0, err = read_running(lent, false, running);

	if (err)
		return err;
	journal_read(lent->state, lent->info.id, kept, LENT_LEASES);
	for (lease = 1; lease < LENT_LEASES; lease++) {
		bool was = lent->leases[lease].kept.used || kept[lease].used;

		if (running[lease].lease && kept[lease].used &&
		    kept[lease].generation == running[lease].generation) {
			err = adopt_lease(lent, lease, &kept[lease], &running[lease]);
		} else {
			lent->leases[lease] = (struct lent_record){
				.kept = { .generation = kept[lease].generation }
			};
			if (was)
				ended[n++] = lease;
			if (running[lease].lease)
				err = end_unknown(lent, &running[lease]);
		}
		if (err)
			return err;
	}
	err = adopt_queues(lent);
	if (err)
		return err;
	/* Where it can't be written it says of leases that have ended that they run, which the controller knows better. */
	lent_write_journal(lent);
	return n;
}
