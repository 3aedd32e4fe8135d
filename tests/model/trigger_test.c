/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls with FI_TRIGGER, over the real library and each provider: they begin when a counter has
 * reached a value.
 *
 * usage: trigger_test PROVIDER
 */
#include "trigger_ends.h"

static void they_wait_and_go_by_threshold_then_in_order(void **state)
{
	static const uint64_t thresholds[] = { 4, 2, 4, 1, 2, 9 };

	for (int i = 0; i < 6; i++)
		assert_int_equal(tsend_when(i, thresholds[i], FI_COMPLETION), 0);
	nothing(&a);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	receives(3);
	completes(&a, &contexts[3], FI_TAGGED | FI_SEND);
	nothing(&a);
	assert_int_equal(fi_cntr_add(when, 4), 0);
	receives(1);
	receives(4);
	receives(0);
	receives(2);
	for (int i = 0; i < 4; i++)
		completes(&a, &contexts[(int[]){ 1, 4, 0, 2 }[i]], FI_TAGGED | FI_SEND);
	nothing(&a);
	/* Errors end operations too; one that is due already does not wait. */
	assert_int_equal(fi_cntr_adderr(when, 4), 0);
	receives(5);
	assert_int_equal(tsend_when(6, 9, FI_COMPLETION), 0);
	receives(6);
	assert_int_equal(fi_cntr_read(a.tx), 7);
}

/* A receive sets off a send: that is what it is for. */
static void a_message_answers_another(void **state)
{
	struct iovec iov = { buf, LARGE };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to_b, .context = &contexts[0]
	};

	trigger(0, 1);
	contexts[0].trigger.threshold.cntr = a.rx;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER | FI_COMPLETION), 0);
	assert_int_equal(fi_recv(a.ep, got, 1, NULL, FI_ADDR_UNSPEC, &got), 0);
	assert_int_equal(fi_recv(b.ep, region, LARGE, NULL, FI_ADDR_UNSPEC, &region), 0);
	nothing(&b);
	END_UNTIL(!fi_inject(b.ep, "!", 1, to_a), turn());
	completes(&b, &region, FI_MSG | FI_RECV);
	assert_memory_equal(region, buf, LARGE);
	completes(&a, &got, FI_MSG | FI_RECV);
	completes(&a, &contexts[0], FI_MSG | FI_SEND);
}

static void triggered_receives(void)
{
	struct iovec iov = { got, 64 };
	struct fi_msg msg = { .msg_iov = &iov,
			      .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC,
			      .context = trigger(0, 1) };
	struct fi_msg_tagged tagged = { .msg_iov = &iov,
					.iov_count = 1,
					.addr = FI_ADDR_UNSPEC,
					.tag = 9,
					.context = trigger(1, 1) };

	/* The message is there before its receive. */
	END_UNTIL(!fi_inject(b.ep, buf, 64, to_a), turn());
	assert_int_equal(fi_recvmsg(a.ep, &msg, FI_TRIGGER | FI_COMPLETION), 0);
	iov.iov_base = got + 64;
	/* Flags of sends, which programs have in op_flags of both sides */
	assert_int_equal(
		fi_trecvmsg(a.ep, &tagged,
			    FI_TRIGGER | FI_COMPLETION | FI_DELIVERY_COMPLETE | FI_INJECT),
		0);
	iov = (struct iovec){ 0 };
	nothing(&a);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	completes(&a, &contexts[0], FI_MSG | FI_RECV);
	END_UNTIL(!fi_tinject(b.ep, buf + 64, 64, to_a, 9), turn());
	completes(&a, &contexts[1], FI_TAGGED | FI_RECV);
	assert_memory_equal(got, buf, 128);
}

static void triggered_rma(void)
{
	struct iovec iov[2] = { { buf, 100 }, { buf + 100, LARGE - 100 } };
	struct fi_rma_iov targets[2] = { { 0, 50, KEY }, { 50, LARGE - 50, KEY } };
	struct fi_msg_rma msg = { .msg_iov = iov,
				  .iov_count = 2,
				  .addr = to_b,
				  .rma_iov = targets,
				  .rma_iov_count = 2,
				  .context = trigger(2, 2) };

	assert_int_equal(fi_writemsg(a.ep, &msg, FI_TRIGGER | FI_COMPLETION), 0);
	iov[0].iov_base = got;
	iov[1].iov_base = got + 100;
	msg.context = trigger(3, 3);
	assert_int_equal(fi_readmsg(a.ep, &msg, FI_TRIGGER | FI_COMPLETION), 0);
	memset(iov, 0, sizeof(iov));
	memset(targets, 0, sizeof(targets));
	nothing(&a);
	assert_int_equal(region[0], 0);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	completes(&a, &contexts[2], FI_RMA | FI_WRITE);
	assert_memory_equal(region, buf, LARGE);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	completes(&a, &contexts[3], FI_RMA | FI_READ);
	assert_memory_equal(got, buf, LARGE);
}

