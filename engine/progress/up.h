/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions of progress/ that the rooms below it call.
 */
#ifndef WEFT_UP_H
#define WEFT_UP_H

#include "domain.h"

/* engine_up - domain->ops of every domain; constant */
extern const struct engine_domain_ops engine_up;

#endif
