/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hints against an offer: each hint refused with its reason, and each met at its limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "fake_core.h"
#include "info.h"

#define API FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

struct pair {
	struct fi_info *offer;
	struct fi_info *hints;
};

static int setup(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	pair->offer = fake_offer();
	pair->hints = info_alloc();
	fake_core_version = API;
	fake_core_log_on = 1;
	fake_core_log[0] = '\0';
	*state = pair;
	return 0;
}

static int teardown(void **state)
{
	struct pair *pair = *state;

	info_free(pair->offer);
	info_free(pair->hints);
	free(pair);
	return 0;
}

static void assert_met_at(const struct pair *pair, uint32_t api_version)
{
	char why[INFO_REASON_MAX] = "";
	int err = info_refusal(&fake_prov, pair->offer, pair->hints, api_version, why,
			       sizeof(why));

	if (err)
		fail_msg("refused: %s", why);
}

static void assert_met(const struct pair *pair)
{
	assert_met_at(pair, API);
}

static void assert_refused_at(const struct pair *pair, uint32_t api_version, const char *reason)
{
	char why[INFO_REASON_MAX] = "";

	assert_int_equal(info_refusal(&fake_prov, pair->offer, pair->hints, api_version, why,
				      sizeof(why)),
			 -FI_ENODATA);
	assert_string_equal(why, reason);
}

static void assert_refused(const struct pair *pair, const char *reason)
{
	assert_refused_at(pair, API, reason);
}

static void no_hints_and_empty_hints_are_met(void **state)
{
	struct pair *pair = *state;
	struct pair without = { .offer = pair->offer };

	assert_met(pair);
	assert_met(&without);
	assert_met_at(&without, 0);
	assert_met_at(pair, 0);
}

static void hints_without_attributes_are_met(void **state)
{
	struct pair *pair = *state;
	struct fi_info bare = { .caps = FI_MSG };
	struct pair with_bare = { .offer = pair->offer, .hints = &bare };

	assert_met(&with_bare);
	assert_met_at(&with_bare, FI_VERSION(1, 0));
}

static void a_capability_that_is_not_offered_is_named(void **state)
{
	struct pair *pair = *state;

	pair->hints->caps = FI_TAGGED | FI_ATOMIC | FI_COLLECTIVE;
	assert_refused(pair,
		       "the hints ask for FI_ATOMIC, FI_COLLECTIVE, which fake does not offer");
	pair->hints->caps = 1ULL << 62;
	assert_refused(pair, "the hints ask for 0x4000000000000000, which fake does not offer");
	pair->hints->caps = pair->offer->caps;
	assert_met(pair);
}

static void a_secondary_capability_that_is_asked_for_must_be_there(void **state)
{
	struct pair *pair = *state;

	pair->hints->caps = FI_MSG | FI_TRIGGER;
	assert_refused(pair, "the hints ask for FI_TRIGGER, which fake does not offer");
}

static void a_mode_that_is_needed_must_be_granted(void **state)
{
	struct pair *pair = *state;

	pair->offer->mode = FI_CONTEXT;
	assert_refused(pair, "the hints do not grant FI_CONTEXT, which fake needs");
	pair->hints->mode = FI_CONTEXT | FI_ASYNC_IOV;
	assert_met(pair);
}

static void a_context_uses_the_mode_of_the_whole_unless_it_has_its_own(void **state)
{
	struct pair *pair = *state;

	pair->offer->rx_attr->mode = FI_RX_CQ_DATA;
	assert_refused(pair, "the hints do not grant rx_attr FI_RX_CQ_DATA, which fake needs");
	pair->hints->mode = FI_RX_CQ_DATA;
	assert_met(pair);
	pair->hints->rx_attr->mode = FI_CONTEXT;
	assert_refused(pair, "the hints do not grant rx_attr FI_RX_CQ_DATA, which fake needs");
}

static void the_endpoint_type_must_be_the_offered_one(void **state)
{
	struct pair *pair = *state;

	pair->hints->ep_attr->type = FI_EP_MSG;
	assert_refused(pair, "the hints ask for FI_EP_MSG endpoints, and these are FI_EP_RDM");
	pair->hints->ep_attr->type = FI_EP_RDM;
	assert_met(pair);
}

