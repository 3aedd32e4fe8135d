/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completions with an error. Called with the domain held. */
#include "complete.h"

void engine_complete_error(struct engine_cq *cq, const struct fi_cq_err_entry *err)
{
	cq_push_error(&cq->queue, err, err->src_addr);
}
