/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of built-in providers, see builtin.h. The references are weak: a build without
 * a provider, and the unit tests of this folder, which have none, leave its entry NULL.
 */
#include <stdbool.h>
#include <stddef.h>

#include <rdma/providers/fi_prov.h>

#include "builtin.h"
#include "registry.h"

struct fi_provider *weft_link_ini(void) __attribute__((weak));
struct fi_provider *weft_shm_ini(void) __attribute__((weak));
struct fi_provider *weft_tcp_ini(void) __attribute__((weak));

void builtin_register(void)
{
	struct fi_provider *(*const inits[])(void) = {
		weft_link_ini,
		weft_shm_ini,
		weft_tcp_ini,
	};
	struct fi_provider *prov;
	size_t i;

	for (i = 0; i < sizeof(inits) / sizeof(inits[0]); i++) {
		prov = inits[i] ? inits[i]() : NULL;
		if (prov)
			registry_add(prov, NULL, false);
	}
}
