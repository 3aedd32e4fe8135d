/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters over the real library and each provider. One process, its main thread.
 *
 * usage: cntr_test PROVIDER
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "ends.h"

#define CNT 100

static const char *provider;

static char bytes[2][CNT][64];

static void counters_count(void **state)
{
	struct end_attr attr = { .provider = provider,
				 .cntr_wait = FI_WAIT_UNSPEC,
				 .no_cq = true };
	struct end a, b;
	fi_addr_t to;

	end_open(&a, &attr);
	end_open(&b, &attr);
	to = end_knows(&a, &b);
	for (int i = 0; i < CNT; i++) {
		memset(bytes[0][i], i, sizeof(bytes[0][i]));
		assert_int_equal(
			fi_trecv(b.ep, bytes[1][i], 64, NULL, FI_ADDR_UNSPEC, 7, 0, NULL), 0);
		END_UNTIL(!fi_tsend(a.ep, bytes[0][i], 64, NULL, to, 7, NULL),
			  fi_cntr_read(b.rx));
	}
	END_UNTIL(fi_cntr_read(b.rx) == CNT, fi_cntr_read(a.tx));
	END_UNTIL(fi_cntr_read(a.tx) == CNT, fi_cntr_read(b.rx));
	assert_memory_equal(bytes[0], bytes[1], sizeof(bytes[0]));
	assert_int_equal(fi_cntr_wait(b.rx, CNT, 0), 0);
	assert_int_equal(fi_cntr_wait(b.rx, CNT + 1, 20), -FI_ETIMEDOUT);
	assert_int_equal(fi_cntr_readerr(b.rx) + fi_cntr_readerr(a.tx), 0);
	assert_int_equal(fi_cntr_read(a.rx) + fi_cntr_read(b.tx), 0);
	end_close(&a);
	end_close(&b);
}

