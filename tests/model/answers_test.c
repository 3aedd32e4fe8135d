/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls that have nothing to do, or come early, and that libfabric answers: answers_test PROVIDER.
 * One thread, over the real library.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "ends.h"

static struct end_attr attr = { .no_cntr = true, .caps = FI_RMA };
static struct end a;

static int setup(void **state)
{
	end_open(&a, &attr);
	return 0;
}

static int teardown(void **state)
{
	end_close(&a);
	return 0;
}

/* Another endpoint, not enabled, in place of its own. */
static void renew(struct end *e)
{
	assert_int_equal(fi_close(&e->rma->fid), 0);
	e->rma = NULL;
	assert_int_equal(fi_close(&e->ep->fid), 0);
	assert_int_equal(fi_endpoint(e->domain, e->info, &e->ep, NULL), 0);
}

static void what_is_not_there_is_cancelled(void **state)
{
	struct fi_context2 ctx;
	struct fi_cq_tagged_entry entry;
	struct fid_ep *early;

	assert_int_equal(fi_endpoint(a.domain, a.info, &early, NULL), 0);
	assert_int_equal(fi_cancel(&early->fid, &ctx), 0);
	assert_int_equal(fi_close(&early->fid), 0);
	assert_int_equal(fi_cancel(&a.ep->fid, &ctx), 0);
	assert_int_equal(fi_cancel(&a.ep->fid, NULL), 0);
	assert_int_equal(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN);
}

