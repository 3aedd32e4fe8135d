/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counts of a hub's conns, for tools: tcp_shown.h has the contract. Events are counted as they happen. What
 * each message changes is sampled: a conn is looked at four times in a second, so that messages cost nothing.
 */
#include "shown.h"
#include "tcp_secret.h"
#include "tcp_shown.h"

static void show(const struct tcp_hub *hub)
{
	if (!hub->forked)
		mem_part_show(hub->part, hub->counts, WEFT_MEM_TCP_COUNTS);
}

/* Opens the hub's part, once. Where there is no room for it, the counts are shown to nobody. */
static void begin(struct tcp_hub *hub)
{
	if (!hub->part_tried && !hub->forked)
		hub->part = mem_part_open(WEFT_MEM_PART_TCP);
	hub->part_tried = true;
}

void tcp_shown_up(struct tcp_conn *conn)
{
	struct tcp_hub *hub = tcp_wire_of(conn)->hub;
	const struct tcp_secret *secret = hub->secret;

	begin(hub);
	conn->shown.up = true;
	conn->shown.proved = secret;
	conn->shown.encrypted = secret && secret->tls;
	hub->counts[WEFT_MEM_TCP_CONNS]++;
	hub->counts[WEFT_MEM_TCP_MADE]++;
	hub->counts[WEFT_MEM_TCP_PROVED] += conn->shown.proved;
	hub->counts[WEFT_MEM_TCP_ENCRYPTED] += conn->shown.encrypted;
	show(hub);
}

void tcp_shown_refused(struct tcp_hub *hub, enum weft_mem_tcp_count why)
{
	begin(hub);
	hub->counts[why]++;
	show(hub);
}

void tcp_shown_failed(struct tcp_hub *hub, const struct tcp_lane *lane, int err)
{
	if (lane->secure && err == -FI_EIO)
		tcp_shown_refused(hub, WEFT_MEM_TCP_REFUSED_TLS);
}

void tcp_shown_broken(struct tcp_conn *conn, struct tcp_stream *stream)
{
	struct tcp_hub *hub = tcp_wire_of(conn)->hub;

	hub->counts[WEFT_MEM_TCP_BREAKS]++;
	hub->counts[WEFT_MEM_TCP_BROKEN] += !stream->broken;
	stream->broken = true;
	show(hub);
}

void tcp_shown_resumed(struct tcp_conn *conn, struct tcp_stream *stream)
{
	struct tcp_hub *hub = tcp_wire_of(conn)->hub;

	if (!stream->broken)
		return;
	stream->broken = false;
	hub->counts[WEFT_MEM_TCP_BROKEN]--;
	hub->counts[WEFT_MEM_TCP_RESUMES]++;
	show(hub);
}

/* Bytes that the peer has not acknowledged. */
static uint64_t retained(const struct tcp_conn *conn)
{
	uint64_t len = conn->tail - conn->kept;

	if (conn->bulk && conn->session.on)
		len += conn->bulk->out_len - conn->bulk->acked_len;
	return len;
}

static void sample(struct tcp_conn *conn, uint64_t kept)
{
	uint64_t *counts = tcp_wire_of(conn)->hub->counts;
	uint64_t sent = conn->out_pos + conn->head + (conn->bulk ? conn->bulk->out_len : 0);
	uint64_t received = conn->session.control.in + conn->session.data.in;

	counts[WEFT_MEM_TCP_RETAINED_BYTES] += kept - conn->shown.retained;
	conn->shown.retained = kept;
	counts[WEFT_MEM_TCP_RECEIVED_BYTES] += received - conn->shown.received;
	conn->shown.received = received;
	if (sent <= conn->shown.sent) /* after a break, until the same has been sent again */
		return;
	counts[WEFT_MEM_TCP_SENT_BYTES] += sent - conn->shown.sent;
	conn->shown.sent = sent;
}

void tcp_shown_sample(struct tcp_conn *conn)
{
	if (!conn->shown.up)
		return;
	sample(conn, retained(conn));
	show(tcp_wire_of(conn)->hub);
}

void tcp_shown_down(struct tcp_conn *conn)
{
	struct tcp_hub *hub = tcp_wire_of(conn)->hub;

	if (!conn->shown.up)
		return;
	sample(conn, 0);
	conn->shown.up = false;
	hub->counts[WEFT_MEM_TCP_CONNS]--;
	hub->counts[WEFT_MEM_TCP_PROVED] -= conn->shown.proved;
	hub->counts[WEFT_MEM_TCP_ENCRYPTED] -= conn->shown.encrypted;
	hub->counts[WEFT_MEM_TCP_LOST] += conn->lost;
	hub->counts[WEFT_MEM_TCP_BROKEN] -= (uint64_t)conn->session.control.broken +
					    conn->session.data.broken;
	conn->session.control.broken = conn->session.data.broken = false;
	show(hub);
}

void tcp_shown_end(struct tcp_hub *hub)
{
	if (!hub->forked)
		mem_part_close(hub->part);
	hub->part = NULL;
}
