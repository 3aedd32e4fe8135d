/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shm provider: endpoints over shared memory alone, and its entry point for the core.
 */
#ifndef WEFT_SHM_H
#define WEFT_SHM_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

#include "identity.h"

struct wire_ops;

/* Op tables of shm endpoints whose program serializes the calls (paths.c). */
extern struct fi_ops_msg pshm_msg_ops;
extern struct fi_ops_tagged pshm_tagged_ops;

/* The wire (paths.c). */
extern const struct wire_ops pshm_wire_ops;

/* weft_shm_identities - the provider's names; ends with an entry without a name */
extern const struct info_identity weft_shm_identities[];

/*
 * weft_shm_ini - register the shm wire and return the provider, which is static; called by the core
 * once
 */
struct fi_provider *weft_shm_ini(void);

#endif
