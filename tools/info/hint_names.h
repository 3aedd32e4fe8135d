/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The names of libfabric's constants, as people write them in hints:
 * "FI_MSG|FI_RMA", in any case, with or without "FI_". No state; any thread.
 */
#ifndef WEFT_TOOLS_HINT_NAMES_H
#define WEFT_TOOLS_HINT_NAMES_H

#include <stdint.h>
#include <stdio.h>

enum hint_kind {
	HINT_CAPS,
	HINT_MODE,
	HINT_EP_TYPE,
	HINT_ADDR_FORMAT,
};

/*
 * hint_parse - read names of one kind
 * @text:   one name; for capabilities and modes several, with '|' or ',' between
 * @value:  receives the constant, or the union of the bits
 *
 * Returns 0, or -EINVAL when there is a name that is not of this kind.
 */
int hint_parse(enum hint_kind kind, const char *text, uint64_t *value);

/* hint_names_print - print the names of one kind, in lines of up to 80 columns */
void hint_names_print(FILE *to, enum hint_kind kind);

#endif
