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
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "engine.h"
#include "info.h"
#include "mock_core.h"
#include "address.h"
#include "service.h"
#include "shm.h"
#include "wire.h"

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
					     ~(FI_TAGGED_MULTI_RECV | FI_RMA_PMEM));
	assert_false(info->caps & FI_REMOTE_COMM);
	assert_int_equal(info->mode, 0);
	assert_int_equal(info->domain_attr->mr_mode, 0);
	assert_int_equal(info->addr_format, FI_ADDR_STR);
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
				  .ns_hash = 1,
				  .nonce = { 1, 2, 3 } };

	assert_true(addr_valid(&addr));
	return addr;
}

/* The address of a service of this host is known whether an endpoint has the service or not. */
static void services_are_names_on_this_host(void **state)
{
	struct fi_info *info = NULL, *hints = info_alloc();

	assert_int_equal(
		shm->getinfo(FI_VERSION(1, 5), "localhost", "shm_test", 0, NULL, &info), 0);
	assert_int_equal(info->addr_format, FI_ADDR_STR);
	assert_string_equal(info->dest_addr, "fi_shm://shm_test");
	assert_int_equal(info->dest_addrlen, sizeof("fi_shm://shm_test"));
	assert_string_equal(info->src_addr, "fi_shm://"); /* none */
	assert_int_equal(info->src_addrlen, sizeof("fi_shm://"));
	info_free(info);
	assert_int_equal(
		shm->getinfo(FI_VERSION(1, 5), NULL, "shm_test", FI_SOURCE, NULL, &info), 0);
	assert_null(info->dest_addr);
	assert_string_equal(info->src_addr, "fi_shm://shm_test");
	hints->src_addr = strdup("fi_shm://shm_test");
	hints->src_addrlen = strlen(hints->src_addr) + 1;
	info_free(info);
	for (int with_nul = 1; with_nul >= 0; with_nul--) {
		hints->src_addrlen = strlen(hints->src_addr) + (size_t)with_nul;
		assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info), 0);
		assert_string_equal(info->src_addr, "fi_shm://shm_test");
		info_free(info);
	}
	info_free(hints);

	/* port 0 names no endpoint */
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, "0", 0, NULL, &info), 0);
	assert_null(info->dest_addr);
	info_free(info);

	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), "g00n13s.invalid", "7", 0, NULL, &info),
			 -FI_ENODATA);
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, "65536", 0, NULL, &info),
			 -FI_ENODATA);
}

static void assert_dest(const char *node, const char *service, const char *expected)
{
	struct fi_info *info = NULL;

	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), node, service, 0, NULL, &info), 0);
	assert_string_equal(info->dest_addr, expected);
	assert_int_equal(info->dest_addrlen, strlen(expected) + 1);
	info_free(info);
}

/* fi_getinfo(3): the node may be an address, without a service. */
static void node_may_be_an_address(void **state)
{
	struct fi_info *info = NULL, *again = NULL;

	assert_dest("fi_shm://name", NULL, "fi_shm://name");
	assert_dest("fi_ns://name", NULL, "fi_shm://name");
	assert_dest("fi_ns://host:7471", NULL, "fi_shm://7471");
	assert_dest("fi_shm://4194303", NULL, "fi_shm://4194303");
	assert_int_equal(
		shm->getinfo(FI_VERSION(1, 5), "fi_shm://me", NULL, FI_SOURCE, NULL, &info), 0);
	assert_string_equal(info->src_addr, "fi_shm://me");
	assert_null(info->dest_addr);
	info_free(info);
	/* a name that is too long is replaced by a hash */
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, "a name of many characters", 0,
				      NULL, &info),
			 0);
	assert_true(info->dest_addrlen < 48);
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), info->dest_addr, NULL, 0, NULL, &again),
			 0);
	assert_string_equal(info->dest_addr, again->dest_addr);
	info_free(again);
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, "a name of many character", 0,
				      NULL, &again),
			 0);
	assert_string_not_equal(info->dest_addr, again->dest_addr);
	info_free(again);
	info_free(info);
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

static struct wire *open_with(const struct weft_addr *service)
{
	struct wire_attr attr = { .tx_size = 64, .bind = service };
	struct weft_addr ours = { .version = ADDR_VERSION };
	static char ep;
	struct wire *wire;
	char why[128];

	assert_int_equal(pshm_wire_ops.open((struct engine_ep *)&ep, &attr, &ours, &wire, why,
					    sizeof(why)),
			 0);
	return wire;
}

