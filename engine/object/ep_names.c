/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses in the format that programs hold (ep_names.h). */
#include <rdma/fi_errno.h>
#include "ep_names.h"

static bool is_printable(char c)
{
	return c > ' ' && c <= '~';
}

static void engine_why(char *why, size_t why_len, const char *text)
{
	size_t len = strlen(text);

	if (!why_len)
		return;
	if (len >= why_len)
		len = why_len - 1;
	memcpy(why, text, len);
	why[len] = '\0';
}

size_t engine_name_len(const struct engine_family *family, const void *name, size_t room)
{
	const char *text = name;
	size_t len = 0, most = room < ENGINE_TEXT_MAX ? room : ENGINE_TEXT_MAX;

	if (!engine_names_are_strings(family))
		return room == family->addr_len || room == SIZE_MAX ? family->addr_len : 0;
	while (len < most && is_printable(text[len]))
		len++;
	if (len < most)
		return text[len] ? 0 : len;
	return len == room ? len : 0;
}

size_t engine_name_write(const struct engine_family *family, const struct weft_addr *addr,
			 void *buf, size_t room)
{
	char whole[ENGINE_NAME_MAX];
	size_t len = family->addr_write(addr, whole);

	if (!room)
		return len;
	memcpy(buf, whole, room < len ? room : len);
	if (room < len && engine_names_are_strings(family))
		((char *)buf)[room - 1] = '\0';
	return len;
}

static void engine_names_look(struct engine_names *names, const char *at)
{
	names->at = at;
	names->len = at ? engine_name_len(names->family, at, SIZE_MAX) : 0;
}

void engine_names_begin(struct engine_names *names, const struct engine_family *family,
			const void *first)
{
	*names = (struct engine_names){ .family = family };
	if (!engine_names_are_strings(family))
		names->cell_len = family->addr_len;
	engine_names_look(names, first);
}

void engine_names_next(struct engine_names *names)
{
	size_t len = names->len + 1;

	if (!names->at)
		return;
	if (names->cell_len) {
		engine_names_look(names, names->at + names->cell_len);
		return;
	}
	/* Bytes that are not a string have no end. */
	if (!names->len && *names->at) {
		engine_names_look(names, NULL);
		return;
	}
	while (len <= ENGINE_TEXT_MAX && !names->at[len])
		len++;
	if (len > ENGINE_TEXT_MAX) {
		engine_names_look(names, NULL);
		return;
	}
	if (len > names->len + 1)
		names->cell_len = len;
	engine_names_look(names, names->at + len);
}

int engine_names_read(const struct engine_names *names, struct weft_addr *out, char *why,
		      size_t why_len)
{
	if (names->at)
		return names->family->addr_read(names->at, names->len, out, why, why_len);
	engine_why(why, why_len,
		   "its beginning is unknown: the entry before it is not a string");
	return -FI_EINVAL;
}
