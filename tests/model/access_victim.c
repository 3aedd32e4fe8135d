/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A victim with memory; see access_victim.h. Called by the tests, on one thread. */
#include "access_victim.h"

static struct fid_mr *mr, *read_only;
static char guarded[3 * REGION];
char *const region = guarded + REGION;
char out[ALL_LEN], bytes[ALL_LEN];

int access_victim_setup(void **state)
{
	uint64_t both = FI_REMOTE_READ | FI_REMOTE_WRITE;

	memset(guarded, 'g', sizeof(guarded));
	memset(out, 'o', sizeof(out));
	memset(bytes, 'l', sizeof(bytes));
	victim_open();
	assert_int_equal(fi_mr_reg(victim.domain, region, REGION, both, 0, KEY, 0, &mr, NULL),
			 0);
	assert_int_equal(fi_mr_reg(victim.domain, region, REGION, FI_REMOTE_READ, 0, KEY_READ,
				   0, &read_only, NULL),
			 0);
	return 0;
}

/* Whatever the liar did: nothing is kept of it, and nothing was written outside. */
int access_victim_teardown(void **state)
{
	struct engine_ep *ep = fake_end_engine(&victim);

	fake_raw_close(liar, -FI_ECONNRESET);
	go(10);
	while (next(victim.tx_cq) != -FI_EAGAIN)
		;
	assert_int_equal(ep->tx_pool.used, 0);
	assert_int_equal(ep->reply_pool.used, 0);
	assert_int_equal(ep->landing_pool.used, 0);
	assert_int_equal(ep->held_pool.used, 0);
	assert_int_equal(ep->ctl_pool.used, 0);
	assert_int_equal(ep->domain->rx_pool.used, 0);
	for (size_t i = 0; i < REGION; i++)
		assert_true(guarded[i] == 'g' && guarded[2 * REGION + i] == 'g');
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&read_only->fid), 0);
	fake_end_close(&victim);
	return 0;
}

struct packet a_packet(enum packet_op op, uint32_t len)
{
	return (struct packet){
		.op = (uint8_t)op, .epoch = PACKET_EPOCH(lie.epoch), .len = len, .seq = lie.seq
	};
}

int say(const struct packet *p, const void *payload, size_t avail)
{
	int ret = fake_raw_send(liar, p, payload, avail, NULL);

	lie.seq += !ret && engine_is_request(p) && p->seq == lie.seq;
	return ret;
}

void accepted(const struct packet *p, const void *payload)
{
	assert_int_equal(say(p, payload, p->len), 0);
	assert_true(fake_raw_alive(liar));
}

void refused(const struct packet *p, const void *payload, size_t avail)
{
	assert_int_equal(say(p, payload, avail), -FI_EINVAL);
	assert_false(fake_raw_alive(liar));
	fake_raw_close(liar, 0);
	lie.incarnation++;
	meet_liar();
}

struct packet heard(enum packet_op op, void *payload, size_t len)
{
	struct packet p = { 0 };

	/* More rounds than there are in the time within which ACKs leave */
	for (int i = 0; i < 40000 && p.op != op; i++) {
		go(1);
		fake_raw_read(liar, &p, payload, len);
	}
	assert_int_equal(p.op, op);
	return p;
}
