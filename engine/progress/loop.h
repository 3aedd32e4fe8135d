/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wire from an endpoint to itself. It is the last wire of every endpoint of the engine.
 */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include "wire.h"

extern const struct wire_ops loop_wire_ops;

#endif
