/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the lower rooms call of progress.
 */
#ifndef WEFT_UP_H
#define WEFT_UP_H

#include "domain.h"

/* engine_up - domain->ops of every domain */
extern const struct engine_domain_ops engine_up;

#endif
