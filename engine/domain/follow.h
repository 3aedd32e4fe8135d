/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Following the changes of an address vector that processes share. The caller holds the domain.
 */
#ifndef WEFT_FOLLOW_H
#define WEFT_FOLLOW_H

#include "av_shared.h"
#include "vector.h"

/*
 * engine_av_follow - take over what other processes changed in a vector with a name, when there is
 * something; before an address is looked for
 */
static inline void engine_av_follow(struct engine_av *av)
{
	if (unlikely(av->view && av_view_stale(av->view)))
		av->pull(av);
}

#endif
