/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots of op tables for calls that an object does not support, and slots that all objects share.
 * Called by programs on any thread.
 */
#ifndef WEFT_NO_CALL_H
#define WEFT_NO_CALL_H

#include <rdma/fabric.h>

/* Slots of struct fi_ops that return -FI_ENOSYS. */
int engine_no_bind(struct fid *fid, struct fid *target, uint64_t flags);
int engine_no_control(struct fid *fid, int command, void *arg);
int engine_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		       void *context);
int engine_no_tostr(const struct fid *fid, char *buf, size_t len);
int engine_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops,
		      void *context);

/*
 * engine_strerror - slot of fi_cq_strerror and fi_eq_strerror
 * @prov_errno: FI_E*
 * @buf:        NULL, or room for @len bytes of text with its NUL
 * Returns @buf, or a constant string if there is none.
 */
const char *engine_strerror(int prov_errno, char *buf, size_t len);

#endif
