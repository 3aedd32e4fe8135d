/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keys and TLS of libweft-tls.so, between two ends of a socket pair. Single-threaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "tls.h"

#define LEN    (300u << 10)
#define ROUNDS 100000
#define AHEAD  17000

extern const struct tcp_crypto weft_tcp_crypto;

static const struct tcp_crypto *const crypto = &weft_tcp_crypto;

/* Two ends; [0] connects. */
struct ends {
	struct tcp_tls_context *context[2];
	struct tcp_tls *tls[2];
	int fd[2];
};

static void ends_open(struct ends *ends, const uint8_t one[TCP_KEY_LEN],
		      const uint8_t other[TCP_KEY_LEN])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends->fd), 0);
	ends->context[0] = crypto->context_create(one);
	ends->context[1] = crypto->context_create(other);
	for (int i = 0; i < 2; i++) {
		assert_non_null(ends->context[i]);
		ends->tls[i] = crypto->create(ends->context[i], ends->fd[i], i, AHEAD);
		assert_non_null(ends->tls[i]);
		/* what is up may outlive it */
		crypto->context_free(ends->context[i]);
	}
}

static void ends_close(struct ends *ends)
{
	for (int i = 0; i < 2; i++) {
		crypto->free(ends->tls[i]);
		close(ends->fd[i]);
	}
}

/* Both shake hands until both are done. out: what each returned last. */
static void shake(struct ends *ends, int ret[2])
{
	bool out;
	int i, round;

	ret[0] = ret[1] = 0;
	for (round = 0; round < 100 && (!ret[0] || !ret[1]); round++)
		for (i = 0; i < 2; i++)
			if (!ret[i])
				ret[i] = crypto->handshake(ends->tls[i], &out);
}

static void ends_up(struct ends *ends)
{
	const uint8_t key[TCP_KEY_LEN] = { 7 };
	int ret[2];

	ends_open(ends, key, key);
	shake(ends, ret);
	assert_int_equal(ret[0], 1);
	assert_int_equal(ret[1], 1);
}

static uint8_t byte_at(size_t at)
{
	return (uint8_t)(at * 7 + at / 251);
}

