/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory of struct fi_info: copies of every age, and what they own. */
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

static void all_parts_of_a_new_info_are_there_and_zero(void **state)
{
	static const struct fi_domain_attr zero_domain;
	struct fi_info *info = info_alloc();

	assert_non_null(info);
	assert_non_null(info->tx_attr);
	assert_non_null(info->rx_attr);
	assert_non_null(info->ep_attr);
	assert_non_null(info->fabric_attr);
	assert_memory_equal(info->domain_attr, &zero_domain, sizeof(zero_domain));
	assert_null(info->next);
	assert_null(info->nic);
	info_free(info);
}

static void nothing_duplicates_to_a_new_info_and_frees_to_nothing(void **state)
{
	struct fi_info *info = info_dup(NULL, NULL);

	assert_non_null(info);
	assert_non_null(info->domain_attr);
	info_free(info);
	info_free(NULL);
}

static void a_copy_shares_nothing_with_its_source(void **state)
{
	struct fi_info *info = fake_offer(), *dup;

	info->src_addr = strdup("sixteen bytes..");
	info->src_addrlen = 16;
	info->dest_addr = strdup("dest");
	info->dest_addrlen = 5;
	info->handle = (fid_t)info;
	info->ep_attr->auth_key = (uint8_t *)strdup("epkey");
	info->ep_attr->auth_key_size = 6;
	info->domain_attr->auth_key = (uint8_t *)strdup("domkey");
	info->domain_attr->auth_key_size = 7;
	info->fabric_attr->prov_name = strdup("fake");
	info->next = info;

	dup = info_dup(info, NULL);
	info->next = NULL;
	info_free(info);
	assert_string_equal(dup->src_addr, "sixteen bytes..");
	assert_string_equal(dup->dest_addr, "dest");
	assert_ptr_equal(dup->handle, info);
	assert_string_equal((char *)dup->ep_attr->auth_key, "epkey");
	assert_string_equal((char *)dup->domain_attr->auth_key, "domkey");
	assert_string_equal(dup->domain_attr->name, "eth0");
	assert_string_equal(dup->fabric_attr->name, "192.0.2.0/24");
	assert_string_equal(dup->fabric_attr->prov_name, "fake");
	assert_int_equal(dup->tx_attr->inject_size, 256);
	assert_null(dup->next);
	info_free(dup);
}

static void missing_parts_stay_missing_in_a_copy(void **state)
{
	struct fi_info bare = { .caps = FI_MSG, .src_addrlen = 16 }, *dup;

	dup = info_dup(&bare, NULL);
	assert_int_equal(dup->caps, FI_MSG);
	assert_null(dup->src_addr);
	assert_null(dup->tx_attr);
	assert_null(dup->rx_attr);
	assert_null(dup->ep_attr);
	assert_null(dup->domain_attr);
	assert_null(dup->fabric_attr);
	info_free(dup);
}

/* Memory of exactly @len bytes, all of @fill: reading past it is found by a sanitizer. */
static void *exactly(size_t len, int fill)
{
	void *part = malloc(len);

	memset(part, fill, len);
	return part;
}

/* A fi_info as a program of @layout would pass it, its numbers all 0x11. */
static struct fi_info *old_info(const struct info_layout *layout)
{
	struct fi_info *info = exactly(layout->info, 0);

	info->caps = FI_TAGGED;
	info->tx_attr = exactly(layout->tx_attr, 0x11);
	info->rx_attr = exactly(layout->rx_attr, 0x11);
	info->ep_attr = exactly(layout->ep_attr, 0x11);
	info->domain_attr = exactly(layout->domain_attr, 0x11);
	info->domain_attr->name = NULL;
	info->fabric_attr = exactly(layout->fabric_attr, 0x11);
	info->fabric_attr->name = NULL;
	info->fabric_attr->prov_name = NULL;
	if (INFO_HAS_DOMAIN(layout, auth_key)) {
		info->domain_attr->auth_key = NULL;
		info->ep_attr->auth_key = NULL;
	}
	return info;
}

static void old_info_free(struct fi_info *info)
{
	free(info->tx_attr);
	free(info->rx_attr);
	free(info->ep_attr);
	free(info->domain_attr);
	free(info->fabric_attr);
	free(info);
}

