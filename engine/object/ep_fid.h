/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints: the object, and what plain and scalable endpoints have in common. The caller holds
 * the domain unless a comment says otherwise.
 */
#ifndef WEFT_EP_FID_H
#define WEFT_EP_FID_H

#include "engine.h"

/* The slot of struct fi_ops_domain. */
int engine_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		   void *context);

/* engine_ep_create - allocate an endpoint of either class, without contexts. Returns 0 or -FI_E* */
/* engine_ep_plain - give it one context of each kind */
int engine_ep_create(struct engine_domain *domain, struct fi_info *info, size_t fclass,
		     void *context, struct engine_ep **out);
void engine_ep_plain(struct engine_ep *ep);
/* engine_ep_size - set the number of operations that may be under way */
void engine_ep_size(struct engine_ep *ep, size_t size);
int engine_ep_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		       void *context);

/* The slots of fi_setname and fi_getname of endpoints that listen */
int engine_ep_setname(struct fid *fid, void *addr, size_t len);
int engine_ep_getname(struct fid *fid, void *addr, size_t *len);

/* From ep_bind.c: the slot of fi_ep_bind */
int engine_ep_bind(struct fid *fid, struct fid *target, uint64_t flags);

/*
 * From ep_enable.c:
 * engine_ep_enable - open the wires, unless they are open, and allow calls
 * The caller does not hold the domain. Returns 0 or -FI_E*.
 */
int engine_ep_enable(struct engine_ep *ep);

/*
 * From ep_close.c:
 * engine_ep_free - free an endpoint that was not bound or enabled, or that has ended; takes it
 * engine_ep_end - release all that it has, and free it; takes it
 * engine_ep_close - the slot of fi_close
 * engine_ep_drain - wait until what was reported as sent has left, for a second at most
 * engine_ep_report - have the provider tell what went over the wires
 */
void engine_ep_free(struct engine_ep *ep);
void engine_ep_end(struct engine_ep *ep);
int engine_ep_close(struct fid *fid);
void engine_ep_drain(struct engine_ep *ep);
void engine_ep_report(struct engine_ep *ep);

/* engine_ep_cm_ops - slots of objects that have an address */
extern struct fi_ops_cm engine_ep_cm_ops;

#endif
