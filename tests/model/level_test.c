/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion levels over the real library and each provider: which operations complete while the
 * target makes no call, and which do not. One process, whose target makes progress when a test says
 * so.
 *
 *	usage: level_test PROVIDER
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "ends.h"

#define CAPS   (FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define KEY    0x77
#define REGION (1u << 17)
#define WAIT_S 0.05 /* what has not ended by then waits for the target */

static const char *provider;

static struct end a, b; /* the initiator; the target */
static struct fid_mr *mr;
static fi_addr_t to;
static uint64_t base;
static char from[REGION], region[REGION];
static struct fi_context2 contexts[2];

static void settle(void)
{
	struct fi_cq_tagged_entry entry;
	uint64_t one = 0;

	/* The connection is there once something has come back. */
	END_UNTIL(!fi_fetch_atomic(a.ep, &one, 1, NULL, &one, NULL, to, base, KEY, FI_UINT64,
				   FI_SUM, &contexts[0]),
		  fi_cq_read(a.cq, NULL, 0);
		  fi_cq_read(b.cq, NULL, 0));
	END_UNTIL(fi_cq_read(a.cq, &entry, 1) == 1, fi_cq_read(b.cq, NULL, 0));
}

static int setup(void **state)
{
	struct end_attr attr = { .provider = provider,
				 .no_cntr = true,
				 .caps = CAPS,
				 .progress = FI_PROGRESS_MANUAL };

	end_open(&a, &attr);
	end_open(&b, &attr);
	to = end_knows(&a, &b);
	memset(region, 0, sizeof(region));
	assert_int_equal(fi_mr_reg(b.domain, region, sizeof(region),
				   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
			 0);
	base = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)region : 0;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(i * 7 + 1);
	settle();
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(fi_close(&mr->fid), 0);
	end_close(&a);
	end_close(&b);
	return 0;
}

static void is_ours(const struct fi_cq_tagged_entry *entry)
{
	assert_ptr_equal(entry->op_context, &contexts[0]);
	assert_true(entry->flags & FI_WRITE);
}

/* It is to end while the target makes no call. */
static void ends_alone(void)
{
	struct fi_cq_tagged_entry entry;

	END_UNTIL(fi_cq_read(a.cq, &entry, 1) == 1, );
	is_ours(&entry);
}

/*
 * Returns true if it has ended before the target has made a call; one that waits for the target
 * never does.
 */
static bool has_ended(void)
{
	struct fi_cq_tagged_entry entry;
	double end = end_now() + WAIT_S;

	while (end_now() < end)
		if (fi_cq_read(a.cq, &entry, 1) == 1) {
			is_ours(&entry);
			return true;
		}
	return false;
}

/* It is to end now that the target makes progress. */
static void ends_together(void)
{
	struct fi_cq_tagged_entry entry;

	END_UNTIL(fi_cq_read(a.cq, &entry, 1) == 1, fi_cq_read(b.cq, NULL, 0));
	assert_ptr_equal(entry.op_context, &contexts[0]);
}

static void arrives(size_t len)
{
	struct fi_cq_tagged_entry entry; /* remote data */

	END_UNTIL(!memcmp(region, from, len), fi_cq_read(b.cq, &entry, 1));
	while (fi_cq_read(b.cq, &entry, 1) == 1)
		;
	memset(region, 0, len);
}

enum form { WRITE, WRITEV, WRITEDATA, WRITEMSG, ATOMIC, ATOMICMSG, FORMS };

