/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses in the format that programs hold: of one size, or strings (FI_ADDR_STR). Called by the
 * calls that take addresses, on any thread; no state.
 *
 * Programs lay strings out in two ways, and do not say which: packed, each string behind the NUL
 * of the last, or in cells of one size that are filled up with zeros. The byte after the first NUL
 * shows which. Nothing behind the NUL of the last string is read: the count says how many strings
 * there are. The size of cells is derived from the second string: a list whose second cell is
 * empty looks like one of cells twice as long, and is read as that.
 *
 * Source: fi_av(3), fi_av_insert; libfabric's shm provider takes packed strings.
 */
#ifndef WEFT_EP_NAMES_H
#define WEFT_EP_NAMES_H

#include "engine.h"

#define ENGINE_TEXT_MAX 256u /* characters of any string, and bytes of a cell, at most */

static inline bool engine_names_are_strings(const struct engine_family *family)
{
	return family->addr_format == FI_ADDR_STR;
}

/*
 * engine_name_len - length of an address that a program holds, bytes, without the NUL of a string
 * @room: bytes that the program says are there, which may leave out a string's NUL; SIZE_MAX where it
 *	  does not say
 *
 * Returns 0 for bytes that can't be an address.
 */
size_t engine_name_len(const struct engine_family *family, const void *name, size_t room);

/*
 * engine_name_write - write an address for a program
 * @buf: @room bytes; gets as much of the address as fits, and a string ends with a NUL
 *
 * Returns the length of the whole address, bytes.
 */
size_t engine_name_write(const struct engine_family *family, const struct weft_addr *addr,
			 void *buf, size_t room);

/* An iterator over the addresses of one fi_av_insert. */
struct engine_names {
	const struct engine_family *family;
	/* The current address; NULL: its place is not known */
	const char *at;
	/* Its engine_name_len() */
	size_t len;
	/* Size of a cell, once known; 0: packed so far */
	size_t cell_len;
};

/* engine_names_begin - go to the first address; there is at least one */
void engine_names_begin(struct engine_names *names, const struct engine_family *family,
			const void *first);
/* engine_names_next - go to the next address; the program's count says that there is one */
void engine_names_next(struct engine_names *names);

/*
 * engine_names_read - read the current address
 *
 * Returns 0, or -FI_EINVAL and one sentence in @why.
 */
int engine_names_read(const struct engine_names *names, struct weft_addr *out, char *why,
		      size_t why_len);

#endif
