/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the unit tests of this folder put in the place of a libfabric: the three functions
 * that info/ calls, and an offer of everything to match hints against. Tests only.
 */
#ifndef WEFT_INFO_FAKE_CORE_H
#define WEFT_INFO_FAKE_CORE_H

#include "info.h"

extern uint32_t fake_core_version; /* what fi_version returns */
extern int fake_core_log_on;	   /* what fi_log_enabled returns */
extern char fake_core_log[512];	   /* the last message logged, without its line end */

extern const struct fi_provider fake_prov;

/*
 * fake_offer - a reliable endpoint with messages, tags and RMA; the caller may change it
 */
struct fi_info *fake_offer(void);

#endif /* WEFT_INFO_FAKE_CORE_H */
