/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Offers and lines that no peer would make. Called by tests, on the thread that runs them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>
#include "mock_victim.h"

const struct pshm_sizes mock_victim_sizes = { PSHM_LINE_CNT, PSHM_DATA_LEN, 0 };

struct pshm_region mock_pair_of(const struct pshm_sizes *sizes, const struct mock *from)
{
	struct pshm_region region;

	assert_int_equal(pshm_pair_create(sizes, &region), 0);
	pshm_hello_put(region.addr, PSHM_REQUESTER, &from->hello);
	return region;
}

struct pshm_offer mock_offer_of(const struct pshm_region *region)
{
	struct pshm_offer offer = { .pid = (uint32_t)getpid(), .fd = (uint32_t)region->fd };

	memcpy(offer.nonce, ((struct pshm_pair *)region->addr)->nonce, PSHM_NONCE);
	return offer;
}

int mock_offer_made(struct mock *to, const struct pshm_offer *offer)
{
	struct pshm_ticket ticket;
	struct pshm_region inbox;
	int err;

	assert_int_equal(pshm_inbox_open(to->addr.pid, to->addr.fd, to->addr.nonce, &inbox), 0);
	assert_int_equal(pshm_mailbox_claim(inbox.addr, offer->pid, &ticket), 0);
	assert_int_equal(pshm_mailbox_post(inbox.addr, offer, &ticket), 0);
	mock_poll(to, NULL);
	err = pshm_mailbox_failed(&ticket);
	pshm_mailbox_drop(&ticket);
	pshm_region_close(&inbox);
	return err;
}

struct pshm_pair *mock_victim_made(struct mock *to, const struct mock *from,
				   struct pshm_region *region)
{
	struct pshm_offer offer;

	*region = mock_pair_of(&mock_victim_sizes, from);
	offer = mock_offer_of(region);
	to->conn = NULL;
	assert_int_equal(mock_offer_made(to, &offer), 0);
	assert_non_null(to->conn);
	return region->addr;
}

void mock_forged_line(struct mock *to, struct pshm_region *region, uint32_t len, uint32_t note,
		      const void *payload, size_t payload_len)
{
	struct packet packet = { .op = PACKET_DATA, .len = len, .tag = MOCK_BIG };
	struct ring_rx *rx = &pshm_conn_of(to->conn)->rx;
	struct ring_rx ours;
	struct ring_line *line;

	assert_true(payload_len <= sizeof(line->payload));
	ring_rx_init(&ours, pshm_pair_ring(region, PSHM_REQUESTER, &mock_victim_sizes),
		     PSHM_LINE_CNT, PSHM_DATA_LEN);
	line = &ours.lines[rx->tail & rx->mask];
	memcpy(line->header, &packet, sizeof(packet));
	memcpy(line->payload, payload, payload_len);
	atomic_store(&line->word, (uint64_t)note << 32 | (rx->tail + 1));
	mock_poll(to, NULL);
}
