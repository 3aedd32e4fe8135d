/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider as a whole: its name for log lines, its settings, its offer, its wire. What differs between places is in
 * rds.c for the library, in kernel/rds/rds.c for the module kofi_rds: name, identity, capabilities, families.
 */
#ifndef WEFT_RDS_H
#define WEFT_RDS_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include "identity.h"

struct wire_provider;

extern struct fi_provider rds_provider;
extern const struct wire_provider rds_wire_provider;

struct rds_settings {
	/* FI_RDS_IFACE: use this interface alone; NULL: any */
	const char *iface;
	/* FI_RDS_DEAD_MS: time without any sign of life after which a peer is dead, ms: the same on all hosts */
	int dead_ms;
};

/* Constant once the provider is known. */
extern struct rds_settings rds_settings;

#define RDS_IFACE_VARIABLE "FI_RDS_IFACE"
#define RDS_DEAD_MS_MIN	   1000
#define RDS_DEAD_MS_MAX	   3600000
#define RDS_DEAD_NS	   ((uint64_t)rds_settings.dead_ms * 1000000u)

/* weft_rds_identities - the names of the provider; the last entry has none */
extern const struct info_identity weft_rds_identities[];

/* What the engine has there: ENGINE_CAPS or ENGINE_KERNEL_CAPS */
extern const uint64_t rds_caps;

/* rds_getinfo - fi_getinfo for this provider, any thread. Source: fi_getinfo(3) */
int rds_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

/*
 * rds_beats_init, rds_beats_fini - make ready for conns, before the provider is known, and undo that after the last
 * conn
 */
void rds_beats_init(void);
void rds_beats_fini(void);

/* weft_rds_ini - returns the provider of the library; registers its wire. Called by the core, once */
struct fi_provider *weft_rds_ini(void);

#endif
