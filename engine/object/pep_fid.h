/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Passive endpoints and the requests that they report (pep_fid.c). Any thread, without a domain. */
#ifndef WEFT_PEP_FID_H
#define WEFT_PEP_FID_H

#include "engine.h"

struct engine_cm;

/* The slot of struct fi_ops_fabric. */
int engine_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		    void *context);

/*
 * engine_peps_open - make the list of a fabric's passive endpoints, if its provider has any.
 * Returns 0 or -FI_ENOMEM
 * engine_peps_close - free it, with the fabric
 */
int engine_peps_open(struct engine_fabric *fabric);
void engine_peps_close(struct engine_fabric *fabric);

/*
 * engine_request_take - take a request away from the passive endpoint that has reported it
 * @handle: untrusted
 * @cm:     out: the request, owned, with its ends
 *
 * Returns 0, or -FI_EINVAL: no passive endpoint of the fabric has such a request.
 */
int engine_request_take(struct engine_fabric *fabric, fid_t handle, struct engine_cm *cm);

/*
 * engine_pep_take - take the address of a passive endpoint for one that connects from there
 * @handle: untrusted
 * @address: out
 *
 * The passive endpoint gives up its port. Returns 0; -FI_EINVAL: it is no passive endpoint of
 * the fabric; or -FI_EOPBADSTATE: it listens.
 */
int engine_pep_take(struct engine_fabric *fabric, fid_t handle, struct weft_addr *address);

#endif
