/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TLS of a lane; tcp_crypto.h has the contract. OpenSSL encrypts a record of at most 16 KiB for
 * every call, so pieces are joined to records of that length, and a longer piece is encrypted from
 * where it is. Source: SSL_read(3), SSL_write(3), SSL_key_update(3).
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include "cancel.h"
#include "context.h"
#include "socket.h"

#define RECORD_LEN ((size_t)SSL3_RT_MAX_PLAIN_LENGTH)

struct tcp_tls {
	SSL *ssl;
	struct tls_socket socket;
	/* Records sent with the current key */
	uint32_t records;
	/* Records after which a new one is taken */
	uint32_t rekey;
	/* The other side has announced its end */
	bool ended;
	/* This side has */
	bool shut;
	/* Handshake complete */
	bool up;
	/* tls_recv() stopped for lack of room */
	bool more;
	/* A record that is encrypted waits for room in the socket */
	bool waits;
	/* errno of a failure, after which nothing moves; 0: none */
	int err;
};

/* Where the bytes of a call are: what has moved is skipped. */
struct cursor {
	const struct iovec *iov;
	size_t cnt;
	/* Bytes of iov[0] that have moved */
	size_t off;
};

static size_t cursor_left(const struct cursor *at)
{
	return at->cnt ? at->iov->iov_len - at->off : 0;
}

static void cursor_move(struct cursor *at, size_t len)
{
	at->off += len;
	while (at->cnt && at->off >= at->iov->iov_len) {
		at->off -= at->iov->iov_len;
		at->iov++;
		at->cnt--;
	}
}

struct tcp_tls *tls_create(struct tcp_tls_context *context, int fd, bool accepts,
			   size_t read_ahead)
{
	struct tcp_tls *tls = calloc(1, sizeof(*tls));
	BIO *bio;

	if (!tls)
		return NULL;
	tls->socket.fd = fd;
	tls->rekey = TLS_REKEY_RECORDS;
	tls->ssl = tls_context_ssl(context);
	bio = tls_socket_bio(&tls->socket);
	if (!tls->ssl || !bio) {
		BIO_free(bio);
		tls_free(tls);
		return NULL;
	}
	SSL_set_bio(tls->ssl, bio, bio);
	SSL_set_default_read_buffer_len(tls->ssl, read_ahead);
	if (accepts) {
		SSL_set_accept_state(tls->ssl);
		return tls;
	}
	SSL_set_connect_state(tls->ssl);
	/*
	 * Who does not take the PSK may show a certificate instead. None is trusted: there is no
	 * authority to verify one by.
	 */
	SSL_set_verify(tls->ssl, SSL_VERIFY_PEER, NULL);
	return tls;
}

void tls_free(struct tcp_tls *tls)
{
	if (!tls)
		return;
	SSL_free(tls->ssl);
	free(tls);
}

void tls_rekey_after(struct tcp_tls *tls, uint32_t records)
{
	tls->rekey = records;
}

/*
 * The errno of a call that returned @ret. EAGAIN: it waits for the socket. The errors of OpenSSL are
 * the thread's, whose program may use it too: none is left.
 */
static int failure(struct tcp_tls *tls, int ret)
{
	int error = SSL_get_error(tls->ssl, ret);

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return EAGAIN;
	if (error == SSL_ERROR_ZERO_RETURN)
		tls->ended = true;
	else if (error == SSL_ERROR_SYSCALL)
		tls->err = tls->socket.err ? tls->socket.err : ECONNRESET;
	else
		tls->err = EIO;
	ERR_clear_error();
	return tls->err;
}

int tls_handshake(struct tcp_tls *tls, bool *out)
{
	int ret, err;

	ERR_clear_error();
	ret = SSL_do_handshake(tls->ssl);
	*out = ret != 1 && SSL_want_write(tls->ssl);
	if (ret == 1) {
		/* A PSK is a session to OpenSSL: without one the other side has not proved that it has it. */
		tls->up = SSL_session_reused(tls->ssl);
		return tls->up ? 1 : -FI_EKEYREJECTED;
	}
	err = failure(tls, ret);
	if (err == EAGAIN)
		return -tls->socket.out_err;
	return tls->ended || err == EIO ? -FI_EKEYREJECTED : -err;
}