static void address_formats_fit_their_families(void **state)
{
	struct pair *pair = *state;

	pair->hints->addr_format = FI_SOCKADDR_IN;
	assert_met(pair);
	pair->hints->addr_format = FI_SOCKADDR;
	assert_met(pair);
	pair->hints->addr_format = FI_SOCKADDR_IP;
	assert_met(pair);
	pair->hints->addr_format = FI_SOCKADDR_IN6;
	assert_refused(pair,
		       "the hints ask for FI_SOCKADDR_IN6 addresses, and those of fake are "
		       "FI_SOCKADDR_IN");
	pair->hints->addr_format = FI_ADDR_STR;
	assert_refused(pair, "the hints ask for FI_ADDR_STR addresses, and those of fake are "
			     "FI_SOCKADDR_IN");
	pair->offer->addr_format = FI_SOCKADDR_IP;
	pair->hints->addr_format = FI_SOCKADDR_IN6;
	assert_met(pair);
}

static void an_own_address_format_meets_no_named_one(void **state)
{
	struct pair *pair = *state;

	pair->offer->addr_format = FI_FORMAT_UNSPEC;
	assert_met(pair);
	pair->hints->addr_format = FI_SOCKADDR;
	assert_refused(
		pair,
		"the hints ask for FI_SOCKADDR addresses, and those of fake are of its own "
		"format");
}

static void names_of_fabric_and_domain_are_compared_without_case(void **state)
{
	struct pair *pair = *state;

	pair->hints->domain_attr->name = strdup("ETH0");
	assert_met(pair);
	pair->hints->domain_attr->name[3] = '1';
	assert_refused(pair, "the hints ask for the domain ETH1, and this one is eth0");
	free(pair->hints->domain_attr->name);
	pair->hints->domain_attr->name = NULL;
	pair->hints->fabric_attr->name = strdup("10.0.0.0/8");
	assert_refused(pair,
		       "the hints ask for the fabric 10.0.0.0/8, and this one is 192.0.2.0/24");
}

static void the_name_of_the_provider_is_left_to_the_core(void **state)
{
	struct pair *pair = *state;

	pair->hints->fabric_attr->prov_name = strdup("something;else");
	assert_met(pair);
}

static void a_newer_provider_version_is_refused(void **state)
{
	struct pair *pair = *state;

	pair->hints->fabric_attr->prov_version = FI_VERSION(3, 1);
	assert_met(pair);
	pair->hints->fabric_attr->prov_version = FI_VERSION(3, 2);
	assert_refused(pair, "the hints ask for provider version 3.2, and fake is 3.1");
}

static void the_best_threading_includes_all_others(void **state)
{
	static const enum fi_threading all[] = {
		FI_THREAD_UNSPEC, FI_THREAD_SAFE,	FI_THREAD_FID,
		FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT,
	};
	struct pair *pair = *state;
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		pair->hints->domain_attr->threading = all[i];
		assert_met(pair);
	}
	pair->offer->domain_attr->threading = FI_THREAD_DOMAIN;
	pair->hints->domain_attr->threading = FI_THREAD_DOMAIN;
	assert_met(pair);
	pair->hints->domain_attr->threading = FI_THREAD_SAFE;
	assert_refused(pair, "the hints ask for FI_THREAD_SAFE, which fake does not offer");
	pair->offer->domain_attr->threading = FI_THREAD_SAFE;
	pair->hints->domain_attr->threading = (enum fi_threading)77;
	assert_refused(pair, "the hints ask for Unknown, which fake does not offer");
}

static void automatic_progress_must_be_offered_for_data_and_control(void **state)
{
	struct pair *pair = *state;

	pair->hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	assert_met(pair);
	pair->offer->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	assert_refused(pair,
		       "the hints ask for data FI_PROGRESS_AUTO, which fake does not offer");
	pair->hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	assert_met(pair);
	pair->hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
	assert_refused(pair,
		       "the hints ask for control FI_PROGRESS_AUTO, which fake does not offer");
}

