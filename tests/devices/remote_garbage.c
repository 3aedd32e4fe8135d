/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * remote_garbage HOST PORT SEED COUNT - send a lender's door and a session of a controller what they do not expect
 *
 * Messages of any bytes, and ones that are right but for some bytes or their length: to the door, and to a session that was
 * borrowed as it should be, until that has enough of it, and then another one. Says how many sessions there were. What is
 * tested is that others go on, which the caller does.
 */
#define _GNU_SOURCE
#include "message.h"
#include "port.h"
#include "wire.h"
#include "seeded.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/device.h>

#define ANSWER_MS 20000 /* on a machine with much to do */

/* Of sessions that are left: longer than such a machine takes from a request to the next */
#define LEASE_MS 12000

static uint64_t seed;

static uint32_t any(uint32_t below)
{
	return (uint32_t)seeded_below(&seed, below);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* struct wire - an endpoint with one receive and one send */
struct wire {
	struct port port;
	struct fid_ep *ep;
	fi_addr_t peer;
	uint8_t name[PORT_NAME_MAX];
	size_t name_len;
	uint8_t in[LEASE_LETTER_MAX], out[65536];
	size_t got;
	bool sending;
	bool dead;
	struct fi_context2 in_context, out_context;
};

static void wire_open(struct wire *w, struct port_request *request)
{
	*w = (struct wire){ .name_len = sizeof(w->name) };
	request->cq_len = 256;
	if (port_open(request, &w->port) || port_ep_open(&w->port, &w->ep) ||
	    port_ep_name(w->ep, w->name, &w->name_len) ||
	    fi_recv(w->ep, w->in, sizeof(w->in), NULL, FI_ADDR_UNSPEC, &w->in_context))
		errx(1, "no endpoint");
}

static void wire_close(struct wire *w)
{
	fi_close(&w->ep->fid);
	port_close(&w->port);
}

static void wire_progress(struct wire *w)
{
	struct fi_cq_data_entry e;
	struct fi_cq_err_entry bad = { 0 };
	ssize_t n = fi_cq_read(w->port.cq, &e, 1);

	if (n == -FI_EAVAIL) {
		fi_cq_readerr(w->port.cq, &bad, 0);
		w->dead = true;
	} else if (n == 1 && e.op_context == &w->out_context) {
		w->sending = false;
	} else if (n == 1 && e.op_context == &w->in_context) {
		w->got = e.len;
	}
}

static bool wire_send(struct wire *w, const void *mem, size_t len)
{
	uint64_t end = now_ms() + ANSWER_MS;
	ssize_t ret = -FI_EAGAIN;

	while (!w->dead && (w->sending || ret == -FI_EAGAIN)) {
		if (!w->sending) {
			memcpy(w->out, mem, len);
			ret = fi_send(w->ep, w->out, len, NULL, w->peer, &w->out_context);
			w->sending = !ret;
			if (!ret)
				break;
		}
		wire_progress(w);
		if (now_ms() > end)
			return false;
	}
	return !w->dead && !ret;
}

/* What has come, if something does */
static size_t wire_wait(struct wire *w, uint64_t ms)
{
	uint64_t end = now_ms() + ms;

	while (!w->got && !w->dead && now_ms() < end)
		wire_progress(w);
	return w->got;
}

static void wire_again(struct wire *w)
{
	w->got = 0;
	if (fi_recv(w->ep, w->in, sizeof(w->in), NULL, FI_ADDR_UNSPEC, &w->in_context))
		w->dead = true;
}

static uint64_t life;
static uint32_t seq;

static size_t letter(struct wire *door, uint8_t *bytes, struct lease_message *msg)
{
	struct lease_envelope e = { .version = LEASE_VERSION,
				    .life = life,
				    .name_len = (uint16_t)door->name_len };

	msg->version = LEASE_VERSION;
	msg->seq = ++seq;
	memcpy(e.name, door->name, door->name_len);
	memcpy(bytes, &e, sizeof(e));
	memcpy(bytes + sizeof(e), msg, sizeof(*msg));
	return sizeof(e) + sizeof(*msg);
}

static void ask(struct wire *door, struct lease_message *msg, void *data, size_t room)
{
	uint8_t bytes[LEASE_LETTER_MAX];
	uint64_t end = now_ms() + ANSWER_MS;
	size_t len = letter(door, bytes, msg), n;
	struct lease_message answer;

	if (!wire_send(door, bytes, len))
		errx(1, "the door is closed");
	for (;;) {
		n = wire_wait(door, ANSWER_MS);
		if (now_ms() > end || n < sizeof(struct lease_envelope) + sizeof(answer))
			errx(1, "the door does not answer");
		memcpy(&answer, door->in + sizeof(struct lease_envelope), sizeof(answer));
		if (answer.seq == msg->seq)
			break;
		wire_again(door);
	}
	if (data)
		memcpy(data, door->in + sizeof(struct lease_envelope) + sizeof(answer),
		       answer.data_len < room ? answer.data_len : room);
	wire_again(door);
	*msg = answer;
}

static void distort(uint8_t *bytes, size_t *len)
{
	uint32_t n = any(4);

	while (n--)
		bytes[any((uint32_t)*len)] = (uint8_t)any(256);
	if (!any(4))
		*len = 1 + any((uint32_t)*len);
}

static void to_door(struct wire *door)
{
	struct lease_message msg = { .kind = (uint16_t)any(LEASE_KINDS + 2),
				     .index = any(4),
				     .lease = any(1100),
				     .ms = any(2) ? 1 : any(1u << 31),
				     .count = any(1u << 31) };
	uint8_t bytes[LEASE_LETTER_MAX];
	size_t len = letter(door, bytes, &msg), i;

	/* No lease that stays, and no life of our own that is used up. */
	if (msg.kind == LEASE_BORROW)
		return;
	if (!any(3))
		for (i = 0; i < len; i++)
			bytes[i] = (uint8_t)any(256);
	else
		distort(bytes + (any(2) ? sizeof(struct lease_envelope) : 0), &(size_t){ 80 });
	if (!any(4))
		len = 1 + any((uint32_t)len);
	wire_send(door, bytes, len);
	if (door->got)
		wire_again(door);
}

static size_t session_message(const struct remote_place *place, uint8_t *bytes)
{
	struct remote_head head = { REMOTE_VERSION, (uint16_t)any(REMOTE_END + 2), 1 + any(3),
				    place->key };
	struct nvme_sqe sqe = { .opcode = (uint8_t)any(10),
				.nsid = any(3),
				.cid = (uint16_t)any(1u << 16),
				.mptr = any(2),
				.prp1 = any(1u << 31) * 4096ULL * any(1u << 20),
				.prp2 = any(2) ? place->data_key : any(1u << 31),
				.cdw10 = any(2) ? any(1u << 31) : any(1024),
				.cdw12 = any(1u << 17) };
	size_t at = sizeof(head);
	uint32_t i;

	memcpy(bytes, &head, sizeof(head));
	for (i = 0; i < head.count && at + sizeof(sqe) + 8192 < place->message_max; i++) {
		memcpy(bytes + at, &sqe, sizeof(sqe));
		at += sizeof(sqe) + (sqe.mptr && any(2) ? REMOTE_PAD(any(8192)) : 0);
	}
	return at;
}

static void to_session(struct wire *door, struct port_request request, uint32_t count)
{
	static uint8_t bytes[65536];
	struct lease_message borrow = { .kind = LEASE_BORROW,
					.flags = LEASE_SHARED,
					.ms = LEASE_MS };
	struct lease_message queues = { .kind = LEASE_QUEUES, .count = 1 + any(64) };
	struct remote_connect connect = {
		.head = { REMOTE_VERSION, REMOTE_CONNECT, 0, { { 0 } } }
	};
	struct remote_place place = { 0 };
	struct wire w;
	uint32_t i;

	ask(door, &borrow, NULL, 0);
	if (borrow.status)
		errx(1, "borrow: %d", borrow.status);
	queues.device = borrow.device;
	queues.lease = borrow.lease;
	queues.generation = borrow.generation;
	queues.token = borrow.token;
	ask(door, &queues, &place, sizeof(place));
	if (queues.status)
		errx(1, "queues: %d", queues.status);
	request.service = NULL;
	wire_open(&w, &request);
	if (port_peer(&w.port, place.name, place.name_len, &w.peer))
		errx(1, "no session");
	connect.head.key = place.key;
	connect.name_len = (uint32_t)w.name_len;
	memcpy(connect.name, w.name, w.name_len);
	if (!any(3)) {
		connect.entries = 2 + any(queues.count ? 4 : 1);
		connect.sq_addr = connect.cq_addr = any(1u << 31);
		connect.sq_key = connect.cq_key = any(1u << 31);
	}
	wire_send(&w, &connect, sizeof(connect));
	for (i = 0; i < count && !w.dead; i++) {
		size_t len = session_message(&place, bytes);

		if (!any(3))
			distort(bytes, &len);
		if (!wire_send(&w, bytes, len))
			break;
		if (w.got)
			wire_again(&w);
	}
	wire_close(&w);
	borrow.kind = LEASE_RETURN;
	borrow.data_len = 0;
	if (any(2))
		ask(door, &borrow, NULL, 0);
}

int main(int argc, char **argv)
{
	struct port_request request = { .provider = getenv("WEFT_FABRIC"), .rma = true };
	uint32_t count, i, sessions = 0;
	static struct wire door;

	if (argc != 5)
		errx(2, "usage: %s HOST PORT SEED COUNT", argv[0]);
	request.host = argv[1];
	request.service = argv[2];
	seed = strtoull(argv[3], NULL, 0);
	count = (uint32_t)atoi(argv[4]);
	life = seed | 1;
	wire_open(&door, &request);
	if (fi_av_insert(door.port.av, door.port.info->dest_addr, 1, &door.peer, 0, NULL) != 1)
		errx(1, "no door");
	for (i = 0; i < count; i++) {
		if (any(20)) {
			to_door(&door);
			continue;
		}
		life += 2;
		to_session(&door, request, 1 + any(40));
		sessions++;
	}
	printf("%u sessions\n", sessions);
	return 0;
}