ssize_t tls_recv(struct tcp_tls *tls, const struct iovec *iov, size_t cnt)
{
	struct cursor at = { iov, cnt, 0 };
	size_t total = 0, n;

	ERR_clear_error();
	cursor_move(&at, 0);
	while (at.cnt && !tls->err && !tls->ended) {
		if (SSL_read_ex(tls->ssl, (char *)at.iov->iov_base + at.off, cursor_left(&at),
				&n)) {
			cursor_move(&at, n);
			total += n;
			/* Bytes that are still in the socket are reported by epoll. */
			if (!SSL_has_pending(tls->ssl))
				break;
		} else if (failure(tls, 0) == EAGAIN) {
			break;
		}
	}
	tls->more = !at.cnt && !tls->err && SSL_has_pending(tls->ssl);
	if (total || (tls->ended && !tls->err))
		return (ssize_t)total;
	return -(tls->err ? tls->err : EAGAIN);
}

/* Returns the errno for which nothing can be sent, or 0. */
static int out_err(const struct tcp_tls *tls)
{
	return tls->err ? tls->err : tls->socket.out_err;
}

static bool has_room(const struct tcp_tls *tls)
{
	struct pollfd out = { .fd = tls->socket.fd, .events = POLLOUT };
	int state = sys_uncancelled(), cnt = poll(&out, 1, 0);

	sys_uncancelled_end(state);
	return cnt == 1 && out.revents & POLLOUT;
}

/*
 * Takes a new key for what is sent next, when it is time and the socket has room to announce it: OpenSSL
 * does not read while an announcement waits, and two sides would wait for each other.
 */
static void rekey(struct tcp_tls *tls)
{
	if (tls->records < tls->rekey || tls->waits || !has_room(tls))
		return;
	if (SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
		tls->records = 0;
	else
		tls->err = EIO;
}

/* Returns where the next record's bytes are: in their place, or joined in @room. */
static const void *record_bytes(struct cursor at, uint8_t room[RECORD_LEN], size_t *len)
{
	size_t part;

	*len = cursor_left(&at);
	if (*len >= RECORD_LEN || at.cnt == 1) {
		*len = *len < RECORD_LEN ? *len : RECORD_LEN;
		return (const char *)at.iov->iov_base + at.off;
	}
	for (*len = 0; at.cnt && *len < RECORD_LEN; *len += part) {
		part = cursor_left(&at);
		part = part < RECORD_LEN - *len ? part : RECORD_LEN - *len;
		memcpy(room + *len, (const char *)at.iov->iov_base + at.off, part);
		cursor_move(&at, part);
	}
	return room;
}

ssize_t tls_send(struct tcp_tls *tls, const struct iovec *iov, size_t cnt)
{
	struct cursor at = { iov, cnt, 0 };
	uint8_t room[RECORD_LEN];
	size_t total = 0, len, n;
	const void *bytes;
	int done;

	ERR_clear_error();
	cursor_move(&at, 0);
	while (at.cnt && !out_err(tls)) {
		rekey(tls);
		bytes = record_bytes(at, room, &len);
		done = SSL_write_ex(tls->ssl, bytes, len, &n);
		tls->waits = !done && failure(tls, 0) == EAGAIN;
		if (tls->waits)
			break;
		if (!done || out_err(tls))
			continue;
		cursor_move(&at, n);
		total += n;
		tls->records++;
	}
	if (total)
		return (ssize_t)total;
	return -(out_err(tls) ? out_err(tls) : EAGAIN);
}

bool tls_pending(const struct tcp_tls *tls)
{
	return tls->more;
}

bool tls_shut(struct tcp_tls *tls)
{
	int ret, err;

	if (!tls->up || tls->err || tls->shut)
		return true;
	ERR_clear_error();
	ret = SSL_shutdown(tls->ssl);
	err = ret < 0 ? failure(tls, ret) : 0;
	tls->shut = err != EAGAIN;
	return tls->shut;
}
