/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of the flags and values of the public interface, for the reasons of refusals and for fi_tostr.
 *
 * Read by match.c and by core/tostr.c, from any thread; constants only. The order of a
 * table of flags is the order in which they are printed.
 */
#ifndef WEFT_INFO_NAMES_H
#define WEFT_INFO_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct info_name {
	uint64_t value;
	/* NULL ends a table */
	const char *name;
};

/* Flags: several may be set. */
extern const struct info_name info_names_caps[];
extern const struct info_name info_names_mode[];
extern const struct info_name info_names_op_flags[];
extern const struct info_name info_names_msg_order[];
extern const struct info_name info_names_mr_mode[];

/* Values: exactly one. */
extern const struct info_name info_names_ep_type[];
extern const struct info_name info_names_protocol[];
extern const struct info_name info_names_addr_format[];
extern const struct info_name info_names_threading[];
extern const struct info_name info_names_progress[];
extern const struct info_name info_names_resource_mgmt[];
extern const struct info_name info_names_av_type[];

/*
 * info_name_of - the name of a value
 *
 * Returns a constant string, 'Unknown' if the value is not in the table.
 */
const char *info_name_of(const struct info_name *names, uint64_t value);

/*
 * info_flags_print - write the names of all set flags, with ', ' between them
 * @len: bytes of @buf, at least 1; the text is truncated to fit and always terminated
 *
 * Flags without a name are left out. Returns @buf.
 */
char *info_flags_print(char *buf, size_t len, const struct info_name *names, uint64_t flags);

#endif /* WEFT_INFO_NAMES_H */
