/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libudp-fi.so: the udp provider as a file that another libfabric loads. Called by that core once,
 * while it starts. As with libshm-fi.so (shm.c), the core is known by its symbols of FABRIC_1.0 and
 * its fi_version() alone.
 */
#include "udp.h"

struct fi_provider *fi_prov_ini(void);

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void)
{
	return weft_udp_ini();
}