/* The child of a fork has all descriptors of its parent, and may live on. */
static void service_is_free_when_its_process_has_closed_it(void **state)
{
	struct weft_addr named, found;
	struct wire *wire;
	char name[16], c;
	int said[2];
	pid_t pid;

	snprintf(name, sizeof(name), "fork%d", (int)getpid());
	assert_int_equal(pshm_service_addr(name, &named), 0);
	assert_int_equal(pipe(said), 0);
	wire = open_with(&named);
	pid = fork();
	if (!pid) {
		alarm(60);
		if (write(said[1], "c", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	assert_int_equal(read(said[0], &c, 1), 1);
	assert_int_equal(pshm_service_find(&named, &found), 0);
	pshm_wire_ops.close(wire);
	assert_int_equal(pshm_service_find(&named, &found), -FI_EAGAIN);
	wire = open_with(&named);
	pshm_wire_ops.close(wire);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(said[0]);
	close(said[1]);
}

static void destinations_are_its_own_addresses(void **state)
{
	struct fi_info *hints = info_alloc(), *info = NULL;
	struct weft_addr addr = an_address();
	char text[PSHM_ADDR_LEN];
	size_t len = pshm_addr_write(&addr, text);

	hints->dest_addr = malloc(len);
	memcpy(hints->dest_addr, text, len);
	hints->dest_addrlen = len;
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info), 0);
	assert_string_equal(info->dest_addr, text);
	info_free(info);
	/* without the prefix too, as a node too */
	hints->addr_format = FI_ADDR_STR;
	memmove(hints->dest_addr, text + strlen(PSHM_PREFIX), len - strlen(PSHM_PREFIX));
	hints->dest_addrlen = len - strlen(PSHM_PREFIX);
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info), 0);
	assert_string_equal(info->dest_addr, text);
	info_free(info);
	free(hints->dest_addr);
	hints->dest_addr = NULL;
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), text + strlen(PSHM_PREFIX), NULL, 0,
				      hints, &info),
			 0);
	assert_string_equal(info->dest_addr, text);
	info_free(info);
	hints->dest_addr = malloc(len);
	hints->dest_addrlen = len;
	memset(hints->dest_addr, 0xff, len);
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info),
			 -FI_ENODATA);
	memset(hints->dest_addr, 0, len);
	assert_int_equal(shm->getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info),
			 -FI_ENODATA);
	info_free(hints);
}

/* Reads a string that ends where its memory does. */
static int addr_read(const char *text, struct weft_addr *out)
{
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1), why[128] = "";
	int ret;

	memcpy(copy, text, len);
	ret = pshm_addr_read(copy, len, out, why, sizeof(why));
	assert_int_equal(!ret, !why[0]);
	free(copy);
	return ret;
}

static void addresses_are_checked_before_they_are_believed(void **state)
{
	struct weft_addr addr = an_address(), out, full = an_address();
	char text[PSHM_ADDR_LEN], later[PSHM_ADDR_LEN], why[8];
	size_t len = pshm_addr_write(&addr, text);

	assert_int_equal(len, strlen(text) + 1);
	assert_memory_equal(text, "fi_shm://", 9);
	assert_int_equal(addr_read(text, &out), 0);
	assert_memory_equal(&out, &addr, sizeof(addr));
	assert_int_equal(addr_read(text + 9, &out), 0);
	assert_memory_equal(&out, &addr, sizeof(addr));
	/* one that has a service too, and all that fits */
	full.family = ADDR_FAMILY_LOCAL;
	memset(full.ip, 'n', 15);
	memset(full.nonce, 0xff, sizeof(full.nonce));
	full.pid = ADDR_PID_MAX;
	full.fd = INT32_MAX;
	full.ns_hash = UINT32_MAX;
	assert_int_equal(pshm_addr_write(&full, later), 52);
	assert_int_equal(addr_read(later, &out), 0);
	assert_memory_equal(&out, &full, sizeof(full));

	strcpy(later, text);
	later[9] = 'Y'; /* of another version */
	assert_int_equal(addr_read(later, &out), -FI_EINVAL);
	later[9] = text[9] + 2; /* of the network */
	assert_int_equal(addr_read(later, &out), -FI_EINVAL);
	assert_int_equal(addr_read("", &out), -FI_EINVAL);
	assert_int_equal(addr_read("fi_shm://", &out), -FI_EINVAL);
	assert_int_equal(addr_read("fi_shm://1234:1000:0", &out), -FI_EINVAL);
	assert_int_equal(addr_read("fi_shm://1234:1000:", &out), 0);
	assert_int_equal(addr_read("fi_shm://1234:1000", &out), 0);
	strcpy(later, text);
	later[strlen(later) - 1] = '!'; /* nor is that a name */
	assert_int_equal(addr_read(later, &out), -FI_EINVAL);
	addr.pid = addr.fd = addr.ns_hash = 0;
	pshm_addr_write(&addr, later);
	assert_int_equal(addr_read(later, &out), -FI_EINVAL);
	assert_int_equal(pshm_bind_read(text, len - 1, &out, why, sizeof(why)), -FI_EINVAL);

	/* in words it is what it is */
	assert_int_equal(pshm_addr_str(text + 9, len - 10, later, sizeof(later)), len);
	assert_string_equal(later, text);
	assert_int_equal(pshm_addr_str(text, len - 1, later, 4), len);
	assert_string_equal(later, "fi_");
	assert_int_equal(pshm_addr_str("\x02", 0, later, sizeof(later)),
			 sizeof(PSHM_PREFIX "?"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_its_wire_and_itself_once),
		cmocka_unit_test(offers_what_the_engine_can_inside_the_node),
		cmocka_unit_test(destinations_are_its_own_addresses),
		cmocka_unit_test(refuses_with_a_reason),
		cmocka_unit_test(services_are_names_on_this_host),
		cmocka_unit_test(node_may_be_an_address),
		cmocka_unit_test(service_is_found_while_one_has_it),
		cmocka_unit_test(service_is_free_when_its_process_has_closed_it),
		cmocka_unit_test(addresses_are_checked_before_they_are_believed),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, setup, NULL);
}