/* Sends @len bytes from pieces of many lengths while the other end reads into such pieces. */
static void stream(struct ends *ends, int from, size_t len)
{
	uint8_t *out = malloc(len), *in = calloc(1, len);
	struct tcp_tls *to = ends->tls[!from], *at = ends->tls[from];
	size_t sent = 0, got = 0, i, part;
	struct iovec iov[3];
	ssize_t n;
	int round;

	for (i = 0; i < len; i++)
		out[i] = byte_at(i);
	for (round = 0; got < len && round < ROUNDS; round++) {
		part = (len - sent) / 5;
		iov[0] = (struct iovec){ out + sent, part };
		iov[1] = (struct iovec){ out, 0 };
		iov[2] = (struct iovec){ out + sent + part, len - sent - part };
		n = sent < len ? crypto->send(at, iov, 3) : 0;
		assert_true(n >= 0 || n == -EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		part = (len - got) / 3;
		iov[0] = (struct iovec){ in + got, part };
		iov[2] = (struct iovec){ in + got + part, len - got - part };
		n = crypto->recv(to, iov, 3);
		assert_true(n > 0 || n == -EAGAIN);
		got += n > 0 ? (size_t)n : 0;
	}
	assert_int_equal(got, len);
	assert_memory_equal(in, out, len);
	free(in);
	free(out);
}

/* Source: RFC 4231, test case 2, with its key padded to the length of ours */
static void hashes_and_keys_are_those_of_the_standards(void **state)
{
	static const uint8_t want[] = { 0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e,
					0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
					0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83,
					0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43 };
	const uint8_t key[TCP_KEY_LEN] = "Jefe";
	char text[] = "what do ya want for nothing?";
	struct iovec iov[2] = { { text, 9 }, { text + 9, sizeof(text) - 10 } };
	uint8_t mac[TCP_KEY_LEN], one[TCP_KEY_LEN], other[TCP_KEY_LEN];

	assert_int_equal(crypto->mac(key, iov, 2, mac), 0);
	assert_true(crypto->equal(mac, want, sizeof(want)));
	mac[31] ^= 1;
	assert_false(crypto->equal(mac, want, sizeof(want)));
	assert_int_equal(crypto->derive("secret secret 16", 16, "one", one), 0);
	assert_int_equal(crypto->derive("secret secret 16", 16, "two", other), 0);
	assert_false(crypto->equal(one, other, sizeof(one)));
	assert_int_equal(crypto->derive("secret secret 16", 16, "one", other), 0);
	assert_true(crypto->equal(one, other, sizeof(one)));
}

static void bytes_arrive_in_pieces_of_any_length(void **state)
{
	struct ends ends;

	ends_up(&ends);
	stream(&ends, 0, 1);
	stream(&ends, 1, LEN);
	stream(&ends, 0, LEN);
	ends_close(&ends);
}

/* A sender takes a new key after so many records, and the receiver follows. */
static void keys_are_renewed_under_way(void **state)
{
	struct ends ends;

	ends_up(&ends);
	tls_rekey_after(ends.tls[0], 2);
	stream(&ends, 0, LEN);
	tls_rekey_after(ends.tls[1], 1);
	stream(&ends, 1, LEN);
	stream(&ends, 0, LEN);
	ends_close(&ends);
}

static void another_secret_is_rejected_by_both(void **state)
{
	const uint8_t one[TCP_KEY_LEN] = { 7 }, other[TCP_KEY_LEN] = { 8 };
	struct ends ends;
	int ret[2];

	ends_open(&ends, one, other);
	shake(&ends, ret);
	assert_int_equal(ret[0], -FI_EKEYREJECTED);
	assert_int_equal(ret[1], -FI_EKEYREJECTED);
	ends_close(&ends);
}

/* Returns a context of a server that has a certificate of its own making, and no secret. */
static SSL_CTX *certified(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();

	assert_true(ctx && key && certificate);
	assert_true(X509_gmtime_adj(X509_getm_notBefore(certificate), 0) &&
		    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600));
	assert_int_equal(X509_set_pubkey(certificate, key), 1);
	assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
	assert_int_equal(SSL_CTX_use_certificate(ctx, certificate), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return ctx;
}

/* Who has the address of a peer, and not the secret, may speak TLS all the same. */
static void a_certificate_is_no_secret(void **state)
{
	const uint8_t key[TCP_KEY_LEN] = { 7 };
	SSL_CTX *ctx = certified();
	SSL *thief = SSL_new(ctx);
	struct ends ends;
	int ret = 0, round;
	bool out;

	ends_open(&ends, key, key);
	SSL_set_fd(thief, ends.fd[1]);
	for (round = 0; round < 100 && !ret; round++) {
		SSL_accept(thief);
		ret = crypto->handshake(ends.tls[0], &out);
	}
	assert_int_equal(ret, -FI_EKEYREJECTED);
	assert_int_not_equal(SSL_accept(thief), 1);
	SSL_free(thief);
	SSL_CTX_free(ctx);
	ERR_clear_error();
	ends_close(&ends);
}

static void what_has_no_room_is_pending(void **state)
{
	struct ends ends;
	uint8_t bytes[100] = { 1 }, got[100];
	struct iovec out = { bytes, sizeof(bytes) }, in = { got, 60 };

	ends_up(&ends);
	assert_int_equal(crypto->send(ends.tls[0], &out, 1), 100);
	assert_false(crypto->pending(ends.tls[1]));
	assert_int_equal(crypto->recv(ends.tls[1], &in, 1), 60);
	assert_true(crypto->pending(ends.tls[1]));
	assert_int_equal(crypto->recv(ends.tls[1], &in, 1), 40);
	assert_false(crypto->pending(ends.tls[1]));
	assert_int_equal(crypto->recv(ends.tls[1], &in, 1), -EAGAIN);
	ends_close(&ends);
}

/* An end that was announced is the end; one that was not is a break. */
static void ends_that_are_not_announced_are_breaks(void **state)
{
	struct ends ends;
	uint8_t byte;
	struct iovec in = { &byte, 1 };
	int announced;

	for (announced = 0; announced < 2; announced++) {
		ends_up(&ends);
		if (announced)
			assert_true(crypto->shut(ends.tls[0]));
		shutdown(ends.fd[0], SHUT_WR);
		assert_int_equal(crypto->recv(ends.tls[1], &in, 1), announced ? 0 : -ECONNRESET);
		assert_int_equal(crypto->recv(ends.tls[1], &in, 1), announced ? 0 : -ECONNRESET);
		ends_close(&ends);
	}
}

/* The program lives on when the other end has gone. */
static void sending_to_who_has_gone_raises_no_signal(void **state)
{
	struct ends ends;
	uint8_t byte = 1;
	struct iovec out = { &byte, 1 };

	ends_up(&ends);
	close(ends.fd[1]);
	assert_int_equal(crypto->send(ends.tls[0], &out, 1), -EPIPE);
	ends.fd[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ends_close(&ends);
}

/* What the other end has sent before it closed is read, though nothing can be sent to it any more. */
static void what_came_before_a_failed_send_is_read(void **state)
{
	struct ends ends;
	uint8_t bytes[100] = { 1 }, got[100];
	struct iovec out = { bytes, sizeof(bytes) }, in = { got, sizeof(got) };

	ends_up(&ends);
	assert_int_equal(crypto->send(ends.tls[1], &out, 1), 100);
	assert_true(crypto->shut(ends.tls[1]));
	close(ends.fd[1]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(crypto->send(ends.tls[0], &out, 1), -EPIPE);
	assert_int_equal(crypto->recv(ends.tls[0], &in, 1), 100);
	assert_memory_equal(got, bytes, sizeof(bytes));
	assert_int_equal(crypto->recv(ends.tls[0], &in, 1), 0);
	ends.fd[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ends_close(&ends);
}

/* Sends to the other end until there is no room. */
static void fill(struct tcp_tls *tls)
{
	uint8_t bytes[1000] = { 2 };
	struct iovec out = { bytes, sizeof(bytes) };
	ssize_t n = 1;
	int round;

	for (round = 0; round < ROUNDS && n > 0; round++)
		n = crypto->send(tls, &out, 1);
	assert_int_equal(n, -EAGAIN);
}

/* Two ends that both have no room to send, where a new key is due, still read each other. */
static void a_new_key_that_has_no_room_delays_no_reading(void **state)
{
	struct ends ends;
	uint8_t got[1000];
	struct iovec in = { got, sizeof(got) };
	int i;

	ends_up(&ends);
	for (i = 0; i < 2; i++) {
		tls_rekey_after(ends.tls[i], 1);
		fill(ends.tls[i]);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(crypto->recv(ends.tls[i], &in, 1), sizeof(got));
	ends_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_and_keys_are_those_of_the_standards),
		cmocka_unit_test(bytes_arrive_in_pieces_of_any_length),
		cmocka_unit_test(keys_are_renewed_under_way),
		cmocka_unit_test(another_secret_is_rejected_by_both),
		cmocka_unit_test(a_certificate_is_no_secret),
		cmocka_unit_test(what_has_no_room_is_pending),
		cmocka_unit_test(ends_that_are_not_announced_are_breaks),
		cmocka_unit_test(sending_to_who_has_gone_raises_no_signal),
		cmocka_unit_test(what_came_before_a_failed_send_is_read),
		cmocka_unit_test(a_new_key_that_has_no_room_delays_no_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
