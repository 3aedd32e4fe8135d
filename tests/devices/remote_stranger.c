/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * remote_stranger HOST PORT SEED COUNT - do to an endpoint what anybody can who reaches it
 *
 * It knows the protocol and no key: messages of any bytes, of any length up to some that are longer than the endpoint expects, and
 * ones that are right but for the key; one-sided transfers by guessed keys, of no bytes too, with remote CQ data that says
 * that a command has ended. What is tested is that whose endpoint it is goes on, which the caller does. Says how many went out.
 */
#include "port.h"
#include "wire.h"
#include "seeded.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEN_MAX 70000u
#define WAIT_S	10

static uint64_t seed;

static uint32_t any(uint32_t below)
{
	return (uint32_t)seeded_below(&seed, below);
}

static uint64_t any64(void)
{
	return (uint64_t)any(1u << 31) << 33 ^ (uint64_t)any(1u << 31) << 15 ^ any(1u << 15);
}

/* struct stranger - @under_way: operations that have not ended; @dead: the endpoint is not reached */
struct stranger {
	struct port port;
	struct fid_ep *ep;
	fi_addr_t peer;
	struct fi_context2 context;
	uint8_t bytes[LEN_MAX];
	bool under_way;
	bool dead;
	uint32_t sent, refused;
};

static void open_stranger(struct stranger *s, const char *host, const char *service)
{
	struct port_request request = { .provider = getenv("WEFT_FABRIC"),
					.host = host,
					.service = service,
					.rma = true,
					.cq_len = 64 };

	if (port_open(&request, &s->port) || port_ep_open(&s->port, &s->ep) ||
	    !s->port.info->dest_addr ||
	    fi_av_insert(s->port.av, s->port.info->dest_addr, 1, &s->peer, 0, NULL) != 1)
		errx(1, "no endpoint");
}

static void progress(struct stranger *s)
{
	struct fi_cq_data_entry e;
	struct fi_cq_err_entry bad = { 0 };
	ssize_t n = fi_cq_read(s->port.cq, &e, 1);

	if (n == 1) {
		s->under_way = false;
	} else if (n == -FI_EAVAIL) {
		fi_cq_readerr(s->port.cq, &bad, 0);
		s->under_way = false;
		s->refused++;
		/* A listener that speaks another protocol ends connections. */
		s->dead = bad.err == FI_ECONNREFUSED || bad.err == FI_ECONNRESET ||
			  bad.err == FI_ENOTCONN || bad.err == FI_EHOSTUNREACH;
	}
}

static ssize_t send_anything(struct stranger *s)
{
	static const uint32_t lens[] = { 16, 24, 96, 280, 320, 4096, 9728, LEN_MAX };
	uint32_t len = 1 + any(lens[any(sizeof(lens) / sizeof(lens[0]))]);
	struct remote_head head = { REMOTE_VERSION,
				    (uint16_t)any(REMOTE_END + 2),
				    any(REMOTE_COMPLETE_MAX + 1),
				    { { any64(), any64() } } };

	if (any(4))
		memcpy(s->bytes, &head, sizeof(head));
	return fi_send(s->ep, s->bytes, len, NULL, s->peer, &s->context);
}

static ssize_t access_anything(struct stranger *s)
{
	uint64_t key = any(3) ? any64() : any(4), addr = any(2) ? 0 : any64();
	struct remote_place guess = { .data_len = 8, .data_key = any64() };
	uint32_t len = any(3) ? 0 : 1 + any(4096);

	switch (any(3)) {
	case 0:
		return fi_read(s->ep, s->bytes, len, NULL, s->peer, addr, key, &s->context);
	case 1:
		return fi_write(s->ep, s->bytes, len, NULL, s->peer, addr, key, &s->context);
	default:
		/* of a command that may be under way; of the bits above it 16 may be all that count */
		return fi_writedata(s->ep, s->bytes, len, NULL,
				    remote_data(&guess, (uint16_t)any(8)), s->peer, addr, key,
				    &s->context);
	}
}

static void go(struct stranger *s)
{
	time_t end = time(NULL) + WAIT_S;
	ssize_t ret;

	do
		ret = any(2) ? send_anything(s) : access_anything(s);
	while (ret == -FI_EAGAIN && time(NULL) < end && (progress(s), !s->dead));
	if (ret) {
		s->refused++;
		s->dead |= ret == -FI_EAGAIN;
		return;
	}
	s->sent++;
	s->under_way = true;
	while (s->under_way && !s->dead && time(NULL) < end)
		progress(s);
	s->dead |= s->under_way;
}

int main(int argc, char **argv)
{
	static struct stranger s;
	uint32_t i, count;

	if (argc != 5)
		errx(2, "usage: %s HOST PORT SEED COUNT", argv[0]);
	seed = strtoull(argv[3], NULL, 0);
	count = (uint32_t)atoi(argv[4]);
	open_stranger(&s, argv[1], argv[2]);
	for (i = 0; i < count && !s.dead; i++)
		go(&s);
	printf("%u sent, %u refused\n", s.sent, s.refused);
	fi_close(&s.ep->fid);
	port_close(&s.port);
	return 0;
}