static void triggered_atomics(void)
{
	uint64_t operand = 5, result[2] = { 0 }, compare = 15, *word = (uint64_t *)region;
	struct fi_ioc ioc = { &operand, 1 }, results = { &result[0], 1 },
		      compares = { &compare, 1 };
	struct fi_rma_ioc target = { 0, 1, KEY };
	struct fi_msg_atomic msg = { .msg_iov = &ioc,
				     .iov_count = 1,
				     .addr = to_b,
				     .rma_iov = &target,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = FI_SUM };

	*word = 5;
	msg.context = trigger(4, 4);
	assert_int_equal(fi_atomicmsg(a.ep, &msg, FI_TRIGGER | FI_COMPLETION), 0);
	msg.context = trigger(5, 5);
	assert_int_equal(
		fi_fetch_atomicmsg(a.ep, &msg, &results, NULL, 1, FI_TRIGGER | FI_COMPLETION),
		0);
	results.addr = &result[1];
	msg.context = trigger(6, 6);
	msg.op = FI_CSWAP;
	/* Its operands are taken at once. */
	assert_int_equal(fi_compare_atomicmsg(a.ep, &msg, &compares, NULL, 1, &results, NULL, 1,
					      FI_TRIGGER | FI_COMPLETION | FI_INJECT),
			 0);
	compare = 0;
	nothing(&a);
	assert_int_equal(*word, 5);
	for (int i = 4; i < 7; i++) {
		assert_int_equal(fi_cntr_set(when, (uint64_t)i), 0);
		completes(&a, &contexts[i], FI_ATOMIC | (i == 4 ? FI_WRITE : FI_READ));
	}
	assert_int_equal(result[0], 10);
	assert_int_equal(result[1], 15);
	assert_int_equal(*word, 5);
}

static void every_kind_of_call_can_be_triggered(void **state)
{
	triggered_receives();
	triggered_rma();
	triggered_atomics();
}

static void injected_data_are_taken_at_once(void **state)
{
	uint8_t was[2][8];
	struct iovec iov[2] = { { was[0], 8 }, { was[1], 8 } };
	struct fi_msg msg = {
		.msg_iov = iov, .iov_count = 2, .addr = to_b, .context = trigger(0, 1)
	};
	struct fi_rma_iov target = { 0, 16, KEY };
	struct fi_msg_rma rma = { .msg_iov = iov,
				  .iov_count = 2,
				  .addr = to_b,
				  .rma_iov = &target,
				  .rma_iov_count = 1,
				  .context = trigger(1, 1) };

	memcpy(was, buf, 16);
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER | FI_INJECT | FI_COMPLETION), 0);
	assert_int_equal(fi_writemsg(a.ep, &rma, FI_TRIGGER | FI_INJECT | FI_COMPLETION), 0);
	memset(was, 0, sizeof(was));
	assert_int_equal(fi_cntr_add(when, 1), 0);
	assert_int_equal(fi_recv(b.ep, got, 16, NULL, FI_ADDR_UNSPEC, &got), 0);
	completes(&b, &got, FI_MSG | FI_RECV);
	END_UNTIL(fi_cntr_read(a.tx) == 1 && region[15], turn());
	assert_memory_equal(got, buf, 16);
	assert_memory_equal(region, buf, 16);
	iov[0] = (struct iovec){ buf, 4096 };
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER | FI_INJECT), -FI_EMSGSIZE);
}

/* Calls of an alias need no flags of their own. */
static void calls_of_an_alias_can_be_triggered(void **state)
{
	uint64_t operand = 7, result = 0;
	struct fid_ep *alias = NULL;

	assert_int_equal(fi_ep_alias(a.ep, &alias, FI_TRANSMIT | FI_TRIGGER | FI_COMPLETION), 0);
	assert_int_equal(fi_write(alias, buf, 64, NULL, to_b, 0, KEY, trigger(0, 1)), 0);
	assert_int_equal(fi_read(alias, got, 64, NULL, to_b, 0, KEY, trigger(1, 2)), 0);
	assert_int_equal(fi_fetch_atomic(alias, &operand, 1, NULL, &result, NULL, to_b, 64, KEY,
					 FI_UINT64, FI_SUM, trigger(2, 3)),
			 0);
	assert_int_equal(fi_tsend(alias, buf + 3, 8, NULL, to_b, 103, trigger(3, 4)), 0);
	assert_int_equal(fi_inject(alias, buf, 8, to_b), -FI_ENOSYS);
	assert_int_equal(fi_send(alias, buf, 8, NULL, to_b, NULL), -FI_EINVAL);
	nothing(&a);
	assert_int_equal(fi_close(&a.ep->fid), -FI_EBUSY);
	for (int i = 0; i < 4; i++) {
		static const uint64_t flags[] = { FI_RMA | FI_WRITE, FI_RMA | FI_READ,
						  FI_ATOMIC | FI_READ, FI_TAGGED | FI_SEND };

		assert_int_equal(fi_cntr_add(when, 1), 0);
		completes(&a, &contexts[i], flags[i]);
	}
	receives(3);
	assert_memory_equal(got + 8, buf + 8, 56);
	assert_int_equal(*(uint64_t *)(region + 64), 7);
	/* It takes what waits along; the endpoint itself was never one that triggers. */
	assert_int_equal(fi_tsend(alias, buf, 8, NULL, to_b, 100, trigger(4, 9)), 0);
	assert_int_equal(fi_close(&alias->fid), 0);
	assert_int_equal(fi_cntr_add(when, 9), 0);
	assert_int_equal(fi_tsend(a.ep, buf + 5, 8, NULL, to_b, 105, NULL), 0);
	receives(5);
}

