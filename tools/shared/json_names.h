/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names in JSON: those of files, libraries and command lines need not be UTF-8. Any thread. */
#ifndef WEFT_TOOLS_JSON_NAMES_H
#define WEFT_TOOLS_JSON_NAMES_H

#include <jansson.h>
#include <stddef.h>

/* Bytes of the longest name, with its end, that is not UTF-8. */
#define JSON_NAME_MAX 512

/*
 * json_name - a string for JSON; what is not UTF-8 has '?' for each byte that is not ASCII, and ends where there is
 * no room
 *
 * Returns it owned, or NULL without memory.
 */
json_t *json_name(const char *name);

#endif
