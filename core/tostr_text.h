/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The text that fi_tostr makes: YAML as fi_info(1) has always printed it, with keys named like the
 * fields, four spaces per level, and flags as '[ A, B ]'. Programs and tests parse it.
 */
#ifndef WEFT_TOSTR_TEXT_H
#define WEFT_TOSTR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

#include "names.h"

#define TAB "    "

/* The caller's buffer. Text is truncated to fit and always terminated. */
struct text {
	char *buf;
	size_t len;
	size_t used;
};

void text_put(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* text_put_string, text_put_pointer - put a line; @value may be NULL */
void text_put_string(struct text *text, const char *key, const char *value);
void text_put_pointer(struct text *text, const char *key, const void *value);

/* text_put_flags - put the names of flags; text_put_flags_line - a line of them */
void text_put_flags(struct text *text, const struct info_name *names, uint64_t flags);
void text_put_flags_line(struct text *text, const char *prefix, const char *key,
			 const struct info_name *names, uint64_t flags);

/* text_put_value_line - put a line with the name of a value; text_put_size - with a number */
void text_put_value_line(struct text *text, const char *prefix, const char *key,
			 const struct info_name *names, uint64_t value);
void text_put_size(struct text *text, const char *prefix, const char *key, size_t value);

/* text_put_addr - put an address; of a format that only its provider knows, byte by byte */
void text_put_addr(struct text *text, uint32_t format, const void *addr, size_t len);

/* text_put_fid - put an object by its own tostr operation, if it has one */
void text_put_fid(struct text *text, const char *key, const struct fid *fid);

/* text_put_head - put the line above the fields of a struct. Returns false if @attr is NULL */
bool text_put_head(struct text *text, const char *prefix, const char *name, const void *attr);

/*
 * text_put_info - put an fi_info or one of the structs in it (tostr_info.c)
 * Returns false for other types.
 */
bool text_put_info(struct text *text, const void *data, enum fi_type type);

#endif
