/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libshm-fi.so: the shm provider as a file that another libfabric loads, a stock one from 1.17
 * on or another build of this project. Called by that core once, while it starts.
 *
 * The core is known by its symbols of FABRIC_1.0 alone, and by what fi_version() says of the
 * layouts that it hands over (info/info.h).
 */
#include "shm.h"

struct fi_provider *fi_prov_ini(void);

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void)
{
	return weft_shm_ini();
}
