/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of what the shm provider offers to fi_getinfo and of the address format that it gives
 * to the engine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "engine.h"
#include "info.h"
#include "mock_core.h"
#include "service.h"
#include "shm.h"

static struct fi_provider *shm;

static int setup(void **state)
{
	shm = weft_shm_ini();
	return !shm;
}

static int asked(const struct fi_info *hints, struct fi_info **info)
{
	mock_log[0] = '\0';
	return shm->getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, info);
}

static void registers_its_wire_and_itself_once(void **state)
{
	assert_string_equal(shm->name, "shm");
	assert_ptr_equal(weft_shm_ini(), shm);
	assert_non_null(wire_find("shm"));
	assert_null(wire_find("sh"));
}

static void offers_what_the_engine_can_inside_the_node(void **state)
{
	struct fi_info *info;

	assert_int_equal(asked(NULL, &info), 0);
	assert_null(info->next);
	assert_int_equal(info->caps, (ENGINE_CAPS | ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM) &
					     ~FI_TAGGED_MULTI_RECV);
	assert_false(info->caps & FI_REMOTE_COMM);
	assert_int_equal(info->mode, 0);
	assert_int_equal(info->domain_attr->mr_mode, 0);
	assert_int_equal(info->addr_format, FI_FORMAT_UNSPEC);
	assert_int_equal(info->ep_attr->type, FI_EP_RDM);
	assert_int_equal(info->tx_attr->inject_size, ENGINE_INJECT_MAX);
	assert_int_equal(info->domain_attr->cq_data_size, 8);
	assert_int_equal(info->tx_attr->msg_order, ENGINE_MSG_ORDER);
	assert_string_equal(info->fabric_attr->name, "shm");
	info_free(info);
}

static void refuses_with_a_reason(void **state)
{
	struct fi_info *hints = info_alloc(), *info = NULL;

	hints->caps = FI_TAGGED | FI_REMOTE_COMM;
	assert_int_equal(asked(hints, &info), -FI_ENODATA);
	assert_non_null(strstr(mock_log, "FI_REMOTE_COMM"));
	hints->caps = FI_TAGGED;
	hints->addr_format = FI_SOCKADDR_IN;
	assert_int_equal(asked(hints, &info), -FI_ENODATA);
	hints->addr_format = FI_FORMAT_UNSPEC;
	hints->ep_attr->type = FI_EP_MSG;
	assert_int_equal(asked(hints, &info), -FI_ENODATA);
	hints->ep_attr->type = FI_EP_RDM;
	assert_int_equal(asked(hints, &info), 0);
	assert_int_equal(info->caps & FI_MSG, 0);
	info_free(info);
	info_free(hints);
}

static struct weft_addr an_address(void)
{
	struct weft_addr addr = { .version = ADDR_VERSION,
				  .kind = ADDR_NONCE,
				  .fd = 5,
				  .pid = 77,
				  .place = 1,
				  .nonce = { 1, 2, 3 } };

	assert_true(addr_valid(&addr));
	return addr;
}

/* Whoever names a service of this host gets its address, whether somebody has it or not. */
static void services_are_names_on_this_host(void **state)
{
	struct fi_info *info = NULL, *hints = info_alloc();
	struct weft_addr named;

	assert_int_equal(
		shm->getinfo(FI_VERSION(1, 5), "localhost", "shm_test", 0, NULL, &info), 0);
	assert_int_equal(info->dest_addrlen, sizeof(named));
	memcpy(&named, info->dest_addr, sizeof(named));
	assert_true(addr_valid(&named) && pshm_service_named(&named));
	assert_int_equal(info->src_addrlen, sizeof(named));
	assert_true(pshm_service_bindable(info->src_addr));
	info_free(info);
	assert_int_equal(
		shm->getinfo(FI_VERSION(1, 5), NULL, "shm_test", FI_SOURCE, NULL, &info), 0);
	assert_null(info->dest_addr);
	assert_memory_equal(info->src_addr, &named, sizeof(named));
	hints->src_addr = malloc(sizeof(named));
	memcpy(hints->src_addr, &named, sizeof(named));
	hints->src_addrlen = sizeof(named);
	info_free(info);
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info), 0);
	assert_memory_equal(info->src_addr, &named, sizeof(named));
	info_free(info);
	info_free(hints);

	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), "g00n13s.invalid", "7", 0, NULL, &info),
			 -FI_ENODATA);
	assert_int_equal(
		shm->getinfo(FI_VERSION(1, 5), NULL, "sixteen letters!", 0, NULL, &info),
		-FI_ENODATA);
}

