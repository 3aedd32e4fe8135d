/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The fabric object; engine.h opens it. Any thread. */
#ifndef WEFT_FABRIC_FID_H
#define WEFT_FABRIC_FID_H

#include "family.h"

/*
 * engine_fabric_put - drop a reference, of the program or of an object; the last one frees the
 * fabric
 */
void engine_fabric_put(struct engine_fabric *fabric);

/*
 * engine_family_ops_open - fi_open_ops() of an object of a provider
 * Returns 0, -FI_EINVAL for NULL, or what the provider's ops_open returns.
 */
int engine_family_ops_open(const struct engine_family *family, const char *name, uint64_t flags,
			   void **ops);

#endif