/* @ep: calls without flags have those of this; @flags: of those with flags */
static ssize_t begin(struct fid_ep *ep, enum form form, size_t len, uint64_t flags)
{
	struct iovec iov = { from, len };
	struct fi_ioc ioc = { from, len / 8 };
	struct fi_rma_iov target = { base, len, KEY };
	struct fi_rma_ioc place = { base, len / 8, KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = to,
				  .rma_iov = &target,
				  .rma_iov_count = 1,
				  .context = &contexts[0] };
	struct fi_msg_atomic update = { .msg_iov = &ioc,
					.iov_count = 1,
					.addr = to,
					.rma_iov = &place,
					.rma_iov_count = 1,
					.datatype = FI_UINT64,
					.op = FI_ATOMIC_WRITE,
					.context = &contexts[0] };

	switch (form) {
	case WRITE:
		return fi_write(ep, from, len, NULL, to, base, KEY, &contexts[0]);
	case WRITEV:
		return fi_writev(ep, &iov, NULL, 1, to, base, KEY, &contexts[0]);
	case WRITEDATA:
		return fi_writedata(ep, from, len, NULL, 5, to, base, KEY, &contexts[0]);
	case WRITEMSG:
		return fi_writemsg(ep, &msg, FI_COMPLETION | flags);
	case ATOMIC:
		return fi_atomic(ep, from, len / 8, NULL, to, base, KEY, FI_UINT64,
				 FI_ATOMIC_WRITE, &contexts[0]);
	default:
		return fi_atomicmsg(ep, &update, FI_COMPLETION | flags);
	}
}

static void writes_complete_before_the_target_makes_a_call(void **state)
{
	static const size_t lens[] = { 8, 64, 2000 };
	static const uint64_t levels[] = { 0, FI_INJECT_COMPLETE };

	for (int l = 0; l < 2; l++) {
		struct fid_ep *ep = NULL;

		assert_int_equal(fi_ep_alias(a.ep, &ep, FI_TRANSMIT | levels[l]), 0);
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
			for (int form = 0; form < FORMS; form++) {
				assert_int_equal(begin(ep, form, lens[i], levels[l]), 0);
				ends_alone();
				arrives(lens[i]);
			}
		assert_int_equal(fi_close(&ep->fid), 0);
	}
}

/* The caller's memory is its own once a large one is complete, and its first content arrives. */
static void what_is_complete_may_be_overwritten(void **state)
{
	static const size_t lens[] = { 8000, 20000, 60000 };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		char *copy = malloc(lens[i]);

		assert_non_null(copy);
		memcpy(copy, from, lens[i]);
		assert_int_equal(
			fi_write(a.ep, copy, lens[i], NULL, to, base, KEY, &contexts[0]), 0);
		if (!has_ended())
			ends_together();
		memset(copy, 'x', lens[i]);
		free(copy);
		arrives(lens[i]);
	}
}

static void delivery_complete_waits_for_the_target(void **state)
{
	static const size_t lens[] = { 8, 2000 };

	for (size_t i = 0; i < 2; i++)
		for (int form = 0; form < FORMS; form++) {
			assert_int_equal(begin(a.rma, form, lens[i], FI_DELIVERY_COMPLETE), 0);
			assert_false(has_ended());
			ends_together();
			assert_memory_equal(region, from, lens[i]);
			memset(region, 0, lens[i]);
			fi_cq_read(b.cq, &(struct fi_cq_tagged_entry){ 0 }, 1);
		}
}

/* Programs ask for delivery in the fi_info of the domain, and clear it in that of the endpoint. */
static void an_endpoint_has_the_level_of_its_shared_context(void **state)
{
	struct fi_tx_attr attr = *a.info->tx_attr;
	struct fid_stx *stx;

	for (int i = 0; i < 2; i++) {
		attr.op_flags = i ? FI_DELIVERY_COMPLETE : FI_INJECT_COMPLETE;
		assert_int_equal(fi_stx_context(a.domain, &attr, &stx, NULL), 0);
		assert_int_equal(fi_ep_bind(a.ep, &stx->fid, 0), 0);
		assert_int_equal(begin(a.ep, WRITE, 8, 0), 0);
		if (i) {
			assert_false(has_ended());
			ends_together();
		} else {
			ends_alone();
		}
		arrives(8);
		assert_int_equal(fi_close(&stx->fid), 0);
		teardown(NULL);
		setup(NULL);
	}
}

