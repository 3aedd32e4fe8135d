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

#endif
