/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two sides of a copy: the control connection, a transport of libweft-btl on each side, and messages that are
 * exchanged. One thread.
 */
#ifndef WEFT_TOOLS_COPY_SESSION_H
#define WEFT_TOOLS_COPY_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include <weft/btl.h>

#include "message.h"
#include "oob.h"

/* struct copy_options - what the command line says */
struct copy_options {
	/* NULL: the other side's, and else the first that there is */
	const char *provider;
	/* NULL: any */
	const char *domain;
	unsigned port;
	unsigned timeout_s;
	/* of the receiver; NULL: this is the sender */
	const char *dir;
	bool keep;
	bool json;
	/* of the sender */
	const char *host;
	char **files;
	int file_cnt;
};

/* struct session - one connection of two sides */
struct session {
	const struct copy_options *opt;
	struct oob oob;
	struct weft_btl *btl;
	struct weft_btl_ctx *ctx;
	/* the receiver, at the sender; else NULL */
	struct weft_btl_peer *peer;
	/* operations have begun that have not ended */
	bool is_torn;
};

/*
 * session_open - agree with the other side and open the transport
 * @session: its opt is set, its oob is connected; the rest is zero
 *
 * Prints the reason of a failure, which is to be closed too. Returns 0 or a negative errno.
 */
int session_open(struct session *session);

/* session_close - end the transport and the connection. Memory that was registered is closed before */
void session_close(struct session *session);

/*
 * session_exchange - send a message and receive one
 * @wanted: kinds of the other side's, a bit each
 * @in: out: checked
 *
 * Prints the reason of a failure, after which the session can't go on. Errors in messages are no failures.
 * Returns 0 or a negative errno.
 */
int session_exchange(struct session *session, const struct copy_message *out, unsigned wanted,
		     struct copy_message *in);

/*
 * session_provider - the transport's provider, for a line
 */
const char *session_provider(const struct session *session);

#endif
