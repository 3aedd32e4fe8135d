/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The host that the address target runs on: the providers are the library's own, with their
 * addresses and their fi_getinfo, but their endpoints are over the fake wires, interfaces and
 * names are made up, and nothing leaves the process. One thread.
 */
#ifndef WEFT_FUZZ_ADDRESS_HOST_H
#define WEFT_FUZZ_ADDRESS_HOST_H

#include "fake_ends.h"

enum host_kind {
	HOST_LINK,
	HOST_SHM,
	HOST_TCP,
	HOST_TCP6,
	HOST_KINDS,
};

/* host_begin - forget what an earlier input left behind */
void host_begin(void);

/* host_hints - owned hints by which the provider of that kind is asked for endpoints */
struct fi_info *host_hints(enum host_kind kind);

/* host_info - what it answers to them; stays the host's */
struct fi_info *host_info(enum host_kind kind);

/* host_is - is this an answer of that kind */
bool host_is(enum host_kind kind, const struct fi_info *info);

/*
 * host_end_open - an endpoint with all that belongs to it
 * @name: NULL, or @len bytes for fi_setname, which may be refused
 * Returns 0 or what fi_enable refused with; then there is nothing.
 */
int host_end_open(struct fake_end *end, struct fi_info *info, uint64_t av_flags,
		  const void *name, size_t len);

#endif
