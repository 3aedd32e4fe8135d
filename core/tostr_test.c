/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_tostr, fi_strerror, fi_version: the texts that programs print and parse. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_log.h>

#define assert_text(value, type, expected) \
	assert_string_equal(fi_tostr(&(__typeof__(value)){ value }, type), expected)

static void flags_are_listed_by_name(void **state)
{
	uint64_t caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, none = 0, unnamed = 1ULL << 63;

	assert_text(caps, FI_TYPE_CAPS, "FI_MSG, FI_TAGGED, FI_DIRECTED_RECV");
	assert_text(none, FI_TYPE_CAPS, "");
	assert_text(unnamed, FI_TYPE_CAPS, "");
	assert_text((uint64_t)(FI_COMPLETION | FI_INJECT), FI_TYPE_OP_FLAGS,
		    "FI_COMPLETION, FI_INJECT");
	assert_text((uint64_t)(FI_ORDER_SAS | FI_ORDER_RMA_WAW), FI_TYPE_MSG_ORDER,
		    "FI_ORDER_SAS, FI_ORDER_RMA_WAW");
	assert_text((uint64_t)(FI_CONTEXT | FI_CONTEXT2), FI_TYPE_MODE,
		    "FI_CONTEXT, FI_CONTEXT2");
	assert_text((int)(FI_MR_LOCAL | FI_MR_PROV_KEY | 1), FI_TYPE_MR_MODE,
		    "FI_MR_BASIC, FI_MR_LOCAL, FI_MR_PROV_KEY");
	assert_text((uint64_t)(FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA), FI_TYPE_CQ_EVENT_FLAGS,
		    "FI_RECV, FI_TAGGED, FI_REMOTE_CQ_DATA");
}

static void values_have_one_name_or_are_unknown(void **state)
{
	static const struct {
		enum fi_type type;
		int value;
		const char *name;
	} known[] = {
		{ FI_TYPE_EP_TYPE, FI_EP_RDM, "FI_EP_RDM" },
		{ FI_TYPE_ADDR_FORMAT, FI_SOCKADDR_IN6, "FI_SOCKADDR_IN6" },
		{ FI_TYPE_THREADING, FI_THREAD_DOMAIN, "FI_THREAD_DOMAIN" },
		{ FI_TYPE_PROGRESS, FI_PROGRESS_MANUAL, "FI_PROGRESS_MANUAL" },
		{ FI_TYPE_PROTOCOL, FI_PROTO_SHM, "FI_PROTO_SHM" },
		{ FI_TYPE_AV_TYPE, FI_AV_TABLE, "FI_AV_TABLE" },
		{ FI_TYPE_ATOMIC_TYPE, FI_UINT64, "FI_UINT64" },
		{ FI_TYPE_ATOMIC_OP, FI_CSWAP, "FI_CSWAP" },
		{ FI_TYPE_EQ_EVENT, FI_CONNREQ, "FI_CONNREQ" },
		{ FI_TYPE_OP_TYPE, FI_OP_WRITE, "FI_OP_WRITE" },
		{ FI_TYPE_COLLECTIVE_OP, FI_ALLREDUCE, "FI_ALLREDUCE" },
		{ FI_TYPE_HMEM_IFACE, FI_HMEM_SYSTEM, "FI_HMEM_SYSTEM" },
		{ FI_TYPE_CQ_FORMAT, FI_CQ_FORMAT_TAGGED, "FI_CQ_FORMAT_TAGGED" },
		{ FI_TYPE_CQ_WAIT_COND, FI_CQ_COND_THRESHOLD, "FI_CQ_COND_THRESHOLD" },
		{ FI_TYPE_WAIT_OBJ, FI_WAIT_FD, "FI_WAIT_FD" },
		{ FI_TYPE_LOG_LEVEL, FI_LOG_INFO, "info" },
		{ FI_TYPE_LOG_SUBSYS, FI_LOG_EP_CTRL, "ep_ctrl" },
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_text(known[i].value, known[i].type, known[i].name);
		assert_text((int)12345, known[i].type, "Unknown");
		assert_text((int)-1, known[i].type, "Unknown");
	}
}