/* An injected message has no completion, and is counted all the same. */
static void counters_count_what_has_no_completion(void **state)
{
	struct end_attr attr = { .provider = provider, .cntr_wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry entry;
	struct end a;
	fi_addr_t self;

	end_open(&a, &attr);
	self = end_knows(&a, &a);
	END_UNTIL(!fi_inject(a.ep, "x", 1, self), fi_cntr_read(a.tx));
	assert_int_equal(fi_recv(a.ep, bytes[0][0], 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_cntr_wait(a.rx, 1, 20000), 0);
	assert_int_equal(fi_cntr_wait(a.tx, 1, 20000), 0);
	assert_int_equal(fi_cq_read(a.cq, &entry, 1), 1);
	assert_true(entry.flags & FI_RECV);
	assert_int_equal(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN);
	end_close(&a);
}

static void errors_are_counted_and_end_a_wait(void **state)
{
	struct end_attr attr = { .provider = provider, .cntr_wait = FI_WAIT_YIELD };
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;
	struct end a;
	fi_addr_t self;

	end_open(&a, &attr);
	self = end_knows(&a, &a);
	assert_int_equal(fi_trecv(a.ep, bytes[1][0], 4, NULL, FI_ADDR_UNSPEC, 7, 0, NULL), 0);
	END_UNTIL(!fi_tsend(a.ep, bytes[0][0], 8, NULL, self, 7, NULL), fi_cntr_read(a.tx));
	/* The error is counted before the call or during it: only the second one ends the call. */
	if (!fi_cntr_readerr(a.rx))
		assert_int_equal(fi_cntr_wait(a.rx, 1, 20000), -FI_EAVAIL);
	assert_int_equal(fi_cntr_readerr(a.rx), 1);
	assert_int_equal(fi_cntr_read(a.rx), 0);
	assert_int_equal(fi_cntr_wait(a.tx, 1, 20000), 0);
	assert_int_equal(fi_cntr_wait(a.rx, 1, 10), -FI_ETIMEDOUT);
	/* The send went well and the receive did not, in either order. */
	for (int i = 0, got = 0; i < 2; i++) {
		if (fi_cq_read(a.cq, &entry, 1) == 1)
			got += 1;
		else if (fi_cq_readerr(a.cq, &error, 0) == 1)
			got += 2;
		assert_true(got == 3 || i == 0);
	}
	assert_int_equal(error.err, FI_ETRUNC);
	end_close(&a);
}

static void programs_set_and_add(void **state)
{
	struct end_attr attr = { .provider = provider, .cntr_wait = FI_WAIT_UNSPEC };
	struct end a;

	end_open(&a, &attr);
	assert_int_equal(fi_cntr_add(a.tx, 5), 0);
	assert_int_equal(fi_cntr_read(a.tx), 5);
	assert_int_equal(fi_cntr_set(a.tx, 3), 0);
	assert_int_equal(fi_cntr_read(a.tx), 3);
	assert_int_equal(fi_cntr_adderr(a.tx, 2), 0);
	assert_int_equal(fi_cntr_adderr(a.tx, 2), 0);
	assert_int_equal(fi_cntr_readerr(a.tx), 4);
	assert_int_equal(fi_cntr_seterr(a.tx, 1), 0);
	assert_int_equal(fi_cntr_readerr(a.tx), 1);
	assert_true(fi_cntr_set(a.tx, UINT64_MAX) == 0 && fi_cntr_read(a.tx) == UINT64_MAX);
	assert_int_equal(fi_cntr_wait(a.tx, UINT64_MAX, 0), 0);
	end_close(&a);
}

#define RMA_CAPS                                                                      \
	(FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | \
	 FI_RMA_EVENT)

static struct fid_cntr *counter(struct end *e, enum fi_cntr_events events)
{
	struct fi_cntr_attr attr = { .events = events };
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(e->domain, &attr, &cntr, NULL), 0);
	return cntr;
}

/* An endpoint all of whose events are counted, by one counter or several. */
static void counted_open(struct end *e, struct fid_cntr **cntrs, enum fi_cntr_events events)
{
	static const uint64_t flags[] = { FI_SEND,  FI_RECV,	    FI_READ,
					  FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
	struct end_attr attr = {
		.provider = provider, .no_cntr = true, .no_cq = true, .caps = RMA_CAPS
	};
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	*e = (struct end){ .info = end_info(&attr) };
	assert_non_null(e->info);
	assert_int_equal(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), 0);
	assert_int_equal(fi_domain(e->fabric, e->info, &e->domain, NULL), 0);
	assert_int_equal(fi_av_open(e->domain, &av_attr, &e->av, NULL), 0);
	assert_int_equal(fi_endpoint(e->domain, e->info, &e->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	for (int i = 0; i < 6; i++) {
		cntrs[i] = counter(e, events);
		assert_int_equal(fi_ep_bind(e->ep, &cntrs[i]->fid, flags[i]), 0);
	}
	assert_int_equal(fi_enable(e->ep), 0);
	assert_int_equal(fi_ep_alias(e->ep, &e->rma, FI_TRANSMIT | FI_DELIVERY_COMPLETE), 0);
}

static void counted_close(struct end *e, struct fid_cntr **cntrs)
{
	assert_int_equal(fi_close(&e->rma->fid), 0);
	assert_int_equal(fi_close(&e->ep->fid), 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(fi_close(&cntrs[i]->fid), 0);
	assert_int_equal(fi_close(&e->av->fid), 0);
	assert_int_equal(fi_close(&e->domain->fid), 0);
	assert_int_equal(fi_close(&e->fabric->fid), 0);
	fi_freeinfo(e->info);
}

static void every_event_has_its_counter(enum fi_cntr_events events)
{
	/* sends, receives, reads, writes, and what the peer reads and writes: operations or bytes */
	static const uint64_t want[2][2][6] = {
		{ { 1, 0, 2, 2, 0, 0 }, { 0, 1, 0, 0, 2, 2 } },
		{ { 30, 0, 28, 48, 0, 0 }, { 0, 30, 0, 0, 28, 48 } },
	};
	struct fid_cntr *cntrs[2][6], *region[2];
	uint64_t words[16] = { 0 }, one = 1, old, key, base;
	struct end ends[2];
	struct fid_mr *mr;
	uint64_t fetched;
	fi_addr_t to;
	char back[20];

	for (int i = 0; i < 2; i++)
		counted_open(&ends[i], cntrs[i], events);
	to = end_knows(&ends[0], &ends[1]);
	assert_int_equal(fi_mr_reg(ends[1].domain, words, sizeof(words),
				   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 77, 0, &mr, NULL),
			 0);
	for (int i = 0; i < 2; i++) {
		region[i] = counter(&ends[1], events);
		assert_int_equal(
			fi_mr_bind(mr, &region[i]->fid, i ? FI_REMOTE_WRITE : FI_REMOTE_READ),
			0);
	}
	assert_int_equal(fi_mr_bind(mr, &region[0]->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	assert_int_equal(fi_mr_bind(mr, &region[0]->fid, FI_REMOTE_READ), 0); /* again */
	assert_int_equal(fi_mr_bind(mr, &region[0]->fid, FI_SEND), -FI_EBADFLAGS);
	assert_int_equal(fi_mr_bind(mr, &region[0]->fid, 0), -FI_EINVAL);
	key = fi_mr_key(mr);
	base = ends[1].info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)words : 0;

#define TRY(call) END_UNTIL(!(call), fi_cntr_read(cntrs[0][0]); fi_cntr_read(cntrs[1][0]))
	assert_int_equal(
		fi_trecv(ends[1].ep, bytes[1][0], 64, NULL, FI_ADDR_UNSPEC, 7, 0, NULL), 0);
	TRY(fi_tsend(ends[0].ep, bytes[0][0], 30, NULL, to, 7, NULL));
	TRY(fi_write(ends[0].rma, bytes[0][0], 40, NULL, to, base, key, NULL));
	TRY(fi_atomic(ends[0].rma, &one, 1, NULL, to, base + 64, key, FI_UINT64, FI_SUM, NULL));
	TRY(fi_fetch_atomic(ends[0].ep, &one, 1, NULL, &old, NULL, to, base + 64, key,
			    FI_UINT64, FI_SUM, NULL));
	TRY(fi_read(ends[0].ep, back, 20, NULL, to, base, key, NULL));
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 6; k++)
			END_UNTIL(fi_cntr_read(cntrs[i][k]) >= want[events][i][k],
				  fi_cntr_read(cntrs[!i][0]));
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 6; k++)
			assert_int_equal(fi_cntr_read(cntrs[i][k]), want[events][i][k]);
	/* To the region an atomic that fetches is one that modifies it. */
	fetched = events == FI_CNTR_EVENTS_BYTES ? sizeof(one) : 1;
	assert_int_equal(fi_cntr_read(region[0]), want[events][1][4] - fetched);
	assert_int_equal(fi_cntr_read(region[1]), want[events][1][5] + fetched);
	assert_int_equal(words[8], 2);

	/* An error is one, whatever its size. */
	TRY(fi_write(ends[0].rma, bytes[0][0], 40, NULL, to, base, key + 1, NULL));
	END_UNTIL(fi_cntr_readerr(cntrs[0][3]) == 1, fi_cntr_read(cntrs[1][0]));
	assert_int_equal(fi_cntr_read(cntrs[0][3]), want[events][0][3]);
	assert_int_equal(fi_close(&mr->fid), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_close(&region[i]->fid), 0);
	for (int i = 0; i < 2; i++)
		counted_close(&ends[i], cntrs[i]);
}

/* Writes count when they are complete, as their endpoint has that: the target makes no call first. */
static void injected_writes_are_counted_at_the_level_of_the_endpoint(void **state)
{
	struct fid_cntr *cntrs[2][6], *wrote;
	uint64_t words[2] = { 0 }, one = 1, old;
	struct end ends[2];
	struct fid_mr *mr;
	fi_addr_t to;
	double end;

	for (int i = 0; i < 2; i++)
		counted_open(&ends[i], cntrs[i], FI_CNTR_EVENTS_COMP);
	wrote = cntrs[0][3];
	to = end_knows(&ends[0], &ends[1]);
	assert_int_equal(fi_mr_reg(ends[1].domain, words, sizeof(words),
				   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 77, 0, &mr, NULL),
			 0);
	TRY(fi_fetch_atomic(ends[0].ep, &one, 1, NULL, &old, NULL, to, 0, 77, FI_UINT64, FI_SUM,
			    NULL));
	END_UNTIL(fi_cntr_read(cntrs[0][2]) == 1, fi_cntr_read(cntrs[1][0]));

	assert_int_equal(fi_inject_write(ends[0].ep, &one, 8, to, 8, 77), 0);
	assert_int_equal(fi_inject_atomic(ends[0].ep, &one, 1, to, 8, 77, FI_UINT64, FI_SUM), 0);
	END_UNTIL(fi_cntr_read(wrote) == 2, );
	assert_int_equal(fi_inject_write(ends[0].rma, &one, 8, to, 8, 77), 0);
	for (end = end_now() + 0.05; end_now() < end;)
		assert_int_equal(fi_cntr_read(wrote), 2);
	END_UNTIL(fi_cntr_read(wrote) == 3, fi_cntr_read(cntrs[1][0]));
	assert_int_equal(words[1], 1);
	assert_int_equal(fi_close(&mr->fid), 0);
	for (int i = 0; i < 2; i++)
		counted_close(&ends[i], cntrs[i]);
}

static void every_operation_is_counted_where_it_belongs(void **state)
{
	every_event_has_its_counter(FI_CNTR_EVENTS_COMP);
}

static void bytes_are_counted_where_they_belong(void **state)
{
	every_event_has_its_counter(FI_CNTR_EVENTS_BYTES);
}

static void wrong_use_is_refused(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_cntr_attr cntr_attr = { .flags = 1 };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_cntr *c, *foreign, *other;
	struct fid_av *av;
	struct fid_ep *ep;
	struct end a, b;
	enum fi_wait_obj obj;
	uint64_t flags = 1;

	end_open(&a, &attr);
	end_open(&b, &attr);
	assert_int_equal(fi_cntr_open(a.domain, &cntr_attr, &c, NULL), -FI_EBADFLAGS);
	cntr_attr = (struct fi_cntr_attr){ .wait_obj = FI_WAIT_MUTEX_COND };
	assert_int_equal(fi_cntr_open(a.domain, &cntr_attr, &c, NULL), -FI_ENOSYS);
	cntr_attr = (struct fi_cntr_attr){ .wait_obj = (enum fi_wait_obj)77 };
	assert_int_equal(fi_cntr_open(a.domain, &cntr_attr, &c, NULL), -FI_EINVAL);
	assert_int_equal(fi_cntr_open(a.domain, NULL, &c, NULL), 0);
	assert_int_equal(fi_cntr_open(b.domain, NULL, &foreign, NULL), 0);
	assert_int_equal(fi_cntr_wait(c, 1, 0),
			 -FI_ETIMEDOUT); /* without a wait object it can be done */
	assert_int_equal(fi_control(&c->fid, FI_GETWAITOBJ, &obj), 0);
	assert_int_equal(obj, FI_WAIT_NONE);
	assert_int_equal(fi_control(&c->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	assert_int_equal(fi_control(&c->fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags, 0);

	assert_int_equal(fi_endpoint(a.domain, a.info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &c->fid, 0), 0); /* nothing */
	assert_int_equal(fi_ep_bind(ep, &c->fid, FI_SEND | FI_MULTI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(ep, &foreign->fid, FI_SEND), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &c->fid, FI_SEND | FI_WRITE), 0);
	assert_int_equal(fi_ep_bind(ep, &c->fid, FI_SEND), 0); /* again */
	assert_int_equal(fi_cntr_open(a.domain, NULL, &other, NULL), 0);
	/* In its place, which it then gets back. */
	assert_int_equal(fi_ep_bind(ep, &other->fid, FI_RECV | FI_WRITE), 0);
	assert_int_equal(fi_ep_bind(ep, &c->fid, FI_RECV | FI_WRITE), 0);
	assert_int_equal(fi_close(&other->fid), 0);
	assert_int_equal(fi_av_open(a.domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(
		fi_ep_bind(ep, &c->fid, FI_RECV | FI_READ | FI_REMOTE_READ | FI_REMOTE_WRITE),
		0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_close(&c->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&c->fid), 0);
	assert_int_equal(fi_close(&foreign->fid), 0);
	end_close(&b);
	end_close(&a);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_count),
		cmocka_unit_test(counters_count_what_has_no_completion),
		cmocka_unit_test(errors_are_counted_and_end_a_wait),
		cmocka_unit_test(programs_set_and_add),
		cmocka_unit_test(every_operation_is_counted_where_it_belongs),
		cmocka_unit_test(injected_writes_are_counted_at_the_level_of_the_endpoint),
		cmocka_unit_test(bytes_are_counted_where_they_belong),
		cmocka_unit_test(wrong_use_is_refused),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