static void a_copy_of_an_old_info_is_whole_with_zeros_at_the_ends(void **state)
{
	const uint64_t ones = 0x1111111111111111;
	int abi;

	for (abi = 0; abi < INFO_ABI_CNT; abi++) {
		const struct info_layout *layout = info_layout_of(abi);
		struct fi_info *old = old_info(layout), *dup = info_dup(old, layout);

		assert_int_equal(dup->caps, FI_TAGGED);
		assert_int_equal(dup->domain_attr->max_ep_srx_ctx, ones);
		assert_int_equal(dup->tx_attr->rma_iov_limit, ones);
		assert_int_equal(dup->rx_attr->iov_limit, ones);
		assert_int_equal(dup->ep_attr->rx_ctx_cnt, ones);
		assert_int_equal(dup->fabric_attr->prov_version, 0x11111111);
		assert_int_equal(dup->fabric_attr->api_version,
				 abi >= INFO_ABI_1_1 ? 0x11111111 : 0);
		assert_int_equal(dup->ep_attr->auth_key_size, abi >= INFO_ABI_1_1 ? ones : 0);
		assert_int_equal(dup->domain_attr->mr_cnt, abi >= INFO_ABI_1_1 ? ones : 0);
		assert_int_equal(dup->tx_attr->tclass, abi >= INFO_ABI_1_3 ? 0x11111111 : 0);
		assert_int_equal(dup->domain_attr->tclass, abi >= INFO_ABI_1_3 ? 0x11111111 : 0);
		assert_int_equal(dup->domain_attr->max_ep_auth_key,
				 abi >= INFO_ABI_1_7 ? ones : 0);
		assert_int_equal(dup->domain_attr->max_group_id,
				 abi >= INFO_ABI_1_8 ? 0x11111111 : 0);
		assert_int_equal(dup->domain_attr->max_err_cntr_value,
				 abi >= INFO_ABI_1_9 ? ones : 0);
		assert_int_equal(dup->domain_attr->max_xpu_ctx_cnt,
				 abi >= INFO_ABI_1_10 ? ones : 0);
		info_free(dup);
		old_info_free(old);
	}
}