static void a_type_that_is_none_says_so(void **state)
{
	assert_text((int)0, (enum fi_type)4711, "Unknown type");
}

static void every_type_prints_something(void **state)
{
	char zeros[512] = { 0 }, buf[8192];
	int type;

	for (type = FI_TYPE_INFO; type <= FI_TYPE_WAIT_OBJ; type++)
		assert_ptr_equal(fi_tostr_r(buf, sizeof(buf), zeros, (enum fi_type)type), buf);
}

static void nothing_to_print_or_to_print_to_is_null(void **state)
{
	uint64_t caps = FI_MSG;
	char buf[8] = "x";

	assert_null(fi_tostr(NULL, FI_TYPE_CAPS));
	assert_null(fi_tostr_r(NULL, 8, &caps, FI_TYPE_CAPS));
	assert_null(fi_tostr_r(buf, 0, &caps, FI_TYPE_CAPS));
	assert_string_equal(buf, "x");
}

static void a_short_buffer_cuts_the_text_and_no_more(void **state)
{
	struct fi_info *info = fi_allocinfo();
	char whole[8192], part[8192];
	size_t len;

	info->caps = FI_MSG | FI_TAGGED;
	fi_tostr_r(whole, sizeof(whole), info, FI_TYPE_INFO);
	for (len = 1; len < strlen(whole); len += 7) {
		memset(part, 0x7f, sizeof(part));
		fi_tostr_r(part, len, info, FI_TYPE_INFO);
		assert_true(strlen(part) < len);
		assert_int_equal(part[len], 0x7f);
	}
	fi_freeinfo(info);
}

static void every_type_stays_within_its_buffer(void **state)
{
	char zeros[512] = { 0 }, whole[8192], part[8192];
	size_t len, type;

	for (type = FI_TYPE_INFO; type <= FI_TYPE_WAIT_OBJ; type++) {
		fi_tostr_r(whole, sizeof(whole), zeros, (enum fi_type)type);
		for (len = 1; len <= strlen(whole) + 1; len++) {
			memset(part, 0x7f, sizeof(part));
			fi_tostr_r(part, len, zeros, (enum fi_type)type);
			assert_true(strlen(part) < len);
			assert_int_equal(part[len], 0x7f);
		}
		/* The last one had just enough room. */
		assert_string_equal(part, whole);
	}
}

