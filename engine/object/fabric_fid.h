/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The fabric object; engine.h has what opens it. Any thread. */
#ifndef WEFT_FABRIC_FID_H
#define WEFT_FABRIC_FID_H

#include "family.h"

/* engine_fabric_put - the program closes it, or something of it is closed: the last one ends it */
void engine_fabric_put(struct engine_fabric *fabric);

#endif
