/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lender as the directory has it: its key, and its value, which is JSON. Who may write the directory may have written
 * anything there. Pure: any thread.
 *
 *	/weft/lenders/4a0e6a8b13c7d3f0
 *	{"version": 1, "node": "4a0e6a8b13c7d3f0", "host": "0b5b...", "socket": "/run/weft/lender",
 *	 "address": "a.site:7471", "provider": "tcp",
 *	 "devices": [{"id": "9b1c...", "name": "nvme-4a0e6a8b-X1", "class": "nvme", "state": "free", "vendor": 6966, ...}]}
 */
#ifndef WEFT_DEVICES_DIRECTORY_ENTRY_H
#define WEFT_DEVICES_DIRECTORY_ENTRY_H

#include <stddef.h>

#include "directory.h"

#define ENTRY_PREFIX	 "/weft/lenders/"
#define ENTRY_PREFIX_END "/weft/lenders0" /* the first key behind all that begin so */
#define ENTRY_KEY_MAX	 sizeof(ENTRY_PREFIX "0123456789abcdef")

/* entry_key - out: the key of a lender */
void entry_key(uint64_t node, char key[ENTRY_KEY_MAX]);

/* entry_node - out: whose key it is. Returns 0 or -EINVAL: no lender's */
int entry_node(const char *key, uint64_t *node);

/* entry_encode - out: the value of a lender, owned (free()). Returns 0; -EILSEQ: a text is no UTF-8; -ENOMEM */
int entry_encode(const struct directory_lender *lender, char **value);

/*
 * entry_decode - out: the lender of a value, to be freed by entry_fini()
 * @node: whose key it has
 * Returns 0; -EPROTO: it is none of that lender; -ENOMEM.
 */
int entry_decode(const char *value, size_t len, uint64_t node, struct directory_lender *lender);

void entry_fini(struct directory_lender *lender);

#endif