static void an_empty_info_prints_all_its_fields(void **state)
{
	static const char expected[] =
		"fi_info:\n    caps: [  ]\n    mode: [  ]\n    addr_format: FI_FORMAT_UNSPEC\n"
		"    src_addrlen: 0\n    dest_addrlen: 0\n    src_addr: (null)\n"
		"    dest_addr: (null)\n    handle: (nil)\n    fi_tx_attr:\n        caps: [  ]\n"
		"        mode: [  ]\n        op_flags: [  ]\n        msg_order: [  ]\n"
		"        inject_size: 0\n        size: 0\n        iov_limit: 0\n"
		"        rma_iov_limit: 0\n        tclass: 0x0\n    fi_rx_attr:\n"
		"        caps: [  ]\n        mode: [  ]\n        op_flags: [  ]\n"
		"        msg_order: [  ]\n        size: 0\n        iov_limit: 0\n"
		"    fi_ep_attr:\n        type: FI_EP_UNSPEC\n        protocol: FI_PROTO_UNSPEC\n"
		"        protocol_version: 0\n        max_msg_size: 0\n        msg_prefix_size: 0\n"
		"        max_order_raw_size: 0\n        max_order_war_size: 0\n"
		"        max_order_waw_size: 0\n        mem_tag_format: 0x0000000000000000\n"
		"        tx_ctx_cnt: 0\n        rx_ctx_cnt: 0\n        auth_key_size: 0\n"
		"        xpu_ctx: (nil)\n    fi_domain_attr:\n        domain: (nil)\n"
		"        name: (null)\n        threading: FI_THREAD_UNSPEC\n"
		"        progress: FI_PROGRESS_UNSPEC\n        resource_mgmt: FI_RM_UNSPEC\n"
		"        av_type: FI_AV_UNSPEC\n        mr_mode: [  ]\n        mr_key_size: 0\n"
		"        cq_data_size: 0\n        cq_cnt: 0\n        ep_cnt: 0\n"
		"        tx_ctx_cnt: 0\n        rx_ctx_cnt: 0\n        max_ep_tx_ctx: 0\n"
		"        max_ep_rx_ctx: 0\n        max_ep_stx_ctx: 0\n        max_ep_srx_ctx: 0\n"
		"        cntr_cnt: 0\n        mr_iov_limit: 0\n        caps: [  ]\n"
		"        mode: [  ]\n        auth_key_size: 0\n        max_err_data: 0\n"
		"        mr_cnt: 0\n        tclass: 0x0\n        max_ep_auth_key: 0\n"
		"        max_group_id: 0\n        max_cntr_value: 0\n"
		"        max_err_cntr_value: 0\n        max_xpu_ctx_cnt: 0\n    fi_fabric_attr:\n"
		"        name: (null)\n        prov_name: (null)\n        prov_version: 0.0\n"
		"        api_version: 0.0\n    nic: (nil)\n";
	struct fi_info *info = fi_allocinfo();

	assert_string_equal(fi_tostr(info, FI_TYPE_INFO), expected);
	fi_freeinfo(info);
}

static void attributes_alone_are_not_indented_and_may_be_missing(void **state)
{
	struct fi_fabric_attr attr = { .name = "f",
				       .prov_name = "p",
				       .prov_version = FI_VERSION(2, 3) };
	struct fi_info *info = fi_allocinfo();

	assert_string_equal(fi_tostr(&attr, FI_TYPE_FABRIC_ATTR),
			    "fi_fabric_attr:\n    name: f\n    prov_name: p\n"
			    "    prov_version: 2.3\n    api_version: 0.0\n");
	free(info->tx_attr);
	info->tx_attr = NULL;
	assert_non_null(strstr(fi_tostr(info, FI_TYPE_INFO), "    fi_tx_attr: (null)\n"));
	fi_freeinfo(info);
}

/* The line of src_addr for an address. */
static void assert_addr(uint32_t format, const void *addr, size_t len, const char *expected)
{
	struct fi_info *info = fi_allocinfo();
	char line[256];

	info->addr_format = format;
	info->src_addr = malloc(len);
	memcpy(info->src_addr, addr, len);
	info->src_addrlen = len;
	snprintf(line, sizeof(line), "    src_addr: %s\n", expected);
	assert_non_null(strstr(fi_tostr(info, FI_TYPE_INFO), line));
	fi_freeinfo(info);
}

static void addresses_are_printed_in_their_format(void **state)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(7471) };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6, .sin6_port = htons(80) };

	inet_pton(AF_INET, "192.0.2.1", &sin.sin_addr);
	inet_pton(AF_INET6, "fe80::1", &sin6.sin6_addr);
	assert_addr(FI_SOCKADDR_IN, &sin, sizeof(sin), "fi_sockaddr_in://192.0.2.1:7471");
	assert_addr(FI_SOCKADDR_IP, &sin, sizeof(sin), "fi_sockaddr_in://192.0.2.1:7471");
	assert_addr(FI_SOCKADDR, &sin6, sizeof(sin6), "fi_sockaddr_in6://[fe80::1]:80");
	assert_addr(FI_SOCKADDR_IN6, &sin6, sizeof(sin6), "fi_sockaddr_in6://[fe80::1]:80");
	assert_addr(FI_ADDR_STR, "fi_shm://12", 12, "fi_shm://12");
	assert_addr(FI_ADDR_STR, "unended", 3, "une");
	/* Too short for what it claims to be, or of a format of its own. */
	assert_addr(FI_SOCKADDR_IN, "\x02\x00\x1d", 3, "0x02001d");
	assert_addr(FI_FORMAT_UNSPEC, "\x01\xff", 2, "0x01ff");
}

