/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The answer: what was asked for where something was, else the offer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "fake_core.h"
#include "info.h"

#define API FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

struct round {
	const struct info_identity *as;
	struct fi_info *offer;
	struct fi_info *hints;
	struct fi_info *answer;
};

static int setup(void **state)
{
	struct round *round = calloc(1, sizeof(*round));

	round->offer = fake_offer();
	round->hints = info_alloc();
	fake_core_version = API;
	*state = round;
	return 0;
}

static int teardown(void **state)
{
	struct round *round = *state;

	info_free(round->offer);
	info_free(round->hints);
	info_free(round->answer);
	free(round);
	return 0;
}

static struct fi_info *ask(struct round *round, uint32_t api_version)
{
	info_free(round->answer);
	round->answer = NULL;
	assert_int_equal(info_answer(&fake_prov, round->offer, round->as, round->hints,
				     api_version, &round->answer),
			 0);
	assert_non_null(round->answer);
	return round->answer;
}

static struct fi_info *ask_without_hints(struct round *round, uint32_t api_version)
{
	info_free(round->hints);
	round->hints = NULL;
	return ask(round, api_version);
}

static void no_hints_are_answered_with_the_whole_offer(void **state)
{
	struct round *round = *state;
	struct fi_info *answer = ask_without_hints(round, API);

	assert_int_equal(answer->caps, round->offer->caps);
	assert_int_equal(answer->tx_attr->caps, round->offer->tx_attr->caps);
	assert_int_equal(answer->rx_attr->caps, round->offer->rx_attr->caps);
	assert_int_equal(answer->domain_attr->caps, round->offer->domain_attr->caps);
	assert_int_equal(answer->addr_format, FI_SOCKADDR_IN);
	assert_int_equal(answer->tx_attr->inject_size, 256);
	assert_int_equal(answer->ep_attr->type, FI_EP_RDM);
	assert_int_equal(answer->domain_attr->threading, FI_THREAD_SAFE);
	assert_int_equal(answer->domain_attr->resource_mgmt, FI_RM_ENABLED);
	assert_string_equal(answer->domain_attr->name, "eth0");
	assert_string_equal(answer->fabric_attr->name, "192.0.2.0/24");
}

static void the_core_is_left_to_name_the_provider(void **state)
{
	struct round *round = *state;
	struct fi_info *answer;

	round->offer->fabric_attr->prov_name = strdup("fake");
	answer = ask(round, FI_VERSION(1, 9));
	assert_null(answer->fabric_attr->prov_name);
	assert_int_equal(answer->fabric_attr->prov_version, fake_prov.version);
	assert_int_equal(answer->fabric_attr->api_version, FI_VERSION(1, 9));
}

static void a_refusal_leaves_the_result_alone(void **state)
{
	struct round *round = *state;
	struct fi_info *answer = round->offer;

	round->hints->caps = FI_ATOMIC;
	assert_int_equal(
		info_answer(&fake_prov, round->offer, round->as, round->hints, API, &answer),
		-FI_ENODATA);
	assert_ptr_equal(answer, round->offer);
}

static void primary_capabilities_come_only_if_asked_for(void **state)
{
	struct round *round = *state;
	struct fi_info *answer;

	round->hints->caps = FI_TAGGED;
	answer = ask(round, API);
	assert_int_equal(answer->caps, FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV |
					       FI_LOCAL_COMM | FI_REMOTE_COMM);
	assert_int_equal(answer->tx_attr->caps, FI_TAGGED | FI_SEND);
	assert_int_equal(answer->rx_attr->caps, FI_TAGGED | FI_RECV | FI_MULTI_RECV);
}

static void modifiers_limit_what_is_answered(void **state)
{
	struct round *round = *state;
	struct fi_info *answer;

	round->hints->caps = FI_MSG | FI_RMA | FI_SEND | FI_WRITE;
	answer = ask(round, API);
	assert_int_equal(answer->caps & (FI_SEND | FI_RECV), FI_SEND);
	assert_int_equal(answer->caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE),
			 FI_WRITE);
	round->hints->caps = FI_RMA;
	answer = ask(round, API);
	assert_int_equal(answer->caps & (FI_SEND | FI_RECV), 0);
	assert_int_equal(answer->caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE),
			 FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE);
}

