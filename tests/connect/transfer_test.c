/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What goes over a connection of MSG endpoints: messages of every size and both directions, tagged
 * ones, one-sided operations, shared contexts. Whatever destination a call names, it is the peer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include "party.h"
#include <cmocka.h>

#define BIG (3u << 20)

static struct party listener, caller, callee;
static unsigned char out[BIG], in[BIG];

static int setup(void **state)
{
	wishes.caps = FI_RMA | FI_ATOMIC | FI_TAGGED;
	party_listen(&listener);
	party_pair(&listener, &caller, &callee);
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (unsigned char)(i * 7 + i / 251);
	memset(in, 0, sizeof(in));
	return 0;
}

static int teardown(void **state)
{
	party_close_all();
	return 0;
}

/* Waits for the ends of one operation of each. */
static void both_end(struct party *a, void *a_context, struct party *b, void *b_context)
{
	void *context;

	assert_int_equal(party_ends(b, &context), 0);
	assert_ptr_equal(context, b_context);
	assert_int_equal(party_ends(a, &context), 0);
	assert_ptr_equal(context, a_context);
}

static void pass(struct party *from, struct party *to, size_t len, fi_addr_t named)
{
	memset(in, 0, len);
	assert_int_equal(fi_recv(to->ep, in, len, NULL, named, in), 0);
	assert_int_equal(fi_send(from->ep, out, len, NULL, named, out), 0);
	both_end(from, out, to, in);
	assert_memory_equal(in, out, len);
}

static void messages_of_every_size_go_both_ways(void **state)
{
	static const size_t sizes[] = {
		0, 1, 8, 64, 4096, 8192, 8193, 65536, 65537, 300000, BIG
	};
	static const fi_addr_t named[] = { 0, FI_ADDR_UNSPEC, 77 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		pass(&caller, &callee, sizes[i], named[i % 3]);
		pass(&callee, &caller, sizes[i], named[(i + 1) % 3]);
	}
}

static void unexpected_messages_wait(void **state)
{
	void *context;
	int i, got;

	for (i = 0; i < 2000; i++)
		while (fi_inject(caller.ep, &i, sizeof(i), 0) == -FI_EAGAIN)
			party_quiet(&callee);
	for (i = 0; i < 2000; i++) {
		assert_int_equal(fi_recv(callee.ep, &got, sizeof(got), NULL, 0, &got), 0);
		assert_int_equal(party_ends(&callee, &context), 0);
		assert_int_equal(got, i);
	}
}

#define TURNS 64

/* A message of the next test: small ones between large ones, which take other ways. */
static size_t turn_len(int i)
{
	static const size_t lens[] = { 65536, 8,     4096, 0,	  300000, 100, 65536, 20000,
				       1,     65537, 64,   16384, 524289, 512, 4096,  8192 };

	return lens[i % (sizeof(lens) / sizeof(lens[0]))];
}

/* Whether receives are posted before the messages or after them */
static void turns(bool before)
{
	static unsigned char bufs[TURNS][524289];
	void *context;
	int i, sent;

	for (i = 0; before && i < TURNS; i++)
		assert_int_equal(fi_recv(callee.ep, bufs[i], sizeof(bufs[i]), NULL, 0, bufs[i]),
				 0);
	for (sent = 0; sent < TURNS; sent++)
		assert_int_equal(
			fi_send(caller.ep, out + sent, turn_len(sent), NULL, 0, out + sent), 0);
	if (!before)
		assert_true(party_quiet(&callee));
	for (i = 0; !before && i < TURNS; i++)
		assert_int_equal(fi_recv(callee.ep, bufs[i], sizeof(bufs[i]), NULL, 0, bufs[i]),
				 0);
	for (i = 0; i < TURNS; i++) {
		assert_int_equal(party_ends(&callee, &context), 0);
		assert_ptr_equal(context, bufs[i]);
		assert_memory_equal(bufs[i], out + i, turn_len(i));
	}
	for (i = 0; i < TURNS; i++) {
		assert_int_equal(party_ends(&caller, &context), 0);
		assert_ptr_equal(context, out + i);
	}
}

