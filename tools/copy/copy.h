/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two sides of 'weft copy', called by copy.c on the main thread. Both print what goes wrong, and return an exit
 * status.
 */
#ifndef WEFT_TOOLS_COPY_COPY_H
#define WEFT_TOOLS_COPY_COPY_H

#include "session.h"

int copy_send(const struct copy_options *opt);
int copy_receive(const struct copy_options *opt);

#endif
