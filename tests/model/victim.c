/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An endpoint that is lied to; see victim.h. Called by the hostile tests, on one thread. */
#include "victim.h"

const struct fake_end_attr victim_attr = {
	.family = FAKE_FAMILY_B,
	.threading = FI_THREAD_DOMAIN,
	.format = FI_CQ_FORMAT_TAGGED,
	.budget = 64u << 10,
};

struct fake_end victim, honest;
struct fake_raw *liar;
struct hello lie, reply;
fi_addr_t to_liar;
struct fi_context2 contexts[8];
struct fi_cq_tagged_entry entry;
struct fi_cq_err_entry error;

void meet_liar(void)
{
	assert_int_equal(fake_raw_open(fake_end_engine(&victim), &lie, &liar, &reply), 0);
}

void victim_open(void)
{
	fake_ends_begin(1);
	fake_end_open(&victim, &victim_attr, NULL);
	fake_raw_hello(&lie, &victim.name, 20000);
	lie.seq = 77;
	to_liar = fake_end_insert(&victim, &lie.addr);
	meet_liar();
}

void go(uint32_t rounds)
{
	while (rounds--) {
		fake_end_progress(&victim);
		if (honest.ep)
			fake_end_progress(&honest);
	}
}

ssize_t next(struct fid_cq *cq)
{
	ssize_t ret = -FI_EAGAIN;

	for (int i = 0; i < 1000 && ret == -FI_EAGAIN; i++) {
		ret = fi_cq_read(cq, &entry, 1);
		go(1);
	}
	if (ret == -FI_EAVAIL) {
		error = (struct fi_cq_err_entry){ 0 };
		assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
	}
	return ret;
}
