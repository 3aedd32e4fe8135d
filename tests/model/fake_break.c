/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What tests do to the fake wires: breaking and stopping conns, and counting what is under way.
 */
#include "fake_conn.h"

/* Returns true if one of the two has a conn to the other that was not accepted yet. */
static bool being_made(const struct engine_ep *a, const struct engine_ep *b)
{
	struct fake_wire *wire;
	struct fake_connreq *connreq;
	const struct engine_ep *to, *from;

	list_for_each_entry(wire, &fake_wires, link) {
		to = wire->wire.ep;
		list_for_each_entry(connreq, &wire->connreqs, link) {
			from = connreq->from ? connreq->from->wire->wire.ep : NULL;
			if ((to == a && from == b) || (to == b && from == a))
				return true;
		}
	}
	return false;
}

int fake_break(struct engine_ep *a, struct engine_ep *b, int err)
{
	struct fake_wire *wire;
	struct fake_conn *c;
	int cnt = 0;

	fake_enter();
	if (being_made(a, b)) /* it would live on, and an endpoint that closes ends all */
		err = err ? err : -FI_ECONNRESET;
	list_for_each_entry(wire, &fake_wires, link) {
		if (wire->wire.ep != a)
			continue;
		list_for_each_entry(c, &wire->conns, link) {
			struct fake_conn *other = c->other;

			if (!other || other->wire->wire.ep != b)
				continue;
			c->ending = true;
			c->end_err = err;
			fake_conn_part(c, err, !err);
			fake_sender_gone(c, !err);
			fake_ring(wire);
			cnt++;
		}
	}
	fake_leave();
	return cnt;
}

void fake_stop(struct engine_ep *from, struct engine_ep *to, bool stop)
{
	struct fake_wire *wire;
	struct fake_conn *c;

	fake_enter();
	list_for_each_entry(wire, &fake_wires, link) {
		if (wire->wire.ep != to)
			continue;
		list_for_each_entry(c, &wire->conns, link) {
			if (c->other && c->other->wire->wire.ep == from)
				c->stopped = stop;
		}
		fake_ring(wire);
	}
	fake_leave();
}

uint32_t fake_under_way(void)
{
	struct fake_wire *wire;
	struct fake_conn *c;
	uint32_t cnt = 0;

	list_for_each_entry(wire, &fake_wires, link) {
		cnt += fake_lane_cnt(&wire->connreqs);
		list_for_each_entry(c, &wire->conns, link) {
			for (int i = 0; i < FAKE_LANES; i++)
				cnt += fake_lane_cnt(&c->lanes[i]);
			cnt += fake_lane_cnt(&c->flowing) + fake_lane_cnt(&c->gets);
			cnt += (c->done_first != NULL) + c->ending + c->answered;
		}
	}
	return cnt;
}

uint32_t fake_armed_cnt(void)
{
	struct fake_wire *wire;
	uint32_t cnt = 0;

	fake_enter();
	list_for_each_entry(wire, &fake_wires, link)
		cnt += wire->armed;
	fake_leave();
	return cnt;
}

uint32_t fake_conn_cnt(void)
{
	struct fake_wire *wire;
	uint32_t cnt = 0;

	list_for_each_entry(wire, &fake_wires, link)
		cnt += fake_lane_cnt(&wire->conns);
	return cnt;
}