static void service_is_found_while_one_has_it(void **state)
{
	struct weft_addr named, found, full = an_address();
	struct sys_shared *kept, *second;
	char name[16];

	/* others may run this test now */
	snprintf(name, sizeof(name), "test%d", (int)getpid());
	assert_int_equal(pshm_service_addr(name, &named), 0);
	assert_int_equal(pshm_service_find(&named, &found), -FI_EAGAIN);
	full.family = named.family;
	memcpy(full.ip, named.ip, sizeof(full.ip));
	assert_int_equal(pshm_service_publish(&full, &kept), 0);
	assert_int_equal(pshm_service_publish(&full, &second), -FI_EADDRINUSE);
	assert_int_equal(pshm_service_find(&named, &found), 0);
	assert_memory_equal(&found, &full, sizeof(full));
	sys_shared_close(kept);
	assert_int_equal(pshm_service_find(&named, &found), -FI_EAGAIN);
}

static void destinations_are_its_own_addresses(void **state)
{
	struct weft_addr addr = an_address();
	struct fi_info *hints = info_alloc(), *info = NULL;

	hints->dest_addr = malloc(sizeof(addr));
	memcpy(hints->dest_addr, &addr, sizeof(addr));
	hints->dest_addrlen = sizeof(addr);
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info), 0);
	assert_int_equal(info->dest_addrlen, sizeof(addr));
	assert_memory_equal(info->dest_addr, &addr, sizeof(addr));
	info_free(info);
	hints->dest_addrlen = 16;
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info),
			 -FI_ENODATA);
	hints->dest_addrlen = sizeof(addr);
	memset(hints->dest_addr, 0xff, sizeof(addr));
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info),
			 -FI_ENODATA);
	info_free(hints);
}

static void addresses_are_checked_before_they_are_believed(void **state)
{
	const struct engine_family *family;
	struct weft_addr addr = an_address(), out, copy;
	struct fid_fabric *fabric;
	struct fi_fabric_attr attr = { .name = (char *)"shm" };
	char why[128] = "", text[64];
	size_t len;

	assert_int_equal(shm->fabric(&attr, &fabric, NULL), 0);
	family = container_of(fabric, struct engine_fabric, fid)->family;
	assert_int_equal(family->addr_len, 48);
	assert_int_equal(family->addr_read(&addr, &out, why, sizeof(why)), 0);
	assert_memory_equal(&out, &addr, sizeof(addr));
	family->addr_write(&out, &copy);
	assert_memory_equal(&copy, &addr, sizeof(addr));

	addr.version++;
	assert_int_equal(family->addr_read(&addr, &out, why, sizeof(why)), -FI_EINVAL);
	assert_true(why[0]);
	memset(&addr, 0, sizeof(addr));
	assert_int_equal(family->addr_read(&addr, &out, why, sizeof(why)), -FI_EINVAL);
	memset(&addr, 0xff, sizeof(addr));
	assert_int_equal(family->addr_read(&addr, &out, why, sizeof(why)), -FI_EINVAL);

	addr = an_address();
	len = family->addr_str(&addr, text, sizeof(text));
	assert_int_equal(len, strlen(text) + 1);
	assert_int_equal(strncmp(text, "shm://77/5/", 11), 0);
	assert_int_equal(family->addr_str(&addr, text, 4), len);
	assert_string_equal(text, "shm");
	assert_int_equal(fi_close(&fabric->fid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_its_wire_and_itself_once),
		cmocka_unit_test(offers_what_the_engine_can_inside_the_node),
		cmocka_unit_test(destinations_are_its_own_addresses),
		cmocka_unit_test(refuses_with_a_reason),
		cmocka_unit_test(services_are_names_on_this_host),
		cmocka_unit_test(service_is_found_while_one_has_it),
		cmocka_unit_test(addresses_are_checked_before_they_are_believed),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, setup, NULL);
}