static void what_waits_can_be_cancelled(void **state)
{
	assert_int_equal(tsend_when(0, 1, FI_COMPLETION), 0);
	assert_int_equal(tsend_when(1, 1, FI_COMPLETION), 0);
	assert_int_equal(fi_cancel(&a.ep->fid, &contexts[2]), 0);
	assert_int_equal(fi_cancel(&a.ep->fid, &contexts[0]), 0);
	fails(&a, &contexts[0], FI_ECANCELED);
	assert_int_equal(fi_cntr_readerr(a.tx), 1);
	assert_int_equal(fi_cntr_add(when, 1), 0);
	receives(1);
	completes(&a, &contexts[1], FI_TAGGED | FI_SEND);
}

static void conditions_that_are_none_are_refused(void **state)
{
	struct end_attr attr = trigger_attr();
	struct iovec iov[5] = { { buf, 8 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 1, .addr = to_b };
	struct fi_rma_iov target = { 0, 8, KEY };
	struct fi_msg_rma rma = { .msg_iov = iov,
				  .iov_count = 1,
				  .addr = to_b,
				  .rma_iov = &target,
				  .rma_iov_count = 1 };
	struct fi_info *info = end_info(&attr);
	struct fid_cntr *foreign;
	struct fid_ep *plain;

	assert_true(info->caps & FI_TRIGGER && info->tx_attr->caps & FI_TRIGGER &&
		    info->rx_attr->caps & FI_TRIGGER);
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL); /* no context */
	msg.context = rma.context = trigger(0, 1);
	contexts[0].event_type = FI_TRIGGER_XPU;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_ENOSYS);
	assert_int_equal(fi_writemsg(a.ep, &rma, FI_TRIGGER), -FI_ENOSYS);
	contexts[0].event_type = (enum fi_trigger_event)7;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL);
	trigger(0, 1);
	contexts[0].trigger.threshold.cntr = NULL;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL);
	assert_int_equal(fi_cntr_open(b.domain, NULL, &foreign, NULL), 0);
	contexts[0].trigger.threshold.cntr = foreign;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL);
	assert_int_equal(fi_close(&foreign->fid), 0);
	trigger(0, 1);
	msg.iov_count = 9;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER), -FI_EINVAL);
	msg.iov_count = 1;
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_TRIGGER | FI_PEEK), -FI_EBADFLAGS);
	assert_int_equal(fi_recvmsg(a.ep, &msg, FI_TRIGGER | FI_PEEK), -FI_ENOSYS);
	rma.iov_count = 9;
	assert_int_equal(fi_writemsg(a.ep, &rma, FI_TRIGGER), -FI_EINVAL);
	rma.iov_count = 1;
	target.len = 9;
	assert_int_equal(fi_writemsg(a.ep, &rma, FI_TRIGGER), -FI_EINVAL);
	/* Nothing of all that waits. */
	assert_int_equal(fi_cntr_add(when, 1), 0);
	nothing(&b);

	info->caps &= ~FI_TRIGGER;
	assert_int_equal(fi_endpoint(a.domain, info, &plain, NULL), 0);
	assert_int_equal(fi_ep_bind(plain, &a.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(plain, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(plain), 0);
	assert_int_equal(fi_sendmsg(plain, &msg, FI_TRIGGER), -FI_EBADFLAGS);
	assert_int_equal(fi_close(&plain->fid), 0);
	fi_freeinfo(info);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, trigger_setup, trigger_teardown)
	const struct CMUnitTest tests[] = {
		TEST(they_wait_and_go_by_threshold_then_in_order),
		TEST(a_message_answers_another),
		TEST(every_kind_of_call_can_be_triggered),
		TEST(injected_data_are_taken_at_once),
		TEST(calls_of_an_alias_can_be_triggered),
		TEST(what_waits_can_be_cancelled),
		TEST(conditions_that_are_none_are_refused),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
