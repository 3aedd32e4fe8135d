/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions of progress/ that the rooms below it call.
 */
#ifndef WEFT_DOMAIN_OPS_H
#define WEFT_DOMAIN_OPS_H

#include "domain.h"

/* engine_progress_ops - domain->ops of every domain; constant */
extern const struct engine_domain_ops engine_progress_ops;

#endif
