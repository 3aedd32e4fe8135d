/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The beginning and the end of the core. */
#ifndef WEFT_CORE_START_H
#define WEFT_CORE_START_H

#include <stdint.h>

#include "name_filter.h"

/*
 * core_start - read the settings and register the providers, if that has not been done
 *
 * Every exported function that needs them calls it first; any thread. A provider that is
 * being registered may call functions that call it again.
 */
void core_start(void);

/*
 * core_stop - undo core_start, so that the next one starts anew
 *
 * Runs when the library is unloaded. A provider with an open fabric stays as it is, and so
 * do the settings; called again after the last fi_close it does the rest.
 */
void core_stop(void);

/*
 * core_provider_filter - what FI_PROVIDER says; valid between start and stop
 * core_addr_format     - what FI_ADDR_FORMAT says, FI_FORMAT_UNSPEC for nothing
 */
const struct name_filter *core_provider_filter(void);
uint32_t core_addr_format(void);

#endif /* WEFT_CORE_START_H */