static void contexts_have_the_directions_of_their_side(void **state)
{
	struct round *round = *state;
	struct fi_info *answer;

	round->hints->caps = FI_RMA | FI_REMOTE_READ;
	answer = ask(round, API);
	assert_int_equal(answer->caps & (FI_READ | FI_WRITE), 0);
	assert_int_equal(answer->tx_attr->caps & (FI_READ | FI_WRITE), FI_READ | FI_WRITE);
	assert_int_equal(answer->rx_attr->caps & (FI_REMOTE_READ | FI_REMOTE_WRITE),
			 FI_REMOTE_READ);
}

static void contexts_are_as_large_as_the_name_has_them(void **state)
{
	static const struct info_identity roomy = { .name = "roomy", .ctx_cnt = 1, .size = 77 };
	struct round *round = *state;

	round->as = &roomy;
	assert_int_equal(ask(round, API)->tx_attr->size, 77);
	assert_int_equal(round->answer->rx_attr->size, 77);
	round->hints->tx_attr->size = 5;
	assert_int_equal(ask(round, API)->tx_attr->size, 5);
	assert_int_equal(round->answer->rx_attr->size, 77);
}

static void capabilities_that_cost_come_only_if_asked_for(void **state)
{
	struct round *round = *state;

	round->hints->caps = FI_TAGGED;
	assert_false(ask(round, API)->caps & (FI_SOURCE | FI_RMA_EVENT));
	round->hints->caps = FI_TAGGED | FI_SOURCE;
	assert_true(ask(round, API)->caps & FI_SOURCE);
	assert_true(round->answer->rx_attr->caps & FI_SOURCE);
}

static void a_context_may_ask_for_less_than_the_whole(void **state)
{
	struct round *round = *state;
	struct fi_info *answer;

	round->hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	round->hints->tx_attr->caps = FI_MSG;
	answer = ask(round, API);
	assert_int_equal(answer->tx_attr->caps, FI_MSG | FI_SEND);
	assert_true(answer->rx_attr->caps & FI_TAGGED);
}

static void requested_values_are_the_answered_values(void **state)
{
	struct round *round = *state;
	struct fi_info *hints = round->hints, *answer;

	hints->caps = FI_MSG | FI_RMA;
	hints->handle = (fid_t)round;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->tx_attr->inject_size = 16;
	hints->tx_attr->size = 17;
	hints->tx_attr->iov_limit = 2;
	hints->tx_attr->rma_iov_limit = 3;
	hints->tx_attr->tclass = FI_TC_BULK_DATA;
	hints->rx_attr->size = 18;
	hints->rx_attr->iov_limit = 1;
	hints->ep_attr->max_order_raw_size = 64;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_DISABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->tclass = FI_TC_LOW_LATENCY;
	hints->domain_attr->domain = (struct fid_domain *)hints;
	hints->fabric_attr->fabric = (struct fid_fabric *)round;
	answer = ask(round, API);
	assert_ptr_equal(answer->handle, round);
	assert_int_equal(answer->tx_attr->op_flags, FI_DELIVERY_COMPLETE);
	assert_int_equal(answer->tx_attr->inject_size, 16);
	assert_int_equal(answer->tx_attr->size, 17);
	assert_int_equal(answer->tx_attr->iov_limit, 2);
	assert_int_equal(answer->tx_attr->rma_iov_limit, 3);
	assert_int_equal(answer->tx_attr->tclass, FI_TC_BULK_DATA);
	assert_int_equal(answer->rx_attr->size, 18);
	assert_int_equal(answer->rx_attr->iov_limit, 1);
	assert_int_equal(answer->ep_attr->max_order_raw_size, 64);
	assert_int_equal(answer->domain_attr->threading, FI_THREAD_DOMAIN);
	assert_int_equal(answer->domain_attr->resource_mgmt, FI_RM_DISABLED);
	assert_int_equal(answer->domain_attr->av_type, FI_AV_TABLE);
	assert_int_equal(answer->domain_attr->tclass, FI_TC_LOW_LATENCY);
	assert_ptr_equal(answer->domain_attr->domain, hints);
	assert_ptr_equal(answer->fabric_attr->fabric, round);
}

