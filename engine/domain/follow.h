/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors that processes share by name. The caller holds the domain.
 */
#ifndef WEFT_FOLLOW_H
#define WEFT_FOLLOW_H

#include "av_shared.h"
#include "vector.h"

/*
 * engine_av_follow - apply the changes that other processes made to a shared vector, if there are
 * any
 * Called before an address is looked up.
 */
static inline void engine_av_follow(struct engine_av *av)
{
	if (unlikely(av->view && av_view_stale(av->view)))
		av->pull(av);
}

#endif
