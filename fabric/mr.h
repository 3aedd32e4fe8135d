/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What whoever registers memory with any libfabric has to know. Any thread; no state.
 */
#ifndef WEFT_FABRIC_MR_H
#define WEFT_FABRIC_MR_H

#include <rdma/fabric.h>
#include <sys/uio.h>

/*
 * fabric_mr_mode - the mode of an answer, in bits: before 1.5 two words stood for some of them
 * Source: fi_mr(3), FI_MR_BASIC and FI_MR_SCALABLE.
 */
int fabric_mr_mode(const struct fi_info *info);

/*
 * fabric_mr_populate - have the kernel give every page of a range memory, where it can
 * One that may not be written keeps what it has.
 */
void fabric_mr_populate(const struct iovec *range);

#endif
