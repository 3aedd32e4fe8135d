/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: datagrams that come to an endpoint of the provider rds. The peers, which are the target, say hello and are
 * asked, answer and refuse, and send what a peer sends or something else, with heads that are right or nearly so. Over
 * mock_datagram.c, with the engine.
 *
 * Checked: nothing crashes, and the endpoint can be closed.
 */
#include <string.h>
#include "fuzz.h"
#include "input.h"
#include "loop_end.h"
#include "rds_raw.h"
#include "wire.h"

#define PEERS 3
#define ROOM  4096u

static struct {
	struct loop_end end;
	struct raw peers[PEERS];
	fi_addr_t addrs[PEERS];
	uint8_t memory[ROOM], in[ROOM];
} f;

static uint8_t body[RDS_DATAGRAM_MAX];

/* Changes a byte of it, sometimes. */
static void bend(void *bytes, size_t len)
{
	uint8_t how = input_byte();

	if (how & 1)
		((uint8_t *)bytes)[input_word() % len] ^= (uint8_t)(1 + how);
}

static void say(struct raw *raw, uint8_t op, size_t len)
{
	struct rds_head head = raw_head(raw, op, len);
	bool counts = op >= RDS_PACKET && op != RDS_ALIVE;

	if (op == RDS_HELLO)
		head.to = head.number = 0;
	else if (!counts)
		head.number = 0;
	bend(&head, sizeof(head));
	if (!raw_say(raw, &head, body, len) && counts)
		raw->number++;
}

static void say_greeting(struct raw *raw, uint8_t op)
{
	struct rds_greeting g = raw_greeting(raw);

	bend(&g, sizeof(g));
	memcpy(body, &g, sizeof(g));
	say(raw, op, sizeof(g) - input_byte() % 2);
}

static void say_refusal(struct raw *raw)
{
	struct rds_refusal refusal = { .err = input_byte() };

	bend(&refusal, sizeof(refusal));
	memcpy(body, &refusal, sizeof(refusal));
	say(raw, RDS_REFUSE, sizeof(refusal));
}

/* A packet, with as much behind it as it says, or not */
static void say_packet(struct raw *raw, uint8_t op)
{
	struct packet packet = { .op = input_byte() };
	size_t len = op == RDS_FIRST ? RDS_PAYLOAD_MAX : input_byte();

	packet.seq = input_byte();
	packet.epoch = PACKET_EPOCH(77);
	packet.len = len + (op == RDS_FIRST ? 1 + input_byte() : 0);
	bend(&packet, sizeof(packet));
	memcpy(body, &packet, sizeof(packet));
	say(raw, op, sizeof(packet) + len);
}

static void say_end(struct raw *raw)
{
	struct rds_end end = { .err = input_byte() % 2 };

	bend(&end, sizeof(end));
	memcpy(body, &end, sizeof(end));
	say(raw, RDS_END, RDS_END_LEN);
}

static void step(void)
{
	uint8_t what = input_byte();
	struct raw *raw = &f.peers[input_byte() % PEERS];

	switch (what % 10) {
	case 0:
		say_greeting(raw, RDS_HELLO);
		break;
	case 1:
		say_greeting(raw, RDS_ANSWER);
		break;
	case 2:
		say_refusal(raw);
		break;
	case 3:
	case 4:
		say_packet(raw, what % 10 == 3 ? RDS_PACKET : RDS_FIRST);
		break;
	case 5:
		say(raw, RDS_MORE, input_byte());
		break;
	case 6:
		say(raw, RDS_ALIVE, input_byte() % 8 ? 0 : 1);
		break;
	case 7:
		say_end(raw);
		break;
	case 8:
		fi_tsend(f.end.ep, f.memory, input_byte(), NULL, f.addrs[raw - f.peers], 1,
			 NULL);
		break;
	default:
		fi_trecv(f.end.ep, f.in, sizeof(f.in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL);
	}
	fi_cq_read(f.end.cq, NULL, 0);
	raw_hear(raw);
}

static void begin(void)
{
	static bool begun;

	if (!begun) {
		rds_beats_init();
		MUST(!wire_register(&rds_wire_provider));
	}
	begun = true;
	memset(&f, 0, sizeof(f));
	MUST(!loop_end_open(&f.end, f.memory, sizeof(f.memory)));
	for (int i = 0; i < PEERS; i++) {
		MUST(!raw_open(&f.peers[i], f.end.name));
		MUST(fi_av_insert(f.end.av, &f.peers[i].where, 1, &f.addrs[i], 0, NULL) == 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	input_begin(data, len);
	begin();
	for (int i = 0; i < 64 && input_left(); i++)
		step();
	for (int i = 0; i < PEERS; i++)
		raw_close(&f.peers[i]);
	loop_end_close(&f.end);
	return 0;
}
