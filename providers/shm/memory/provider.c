/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider's name and version. Constant once weft_shm_ini() has filled in its calls.
 */
#include "provider.h"

struct fi_provider pshm_provider = {
	.version = PROVIDER_VERSION,
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "shm",
};
