/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_fabric: the right provider, whatever the name, and its life until fi_close. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "fake_provider.h"
#include "registry.h"
#include "start.h"

static struct fi_fabric_attr attr_of(char *prov_name)
{
	return (struct fi_fabric_attr){
		.name = "fab",
		.prov_name = prov_name,
		.api_version = FI_VERSION(1, 9),
	};
}

static void a_fabric_opens_by_name_of_provider(void **state)
{
	struct fi_fabric_attr attr = attr_of("TCP");
	struct fid_fabric *fabric;

	fake_register(0, "tcp", 1);
	fake_register(1, "shm", 1);
	assert_int_equal(fi_fabric(&attr, &fabric, NULL), 0);
	assert_int_equal(fakes[0].opened, 1);
	assert_int_equal(fabric->api_version, FI_VERSION(1, 9));
	assert_int_equal(fi_close(&fabric->fid), 0);
	assert_int_equal(fakes[0].closed, 1);
}

static void a_further_name_in_the_answer_leads_back_to_its_provider(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;

	fake_register_named(0, fake_tcp, 1);
	hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
	assert_int_equal(fi_getinfo(fi_version(), NULL, NULL, 0, hints, &info), 0);
	assert_string_equal(info->fabric_attr->prov_name, "tcp;ofi_rxm");
	assert_int_equal(fi_fabric2(info, &fabric, 0, NULL), 0);
	assert_string_equal(fakes[0].fabric_prov_name, "tcp;ofi_rxm");
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void of_layers_the_last_one_opens(void **state)
{
	struct fi_fabric_attr attr = attr_of("tcp;ofi_rxm");
	struct fid_fabric *fabric;

	fake_register(0, "tcp", 1);
	fake_register(1, "ofi_rxm", 1);
	assert_int_equal(fi_fabric(&attr, &fabric, NULL), 0);
	assert_int_equal(fakes[1].opened, 1);
	assert_string_equal(fakes[1].fabric_prov_name, "tcp;ofi_rxm");
	assert_int_equal(fi_close(&fabric->fid), 0);
}

static void what_is_missing_is_an_error(void **state)
{
	struct fi_fabric_attr attr = attr_of(NULL), nameless = attr_of("tcp");
	struct fid_fabric *fabric = (struct fid_fabric *)state;
	struct fi_info bare = { 0 };

	fake_register(0, "tcp", 1);
	nameless.name = NULL;
	assert_int_equal(fi_fabric(NULL, &fabric, NULL), -FI_EINVAL);
	assert_int_equal(fi_fabric(&attr, &fabric, NULL), -FI_EINVAL);
	assert_int_equal(fi_fabric(&nameless, &fabric, NULL), -FI_EINVAL);
	attr.prov_name = "tcp";
	assert_int_equal(fi_fabric(&attr, NULL, NULL), -FI_EINVAL);
	assert_int_equal(fi_fabric2(NULL, &fabric, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_fabric2(&bare, &fabric, 0, NULL), -FI_EINVAL);
	bare.fabric_attr = &attr;
	assert_int_equal(fi_fabric2(&bare, &fabric, FI_PEER, NULL), -FI_EINVAL);
	assert_ptr_equal(fabric, state);
	assert_int_equal(fakes[0].opened, 0);
}

static void an_unknown_provider_is_no_device_and_one_line(void **state)
{
	struct fi_fabric_attr attr = attr_of("efa"), empty = attr_of("");
	struct fid_fabric *fabric;

	fake_log_lines();
	assert_int_equal(fi_fabric(&attr, &fabric, NULL), -FI_ENODEV);
	assert_int_equal(fake_log_cnt("no provider efa"), 1);
	assert_int_equal(fi_fabric(&empty, &fabric, NULL), -FI_ENODEV);
}

static void the_providers_error_is_passed_on(void **state)
{
	struct fi_fabric_attr attr = attr_of("tcp");
	struct fid_fabric *fabric = NULL;

	fake_register(0, "tcp", 1)->refuses = -FI_ENOMEM;
	assert_int_equal(fi_fabric(&attr, &fabric, NULL), -FI_ENOMEM);
	assert_null(fabric);
	assert_int_equal(registry_remove(&fakes[0].prov), 0);
	assert_int_equal(fakes[0].cleaned, 1);
}

static void a_removed_provider_lives_until_its_fabrics_are_closed(void **state)
{
	struct fi_fabric_attr attr = attr_of("tcp");
	struct fid_fabric *fabric;

	fake_register(0, "tcp", 1);
	assert_int_equal(fi_fabric(&attr, &fabric, NULL), 0);
	core_stop();
	assert_int_equal(fakes[0].cleaned, 0);
	fakes[0].close_result = -FI_EBUSY;
	assert_int_equal(fi_close(&fabric->fid), -FI_EBUSY);
	assert_int_equal(fakes[0].cleaned, 0);
	fakes[0].close_result = 0;
	assert_int_equal(fi_close(&fabric->fid), 0);
	assert_int_equal(fakes[0].closed, 1);
	assert_int_equal(fakes[0].cleaned, 1);
}

static void the_only_thing_to_open_by_name_is_the_log(void **state)
{
	struct fid *fid = (struct fid *)state;

	assert_int_equal(fi_open(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0, &fid, NULL),
			 -FI_ENOSYS);
	assert_int_equal(fi_open(FI_VERSION(1, 13), "anything", NULL, 0, 0, &fid, NULL),
			 -FI_ENOSYS);
	assert_int_equal(fi_open(FI_VERSION(1, 13), NULL, NULL, 0, 0, &fid, NULL), -FI_EINVAL);
	assert_ptr_equal(fid, state);
	assert_int_equal(fi_open(FI_VERSION(1, 13), "Logging", NULL, 0, 0, &fid, NULL), 0);
	assert_int_equal(fid->fclass, FI_CLASS_LOG);
	assert_int_equal(fi_close(fid), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_fabric_opens_by_name_of_provider),
		TEST(a_further_name_in_the_answer_leads_back_to_its_provider),
		TEST(of_layers_the_last_one_opens),
		TEST(what_is_missing_is_an_error),
		TEST(an_unknown_provider_is_no_device_and_one_line),
		TEST(the_providers_error_is_passed_on),
		TEST(a_removed_provider_lives_until_its_fabrics_are_closed),
		TEST(the_only_thing_to_open_by_name_is_the_log),
	};

	return cmocka_run_group_tests_name("fabric", tests, NULL, NULL);
}
