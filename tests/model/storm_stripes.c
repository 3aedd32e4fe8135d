/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes from each member to each, and reads of what others have written: every byte, every
 * counter and all remote CQ data. storm.h has the contract; called by the members.
 */
#include "storm.h"

#define STRIPE STORM_STRIPE

static const size_t sizes[] = { 8, 100, 256, 257, 4096, 8192, 16385, 65536, 300000, STRIPE };

#define SIZES ((int)(sizeof(sizes) / sizeof(sizes[0])))

static uint64_t pattern_word(int from, int to, int round, size_t at)
{
	return ((uint64_t)from << 8 | (uint64_t)to << 16 | (uint64_t)round << 24 | 0xa5) *
	       (at * 2 + 0x9e3779b97f4a7c15u);
}

static void pattern(uint8_t *at, size_t len, int from, int to, int round)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = pattern_word(from, to, round, i);

		memcpy(at + i, &word, len - i < 8 ? len - i : 8);
	}
}

static bool has_pattern(const uint8_t *at, size_t len, int from, int to, int round)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = pattern_word(from, to, round, i);

		if (memcmp(at + i, &word, len - i < 8 ? len - i : 8))
			return false;
	}
	return true;
}

/* Returns true if that write has remote CQ data: every other one has. */
static bool with_data(int from, int to, int round)
{
	return (from + to + round) % 2;
}

static uint64_t data_of(int from, int round)
{
	return (uint64_t)round << 32 | (uint64_t)from;
}

static void write_stripe(struct member *m, uint8_t *buf, size_t len, int to, int round,
			 struct storm_op *op)
{
	uint64_t at = (uint64_t)m->rank * STRIPE, data = data_of(m->rank, round);
	struct iovec iov[2] = { { buf, len / 3 }, { buf + len / 3, len - len / 3 } };
	struct fi_rma_iov rma = { at, len, STORM_KEY };
	struct fi_msg_rma msg = { .msg_iov = iov,
				  .iov_count = 2,
				  .addr = m->addrs[to],
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = op,
				  .data = data };
	bool tell = with_data(m->rank, to, round), injected = (m->rank + to / 2) % 2;
	ssize_t ret;

	if (injected && len <= m->info->tx_attr->inject_size) {
		m->writes++;
		if (tell)
			STORM_POST(m, ret,
				   fi_inject_writedata(m->rma, buf, len, data, m->addrs[to], at,
						       STORM_KEY));
		else
			STORM_POST(
				m, ret,
				fi_inject_write(m->rma, buf, len, m->addrs[to], at, STORM_KEY));
		CHECK(m, !ret);
		return;
	}
	storm_begin(m, op, to, FI_RMA | FI_WRITE);
	if (injected)
		STORM_POST(m, ret,
			   fi_writemsg(m->ep, &msg,
				       FI_COMPLETION | FI_DELIVERY_COMPLETE |
					       (tell ? FI_REMOTE_CQ_DATA : 0)));
	else if (tell)
		STORM_POST(m, ret,
			   fi_writedata(m->rma, buf, len, NULL, data, m->addrs[to], at,
					STORM_KEY, op));
	else
		STORM_POST(m, ret,
			   fi_write(m->rma, buf, len, NULL, m->addrs[to], at, STORM_KEY, op));
	CHECK(m, !ret);
}

static void read_stripes(struct member *m, uint8_t *buf, size_t len, int round,
			 struct storm_op *ops)
{
	ssize_t ret;

	memset(buf, 0, STORM_MEMBERS * STRIPE);
	for (int to = 0; to < STORM_MEMBERS; to++) {
		int of = (m->rank + to + round) % STORM_MEMBERS;

		storm_begin(m, &ops[to], to, FI_RMA | FI_READ);
		STORM_POST(m, ret,
			   fi_read(m->ep, buf + (size_t)to * STRIPE, len, NULL, m->addrs[to],
				   (uint64_t)of * STRIPE, STORM_KEY, &ops[to]));
		CHECK(m, !ret);
	}
	storm_finish(m);
	for (int to = 0; to < STORM_MEMBERS; to++)
		CHECK(m, has_pattern(buf + (size_t)to * STRIPE, len,
				     (m->rank + to + round) % STORM_MEMBERS, to, round));
}

/* After all writes of a round: check the memory of this member, and its completions. */
static void check_stripes(struct member *m, size_t len, int round, uint64_t *told)
{
	while (storm_turn(m))
		;
	for (int from = 0; from < STORM_MEMBERS; from++) {
		bool tell = with_data(from, m->rank, round);

		told[from] += tell;
		CHECK(m, has_pattern(m->region + (size_t)from * STRIPE, len, from, m->rank,
				     round));
		CHECK(m, m->heard[from] == told[from]);
		CHECK(m, !tell || m->last_data[from] == data_of(from, round));
	}
}

void storm_each_to_each(struct member *m)
{
	uint8_t *buf = aligned_alloc(4096, (size_t)STORM_MEMBERS * STRIPE);
	uint64_t told[STORM_MEMBERS] = { 0 }, each;
	struct storm_op ops[STORM_MEMBERS];
	int turns = STORM_SANITIZED ? SIZES : 2 * SIZES;

	CHECK(m, buf);
	for (int round = 0; round < turns; round++) {
		size_t len = sizes[round % SIZES];

		for (int k = 0; k < STORM_MEMBERS; k++) {
			int to = (m->rank + k) % STORM_MEMBERS;
			uint8_t *from = buf + (size_t)to * STRIPE;

			pattern(from, len, m->rank, to, round);
			write_stripe(m, from, len, to, round, &ops[to]);
		}
		storm_finish(m);
		storm_meet(m);
		check_stripes(m, len, round, told);
		read_stripes(m, buf, len, round, ops);
		storm_meet(m);
		each = (uint64_t)(round + 1) * STORM_MEMBERS;
		storm_counted(m, each, each, 0);
		storm_meet(m);
	}
	free(buf);
}
