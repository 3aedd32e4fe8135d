/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft info --links': the wires of an endpoint. Main's thread.
 */
#ifndef WEFT_TOOLS_LINKS_H
#define WEFT_TOOLS_LINKS_H

#include <rdma/fabric.h>

/*
 * links_print - open an endpoint and print its wires
 * @info: what to open; borrowed
 * Prints a line for a provider that does not report its wires. Prints the reason of a failure.
 * Returns 0 or a negative fi_errno.
 */
int links_print(struct fi_info *info);

#endif
