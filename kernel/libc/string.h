/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What shared sources take of the C library's <string.h>, beside what rdma/fi_types.h declares. */
#ifndef KOFI_STRING_H
#define KOFI_STRING_H

#include <rdma/fi_types.h>
#include <stdlib.h>

/* Linux' own, as in ISO C */
int strncmp(const char *a, const char *b, size_t len);
char *strchr(const char *text, int c);

/* strerror - a text of one of the system's error numbers; constant */
const char *strerror(int errnum);

static inline char *strdup(const char *text)
{
	size_t len = strlen(text) + 1;
	char *copy = malloc(len);

	return copy ? memcpy(copy, text, len) : NULL;
}

#endif
