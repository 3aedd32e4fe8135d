/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a lender keeps in mind of a device's leases, in a file: who has them, and their tokens. The controller knows
 * which of them run. The file is replaced as a whole, so that a lender that is killed leaves the old one or the new one.
 */
#ifndef WEFT_DEVICES_LENDER_JOURNAL_H
#define WEFT_DEVICES_LENDER_JOURNAL_H

#include <stdint.h>
#include <sys/types.h>

#include "token.h"

/*
 * struct journal_lease - a lease
 * @used:  0: it is not lent now, and @generation is the last one that was
 * @flags: LEASE_*
 */
struct journal_lease {
	uint32_t used;
	uint32_t generation;
	struct lease_token token;
	uint32_t flags;
	uid_t uid;
	pid_t pid;
};

/*
 * journal_read - read the leases of a device
 * @leases: out: @cnt of them, by number; zero where there is none
 * A file that is not there, or not a whole journal, or of another version, is one without leases; with a log line that
 * says which, but for the first.
 */
void journal_read(const char *folder, uint64_t device, struct journal_lease *leases,
		  uint32_t cnt);

/* journal_write - returns 0 or -errno, and the file is as it was */
int journal_write(const char *folder, uint64_t device, const struct journal_lease *leases,
		  uint32_t cnt);

/*
 * journal_lock - have a folder for this process alone, until the process ends, however it does
 * @owner: out, with -EBUSY: the process that has it; 0: one of another host, or of another namespace of processes
 * Returns 0; -EBUSY: another one has it, also after JOURNAL_LOCK_MS; or another -errno.
 */
int journal_lock(const char *folder, pid_t *owner);

/* How long the folder of a lender that was killed just now may still be its own. */
#define JOURNAL_LOCK_MS 2000

/*
 * journal_node - the number of this host, which is made at first use and kept
 * Returns 0 or -errno.
 */
int journal_node(const char *folder, uint64_t *node);

#endif