/* fi_stx_context() without attributes has those that the domain was opened with. */
static void a_shared_context_has_the_level_of_its_domain(void **state)
{
	struct fi_info *info = fi_dupinfo(a.info);
	struct fid_domain *domain;
	struct fid_stx *stx;
	struct fid_ep *ep;
	uint64_t flags = FI_TRANSMIT;

	assert_non_null(info);
	info->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	assert_int_equal(fi_domain(a.fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_stx_context(domain, NULL, &stx, NULL), 0);
	info->tx_attr->op_flags = 0;
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &stx->fid, 0), 0);
	assert_int_equal(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags & FI_DELIVERY_COMPLETE, FI_DELIVERY_COMPLETE);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&stx->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	fi_freeinfo(info);
}

static void transmit_complete_ends_with_the_target_at_the_latest(void **state)
{
	assert_int_equal(begin(a.ep, WRITEMSG, 8, FI_TRANSMIT_COMPLETE), 0);
	/*
	 * In memory that the target maps it has arrived at once; over a network the arrival has to
	 * be reported.
	 */
	if (!strcmp(provider, "tcp")) {
		assert_false(has_ended());
		ends_together();
	} else {
		ends_alone();
	}
	arrives(8);
}

/* That is a promise of the fence: writes before it have reached its own level. */
static void a_fence_waits_for_what_is_complete(void **state)
{
	assert_int_equal(begin(a.ep, WRITE, 2000, 0), 0);
	ends_alone();
	assert_int_equal(begin(a.ep, WRITEMSG, 8, FI_FENCE), 0);
	assert_false(has_ended());
	ends_together();
	assert_memory_equal(region, from, 2000);
}

static void what_fails_after_its_completion_is_an_error_of_the_endpoint(void **state)
{
	struct fi_cq_err_entry err = { .op_context = &err };
	struct fi_cq_tagged_entry entry;

	assert_int_equal(fi_write(a.ep, from, 8, NULL, to, base, KEY + 1, &contexts[0]), 0);
	ends_alone();
	END_UNTIL(fi_cq_read(a.cq, &entry, 1) == -FI_EAVAIL, fi_cq_read(b.cq, NULL, 0));
	assert_int_equal(fi_cq_readerr(a.cq, &err, 0), 1);
	assert_null(err.op_context); /* the endpoint has none */
	assert_int_equal(err.err, FI_EKEYREJECTED);
	assert_true(err.flags & FI_WRITE);
	/* It continues. */
	assert_int_equal(begin(a.rma, WRITE, 8, 0), 0);
	ends_together();
}

static void what_may_be_complete_and_not_there_is_bounded(void **state)
{
	struct fi_cq_tagged_entry entry;
	double end = end_now() + 2;
	size_t cnt = 0, ended = 0;

	for (int i = 0; (i < 10000 || end_now() < end) && cnt < 100000; i++) {
		cnt += !fi_write(a.ep, from, 8, NULL, to, base, KEY, &contexts[0]);
		ended += fi_cq_read(a.cq, &entry, 1) == 1;
	}
	assert_true(cnt >= 64);
	assert_true(cnt <= 2 * a.info->tx_attr->size + 64);
	END_UNTIL(ended == cnt, fi_cq_read(b.cq, NULL, 0);
		  ended += fi_cq_read(a.cq, &entry, 1) == 1);
	assert_int_equal(begin(a.rma, WRITE, 8, 0), 0);
	ends_together();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(writes_complete_before_the_target_makes_a_call),
		TEST(what_is_complete_may_be_overwritten),
		TEST(delivery_complete_waits_for_the_target),
		TEST(an_endpoint_has_the_level_of_its_shared_context),
		TEST(a_shared_context_has_the_level_of_its_domain),
		TEST(transmit_complete_ends_with_the_target_at_the_latest),
		TEST(a_fence_waits_for_what_is_complete),
		TEST(what_fails_after_its_completion_is_an_error_of_the_endpoint),
		TEST(what_may_be_complete_and_not_there_is_bounded),
#undef TEST
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