static void resource_management_and_av_type_must_be_offered(void **state)
{
	struct pair *pair = *state;

	pair->hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	pair->hints->domain_attr->av_type = FI_AV_MAP;
	assert_met(pair);
	pair->offer->domain_attr->av_type = FI_AV_TABLE;
	assert_refused(pair, "the hints ask for FI_AV_MAP, and fake has FI_AV_TABLE");
	pair->hints->domain_attr->av_type = FI_AV_TABLE;
	pair->offer->domain_attr->resource_mgmt = FI_RM_DISABLED;
	assert_refused(pair, "the hints ask for FI_RM_ENABLED, which fake does not offer");
}

static void registration_modes_must_be_granted_to_targets(void **state)
{
	struct pair *pair = *state;

	pair->offer->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	pair->hints->caps = FI_MSG | FI_RMA;
	assert_refused(
		pair,
		"the hints do not grant mr_mode FI_MR_VIRT_ADDR, FI_MR_PROV_KEY, which fake "
		"needs");
	pair->hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	assert_met(pair);
	/* An initiator alone, or no RMA at all, needs no registration. */
	pair->hints->domain_attr->mr_mode = 0;
	pair->hints->caps = FI_MSG | FI_RMA | FI_WRITE | FI_READ;
	assert_met(pair);
	pair->hints->caps = FI_MSG;
	assert_met(pair);
	/* No capability named: what the modes allow. */
	pair->hints->caps = 0;
	assert_met(pair);
}

static void local_registration_must_be_granted_to_all(void **state)
{
	struct pair *pair = *state;

	pair->offer->domain_attr->mr_mode = FI_MR_LOCAL | INFO_MR_BASIC;
	pair->hints->caps = FI_MSG;
	assert_refused(pair, "the hints do not grant mr_mode FI_MR_LOCAL, which fake needs");
	pair->hints->domain_attr->mr_mode = FI_MR_LOCAL;
	assert_met(pair);
	pair->hints->domain_attr->mr_mode = 0;
	pair->hints->mode = INFO_MODE_LOCAL_MR;
	assert_met(pair);
	assert_met_at(pair, FI_VERSION(1, 4));
	pair->hints->mode = 0;
	assert_refused_at(pair, FI_VERSION(1, 4),
			  "the hints do not grant FI_LOCAL_MR, which fake needs");
}

static void the_old_registration_modes_must_be_offered(void **state)
{
	struct pair *pair = *state;
	static const uint32_t versions[] = { 0, FI_VERSION(1, 4), API };
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		pair->offer->domain_attr->mr_mode = INFO_MR_BASIC | INFO_MR_SCALABLE;
		pair->hints->domain_attr->mr_mode = INFO_MR_BASIC;
		assert_met_at(pair, versions[i]);
		pair->hints->domain_attr->mr_mode = INFO_MR_SCALABLE;
		assert_met_at(pair, versions[i]);
		pair->offer->domain_attr->mr_mode = INFO_MR_BASIC | FI_MR_VIRT_ADDR;
		assert_refused_at(pair, versions[i],
				  "the hints ask for the mr_mode 0x2 of an API before "
				  "1.5, which fake does not offer");
		/* The two do not go together, nor with newer bits. */
		pair->hints->domain_attr->mr_mode = INFO_MR_BASIC | FI_MR_ALLOCATED;
		assert_refused_at(pair, versions[i],
				  "the hints ask for the mr_mode 0x21 of an API before "
				  "1.5, which fake does not offer");
	}
	/* An offer that needs nothing is scalable without saying so. */
	pair->offer->domain_attr->mr_mode = 0;
	pair->hints->domain_attr->mr_mode = INFO_MR_SCALABLE;
	assert_met(pair);
	pair->hints->domain_attr->mr_mode = 0;
	assert_met_at(pair, FI_VERSION(1, 4));
}

static void the_capabilities_and_modes_of_a_domain_count_since_1_5(void **state)
{
	struct pair *pair = *state;

	pair->hints->domain_attr->caps = FI_SHARED_AV;
	assert_refused(
		pair,
		"the hints ask for domain_attr->caps FI_SHARED_AV, which fake does not offer");
	assert_met_at(pair, FI_VERSION(1, 4));
	pair->hints->domain_attr->caps = FI_LOCAL_COMM;
	pair->offer->domain_attr->mode = FI_CONTEXT2;
	assert_refused(
		pair, "the hints do not grant domain_attr->mode FI_CONTEXT2, which fake needs");
	pair->hints->domain_attr->mode = FI_CONTEXT2;
	assert_met(pair);
}

