/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Secrets and relays of tests; mock_secret.h has the contract.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_secret.h"
#include "raw_peer.h"

void secret_set(const char *secret, bool tls)
{
	static char path[64];
	int fd;

	tcp_settings.tls = tls;
	tcp_settings.secret_file = NULL;
	if (!secret)
		return;
	snprintf(path, sizeof(path), "/tmp/weft-secret-test.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, secret, strlen(secret)), strlen(secret));
	close(fd);
	tcp_settings.secret_file = path;
}

struct side *secret_side(const char *secret, bool tls)
{
	struct side *side;

	secret_set(secret, tls);
	side = side_open(NULL);
	if (tcp_settings.secret_file)
		unlink(tcp_settings.secret_file);
	secret_set(NULL, false);
	return side;
}

struct relay *relay_open(struct side *to)
{
	struct relay *relay = calloc(1, sizeof(*relay));

	assert_non_null(relay);
	relay->at = calloc(1, sizeof(*relay->at));
	assert_non_null(relay->at);
	relay->at->addr = to->addr;
	relay->listener = raw_listen(&relay->at->addr);
	assert_int_equal(fcntl(relay->listener, F_SETFL, O_NONBLOCK), 0);
	relay->down = -1;
	relay->up = raw_connect(to);
	assert_int_equal(fcntl(relay->up, F_SETFL, O_NONBLOCK), 0);
	relay->out.bend = relay->out.cut = SIZE_MAX;
	relay->back.bend = relay->back.cut = SIZE_MAX;
	return relay;
}

void relay_close(struct relay *relay)
{
	if (relay->listener >= 0)
		close(relay->listener);
	if (relay->down >= 0)
		close(relay->down);
	if (relay->up >= 0)
		close(relay->up);
	free(relay->at);
	free(relay);
}

/* Passes on what is there. Returns false at the end of the direction. */
static bool pass(int from, int to, struct relayed *way)
{
	uint8_t bytes[4096];
	size_t room = way->cut - way->len < sizeof(bytes) ? way->cut - way->len : sizeof(bytes);
	ssize_t n, i;

	if (!room)
		return false;
	n = recv(from, bytes, room, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN;
	for (i = 0; i < n; i++, way->len++) {
		if (way->len == way->bend)
			bytes[i] ^= way->mask;
		if (way->len < RELAY_MAX)
			way->bytes[way->len] = bytes[i];
	}
	return n && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

bool relay_pump(struct relay *relay)
{
	if (relay->up < 0)
		return false;
	if (relay->down < 0)
		relay->down = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (relay->down < 0)
		return true;
	if (relay->listener >= 0) /* it passes on one connection: who asks again is refused */
		close(relay->listener);
	relay->listener = -1;
	if (pass(relay->down, relay->up, &relay->out) &&
	    pass(relay->up, relay->down, &relay->back))
		return true;
	close(relay->up);
	close(relay->down);
	relay->up = relay->down = -1;
	return false;
}
