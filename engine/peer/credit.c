/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Grants of credit: due, taken for a header, taken back. Called with the domain held, by sends and
 * by progress.
 */
#include "credit.h"
#include "control.h"

uint16_t engine_credit_take(struct engine_peer *peer)
{
	uint32_t units = peer->credit_due / CREDIT_UNIT;

	if (units > UINT16_MAX)
		units = UINT16_MAX;
	peer->credit_due -= units * CREDIT_UNIT;
	peer->rx_window += units * CREDIT_UNIT;
	return (uint16_t)units;
}

void engine_credits_back(struct engine_peer *peer, uint16_t credits)
{
	peer->credit_due += credits * CREDIT_UNIT;
	peer->rx_window -= credits * CREDIT_UNIT;
}

void engine_grant(struct engine_peer *peer, size_t len)
{
	peer->credit_due += (uint32_t)len;
	if (peer->credit_due >= peer->window / 2 && peer->credit_due >= CREDIT_UNIT &&
	    peer->conn)
		engine_ctl(peer, PACKET_CREDIT, 0, 0, NULL);
}
