/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What borrowers ask about devices and leases; request.h has the contract.
 */
#define _GNU_SOURCE
#include "request.h"
#include "door.h"
#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lent *request_device(struct session *s, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < s->lender->device_cnt; i++)
		if (lent_id(s->lender->devices[i]) == id)
			return s->lender->devices[i];
	return NULL;
}

int request_lease(struct session *s, struct lent **lent, struct lent_lease *lease)
{
	*lent = request_device(s, s->msg.device);
	*lease = (struct lent_lease){ s->msg.lease, s->msg.generation, s->msg.token };
	if (!*lent)
		return -ENODEV;
	return lease_token_is_none(&lease->token) ? -EACCES : 0;
}

static int hold(struct session *s, struct lent *lent, const struct lent_lease *lease)
{
	struct leased *held = malloc(sizeof(*held));

	if (!held)
		return -ENOMEM;
	*held = (struct leased){ .lent = lent, .lease = *lease };
	leased_add(&s->held, held);
	return 0;
}

/* Where a lease is among those that end with the connection; what is there is NULL if it isn't. */
static struct leased **find_held(struct session *s, const struct lent *lent,
				 const struct lent_lease *lease)
{
	struct leased **at = &s->held.first;

	while (*at && !leased_is(*at, lent, lease))
		at = &(*at)->next;
	return at;
}

static void forget(struct session *s, const struct lent *lent, const struct lent_lease *lease)
{
	struct leased **at = find_held(s, lent, lease);

	if (*at)
		leased_drop(&s->held, at);
}

static void answer_info(struct session *s, struct lent *lent)
{
	struct weft_device_info info;

	lent_info(lent, &info);
	if (s->lender->door)
		snprintf(info.provider, sizeof(info.provider), "%s",
			 door_provider(s->lender->door));
	memcpy(s->data, &info, sizeof(info));
	s->msg.data_len = sizeof(info);
	s->msg.device = info.id;
}

int request_hello(struct session *s)
{
	s->msg.device = s->lender->node;
	return 0;
}

int request_list(struct session *s)
{
	if (s->msg.index >= s->lender->device_cnt)
		return -ENOENT;
	answer_info(s, s->lender->devices[s->msg.index]);
	return 0;
}

/* Whether a device is what a BORROW asks for; @name may be the beginning of its name. */
static bool fits(const struct weft_device_info *info, const struct lease_message *msg,
		 const char *name)
{
	return info->state != WEFT_DEVICE_FAILED &&
	       (!msg->device || info->device_class == msg->device) &&
	       (!msg->count || info->vendor == msg->count) &&
	       !strncmp(info->name, name, strlen(name));
}

/* The first that can be had; a name that several begin with is none's, unless it is the whole of one. */
static int borrow_first(struct session *s, const char *name, struct lent **lent,
			struct lent_lease *lease)
{
	uint32_t i, fitting = 0;
	int err = -ENODEV;

	for (i = 0; i < s->lender->device_cnt; i++) {
		struct weft_device_info info;

		lent_info(s->lender->devices[i], &info);
		if (!fits(&info, &s->msg, name))
			continue;
		if (*name && strcmp(info.name, name) && ++fitting > 1)
			return -ENOTUNIQ;
	}
	for (i = 0; i < s->lender->device_cnt; i++) {
		struct weft_device_info info;
		int why;

		*lent = s->lender->devices[i];
		lent_info(*lent, &info);
		if (!fits(&info, &s->msg, name))
			continue;
		why = lent_borrow(*lent, &s->by, s->msg.flags, s->msg.ms, lease);
		if (!why)
			return 0;
		if (err == -ENODEV || err == -EBUSY)
			err = why;
	}
	return err;
}

