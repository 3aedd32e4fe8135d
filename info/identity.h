/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The identities of a provider: the names under which it answers, each with the protocol and the defaults that
 * programs expect under that name. A provider has a table of them: its own name first, then the names of
 * libfabric's providers that it replaces. It registers with the table, and the core calls its getinfo once per
 * name, with that name in the hints. A core without this extension knows only the first.
 *
 * Constant data, read on any thread.
 */
#ifndef WEFT_INFO_IDENTITY_H
#define WEFT_INFO_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

struct info_identity {
	/* prov_name of the answer; NULL ends a table */
	const char *name;
	/* other names that mean this identity, terminated by NULL; or NULL */
	const char *const *spellings;
	uint32_t protocol;
	uint32_t protocol_version;
	/* progress if the hints ask for none; FI_PROGRESS_UNSPEC means manual */
	enum fi_progress control;
	enum fi_progress data;
	/* transmit and receive contexts per endpoint if the hints ask for none */
	size_t ctx_cnt;
	/* size of each context if the hints ask for none; 0: the offer's */
	size_t size;
	/*
	 * fi_trywait returns 0 for an event queue that has events too: its descriptor is readable,
	 * so that a program that reads events only after it slept sees them
	 */
	bool sleeps_on_events;
	/* of a provider's own name: it is asked where the hints or FI_PROVIDER name it, and else not */
	bool by_name_alone;
};

/*
 * info_identity_named - returns true if a name means this identity, ignoring case
 */
bool info_identity_named(const struct info_identity *identity, const char *name);

/*
 * info_identity_of - the identity of a table that a query asks for
 *
 * Returns the entry that the provider name in the hints means, else the first.
 */
const struct info_identity *info_identity_of(const struct info_identity *table,
					     const struct fi_info *hints);

#endif /* WEFT_INFO_IDENTITY_H */
