/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots for calls that an object does not have, and those that are the same for all objects.
 */
#ifndef WEFT_NO_CALL_H
#define WEFT_NO_CALL_H

#include <rdma/fabric.h>

/* Slots of struct fi_ops for objects without the call. */
int engine_no_bind(struct fid *fid, struct fid *target, uint64_t flags);
int engine_no_control(struct fid *fid, int command, void *arg);
int engine_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		       void *context);
int engine_no_tostr(const struct fid *fid, char *buf, size_t len);
int engine_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops,
		      void *context);

/* engine_strerror - the slot of fi_cq_strerror and fi_eq_strerror; @buf: NULL or room for a copy */
const char *engine_strerror(int prov_errno, char *buf, size_t len);

#endif
