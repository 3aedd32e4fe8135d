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
struct fi_provider *weft_udp_ini(void) __attribute__((weak));
struct fi_provider *weft_rds_ini(void) __attribute__((weak));
extern const struct info_identity weft_link_identities[] __attribute__((weak));
extern const struct info_identity weft_shm_identities[] __attribute__((weak));
extern const struct info_identity weft_tcp_identities[] __attribute__((weak));
extern const struct info_identity weft_udp_identities[] __attribute__((weak));
extern const struct info_identity weft_rds_identities[] __attribute__((weak));

void builtin_register(void)
{
	const struct {
		struct fi_provider *(*init)(void);
		const struct info_identity *identities;
	} providers[] = {
		{ weft_link_ini, weft_link_identities }, { weft_shm_ini, weft_shm_identities },
		{ weft_tcp_ini, weft_tcp_identities },	 { weft_udp_ini, weft_udp_identities },
		{ weft_rds_ini, weft_rds_identities },
	};
	struct fi_provider *prov;
	size_t i;

	for (i = 0; i < sizeof(providers) / sizeof(providers[0]); i++) {
		prov = providers[i].init ? providers[i].init() : NULL;
		if (prov)
			registry_add_named(prov, providers[i].identities);
	}
}