static void what_is_not_limited_by_a_request_keeps_the_offers_maximum(void **state)
{
	struct round *round = *state;
	struct fi_info *answer;

	round->hints->ep_attr->max_msg_size = 1;
	round->hints->domain_attr->cq_data_size = 4;
	round->hints->tx_attr->msg_order = FI_ORDER_SAS;
	answer = ask(round, API);
	assert_int_equal(answer->ep_attr->max_msg_size, 1 << 30);
	assert_int_equal(answer->domain_attr->cq_data_size, 8);
	assert_int_equal(answer->tx_attr->msg_order, FI_ORDER_SAS | FI_ORDER_SAW);
}

static void of_what_memory_bounds_there_is_as_much_as_asked_for(void **state)
{
	struct round *round = *state;
	struct fi_info *hints = round->hints, *answer;

	hints->domain_attr->cq_cnt = 1000;
	hints->domain_attr->cntr_cnt = 3;
	hints->domain_attr->mr_cnt = 5;
	hints->tx_attr->size = 65536;
	answer = ask(round, API);
	assert_int_equal(answer->domain_attr->cq_cnt, 1000);
	assert_int_equal(answer->domain_attr->cntr_cnt, 16);
	assert_int_equal(answer->domain_attr->mr_cnt, 0); /* of which nothing is said */
	assert_int_equal(answer->tx_attr->size, 65536);
}

static void a_name_is_answered_with_what_programs_expect_of_it(void **state)
{
	static const struct info_identity identities[] = {
		{ .name = "own", .protocol = FI_PROTO_SHM, .protocol_version = 3, .ctx_cnt = 1 },
		{ .name = "other",
		  .protocol = FI_PROTO_RXM,
		  .protocol_version = 7,
		  .ctx_cnt = 16 },
		{ 0 },
	};
	struct round *round = *state;
	struct fi_info *answer;

	round->as = &identities[1];
	answer = ask(round, API);
	assert_int_equal(answer->ep_attr->protocol, FI_PROTO_RXM);
	assert_int_equal(answer->ep_attr->protocol_version, 7);
	round->hints->ep_attr->protocol = FI_PROTO_RXM;
	round->hints->ep_attr->protocol_version = 7;
	ask(round, API);
	round->as = &identities[0];
	round->hints->ep_attr->protocol_version = 0;
	info_free(round->answer);
	round->answer = NULL;
	assert_int_equal(info_answer(&fake_prov, round->offer, round->as, round->hints, API,
				     &round->answer),
			 -FI_ENODATA);
	assert_string_equal(
		fake_core_log,
		"the hints ask for the protocol FI_PROTO_RXM, and own speaks FI_PROTO_SHM");
}

static void contexts_are_told_as_programs_expect_or_ask(void **state)
{
	static const struct info_identity one = { .name = "one", .ctx_cnt = 1 },
					  several = { .name = "several", .ctx_cnt = 16 };
	struct round *round = *state;
	struct fi_info *hints = round->hints, *answer;

	round->offer->domain_attr->max_ep_tx_ctx = round->offer->domain_attr->max_ep_rx_ctx = 256;
	round->offer->domain_attr->max_ep_stx_ctx = 1;
	round->as = &one;
	answer = ask(round, API);
	assert_int_equal(answer->domain_attr->max_ep_tx_ctx, 1);
	assert_int_equal(answer->ep_attr->tx_ctx_cnt, 1);
	hints->ep_attr->tx_ctx_cnt = 18;
	hints->domain_attr->max_ep_rx_ctx = 1000;
	answer = ask(round, API);
	assert_int_equal(answer->domain_attr->max_ep_tx_ctx, 18);
	assert_int_equal(answer->ep_attr->tx_ctx_cnt, 18);
	assert_int_equal(answer->domain_attr->max_ep_rx_ctx, 256);
	hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	answer = ask(round, API);
	assert_int_equal(answer->domain_attr->max_ep_tx_ctx, 1);
	hints->ep_attr->tx_ctx_cnt = 0;
	round->as = &several;
	answer = ask(round, API);
	assert_int_equal(answer->domain_attr->max_ep_tx_ctx, 16);
	assert_int_equal(answer->ep_attr->tx_ctx_cnt, 16);
}

