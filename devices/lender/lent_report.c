/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What borrowers do wrong at their doorbells: the controller takes no notice but for its error log, of which the lender has
 * a log line for each lease. lent_types.h has the contract.
 */
#define _GNU_SOURCE
#include "lent_types.h"
#include "log.h"

#define LOG_ENTRIES (NVME_PAGE / sizeof(struct nvme_error_log))

/* A borrower that rings on and on is not to have the lender read on and on. */
#define AGAIN_MS 1000

/* Of no command. */
#define NO_COMMAND 0xffff

static void complain(struct lent *lent, const struct nvme_error_log *entry)
{
	uint32_t lease = (uint32_t)entry->command_specific;
	const char *what = entry->status ? "is in memory that it has closed"
					 : "was rung with a value that it can't have";
	struct lent_record *record;

	/* A lease that has ended since is not there, and its queue pair may be another's. */
	if (!lease || lease >= LENT_LEASES)
		return;
	record = &lent->leases[lease];
	if (!record->kept.used || record->complained ||
	    record->kept.generation != entry->command_specific >> 32)
		return;
	record->complained = true;
	lender_log("%s: queue pair %u of lease %u, process %d of user %u, %s", lent->info.name,
		   entry->sq_id, lease, (int)record->kept.pid, (unsigned)record->kept.uid, what);
}

void lent_report(struct lent *lent)
{
	struct nvme_error_log page[LOG_ENTRIES];
	struct nvme_sqe sqe = {
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.cdw10 = NVME_LOG_ERROR | (NVME_PAGE / 4 - 1) << 16,
	};
	uint64_t newest = lent->errors;
	uint32_t i;

	lent->errors_due = false;
	lent->errors_ms = lent_now_ms() + AGAIN_MS;
	if (lent_check(lent, admin_do(lent->admin, "the error log", &sqe, page, NULL)))
		return;
	/* The newest one is the first. */
	for (i = 0; i < LOG_ENTRIES && page[i].count > lent->errors; i++) {
		if (page[i].count > newest)
			newest = page[i].count;
		if (page[i].cid == NO_COMMAND)
			complain(lent, &page[i]);
	}
	lent->errors = newest;
}