static void messages_complete_in_the_order_of_the_calls(void **state)
{
	for (int i = 0; i < 4; i++)
		turns(i % 2);
}

/* One that is taken back, or a tagged one, does not wait for those before it. */
static void a_tagged_message_does_not_wait_for_others(void **state)
{
	char got[2];
	void *context;

	assert_int_equal(fi_send(caller.ep, out, BIG, NULL, 0, out), 0);
	assert_int_equal(fi_trecv(callee.ep, got, 1, NULL, 0, 7, 0, got), 0);
	assert_int_equal(fi_tsend(caller.ep, out, 1, NULL, 0, 7, got), 0);
	both_end(&caller, got, &callee, got);
	assert_int_equal(fi_send(caller.ep, out, 1, NULL, 0, out + 1), 0);
	assert_int_equal(fi_recv(callee.ep, in, BIG, NULL, 0, in), 0);
	assert_int_equal(fi_recv(callee.ep, got, 1, NULL, 0, got), 0);
	both_end(&caller, out, &callee, in);
	both_end(&caller, out + 1, &callee, got);
	assert_memory_equal(in, out, BIG);
	/* The connection ends while some are whole and others are not. */
	for (int i = 0; i < 8; i++)
		assert_int_equal(fi_send(caller.ep, out, i % 2 ? 8 : BIG, NULL, 0, out + i), 0);
	assert_int_equal(fi_recv(callee.ep, in, BIG, NULL, 0, in), 0);
	party_quiet(&callee);
	party_close(&callee);
	for (int i = 0; i < 8; i++)
		party_ends(&caller, &context); /* each ends, one way or the other */
}

static void tagged_messages_find_their_receives(void **state)
{
	assert_int_equal(fi_trecv(callee.ep, in, 100, NULL, 0, 2, 0, &in[0]), 0);
	assert_int_equal(fi_trecv(callee.ep, in + 100, 100, NULL, 0, 1, 0, &in[100]), 0);
	assert_int_equal(fi_tsend(caller.ep, out, 100, NULL, 0, 1, out), 0);
	both_end(&caller, out, &callee, &in[100]);
	assert_int_equal(fi_tsend(caller.ep, out + 100, 100, NULL, FI_ADDR_UNSPEC, 2, out), 0);
	both_end(&caller, out, &callee, &in[0]);
	assert_memory_equal(in + 100, out, 100);
	assert_memory_equal(in, out + 100, 100);
}

static struct fid_mr *share(struct party *p, void *memory, size_t len)
{
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(p->domain, memory, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
				   1, 0, &mr, NULL),
			 0);
	return mr;
}

static uint64_t at(const struct party *p, const void *memory)
{
	return p->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory : 0;
}

/* Waits for the end of an operation of the caller while the callee makes progress. */
static void ends(void *want)
{
	void *context;

	assert_int_equal(party_ends(&caller, &context), 0);
	assert_ptr_equal(context, want);
}

/* A write whose completion says that it was carried out. */
static void write_whole(size_t len, fi_addr_t named, uint64_t addr, uint64_t key)
{
	struct iovec iov = { out, len };
	struct fi_rma_iov to = { addr, len, key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = named,
				  .rma_iov = &to,
				  .rma_iov_count = 1,
				  .context = out };

	assert_int_equal(fi_writemsg(caller.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE), 0);
	ends(out);
}

