/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which requests there are, and carrying them out; request.h has the contract. What is no request is refused as a whole;
 * a request that can't be granted has its error for an answer.
 */
#define _GNU_SOURCE
#include "request.h"
#include "log.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define DOOR_WAIT_MS 2u

uint32_t request_wait_ms(const struct session *s)
{
	return s->remote ? DOOR_WAIT_MS : LENT_WAIT_MS;
}

static int watch(struct session *s)
{
	s->watching = true;
	return 0;
}

/*
 * struct kind - of requests
 * @asks:    what it asks for, in a log line
 * @has_fds: it brings descriptors; beside all others there are none
 * @local:   it is about memory of one host
 * @names:   what is not found is the borrower's mistake, who has named it
 */
struct kind {
	int (*carry_out)(struct session *session);
	const char *asks;
	bool has_fds;
	bool local;
	bool names;
};

static const struct kind kinds[LEASE_KINDS] = {
	[LEASE_HELLO] = { .carry_out = request_hello, .asks = "a greeting" },
	[LEASE_LIST] = { .carry_out = request_list, .asks = "a device" },
	[LEASE_BORROW] = { .carry_out = request_borrow, .asks = "a lease" },
	[LEASE_ATTACH] = { .carry_out = request_attach, .asks = "a lease by its ticket" },
	[LEASE_RENEW] = { .carry_out = request_renew, .asks = "a renewal" },
	[LEASE_SHARE] = { .carry_out = request_share, .asks = "a lease to be shared" },
	[LEASE_RETURN] = { .carry_out = request_return, .asks = "the end of a lease" },
	[LEASE_WINDOW] = { .carry_out = request_window,
			   .asks = "a window",
			   .has_fds = true,
			   .local = true },
	[LEASE_UNWINDOW] = { .carry_out = request_unwindow,
			     .asks = "the end of a window",
			     .local = true,
			     .names = true },
	[LEASE_QUEUES] = { .carry_out = request_queues, .asks = "a queue pair", .has_fds = true },
	[LEASE_UNQUEUES] = { .carry_out = request_unqueues,
			     .asks = "the end of a queue pair",
			     .names = true },
	[LEASE_MEMORY] = { .carry_out = request_memory,
			   .asks = "memory of a device",
			   .local = true },
	[LEASE_UNMEMORY] = { .carry_out = request_unmemory,
			     .asks = "the end of memory of a device",
			     .local = true,
			     .names = true },
	[LEASE_ADMIN] = { .carry_out = request_admin, .asks = "an admin command" },
	[LEASE_LEASES] = { .carry_out = request_leases, .asks = "leases" },
	[LEASE_REVOKE] = { .carry_out = request_revoke, .asks = "the end of another's lease" },
	[LEASE_EXPORT] = { .carry_out = request_export,
			   .asks = "an address for a segment",
			   .has_fds = true,
			   .local = true },
	[LEASE_UNEXPORT] = { .carry_out = request_unexport,
			     .asks = "the end of an address",
			     .local = true },
	[LEASE_IMPORT] = { .carry_out = request_import,
			   .asks = "a segment by its address",
			   .local = true },
	[LEASE_WATCH] = { .carry_out = watch, .asks = "events" },
};

bool request_is_one(const struct lease_message *msg)
{
	return msg->kind < LEASE_KINDS && kinds[msg->kind].carry_out &&
	       (!msg->data_len || msg->kind == LEASE_BORROW) && !msg->rsvd44;
}

bool request_is_whole(const struct session *s, ssize_t n)
{
	return n >= (ssize_t)sizeof(s->msg) && s->msg.data_len == n - sizeof(s->msg) &&
	       request_is_one(&s->msg) && (!s->fd_cnt || kinds[s->msg.kind].has_fds) &&
	       s->msg.fd_cnt == s->fd_cnt;
}

/* Whether an answer tells of a mistake of the borrower's, or of worse, and not of how things are. */
static bool is_wrong(uint16_t kind, int err)
{
	switch (err) {
	case -EACCES:
	case -EPERM:
	case -EBADF:
	case -EINVAL:
	case -ENOPROTOOPT:
		return true;
	case -ENOENT:
		return kinds[kind].names;
	case -ESTALE:
		return kind == LEASE_IMPORT;
	default:
		return false;
	}
}

/* A log line for the first mistake of each kind */
static void complain(struct session *s, int err)
{
	const char *asks = kinds[s->msg.kind].asks;
	uint32_t bit = 1u << s->msg.kind;

	static_assert(LEASE_KINDS <= 32, "bits");
	if (!is_wrong(s->msg.kind, err) || s->complained & bit)
		return;
	s->complained |= bit;
	if (s->remote)
		lender_log("a borrower elsewhere asks for %s: %s", asks, strerror(-err));
	else
		lender_log("process %d of user %u asks for %s: %s", (int)s->by.pid,
			   (unsigned)s->by.uid, asks, strerror(-err));
}

void request_drop_fds(struct session *s)
{
	packet_close_fds(s->fds, s->fd_cnt);
	s->fd_cnt = 0;
}

static int carry_out(struct session *s)
{
	if (s->msg.version != LEASE_VERSION)
		return -ENOPROTOOPT;
	if (s->remote && kinds[s->msg.kind].local)
		return -EOPNOTSUPP;
	return kinds[s->msg.kind].carry_out(s);
}

static void end(struct session *s, int err)
{
	if (err)
		s->msg.data_len = 0;
	s->msg.version = LEASE_VERSION;
	s->msg.status = err;
	s->msg.fd_cnt = s->fd_cnt;
}

void request_refuse(struct session *s, int err)
{
	request_drop_fds(s);
	end(s, err);
}

void request_carry_out(struct session *s)
{
	int err = carry_out(s);

	complain(s, err);
	/* A file that came is the controller's now, or nobody's. */
	if (err || s->msg.kind == LEASE_WINDOW)
		request_drop_fds(s);
	end(s, err);
}
