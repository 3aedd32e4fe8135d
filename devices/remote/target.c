/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* All sessions of a controller; target.h has the contract. */
#include "target.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nvmed/nvmed.h"
#include "nvmed/remote.h"

/* struct target - @port: what those of sessions are like */
struct target {
	struct remote remote;
	struct nvmed *c;
	struct port port;
	struct session *sessions;
};

static struct target *target_of(const struct remote *r)
{
	return (struct target *)r;
}

static int open_session(struct remote *r, uint32_t lease, uint16_t qid, uint32_t depth,
			void *place, uint32_t *len)
{
	struct target *t = target_of(r);
	struct remote_place at;
	struct session *s;
	int err;

	if (*len < sizeof(at))
		return -EINVAL;
	err = session_create(t->c, &t->port, lease, qid, depth, &s);
	if (err)
		return err < -255 ? -EIO : err;
	s->next = t->sessions;
	t->sessions = s;
	err = session_place(s, &at);
	if (err) {
		/* The pair is there, and the lender deletes it. */
		session_break(s, "can't be told where it is");
		return -EIO;
	}
	memcpy(place, &at, sizeof(at));
	*len = sizeof(at);
	return 0;
}

/* Sessions that are over go once nothing is told any more. */
static void sweep(struct target *t)
{
	struct session **at = &t->sessions, *s;

	while ((s = *at)) {
		if (!s->over || session_linger(s)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		session_destroy(s);
	}
}

static bool poll_all(struct remote *r)
{
	struct target *t = target_of(r);
	struct session *s;
	bool moved = false, over = false;

	if (!t->sessions)
		return false;
	for (s = t->sessions; s; s = s->next) {
		moved |= session_poll(s);
		over |= s->over;
	}
	if (over)
		sweep(t);
	return moved;
}

static bool may_sleep(struct remote *r)
{
	struct session *s;

	for (s = target_of(r)->sessions; s; s = s->next)
		if (!session_may_sleep(s))
			return false;
	return true;
}

static void pair_ended(struct remote *r, uint16_t qid)
{
	struct session *s;

	for (s = target_of(r)->sessions; s; s = s->next)
		if (s->qid == qid && !s->over)
			session_end(s);
}

static const struct remote_ops target_ops = {
	.open = open_session,
	.poll = poll_all,
	.sleep = may_sleep,
	.ended = pair_ended,
};

int target_create(struct nvmed *c, const char *provider, const char *address, struct remote **r)
{
	struct port_request request = {
		.provider = provider,
		.host = address,
		.own = true,
		.rma = true,
		.len_max = SESSION_DATA,
		.cq_len = 1,
	};
	struct target *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -FI_ENOMEM;
	t->remote.ops = &target_ops;
	t->c = c;
	err = port_open(&request, &t->port);
	if (err) {
		port_close(&t->port);
		free(t);
		return err;
	}
	*r = &t->remote;
	return 0;
}

void target_destroy(struct remote *r)
{
	struct target *t = target_of(r);
	struct session *s;

	while ((s = t->sessions)) {
		session_break(s, "has no controller any more");
		t->sessions = s->next;
		session_destroy(s);
	}
	port_close(&t->port);
	free(t);
}