/* One more than the offer has, of each number there is. */
static void every_number_is_met_at_its_limit_and_refused_above(void **state)
{
	struct pair *pair = *state;
	struct fi_info *hints = pair->hints;
	struct {
		const char *name;
		size_t *hint;
		size_t limit;
	} numbers[] = {
		{ "tx_attr->inject_size", &hints->tx_attr->inject_size, 256 },
		{ "tx_attr->iov_limit", &hints->tx_attr->iov_limit, 8 },
		{ "tx_attr->rma_iov_limit", &hints->tx_attr->rma_iov_limit, 4 },
		{ "rx_attr->iov_limit", &hints->rx_attr->iov_limit, 8 },
		{ "ep_attr->max_msg_size", &hints->ep_attr->max_msg_size, 1 << 30 },
		{ "ep_attr->tx_ctx_cnt", &hints->ep_attr->tx_ctx_cnt, 1 },
		{ "ep_attr->rx_ctx_cnt", &hints->ep_attr->rx_ctx_cnt, 1 },
		{ "domain_attr->cq_data_size", &hints->domain_attr->cq_data_size, 8 },
		{ "domain_attr->mr_iov_limit", &hints->domain_attr->mr_iov_limit, 1 },
	};
	char reason[INFO_REASON_MAX];
	size_t i;

	hints->caps = FI_MSG | FI_RMA;
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		*numbers[i].hint = numbers[i].limit;
		assert_met(pair);
		*numbers[i].hint = numbers[i].limit + 1;
		snprintf(reason, sizeof(reason),
			 "the hints ask for %s %zu, and fake offers at most %zu",
			 numbers[i].name, numbers[i].limit + 1, numbers[i].limit);
		assert_refused(pair, reason);
		*numbers[i].hint = 0;
	}
	hints->ep_attr->protocol_version = 3;
	assert_refused(
		pair,
		"the hints ask for ep_attr->protocol_version 3, and fake offers at most 2");
	hints->ep_attr->protocol_version = 2;
}

/* Far more than the offer has, of each number that memory alone bounds, or that asks for nothing. */
static void what_memory_alone_bounds_is_never_refused(void **state)
{
	struct pair *pair = *state;
	struct fi_info *hints = pair->hints;
	size_t *const numbers[] = {
		&hints->tx_attr->size,
		&hints->rx_attr->size,
		&hints->ep_attr->max_order_raw_size,
		&hints->ep_attr->max_order_war_size,
		&hints->ep_attr->max_order_waw_size,
		&hints->domain_attr->mr_key_size,
		&hints->domain_attr->cq_cnt,
		&hints->domain_attr->ep_cnt,
		&hints->domain_attr->tx_ctx_cnt,
		&hints->domain_attr->rx_ctx_cnt,
		&hints->domain_attr->max_ep_tx_ctx,
		&hints->domain_attr->max_ep_rx_ctx,
		&hints->domain_attr->max_ep_stx_ctx,
		&hints->domain_attr->max_ep_srx_ctx,
		&hints->domain_attr->cntr_cnt,
		&hints->domain_attr->max_err_data,
		&hints->domain_attr->mr_cnt,
	};
	size_t i;

	hints->caps = FI_MSG | FI_RMA;
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		*numbers[i] = 1u << 20;
		assert_met(pair);
	}
}

static void numbers_of_a_newer_api_count_only_when_that_was_asked_for(void **state)
{
	struct pair *pair = *state;

	pair->hints->domain_attr->cntr_cnt = 17;
	assert_met_at(pair, FI_VERSION(1, 4));
	pair->hints->domain_attr->cntr_cnt = 0;
	pair->hints->domain_attr->max_ep_auth_key = 1;
	assert_met_at(pair, FI_VERSION(1, 19));
	assert_refused_at(pair, FI_VERSION(1, 20),
			  "the hints ask for domain_attr->max_ep_auth_key 1, and "
			  "fake offers at most 0");
	pair->hints->domain_attr->max_ep_auth_key = 0;
	pair->hints->domain_attr->max_group_id = 5;
	assert_met_at(pair, FI_VERSION(1, 20));
	assert_refused_at(pair, FI_VERSION(2, 0),
			  "the hints ask for domain_attr->max_group_id 5, and fake "
			  "offers at most 0");
	pair->hints->domain_attr->max_group_id = 0;
	pair->hints->domain_attr->max_cntr_value = 5;
	pair->offer->domain_attr->max_cntr_value = 4;
	assert_met_at(pair, FI_VERSION(2, 4));
	assert_refused_at(pair, FI_VERSION(2, 5),
			  "the hints ask for domain_attr->max_cntr_value 5, and "
			  "fake offers at most 4");
}

