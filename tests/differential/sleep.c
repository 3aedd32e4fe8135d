/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sleeping as programs do it: fi_trywait, and poll() on the descriptor of a queue or of a wait set,
 * until there is an entry. Entries are stored as all that are read.
 */
#include <poll.h>
#include <string.h>
#include "script.h"

#define NAP_MS 20 /* a library that wakes too late is no worse than one that polls */

/* Something in a queue, or a wait that says so. */
static bool looked(struct object *o)
{
	return o->fid->fclass == FI_CLASS_CQ && events_read(o);
}

/* sleep FABRIC OBJECT timeout=: prints 0 if there was an entry, -FI_ETIMEDOUT if not */
static long run_sleep(struct call *c)
{
	struct object *fabric = object_of(c, 1), *o = object_of(c, 2);
	uint64_t end = now_ms() + (uint64_t)wait_ms(c, 1000);
	struct pollfd p = { .events = POLLIN };
	struct fid *fids[1];
	long ret;

	if (!fabric || !fabric->fid || !o || !o->fid || !o->ready)
		return RESULT_ABSENT;
	fids[0] = o->fid;
	ret = fi_control(o->fid, FI_GETWAIT, &p.fd);
	if (ret)
		return ret;
	while (!looked(o)) {
		if (now_ms() >= end)
			return -FI_ETIMEDOUT;
		ret = fi_trywait((struct fid_fabric *)fabric->fid, fids, 1);
		if (ret && ret != -FI_EAGAIN)
			return ret;
		if (ret && o->fid->fclass != FI_CLASS_CQ)
			return 0;
		if (!ret && poll(&p, 1, NAP_MS) > 0 && o->fid->fclass != FI_CLASS_CQ)
			return 0;
	}
	return 0;
}

const struct verb sleep_verbs[] = {
	{ "sleep", run_sleep },
	{ NULL, NULL },
};
