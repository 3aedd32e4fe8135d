/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A controller's side of sessions with borrowers of other hosts (remote/wire.h), within the controller's process: it is a
 * borrower there, with queue memory and buffers that are a window of the lease's domain, and entries and doorbells that
 * the engine checks as those of anyone. The loop's thread alone.
 */
#ifndef WEFT_DEVICES_REMOTE_TARGET_H
#define WEFT_DEVICES_REMOTE_TARGET_H

struct nvmed;
struct remote;

/*
 * target_create - serve borrowers of other hosts
 * @provider: NULL: the default one
 * @address:  at which endpoints are; NULL: any
 * @r:        out: returns owned
 * Returns 0 or -FI_E*.
 */
int target_create(struct nvmed *c, const char *provider, const char *address, struct remote **r);

/* target_destroy - the controller has ended all leases */
void target_destroy(struct remote *r);

#endif
