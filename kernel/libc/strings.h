/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What shared sources take of the C library's <strings.h>: Linux has it by the same name. */
#ifndef KOFI_STRINGS_H
#define KOFI_STRINGS_H

int strcasecmp(const char *a, const char *b);

#endif