/* As a loadable provider in Debian's 1.17: the hints end after tclass. */
static void hints_of_an_older_core_are_not_read_past_their_end(void **state)
{
	const struct info_layout *layout = info_layout_of(INFO_ABI_1_3);
	struct pair *pair = *state;
	struct fi_domain_attr *whole = pair->hints->domain_attr, *cut;

	fake_core_version = FI_VERSION(1, 17);
	cut = malloc(layout->domain_attr);
	memset(cut, 0, layout->domain_attr);
	cut->tclass = FI_TC_LOW_LATENCY;
	pair->hints->domain_attr = cut;
	assert_met_at(pair, FI_VERSION(1, 17));
	/* Even if a version is asked for that such a core can't pass on. */
	assert_met_at(pair, API);
	pair->hints->domain_attr = whole;
	free(cut);
}

static void shared_contexts_must_be_offered(void **state)
{
	struct pair *pair = *state;

	pair->hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	assert_refused(
		pair,
		"the hints ask for a shared context by ep_attr->rx_ctx_cnt, which fake does "
		"not offer");
	pair->offer->domain_attr->max_ep_srx_ctx = 4;
	assert_met(pair);
}

static void the_protocol_must_be_the_offered_one(void **state)
{
	struct pair *pair = *state;

	pair->hints->ep_attr->protocol = FI_PROTO_SHM;
	assert_refused(
		pair,
		"the hints ask for the protocol FI_PROTO_SHM, and fake speaks FI_PROTO_XNET");
}

static void a_tag_format_with_more_bits_is_refused(void **state)
{
	struct pair *pair = *state;

	pair->hints->caps = FI_TAGGED;
	pair->hints->ep_attr->mem_tag_format = UINT64_MAX;
	assert_refused(pair,
		       "the hints ask for the tag format 0xffffffffffffffff, and fake offers "
		       "0x7fffffffffffffff");
	pair->hints->ep_attr->mem_tag_format = 0x5555555555555555;
	assert_met(pair);
	pair->hints->ep_attr->mem_tag_format = FI_TAG_MPI;
	assert_met(pair);
	pair->hints->caps = FI_MSG;
	pair->hints->ep_attr->mem_tag_format = UINT64_MAX;
	assert_met(pair);
}

static void keys_must_have_the_size_that_is_taken(void **state)
{
	struct pair *pair = *state;

	pair->hints->ep_attr->auth_key_size = 16;
	assert_refused(pair,
		       "the hints ask for an endpoint key of 16 bytes, and fake takes up to 0");
	pair->offer->ep_attr->auth_key_size = 16;
	assert_met(pair);
	pair->hints->domain_attr->auth_key_size = 8;
	assert_refused(pair,
		       "the hints ask for a domain key of 8 bytes, and fake takes up to 0");
	pair->hints->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	assert_refused(pair, "the hints ask for FI_AV_AUTH_KEY, which fake does not offer");
	pair->offer->domain_attr->max_ep_auth_key = 2;
	assert_met(pair);
}

static void flags_and_orders_of_contexts_must_be_offered(void **state)
{
	struct pair *pair = *state;

	pair->hints->tx_attr->op_flags = FI_COMPLETION | FI_COMMIT_COMPLETE;
	assert_refused(
		pair, "the hints ask for tx_attr FI_COMMIT_COMPLETE, which fake does not offer");
	pair->hints->tx_attr->op_flags = FI_COMPLETION;
	pair->hints->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_RAR;
	assert_refused(pair,
		       "the hints ask for tx_attr FI_ORDER_RAR, which fake does not offer");
	pair->hints->tx_attr->msg_order = FI_ORDER_SAS;
	pair->hints->rx_attr->msg_order = FI_ORDER_WAW;
	assert_refused(pair,
		       "the hints ask for rx_attr FI_ORDER_WAW, which fake does not offer");
	pair->hints->rx_attr->msg_order = FI_ORDER_SAS;
	assert_met(pair);
	pair->hints->tx_attr->comp_order = 1;
	pair->hints->rx_attr->comp_order = 1;
	assert_met(pair);
}

