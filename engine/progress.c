/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One round of progress of an endpoint. Called with the domain held.
 */
#include "progress.h"
#include "peer.h"

#define SKIP_MAX 256u	/* polls that an idle wire is left out at most */
#define CHECK_TICKS 1024u /* rounds between looks at the clock; a power of two */

/*
 * The first wire is polled in every round. The others cost a system call each: one that moves
 * nothing is polled ever more rarely, and at once again when it moves something or is used.
 */
static void engine_poll_others(struct engine_ep *ep)
{
	for (uint32_t i = 1; i < ep->wire_cnt; i++) {
		struct engine_wire *w = &ep->wires[i];

		if (!w->wire)
			continue;
		if (w->skip) {
			w->skip--;
			continue;
		}
		if (w->ops->poll(w->wire)) {
			w->idle = 0;
			continue;
		}
		w->idle++;
		w->skip = w->idle / 64 < SKIP_MAX ? w->idle / 64 : SKIP_MAX;
	}
}

static void engine_tick(struct engine_ep *ep)
{
	uint64_t now = platform_now_ns();

	if (now - ep->check_ns < 1000000)
		return;
	ep->check_ns = now;
	engine_peers_check(ep);
}

void engine_progress(struct engine_ep *ep)
{
	struct engine_wire *w = &ep->wires[0];

	if (likely(w->wire != NULL))
		w->ops->poll(w->wire);
	engine_poll_others(ep);
	if (unlikely(!list_empty(&ep->blocked)))
		engine_peers_service(ep);
	if (unlikely(!(++ep->tick % CHECK_TICKS)))
		engine_tick(ep);
}