static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	size_t used = strlen(buf);

	snprintf(buf + used, len - used, "    nic:\n        itself\n");
	return 0;
}

static void an_object_prints_itself_if_it_can(void **state)
{
	struct fi_ops ops = { .size = sizeof(ops), .tostr = nic_tostr };
	struct fid_nic nic = { .fid = { .ops = &ops } };
	struct fi_info info = { .nic = &nic };

	assert_non_null(strstr(fi_tostr(&info, FI_TYPE_INFO),
			       "fi_fabric_attr: (null)\n    nic:\n        itself\n"));
}

static void *print_caps(void *arg)
{
	uint64_t caps = FI_RMA;

	return fi_tostr(&caps, FI_TYPE_CAPS);
}

static void each_thread_has_a_text_of_its_own(void **state)
{
	uint64_t caps = FI_MSG;
	const char *mine = fi_tostr(&caps, FI_TYPE_CAPS);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, print_caps, NULL), 0);
	pthread_join(thread, NULL);
	assert_string_equal(mine, "FI_MSG");
}

static void the_version_text_begins_with_the_number(void **state)
{
	char number[32];

	snprintf(number, sizeof(number), "%d.%d.%d ", FI_MAJOR_VERSION, FI_MINOR_VERSION,
		 FI_REVISION_VERSION);
	assert_memory_equal(fi_tostr("1", FI_TYPE_VERSION), number, strlen(number));
	assert_int_equal(fi_version(), FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION));
}

static void every_error_has_a_text_with_either_sign(void **state)
{
	const char *unnamed = "Error without a code of its own";
	int err;

	assert_string_equal(fi_strerror(0), strerror(0));
	assert_string_equal(fi_strerror(ENODATA), "No data available");
	assert_string_equal(fi_strerror(-FI_ENODATA), "No data available");
	assert_string_equal(fi_strerror(FI_ETRUNC),
			    "The message is longer than the receive buffer");
	assert_string_equal(fi_strerror(-FI_EOTHER), unnamed);
	for (err = FI_EOTHER + 1; err < FI_ERRNO_MAX; err++)
		assert_string_not_equal(fi_strerror(err), unnamed);
	assert_string_equal(fi_strerror(FI_ERRNO_MAX), unnamed);
	assert_string_equal(fi_strerror(INT32_MAX), unnamed);
	assert_string_equal(fi_strerror(INT32_MIN), unnamed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_are_listed_by_name),
		cmocka_unit_test(values_have_one_name_or_are_unknown),
		cmocka_unit_test(a_type_that_is_none_says_so),
		cmocka_unit_test(every_type_prints_something),
		cmocka_unit_test(nothing_to_print_or_to_print_to_is_null),
		cmocka_unit_test(a_short_buffer_cuts_the_text_and_no_more),
		cmocka_unit_test(every_type_stays_within_its_buffer),
		cmocka_unit_test(an_empty_info_prints_all_its_fields),
		cmocka_unit_test(attributes_alone_are_not_indented_and_may_be_missing),
		cmocka_unit_test(addresses_are_printed_in_their_format),
		cmocka_unit_test(an_object_prints_itself_if_it_can),
		cmocka_unit_test(each_thread_has_a_text_of_its_own),
		cmocka_unit_test(the_version_text_begins_with_the_number),
		cmocka_unit_test(every_error_has_a_text_with_either_sign),
	};

	return cmocka_run_group_tests_name("tostr", tests, NULL, NULL);
}