static void capabilities_of_the_other_direction_do_not_count(void **state)
{
	struct pair *pair = *state;

	pair->hints->tx_attr->caps = FI_MSG | FI_SEND | FI_RECV | FI_REMOTE_READ | FI_SOURCE;
	pair->hints->rx_attr->caps = FI_MSG | FI_SEND | FI_RECV | FI_READ | FI_FENCE;
	assert_met(pair);
	pair->hints->tx_attr->caps = FI_ATOMIC;
	assert_refused(pair, "the hints ask for tx_attr FI_ATOMIC, which fake does not offer");
}

static void a_refusal_is_logged_once_and_only_if_the_log_is_on(void **state)
{
	struct pair *pair = *state;

	pair->hints->caps = FI_ATOMIC;
	assert_int_equal(info_match(&fake_prov, pair->offer, pair->hints, API), -FI_ENODATA);
	assert_string_equal(fake_core_log,
			    "the hints ask for FI_ATOMIC, which fake does not offer");
	fake_core_log[0] = '\0';
	fake_core_log_on = 0;
	assert_int_equal(info_match(&fake_prov, pair->offer, pair->hints, API), -FI_ENODATA);
	assert_int_equal(info_refuse(&fake_prov, "%s", "x"), -FI_ENODATA);
	assert_string_equal(fake_core_log, "");
}

static void a_long_reason_is_cut_and_a_missing_buffer_is_allowed(void **state)
{
	struct pair *pair = *state;
	char why[8] = "";

	pair->hints->caps = FI_ATOMIC;
	info_refusal(&fake_prov, pair->offer, pair->hints, API, why, sizeof(why));
	assert_string_equal(why, "the hin");
	assert_int_equal(info_refusal(&fake_prov, pair->offer, pair->hints, API, NULL, 0),
			 -FI_ENODATA);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_hints_and_empty_hints_are_met),
		TEST(hints_without_attributes_are_met),
		TEST(a_capability_that_is_not_offered_is_named),
		TEST(a_secondary_capability_that_is_asked_for_must_be_there),
		TEST(a_mode_that_is_needed_must_be_granted),
		TEST(a_context_uses_the_mode_of_the_whole_unless_it_has_its_own),
		TEST(the_endpoint_type_must_be_the_offered_one),
		TEST(address_formats_fit_their_families),
		TEST(an_own_address_format_meets_no_named_one),
		TEST(names_of_fabric_and_domain_are_compared_without_case),
		TEST(the_name_of_the_provider_is_left_to_the_core),
		TEST(a_newer_provider_version_is_refused),
		TEST(the_best_threading_includes_all_others),
		TEST(automatic_progress_must_be_offered_for_data_and_control),
		TEST(resource_management_and_av_type_must_be_offered),
		TEST(registration_modes_must_be_granted_to_targets),
		TEST(local_registration_must_be_granted_to_all),
		TEST(the_old_registration_modes_must_be_offered),
		TEST(the_capabilities_and_modes_of_a_domain_count_since_1_5),
		TEST(every_number_is_met_at_its_limit_and_refused_above),
		TEST(what_memory_alone_bounds_is_never_refused),
		TEST(numbers_of_a_newer_api_count_only_when_that_was_asked_for),
		TEST(hints_of_an_older_core_are_not_read_past_their_end),
		TEST(shared_contexts_must_be_offered),
		TEST(the_protocol_must_be_the_offered_one),
		TEST(a_tag_format_with_more_bits_is_refused),
		TEST(keys_must_have_the_size_that_is_taken),
		TEST(flags_and_orders_of_contexts_must_be_offered),
		TEST(capabilities_of_the_other_direction_do_not_count),
		TEST(a_refusal_is_logged_once_and_only_if_the_log_is_on),
		TEST(a_long_reason_is_cut_and_a_missing_buffer_is_allowed),
	};

	return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
