/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration modes: which mode bits an application must honour, and how they are reported to programs
 * of each API version. Shared by match.c and answer.c, internal to this folder.
 * Source: fi_mr(3), fi_domain(3), sections on mr_mode.
 */
#ifndef WEFT_INFO_MR_MODE_H
#define WEFT_INFO_MR_MODE_H

#include "info.h"

/*
 * mr_mode_required - the mode bits an application must honour for some capabilities
 * @offered: mr_mode of an offer
 * @caps:    capabilities; 0 if none needs registration at the target
 *
 * Returns mode bits, without the two old modes.
 */
int mr_mode_required(int offered, uint64_t caps);

/*
 * mr_mode_is_old - returns true if an mr_mode is FI_MR_BASIC or FI_MR_SCALABLE, the modes before API 1.5
 * @api_version: API version of the caller; 0 if unknown
 */
bool mr_mode_is_old(int mode, uint32_t api_version);

/*
 * mr_mode_old_answer - the old mode to answer with
 * @offered: mr_mode of an offer
 * @asked:   0, INFO_MR_BASIC or INFO_MR_SCALABLE
 *
 * Returns one of the two, or -1 if the offer does not have it.
 */
int mr_mode_old_answer(int offered, int asked);

#endif /* WEFT_INFO_MR_MODE_H */