static void atomics_are_valid_for_who_may_not_do_them(void **state)
{
	struct fid_ep *early;
	size_t cnt = 0;

	assert_int_equal(fi_endpoint(a.domain, a.info, &early, NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct fid_ep *ep = i ? early : a.ep; /* without FI_ATOMIC, and not enabled */

		assert_int_equal(fi_atomicvalid(ep, FI_UINT64, FI_SUM, &cnt), 0);
		assert_true(cnt);
		assert_int_equal(fi_fetch_atomicvalid(ep, FI_UINT64, FI_BXOR, &cnt), 0);
		assert_int_equal(fi_compare_atomicvalid(ep, FI_UINT64, FI_CSWAP, &cnt), 0);
		assert_int_equal(fi_atomicvalid(ep, FI_FLOAT, FI_BXOR, &cnt), -FI_EOPNOTSUPP);
	}
	assert_int_equal(fi_close(&early->fid), 0);
}

static void a_counter_of_strange_events_counts_each(void **state)
{
	struct fi_cntr_attr cntr_attr = { .events = 7 };
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct end b;
	char byte = 0;
	int fd;

	assert_int_equal(fi_cntr_open(a.domain, &cntr_attr, &cntr, NULL), 0);
	assert_int_equal(fi_control(&cntr->fid, FI_GETWAIT, &fd), -FI_ENOSYS);
	ep = a.ep;
	assert_int_equal(fi_ep_bind(ep, &cntr->fid, FI_RECV), 0);
	end_open(&b, &attr);
	assert_int_equal(fi_trecv(ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	END_UNTIL(!fi_tsend(b.ep, "x", 1, NULL, end_knows(&b, &a), 1, NULL), );
	END_UNTIL(fi_cntr_read(cntr) == 1, fi_cq_read(b.cq, NULL, 0));
	end_close(&b);
	renew(&a);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

static void a_region_tells_the_key_that_was_asked_for(void **state)
{
	struct fid_mr *mr[2];
	char buf[64];

	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_mr_reg(a.domain, buf, 64, FI_SEND | FI_RECV, 12, 77, 0,
					   &mr[i], NULL),
				 0);
	assert_true(fi_mr_key(mr[0]) == 77 && fi_mr_key(mr[1]) == 77);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_close(&mr[i]->fid), 0);
}

/* Between b and itself, from its name on; b was enabled later, and its name is what it was. */
static void told_of_writes(struct end *b, struct fid_cntr *writes)
{
	static char from[1u << 20], into[1u << 20];
	struct fid_mr *mr;
	uint64_t base;

	assert_int_equal(
		fi_mr_reg(b->domain, into, sizeof(into), FI_REMOTE_WRITE, 0, 5, 0, &mr, NULL),
		0);
	base = b->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)into : 0;
	memset(from, 7, sizeof(from));
	END_UNTIL(!fi_write(a.ep, from, sizeof(from), NULL, end_knows(&a, b), base,
			    fi_mr_key(mr), NULL), );
	END_UNTIL(fi_cntr_read(writes) == 1, fi_cq_read(a.cq, NULL, 0));
	assert_int_equal(into[sizeof(into) - 1], 7);
	assert_int_equal(fi_close(&mr->fid), 0);
}

static void an_endpoint_has_its_name_before_it_is_enabled(void **state)
{
	char name[128], later[128], byte = 0;
	struct fi_cq_tagged_entry entry;
	struct fid_cntr *writes;
	size_t len = 128, same = 128, size = 16;
	struct end b;
	fi_addr_t to;

	end_open(&b, &attr);
	renew(&b);
	assert_int_equal(fi_getname(&b.ep->fid, NULL, &len), -FI_ETOOSMALL);
	assert_int_equal(fi_getname(&b.ep->fid, name, &len), 0);
	assert_int_equal(
		fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, &size, sizeof(size)),
		-FI_EOPBADSTATE);
	/* A sender to it waits. */
	assert_int_equal(fi_av_insert(a.av, name, 1, &to, 0, NULL), 1);
	END_UNTIL(!fi_tsend(a.ep, "x", 1, NULL, to, 1, NULL), );
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(fi_cq_read(a.cq, NULL, 0), -FI_EAGAIN);
		assert_int_equal(fi_cq_read(b.cq, NULL, 0), -FI_EAGAIN);
	}
	assert_int_equal(fi_cntr_open(b.domain, NULL, &writes, NULL), 0);
	assert_int_equal(fi_ep_bind(b.ep, &b.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(b.ep, &b.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(b.ep, &writes->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(fi_enable(b.ep), 0);
	assert_int_equal(fi_getname(&b.ep->fid, later, &same), 0);
	assert_int_equal(same, len);
	assert_memory_equal(later, name, len);
	assert_int_equal(fi_trecv(b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	END_UNTIL(fi_cq_read(b.cq, &entry, 1) == 1, fi_cq_read(a.cq, NULL, 0));
	assert_int_equal(byte, 'x');
	assert_int_equal(fi_cq_read(a.cq, &entry, 1), 1);
	told_of_writes(&b, writes);
	END_UNTIL(fi_cq_read(a.cq, &entry, 1) == 1, fi_cq_read(b.cq, NULL, 0));
	assert_int_equal(fi_close(&b.ep->fid), 0);
	assert_int_equal(fi_close(&writes->fid), 0);
	/* One that is named, and nothing else. */
	assert_int_equal(fi_endpoint(b.domain, b.info, &b.ep, NULL), 0);
	len = 128;
	assert_int_equal(fi_getname(&b.ep->fid, name, &len), 0);
	end_close(&b);
}

/* What is bound to an endpoint that is not enabled may be closed: the endpoint is without it. */
static void what_is_bound_too_early_may_be_closed(void **state)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_cntr *cntr;
	struct fid_ep *ep[2];
	struct fid_av *av;
	struct fid_cq *cq;

	assert_int_equal(fi_av_open(a.domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_cq_open(a.domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_cntr_open(a.domain, NULL, &cntr, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_endpoint(a.domain, a.info, &ep[i], NULL), 0);
		assert_int_equal(fi_ep_bind(ep[i], &av->fid, 0), 0);
		assert_int_equal(fi_ep_bind(ep[i], &cq->fid,
					    FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION),
				 0);
		assert_int_equal(fi_ep_bind(ep[i], &cntr->fid, FI_SEND | FI_RECV), 0);
	}
	/* Not while another endpoint is enabled with it, which then gets everything. */
	assert_int_equal(fi_enable(ep[0]), 0);
	assert_int_equal(fi_close(&av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&cntr->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&ep[0]->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_enable(ep[1]), -FI_ENOAV);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_ep_bind(ep[1], &a.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep[1], &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep[1]), 0);
	assert_int_equal(fi_close(&ep[1]->fid), 0);
}

static void a_fabric_may_be_closed_before_what_is_open_in_it(void **state)
{
	struct fid_domain *domain;
	struct fid_fabric *fabric;
	struct fid_wait *wait;
	struct fid_ep *ep;
	struct fid_eq *eq;
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_FD };

	assert_int_equal(fi_fabric(a.info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, a.info, &domain, NULL), 0);
	assert_int_equal(fi_eq_open(fabric, NULL, &eq, NULL), 0);
	assert_int_equal(fi_wait_open(fabric, &wait_attr, &wait), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	assert_int_equal(fi_endpoint(domain, a.info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &a.av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&wait->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
}

static void a_shared_receive_context_has_a_counter(void **state)
{
	struct fid_cntr *cntr, *own;
	struct fid_ep *srx, *ep[3];
	struct fi_context2 ctx;
	char in[4];
	fi_addr_t to;
	char name[128];
	size_t len;

	assert_int_equal(fi_srx_context(a.domain, a.info->rx_attr, &srx, NULL), 0);
	assert_int_equal(fi_cntr_open(a.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_cntr_open(a.domain, NULL, &own, NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_endpoint(a.domain, a.info, &ep[i], NULL), 0);
		assert_int_equal(fi_ep_bind(ep[i], &a.av->fid, 0), 0);
		assert_int_equal(fi_ep_bind(ep[i], &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
		if (i == 2)
			assert_int_equal(fi_ep_bind(ep[i], &own->fid, FI_RECV), 0);
		assert_int_equal(fi_ep_bind(ep[i], &srx->fid, 0), 0);
		if (i == 0) /* one has it before, the others after it */
			assert_int_equal(fi_ep_bind(srx, &cntr->fid, FI_RECV), 0);
		assert_int_equal(fi_enable(ep[i]), 0);
		assert_int_equal(fi_trecv(srx, &in[i], 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
		len = sizeof(name);
		assert_int_equal(fi_getname(&ep[i]->fid, name, &len), 0);
		assert_int_equal(fi_av_insert(a.av, name, 1, &to, 0, NULL), 1);
		END_UNTIL(!fi_tsend(a.ep, "x", 1, NULL, to, 1, NULL), );
	}
	END_UNTIL(fi_cntr_read(cntr) == 2 && fi_cntr_read(own) == 1, );
	/* another one in its place, at each endpoint that had it; and back */
	assert_int_equal(fi_ep_bind(srx, &own->fid, FI_RECV), 0);
	assert_int_equal(fi_trecv(srx, &in[3], 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	END_UNTIL(!fi_tsend(a.ep, "x", 1, NULL, to, 1, NULL), );
	END_UNTIL(fi_cntr_read(own) == 2, );
	assert_int_equal(fi_ep_bind(srx, &cntr->fid, FI_RECV), 0);
	assert_int_equal(fi_cntr_read(cntr), 2);
	assert_int_equal(fi_ep_bind(srx, &own->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS);
	/* What ends without an endpoint is counted there too. */
	assert_int_equal(fi_trecv(srx, &in[3], 1, NULL, FI_ADDR_UNSPEC, 1, 0, &ctx), 0);
	assert_int_equal(fi_cancel(&srx->fid, &ctx), 0);
	assert_int_equal(fi_cntr_readerr(cntr), 1);
	assert_int_equal(fi_close(&cntr->fid), -FI_EBUSY);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_close(&ep[i]->fid), 0);
	assert_int_equal(fi_close(&srx->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&own->fid), 0);
}

static void options_that_concern_nobody_are_kept(void **state)
{
	size_t value, len = sizeof(value);
	int truth = 7;

	assert_int_equal(
		fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, &len), 0);
	assert_int_equal(value, 256);
	value = 100;
	assert_int_equal(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value,
				   sizeof(value)),
			 -FI_ENOPROTOOPT);
	for (int name = FI_OPT_BUFFERED_MIN; name <= FI_OPT_BUFFERED_LIMIT; name++) {
		value = 100;
		assert_int_equal(
			fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, name, &value, sizeof(value)), 0);
		value = 0;
		assert_int_equal(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, name, &value, &len), 0);
		assert_int_equal(value, 100);
	}
	assert_int_equal(
		fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FIREWALL_ADDR, &truth, &len), 0);
	assert_int_equal(truth, 0);
	assert_int_equal(len, sizeof(truth));
	len = 3;
	assert_int_equal(
		fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FIREWALL_ADDR, &truth, &len),
		-FI_ETOOSMALL);
	assert_int_equal(len, sizeof(truth));
}

static void vectors_of_strange_types_are_tables(void **state)
{
	struct fi_av_attr av_attr = { .type = (enum fi_av_type)9 };
	struct fid_av *av;
	fi_addr_t at;
	char name[64];
	size_t len = sizeof(name);

	assert_int_equal(fi_getname(&a.ep->fid, name, &len), 0);
	assert_int_equal(fi_av_open(a.domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_av_insert(av, name, 1, &at, 0, NULL), 1);
	assert_true(at == 0);
	assert_int_equal(fi_close(&av->fid), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_there_is_cancelled),
		cmocka_unit_test(atomics_are_valid_for_who_may_not_do_them),
		cmocka_unit_test(a_region_tells_the_key_that_was_asked_for),
		cmocka_unit_test(an_endpoint_has_its_name_before_it_is_enabled),
		cmocka_unit_test(what_is_bound_too_early_may_be_closed),
		cmocka_unit_test(a_fabric_may_be_closed_before_what_is_open_in_it),
		cmocka_unit_test(a_shared_receive_context_has_a_counter),
		cmocka_unit_test(options_that_concern_nobody_are_kept),
		cmocka_unit_test(vectors_of_strange_types_are_tables),
		cmocka_unit_test(a_counter_of_strange_events_counts_each),
	};

	if (argc != 2)
		return 2;
	attr.provider = argv[1];
	return cmocka_run_group_tests(tests, setup, teardown);
}