static void flags_that_nobody_asked_for_are_no_defaults(void **state)
{
	struct round *round = *state;

	assert_int_equal(ask(round, API)->tx_attr->op_flags, 0);
	assert_int_equal(ask_without_hints(round, API)->tx_attr->op_flags, 0);
	assert_int_equal(round->answer->rx_attr->op_flags, 0);
}

static void progress_is_manual_unless_it_was_asked_for(void **state)
{
	struct round *round = *state;
	struct fi_info *answer = ask(round, API);

	assert_int_equal(answer->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	assert_int_equal(answer->domain_attr->control_progress, FI_PROGRESS_MANUAL);
	round->hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	answer = ask(round, API);
	assert_int_equal(answer->domain_attr->data_progress, FI_PROGRESS_AUTO);
	assert_int_equal(answer->domain_attr->control_progress, FI_PROGRESS_AUTO);
	round->hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
	round->hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
	answer = ask(round, API);
	assert_int_equal(answer->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	assert_int_equal(answer->domain_attr->control_progress, FI_PROGRESS_AUTO);
	answer = ask_without_hints(round, API);
	assert_int_equal(answer->domain_attr->data_progress, FI_PROGRESS_MANUAL);
}

static void unstated_progress_is_that_of_the_name(void **state)
{
	static const struct info_identity half = { .name = "half",
						   .control = FI_PROGRESS_AUTO,
						   .data = FI_PROGRESS_MANUAL };
	struct round *round = *state;
	struct fi_info *answer;

	round->as = &half;
	answer = ask(round, API);
	assert_int_equal(answer->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	assert_int_equal(answer->domain_attr->control_progress, FI_PROGRESS_AUTO);
	/* A program that offers to do everything itself has to. */
	round->hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	answer = ask(round, API);
	assert_int_equal(answer->domain_attr->control_progress, FI_PROGRESS_MANUAL);
	answer = ask_without_hints(round, API);
	assert_int_equal(answer->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	assert_int_equal(answer->domain_attr->control_progress, FI_PROGRESS_AUTO);
}

static void old_programs_are_told_an_old_registration_mode(void **state)
{
	struct round *round = *state;

	assert_int_equal(ask(round, FI_VERSION(1, 4))->domain_attr->mr_mode, INFO_MR_BASIC);
	round->hints->domain_attr->mr_mode = INFO_MR_SCALABLE;
	assert_int_equal(ask(round, FI_VERSION(1, 4))->domain_attr->mr_mode, INFO_MR_SCALABLE);
	round->hints->domain_attr->mr_mode = INFO_MR_BASIC;
	assert_int_equal(ask(round, FI_VERSION(1, 4))->domain_attr->mr_mode, INFO_MR_BASIC);
	assert_int_equal(ask(round, API)->domain_attr->mr_mode, INFO_MR_BASIC);
	round->offer->domain_attr->mr_mode = INFO_MR_BASIC | FI_MR_VIRT_ADDR | FI_MR_LOCAL;
	round->hints->mode = INFO_MODE_LOCAL_MR;
	assert_int_equal(ask(round, FI_VERSION(1, 4))->domain_attr->mr_mode, INFO_MR_BASIC);
	assert_true(round->answer->mode & INFO_MODE_LOCAL_MR);
	assert_int_equal(ask_without_hints(round, 0)->domain_attr->mr_mode, INFO_MR_BASIC);
}

static void new_programs_are_told_the_modes_that_their_capabilities_need(void **state)
{
	struct round *round = *state;

	round->offer->domain_attr->mr_mode = INFO_MR_BASIC | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	round->hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_LOCAL;
	round->hints->caps = FI_RMA;
	assert_int_equal(ask(round, API)->domain_attr->mr_mode,
			 FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
	round->hints->caps = FI_MSG;
	assert_int_equal(ask(round, API)->domain_attr->mr_mode, 0);
	round->hints->caps = 0;
	round->hints->domain_attr->mr_mode = 0;
	assert_false(ask(round, API)->caps & (FI_REMOTE_READ | FI_REMOTE_WRITE));
	assert_int_equal(round->answer->domain_attr->mr_mode, 0);
	assert_int_equal(ask_without_hints(round, API)->domain_attr->mr_mode,
			 FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
}

static void an_answer_given_as_hints_is_answered_alike(void **state)
{
	static const uint32_t versions[] = { 0, FI_VERSION(1, 4), FI_VERSION(1, 17), API };
	struct round *round = *state;
	struct fi_info *first;
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		first = ask_without_hints(round, versions[i]);
		round->hints = first;
		round->answer = NULL;
		ask(round, versions[i]);
		assert_int_equal(round->answer->caps, first->caps);
		assert_int_equal(round->answer->mode, first->mode);
		assert_int_equal(round->answer->domain_attr->mr_mode,
				 first->domain_attr->mr_mode);
		assert_memory_equal(round->answer->tx_attr, first->tx_attr,
				    sizeof(*first->tx_attr));
		assert_memory_equal(round->answer->rx_attr, first->rx_attr,
				    sizeof(*first->rx_attr));
	}
}

static void a_key_that_is_taken_is_carried_into_the_answer(void **state)
{
	struct round *round = *state;
	struct fi_info *answer;

	round->offer->domain_attr->auth_key_size = 16; /* the longest */
	assert_int_equal(ask(round, API)->domain_attr->auth_key_size, 0);
	round->hints->domain_attr->auth_key_size = 4;
	round->hints->domain_attr->auth_key = (uint8_t *)strdup("key");
	answer = ask(round, API);
	assert_string_equal((char *)answer->domain_attr->auth_key, "key");
	assert_int_equal(answer->domain_attr->auth_key_size, 4);
	assert_ptr_not_equal(answer->domain_attr->auth_key, round->hints->domain_attr->auth_key);
}

static void primary_capabilities_of_a_domain_come_only_if_asked_for(void **state)
{
	struct round *round = *state;

	round->offer->caps |= FI_PEER;
	round->offer->domain_attr->caps |= FI_PEER;
	round->hints->caps = FI_MSG;
	assert_int_equal(ask(round, API)->domain_attr->caps, FI_LOCAL_COMM | FI_REMOTE_COMM);
	round->hints->caps = FI_MSG | FI_PEER;
	assert_true(ask(round, API)->domain_attr->caps & FI_PEER);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_hints_are_answered_with_the_whole_offer),
		TEST(the_core_is_left_to_name_the_provider),
		TEST(a_refusal_leaves_the_result_alone),
		TEST(primary_capabilities_come_only_if_asked_for),
		TEST(modifiers_limit_what_is_answered),
		TEST(contexts_have_the_directions_of_their_side),
		TEST(contexts_are_as_large_as_the_name_has_them),
		TEST(capabilities_that_cost_come_only_if_asked_for),
		TEST(a_context_may_ask_for_less_than_the_whole),
		TEST(requested_values_are_the_answered_values),
		TEST(what_is_not_limited_by_a_request_keeps_the_offers_maximum),
		TEST(of_what_memory_bounds_there_is_as_much_as_asked_for),
		TEST(a_name_is_answered_with_what_programs_expect_of_it),
		TEST(contexts_are_told_as_programs_expect_or_ask),
		TEST(flags_that_nobody_asked_for_are_no_defaults),
		TEST(progress_is_manual_unless_it_was_asked_for),
		TEST(unstated_progress_is_that_of_the_name),
		TEST(old_programs_are_told_an_old_registration_mode),
		TEST(new_programs_are_told_the_modes_that_their_capabilities_need),
		TEST(an_answer_given_as_hints_is_answered_alike),
		TEST(a_key_that_is_taken_is_carried_into_the_answer),
		TEST(primary_capabilities_of_a_domain_come_only_if_asked_for),
	};

	return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}
