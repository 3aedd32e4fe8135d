/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Round trips of messages; trip.h has the contract. */
#define _GNU_SOURCE
#include "trip.h"
#include "clock.h"
#include "port.h"

#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_NS 1000000u

/*
 * struct trip - an endpoint that has one receive
 * @mr: of @in and @out, if the provider wants that
 * @sending: the provider has @out
 */
struct trip {
	struct port port;
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t peer;
	struct fi_context2 in_context, out_context;
	bool sending;
	uint8_t in[TRIP_MAX], out[TRIP_MAX];
};

static void listen_again(struct trip *t)
{
	if (fi_recv(t->ep, t->in, TRIP_MAX, port_desc(t->mr), FI_ADDR_UNSPEC, &t->in_context))
		errx(1, "no receive");
}

static struct trip *open_endpoint(const char *host, const char *service, bool own)
{
	struct port_request request = { .provider = getenv("WEFT_FABRIC"),
					.host = host,
					.service = service,
					.own = own,
					.cq_len = 64 };
	struct trip *t = calloc(1, sizeof(*t));
	struct iovec all = { t, sizeof(*t) };

	if (!t || port_open(&request, &t->port) || port_ep_open(&t->port, &t->ep))
		errx(1, "no endpoint at %s:%s", host, service);
	if (t->port.mr_mode & FI_MR_LOCAL &&
	    port_mr_open(&t->port, t->ep, &all, FI_SEND | FI_RECV, &t->mr))
		errx(1, "no registration");
	listen_again(t);
	return t;
}

/* Returns the bytes of a message that has come, or 0. */
static size_t progress(struct trip *t)
{
	struct fi_cq_data_entry e;
	ssize_t n = fi_cq_read(t->port.cq, &e, 1);

	if (n < 0 && n != -FI_EAGAIN)
		errx(1, "the peer is gone");
	if (n == 1 && e.flags & FI_RECV)
		return e.len;
	if (n == 1)
		t->sending = false;
	return 0;
}

static size_t wait_message(struct trip *t)
{
	uint64_t begin = clock_ns();
	uint32_t looks = 0;
	size_t len;

	while (!(len = progress(t))) {
		struct pollfd p = { .fd = t->port.wait_fd, .events = POLLIN };

		/* As the controller does: who has nothing to do takes no processor from the other ways. */
		if (++looks % 64 == 0 && clock_ns() - begin > SPIN_NS &&
		    port_may_sleep(&t->port))
			poll(&p, 1, -1);
	}
	return len;
}

static void send_message(struct trip *t, size_t len)
{
	bool small = len <= t->port.info->tx_attr->inject_size;
	ssize_t ret;

	/* Of an answer that has come the question has been sent. */
	while (t->sending)
		progress(t);
	do
		ret = small ? fi_inject(t->ep, t->out, len, t->peer)
			    : fi_send(t->ep, t->out, len, port_desc(t->mr), t->peer,
				      &t->out_context);
	while (ret == -FI_EAGAIN && !progress(t));
	if (ret)
		errx(1, "can't send: %s", fi_strerror((int)-ret));
	t->sending = !small;
}

/* The first message says who asks. */
void trip_echo(const char *host, const char *service)
{
	struct trip *t = open_endpoint(host, service, true);

	printf("ready\n");
	fflush(stdout);
	wait_message(t);
	if (port_peer(&t->port, t->in + 4, t->in[0], &t->peer))
		errx(1, "no name");
	listen_again(t);
	for (;;) {
		uint32_t back;

		wait_message(t);
		memcpy(&back, t->in, sizeof(back));
		listen_again(t);
		send_message(t, back < TRIP_MAX ? back : TRIP_MAX);
	}
}

struct trip *trip_open(const char *host, const char *service)
{
	struct trip *t = open_endpoint(host, service, false);
	size_t len = PORT_NAME_MAX;

	if (fi_av_insert(t->port.av, t->port.info->dest_addr, 1, &t->peer, 0, NULL) != 1 ||
	    port_ep_name(t->ep, t->out + 4, &len))
		errx(1, "no peer");
	t->out[0] = (uint8_t)len;
	send_message(t, len + 4);
	return t;
}

void trip_go(struct trip *t, size_t there, size_t back)
{
	memcpy(t->out, &(uint32_t){ (uint32_t)back }, 4);
	send_message(t, there);
	if (wait_message(t) != back)
		errx(1, "an answer of another length");
	listen_again(t);
}
