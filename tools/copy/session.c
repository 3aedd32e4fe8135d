/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two sides that agree; session.h has the contract. Called by send.c and receive.c.
 */
#define _GNU_SOURCE
#include "session.h"

#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* A side that stays away: probes of an idle connection, and how long bytes may stay without an answer. */
#define PROBE_AFTER_S 10
#define PROBE_EVERY_S 5
#define PROBES	      4
#define UNANSWERED_MS 30000

/* A host that is gone, or cut off, closes no connection: the kernel asks it. */
static void watch_host(int fd)
{
	const int one = 1, after = PROBE_AFTER_S, every = PROBE_EVERY_S, probes = PROBES;
	const unsigned unanswered = UNANSWERED_MS;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &after, sizeof(after));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof(unanswered));
}

/* How long the other side may be silent; 0: for ever, as where it writes a window. */
static void set_patience(int fd, unsigned seconds)
{
	const struct timeval time = { .tv_sec = (time_t)seconds };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
}

int session_exchange(struct session *session, const struct copy_message *out, unsigned wanted,
		     struct copy_message *in)
{
	unsigned char sent[COPY_MESSAGE_LEN], got[COPY_MESSAGE_LEN];
	size_t len = sizeof(got);
	int rc;

	copy_message_write(out, sent);
	rc = oob_exchange(&session->oob, sent, sizeof(sent), got, &len);
	if (rc)
		return rc;
	rc = copy_message_read(got, len, in);
	if (!rc && !(wanted & 1u << in->kind))
		rc = -EBADMSG;
	if (rc)
		warnx("the other side is no 'weft copy' of this version%s",
		      session->opt->dir ? "" : ", or no receiver");
	return rc;
}

/* Learns the provider of both: @provider has COPY_TEXT_MAX bytes. */
static int agree_provider(struct session *session, char *provider)
{
	struct copy_message own = { .kind = COPY_HELLO }, theirs;
	const char *mine = session->opt->provider;
	int rc;

	snprintf(own.text, sizeof(own.text), "%s", mine ? mine : "");
	rc = session_exchange(session, &own, 1u << COPY_HELLO, &theirs);
	if (rc)
		return rc;
	copy_text_printable(theirs.text, provider);
	if (mine && *provider && strcmp(mine, provider)) {
		warnx("provider %s here, and the other side was given %s", mine, provider);
		return -EINVAL;
	}
	if (mine)
		snprintf(provider, COPY_TEXT_MAX, "%s", mine);
	return 0;
}

static int open_transport(struct session *session, const char *provider)
{
	struct weft_btl_attr attr = {
		.size = sizeof(attr),
		.provider = *provider ? provider : NULL,
		.device = session->opt->domain,
	};
	int rc = weft_btl_open(&attr, &session->btl);

	if (!rc)
		rc = weft_btl_ctx_open(session->btl, &session->ctx);
	if (rc == -FI_ENODATA)
		warnx("no provider%s%s%s%s has reliable messages with remote CQ data; "
		      "'weft info --why -c FI_MSG' says why",
		      *provider ? " " : "", provider, attr.device ? ", domain " : "",
		      attr.device ? attr.device : "");
	else if (rc)
		warnx("cannot open a transport: %s", fi_strerror(-rc));
	return rc;
}

/* Both tell whether their transports are open. */
static int agree_ready(struct session *session, int status)
{
	struct copy_message own = { .kind = COPY_READY, .error = status }, theirs;
	int rc = session_exchange(session, &own, 1u << COPY_READY, &theirs);

	if (rc || status)
		return status ? status : rc;
	if (theirs.error)
		warnx("the other side cannot open a transport: %s", fi_strerror(-theirs.error));
	return theirs.error;
}

/* The receiver's name, at the sender. */
static int exchange_name(struct session *session)
{
	unsigned char own[WEFT_BTL_NAME_MAX], theirs[WEFT_BTL_NAME_MAX];
	size_t own_len = 0, len = sizeof(theirs);
	int rc;

	if (session->opt->dir) {
		own_len = sizeof(own);
		rc = weft_btl_name(session->btl, own, &own_len);
		if (rc) {
			warnx("the transport has no name: %s", fi_strerror(-rc));
			return rc;
		}
	}
	rc = oob_exchange(&session->oob, own, own_len, theirs, &len);
	if (rc || session->opt->dir)
		return rc;
	rc = weft_btl_peer_open(session->btl, theirs, len, &session->peer);
	if (rc)
		warnx("%s does not reach the other side: %s", session_provider(session),
		      fi_strerror(-rc));
	return rc;
}

int session_open(struct session *session)
{
	char provider[COPY_TEXT_MAX];
	int rc;

	watch_host(session->oob.fd);
	set_patience(session->oob.fd, session->opt->timeout_s);
	rc = agree_provider(session, provider);
	if (rc)
		return rc;
	rc = agree_ready(session, open_transport(session, provider));
	if (!rc)
		rc = exchange_name(session);
	set_patience(session->oob.fd, 0);
	return rc;
}

void session_close(struct session *session)
{
	/* Closing would wait up to 10 s for operations of a peer that is lost; the process ends instead. */
	if (!session->is_torn) {
		weft_btl_peer_close(session->peer);
		if (session->ctx)
			weft_btl_ctx_close(session->ctx);
		if (session->btl)
			weft_btl_close(session->btl);
	}
	oob_close(&session->oob);
}

const char *session_provider(const struct session *session)
{
	return weft_btl_provider(session->btl);
}