static void each_libfabric_has_the_layout_of_its_age(void **state)
{
	static const struct {
		uint32_t version;
		enum info_abi abi;
	} known[] = {
		{ FI_VERSION(1, 0), INFO_ABI_1_0 },  { FI_VERSION(1, 4), INFO_ABI_1_0 },
		{ FI_VERSION(1, 5), INFO_ABI_1_1 },  { FI_VERSION(1, 8), INFO_ABI_1_2 },
		{ FI_VERSION(1, 17), INFO_ABI_1_3 }, { FI_VERSION(1, 20), INFO_ABI_1_7 },
		{ FI_VERSION(2, 1), INFO_ABI_1_8 },  { FI_VERSION(2, 6), INFO_ABI_1_9 },
		{ FI_VERSION(3, 0), INFO_ABI_1_10 },
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_ptr_equal(info_layout_of_core(known[i].version),
				 info_layout_of(known[i].abi));
}

/* The sizes as the compiler lays them out on x86-64; padding at the end does not count. */
static void the_layouts_are_those_of_the_published_abis(void **state)
{
	static const struct info_layout known[] = {
		[INFO_ABI_1_0] = { 112, 72, 64, 80, 120, 28 },
		[INFO_ABI_1_1] = { 112, 72, 64, 96, 184, 32 },
		[INFO_ABI_1_2] = { 120, 72, 64, 96, 184, 32 },
		[INFO_ABI_1_3] = { 120, 76, 64, 96, 188, 32 },
		[INFO_ABI_1_7] = { 120, 76, 64, 96, 200, 32 },
		[INFO_ABI_1_8] = { 120, 76, 64, 96, 204, 32 },
		[INFO_ABI_1_9] = { 120, 76, 64, 96, 224, 32 },
		[INFO_ABI_1_10] = { 120, 80, 64, 104, 232, 32 },
	};
	int abi;

	if (sizeof(void *) != 8)
		skip();
	for (abi = 0; abi < INFO_ABI_CNT; abi++)
		assert_memory_equal(info_layout_of(abi), &known[abi], sizeof(known[abi]));
}

struct counted_nic {
	struct fid_nic nic;
	int copies;
	int closed;
	int copy_result;
};

static int counted_nic_close(struct fid *fid)
{
	((struct counted_nic *)fid)->closed++;
	return 0;
}

static int counted_nic_control(struct fid *fid, int command, void *arg)
{
	struct counted_nic *nic = (struct counted_nic *)fid;

	assert_int_equal(command, FI_DUP);
	if (!nic->copy_result) {
		nic->copies++;
		*(struct fid_nic **)arg = &nic->nic;
	}
	return nic->copy_result;
}

static struct fi_ops counted_nic_ops = {
	.size = sizeof(struct fi_ops),
	.close = counted_nic_close,
	.control = counted_nic_control,
};

static void a_nic_is_copied_and_closed_by_its_own_operations(void **state)
{
	struct counted_nic nic = {
		.nic.fid = { .fclass = FI_CLASS_NIC, .ops = &counted_nic_ops },
	};
	struct fi_info *info = info_alloc(), *dup;

	info->nic = &nic.nic;
	dup = info_dup(info, NULL);
	assert_ptr_equal(dup->nic, &nic.nic);
	assert_int_equal(nic.copies, 1);
	info_free(dup);
	assert_int_equal(nic.closed, 1);

	nic.copy_result = -FI_ENOSYS;
	dup = info_dup(info, NULL);
	assert_non_null(dup);
	assert_null(dup->nic);
	info_free(dup);

	nic.copy_result = -FI_ENOMEM;
	assert_null(info_dup(info, NULL));

	nic.copy_result = 0;
	dup = info_dup(info, info_layout_of(INFO_ABI_1_1));
	assert_null(dup->nic);
	info_free(dup);
	info_free(info);
	assert_int_equal(nic.closed, 2);
}

/* No provider's: info/ does not look into it. */
struct weft_addr {
	char text[8];
};

static size_t text_write(const struct weft_addr *addr, void *out)
{
	memcpy(out, addr->text, sizeof(addr->text));
	return strnlen(addr->text, sizeof(addr->text));
}

static void a_copy_has_the_addresses_that_it_is_between(void **state)
{
	static const struct weft_addr near = { "near" }, far = { "distant" }, nowhere = { "" };
	const struct info_layout *layout = info_layout_of(INFO_ABI_1_3);
	struct fid handle = { .fclass = FI_CLASS_CONNREQ };
	struct fi_info *info = info_alloc(), *dup;

	info->src_addr = strdup("source");
	info->src_addrlen = 6;
	info->handle = &handle;
	dup = info_dup_between(info, layout, text_write, &near, &far);
	assert_int_equal(dup->src_addrlen, 4);
	assert_memory_equal(dup->src_addr, "near", 4);
	assert_int_equal(dup->dest_addrlen, 7);
	assert_memory_equal(dup->dest_addr, "distant", 7);
	assert_null(dup->handle);
	info_free(dup);

	dup = info_dup_between(info, layout, text_write, NULL, &far);
	assert_int_equal(dup->src_addrlen, 6);
	assert_memory_equal(dup->src_addr, "source", 6);
	assert_memory_equal(dup->dest_addr, "distant", 7);
	info_free(dup);

	assert_null(info_dup_between(info, layout, text_write, &near, &nowhere));
	assert_null(info_dup_between(info, layout, text_write, &nowhere, NULL));
	info_free(info);
}

static void a_list_is_freed_with_all_its_members(void **state)
{
	struct fi_info *list = NULL;
	int i;

	for (i = 0; i < 3; i++)
		info_append(&list, fake_offer());
	assert_non_null(list->next->next);
	assert_null(list->next->next->next);
	info_free(list);
}

static void a_key_of_impossible_length_is_an_error_not_a_crash(void **state)
{
	uint8_t key;
	struct fi_domain_attr domain = { .auth_key = &key, .auth_key_size = SIZE_MAX / 2 };
	struct fi_info info = { .domain_attr = &domain };

	assert_null(info_dup(&info, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_parts_of_a_new_info_are_there_and_zero),
		cmocka_unit_test(nothing_duplicates_to_a_new_info_and_frees_to_nothing),
		cmocka_unit_test(a_copy_shares_nothing_with_its_source),
		cmocka_unit_test(missing_parts_stay_missing_in_a_copy),
		cmocka_unit_test(a_copy_of_an_old_info_is_whole_with_zeros_at_the_ends),
		cmocka_unit_test(each_libfabric_has_the_layout_of_its_age),
		cmocka_unit_test(the_layouts_are_those_of_the_published_abis),
		cmocka_unit_test(a_nic_is_copied_and_closed_by_its_own_operations),
		cmocka_unit_test(a_copy_has_the_addresses_that_it_is_between),
		cmocka_unit_test(a_list_is_freed_with_all_its_members),
		cmocka_unit_test(a_key_of_impossible_length_is_an_error_not_a_crash),
	};

	return cmocka_run_group_tests_name("info", tests, NULL, NULL);
}