int request_borrow(struct session *s)
{
	char name[WEFT_DEVICE_NAME_MAX] = "";
	struct lent_lease lease;
	struct lent *lent;
	int err;

	if (s->msg.data_len >= sizeof(name))
		return -ENODEV;
	memcpy(name, s->data, s->msg.data_len);
	err = borrow_first(s, name, &lent, &lease);
	if (!err && !(s->msg.flags & LEASE_KEPT) && !s->remote) {
		err = hold(s, lent, &lease);
		if (err)
			lent_end(lent, &lease, request_wait_ms(s));
	}
	if (err)
		return err;
	s->msg.lease = lease.lease;
	s->msg.generation = lease.generation;
	s->msg.token = lease.token;
	answer_info(s, lent);
	return 0;
}

/* A lease that is not kept is its borrower's: another process that uses it does not end it. */
static int share_end(struct session *s, struct lent *lent, const struct lent_state *state)
{
	int err;

	if (s->remote || state->flags & LEASE_KEPT || state->borrower.pid != s->by.pid ||
	    *find_held(s, lent, &state->lease))
		return 0;
	err = lent_hold(lent, &state->lease);
	if (err)
		return err;
	err = hold(s, lent, &state->lease);
	if (err)
		lent_let_go(lent, &state->lease);
	return err;
}

int request_attach(struct session *s)
{
	struct lent_state state;
	struct lent *lent;
	int err = request_lease(s, &lent, &state.lease);

	if (!err)
		err = lent_state(lent, &state);
	if (!err)
		err = share_end(s, lent, &state);
	if (err)
		return err;
	s->msg.ms = state.ms;
	s->msg.flags = state.flags;
	answer_info(s, lent);
	return 0;
}

int request_renew(struct session *s)
{
	struct lent_lease lease;
	struct lent *lent;
	int err = request_lease(s, &lent, &lease);

	return err ? err : lent_renew(lent, &lease, s->msg.ms);
}

int request_share(struct session *s)
{
	struct lent_lease lease;
	struct lent *lent;
	int err = request_lease(s, &lent, &lease);

	return err ? err : lent_share(lent, &lease);
}

int request_return(struct session *s)
{
	struct lent_lease lease;
	struct lent *lent;
	int err = request_lease(s, &lent, &lease);

	if (err)
		return err;
	err = lent_end(lent, &lease, request_wait_ms(s));
	if (err != -EACCES)
		forget(s, lent, &lease);
	return err;
}

int request_leases(struct session *s)
{
	struct lent_state state = { 0 };
	struct lent *lent = request_device(s, s->msg.device);

	if (!lent)
		return -ENODEV;
	if (lent_next(lent, s->msg.lease, &state))
		return -ENOENT;
	s->msg.lease = state.lease.lease;
	s->msg.generation = state.lease.generation;
	s->msg.flags = state.flags;
	s->msg.ms = state.ms;
	s->msg.count = state.queue_pairs;
	s->msg.len = (uint32_t)state.borrower.pid | (uint64_t)state.borrower.uid << 32;
	return 0;
}

int request_revoke(struct session *s)
{
	struct lent *lent = request_device(s, s->msg.device);
	struct lent_lease lease = { s->msg.lease, s->msg.generation, { 0 } };
	struct lent_state state = { .lease = lease };
	bool was_ending;
	int err;

	if (!s->trusted)
		return -EACCES;
	if (!lent)
		return -ENODEV;
	was_ending = lent_state(lent, &state) == -ESTALE;
	err = lent_end(lent, &lease, request_wait_ms(s));
	if (!was_ending && (!err || err == -EINPROGRESS))
		lender_log("lease %u was revoked by process %d", lease.lease, s->by.pid);
	/* Its borrower has returned it meanwhile, or another one has revoked it. */
	if (err == -ESTALE && !was_ending)
		err = 0;
	/* After -EINPROGRESS the controller's event tells. */
	if (!err)
		lender_tell(s->lender, WEFT_EVENT_LEASE_ENDED, s->msg.device, lease.lease);
	return err;
}
