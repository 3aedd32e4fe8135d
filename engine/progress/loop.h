/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wire of an endpoint to itself; the last one of every engine endpoint.
 */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include "wire.h"

extern const struct wire_ops loop_wire_ops;

#endif