static void one_sided_operations_reach_the_peer(void **state)
{
	struct fid_mr *mr = share(&callee, in, sizeof(in));
	uint64_t key = fi_mr_key(mr), base = at(&callee, in), one = 1, before = 0;
	static const size_t sizes[] = { 8, 5000, BIG };

	for (size_t i = 0; i < 3; i++) {
		fi_addr_t named = i == 1 ? FI_ADDR_UNSPEC : 0;

		memset(in, 0, sizeof(in));
		write_whole(sizes[i], named, base, key);
		assert_memory_equal(in, out, sizes[i]);
		memset(out, 0xff, sizes[i]);
		assert_int_equal(fi_read(caller.ep, out, sizes[i], NULL, named, base, key, in),
				 0);
		ends(in);
		assert_memory_equal(out, in, sizes[i]);
	}
	memset(in, 0, 8);
	assert_int_equal(fi_fetch_atomic(caller.ep, &one, 1, NULL, &before, NULL, 0, base, key,
					 FI_UINT64, FI_SUM, &one),
			 0);
	ends(&one);
	assert_int_equal(before, 0);
	assert_int_equal(in[0], 1);
	assert_int_equal(fi_close(&mr->fid), 0);
}

static void a_shared_context_receives_of_all_its_endpoints(void **state)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA };
	static struct party callers[3];
	struct fid_ep *eps[3], *srx;
	struct fid_domain *domain = NULL;
	struct fid_cq *cq;
	struct heard heard;
	struct fi_cq_data_entry entry;
	time_t end = time(NULL) + 60;
	struct party *p;
	int got[3], i;

	for (i = 0; i < 3; i++) {
		p = &callers[i];
		party_open(p, NULL);
		assert_int_equal(fi_connect(p->ep, listener.name, NULL, 0), 0);
		party_expect(&listener, FI_CONNREQ, &heard);
		if (!domain) {
			assert_int_equal(
				fi_domain(listener.fabric, heard.cm.info, &domain, NULL), 0);
			assert_int_equal(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
			assert_int_equal(fi_srx_context(domain, NULL, &srx, NULL), 0);
		}
		assert_int_equal(fi_endpoint(domain, heard.cm.info, &eps[i], NULL), 0);
		assert_int_equal(fi_ep_bind(eps[i], &listener.eq->fid, 0), 0);
		assert_int_equal(fi_ep_bind(eps[i], &cq->fid, FI_TRANSMIT | FI_RECV), 0);
		assert_int_equal(fi_ep_bind(eps[i], &srx->fid, 0), 0);
		assert_int_equal(fi_enable(eps[i]), 0);
		assert_int_equal(fi_recv(srx, &got[i], sizeof(got[i]), NULL, 0, &got[i]), 0);
		assert_int_equal(fi_accept(eps[i], NULL, 0), 0);
		fi_freeinfo(heard.cm.info);
		listener.ep = eps[i]; /* whose event is expected */
		p = &listener;
		struct fid_pep *pep = listener.pep;
		listener.pep = NULL;
		party_expect(&listener, FI_CONNECTED, &heard);
		listener.pep = pep;
		listener.ep = NULL;
		party_expect(&callers[i], FI_CONNECTED, &heard);
	}
	/* One that goes does not take the receives of the others along. */
	party_close(&callers[2]);
	while (party_quiet(&listener))
		assert_true(time(NULL) < end);
	for (i = 0; i < 2; i++) {
		assert_int_equal(fi_inject(callers[i].ep, &i, sizeof(i), 0), 0);
		while (fi_cq_read(cq, &entry, 1) != 1)
			party_quiet(&callers[i]);
		assert_ptr_equal(entry.op_context, &got[i]);
		assert_int_equal(got[i], i);
	}
	for (i = 0; i < 3; i++)
		assert_int_equal(fi_close(&eps[i]->fid), 0);
	assert_int_equal(fi_close(&srx->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	for (i = 0; i < 2; i++)
		party_close(&callers[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(messages_of_every_size_go_both_ways),
		TEST(unexpected_messages_wait),
		TEST(messages_complete_in_the_order_of_the_calls),
		TEST(a_tagged_message_does_not_wait_for_others),
		TEST(tagged_messages_find_their_receives),
		TEST(one_sided_operations_reach_the_peer),
		TEST(a_shared_context_receives_of_all_its_endpoints),
	};

	wishes.automatic = argc > 1 && !strcmp(argv[1], "auto");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
