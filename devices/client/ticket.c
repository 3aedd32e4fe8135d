/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tickets; weft/device.h and client.h have the contracts.
 *
 *	DEVICE.LEASE.GENERATION.TOKEN@PLACE
 *
 * PLACE is where the lender was when the ticket was made: its socket, from the root, or its host. A ticket is one word:
 * where the place has spaces or control characters it says none, and ends with the token.
 */
#define _GNU_SOURCE
#include "lenders.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 16 digits, two numbers of 10, and 32 digits, with what is between and behind them. */
#define LEASE_TEXT_MAX (16 + 1 + 10 + 1 + 10 + 1 + LEASE_TOKEN_TEXT)

static_assert(LEASE_TEXT_MAX + sizeof(((struct weft_lender *)NULL)->path) <= WEFT_TICKET_MAX,
	      "room for every ticket");

static bool is_word(const char *text)
{
	size_t i;

	for (i = 0; text[i]; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
			return false;
	return i;
}

/* out: "" where there is no place that another process can use */
static void find_place(struct weft_lender *lender, char *place, size_t room)
{
	char name[sizeof(lender->path)], path[PATH_MAX];
	const char *from = name;

	lender_path(lender, name);
	/* The lender may not be there just now. */
	if (!lender->remote && realpath(name, path))
		from = path;
	else if (!lender->remote && *name != '/')
		from = "";
	*place = 0;
	if (is_word(from) && strlen(from) < room)
		strcpy(place, from);
}

void weft_device_ticket(const struct weft_device *dev, char *ticket)
{
	char token[LEASE_TOKEN_TEXT], place[sizeof(dev->lender->path)];

	lease_token_text(&dev->token, token);
	find_place(dev->lender, place, sizeof(place));
	snprintf(ticket, WEFT_TICKET_MAX, "%016" PRIx64 ".%" PRIu32 ".%" PRIu32 ".%s%s%s",
		 dev->info.id, dev->lease, dev->generation, token, *place ? "@" : "", place);
}

int device_ticket(const char *ticket, struct lease_message *msg, const char **place)
{
	char lease[LEASE_TEXT_MAX];
	size_t len = strcspn(ticket, "@");
	int token = 0;

	if (len >= sizeof(lease))
		return -EINVAL;
	memcpy(lease, ticket, len);
	lease[len] = 0;
	if (sscanf(lease, "%16" SCNx64 ".%10" SCNu32 ".%10" SCNu32 ".%n", &msg->device,
		   &msg->lease, &msg->generation, &token) != 3 ||
	    !token)
		return -EINVAL;
	*place = ticket[len] ? ticket + len + 1 : NULL;
	if (*place && !**place)
		return -EINVAL;
	return lease_token_parse(lease + token, &msg->token);
}

/* Whether a lender is the one that a ticket is of. One that refuses the lease is; so is one that has not got it any more. */
static bool has_device(struct weft_lender *lender, const struct lease_message *lease)
{
	struct weft_device_info info;
	struct request request = { .msg = *lease, .data = &info, .data_room = sizeof(info) };
	int err;

	request.msg.kind = LEASE_ATTACH;
	err = lender_ask(lender, &request);
	return err != -ENODEV && err != -ETIMEDOUT && err != -ENOPROTOOPT;
}

/* Whether somebody has said which lender to ask, and not just where lenders are to be found. */
static bool is_named(const char *name)
{
	if (!name)
		name = getenv("WEFT_LENDER");
	return name && *name && !directory_urls(name);
}

int weft_lender_open_ticket(const char *name, const char *ticket,
			    const struct weft_lender_attr *attr, struct weft_lender **out)
{
	struct fid_eq *eq = attr && attr->size >= sizeof(*attr) ? attr->eq : NULL;
	struct lease_message lease = { 0 };
	struct weft_lender *lender;
	const char *place;

	if (device_ticket(ticket, &lease, &place))
		return -EBADMSG;
	if (place && !is_named(name) && !lender_open(place, "", eq, NULL, &lender)) {
		if (has_device(lender, &lease)) {
			*out = lender;
			return 0;
		}
		weft_lender_close(lender);
	}
	return weft_lender_open(name, attr, out);
}
