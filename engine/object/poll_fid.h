/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Poll sets. */
#ifndef WEFT_POLL_FID_H
#define WEFT_POLL_FID_H

#include "engine.h"

/* engine_poll_open - the slot of fi_poll_open. Source: fi_poll(3) */
int engine_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		     struct fid_poll **pollset);
/*
 * engine_poll_forget - an object is closed: remove it from its poll sets; the caller holds the
 * domain
 */
void engine_poll_forget(struct engine_wait_obj *w);

#endif
