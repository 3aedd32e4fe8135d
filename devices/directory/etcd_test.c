/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of etcd.h: what a member has answered, and what one could.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "etcd.h"

#define HEADER \
	"\"header\":{\"cluster_id\":\"6288814692618756213\",\"revision\":\"3\",\"raft_term\":\"2\"}"
#define KV                                                                                        \
	"{\"key\":\"L3dlZnQvbGVuZGVycy9hYmM=\",\"create_revision\":\"2\",\"mod_revision\":\"2\"," \
	"\"version\":\"1\",\"value\":\"aGkK\",\"lease\":\"77\"}"
#define DELETED \
	"{\"type\":\"DELETE\",\"kv\":{\"key\":\"L3dlZnQvbGVuZGVycy9hYmM=\",\"mod_revision\":\"3\"}}"

static char why[64];

static void assert_asked(char *text, const char *expected)
{
	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

static void what_is_asked_is_as_the_gateway_wants_it(void **state)
{
	const struct etcd_range one = { .key = "k", .keys_only = true };
	const struct etcd_range all = { .key = "a/", .end = "a0", .revision = 7, .limit = 64 };

	assert_asked(etcd_ask_grant(6), "{\"TTL\":\"6\"}");
	assert_asked(etcd_ask_lease(585927611528524804u), "{\"ID\":\"585927611528524804\"}");
	assert_asked(etcd_ask_put("k", "hi", 7),
		     "{\"key\":\"aw==\",\"value\":\"aGk=\",\"lease\":\"7\"}");
	assert_asked(etcd_ask_range(&one),
		     "{\"key\":\"aw==\",\"revision\":\"0\",\"limit\":\"0\",\"keys_only\":true}");
	assert_asked(etcd_ask_range(&all),
		     "{\"key\":\"YS8=\",\"range_end\":\"YTA=\",\"revision\":"
		     "\"7\",\"limit\":\"64\",\"keys_only\":false}");
	assert_asked(etcd_ask_watch(&all), "{\"create_request\":{\"key\":\"YS8=\",\"range_end\":"
					   "\"YTA=\",\"start_revision\":\"7\"}}");
}

static int refused(long status, const char *text)
{
	memset(why, 0, sizeof(why));
	return etcd_refused(status, text, strlen(text), why, sizeof(why));
}

static void refusals_are_told_apart(void **state)
{
	assert_int_equal(refused(200, "anything"), 0);
	assert_int_equal(refused(503, "{\"error\":\"etcdserver: no leader\",\"message\":"
				      "\"etcdserver: no leader\",\"code\":14}"),
			 -EAGAIN);
	assert_string_equal(why, "etcdserver: no leader");
	assert_int_equal(refused(503,
				 "{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":"
				 "\"no\",\"http_status\":\"Service Unavailable\"}}"),
			 -EAGAIN);
	assert_int_equal(refused(404, "{\"error\":\"requested lease not found\",\"code\":5}"),
			 -ENOENT);
	assert_string_equal(why, "requested lease not found");
	assert_int_equal(refused(403, "{\"error\":\"permission denied\",\"code\":7}"), -EACCES);
	assert_int_equal(refused(404, "Not Found"), -ENOPROTOOPT);
	assert_string_equal(why, "HTTP status 404");
	assert_int_equal(refused(401, ""), -EACCES);
	assert_int_equal(refused(502, "<html>"), -EAGAIN);
	assert_int_equal(refused(400, "{\"error\":\"unexpected EOF\",\"code\":3}"), -EPROTO);
	assert_int_equal(refused(500, "{\"error\":7,\"code\":\"x\"}"), -EPROTO);
	assert_int_equal(refused(500, "{\"error\":\"\\u001b[2J\\u00e4\",\"code\":-1}"), -EPROTO);
	assert_string_equal(why, "?[2J??");
}

static void leases_are_granted_and_kept(void **state)
{
	static const char granted[] = "{" HEADER ",\"ID\":\"585927611528524804\",\"TTL\":\"6\"}";
	static const char kept[] = "{\"result\":{" HEADER ",\"ID\":\"77\",\"TTL\":\"6\"}}\n";
	static const char gone[] = "{\"result\":{" HEADER ",\"ID\":\"78\"}}\n";
	static const char *const bad[] = { "",
					   "{}",
					   "[]",
					   "{\"ID\":\"0\"}",
					   "{\"ID\":\"-1\"}",
					   "{\"ID\":1.5}",
					   "{\"ID\":\"99999999999999999999\"}" };
	uint64_t lease = 0, seconds = 7;
	size_t i;

	assert_int_equal(etcd_granted(granted, strlen(granted), &lease), 0);
	assert_int_equal(lease, 585927611528524804u);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(etcd_granted(bad[i], strlen(bad[i]), &lease), -EPROTO);
	assert_int_equal(etcd_kept(kept, strlen(kept), &seconds, why, sizeof(why)), 0);
	assert_int_equal(seconds, 6);
	assert_int_equal(etcd_kept(gone, strlen(gone), &seconds, why, sizeof(why)), 0);
	assert_int_equal(seconds, 0);
	assert_int_equal(etcd_kept("{}", 2, &seconds, why, sizeof(why)), -EPROTO);
	assert_int_equal(
		etcd_kept("{\"error\":{\"grpc_code\":14}}", 27, &seconds, why, sizeof(why)),
		-EPROTO);
	assert_int_equal(
		etcd_kept("{\"error\":{\"grpc_code\":14}}", 26, &seconds, why, sizeof(why)),
		-EAGAIN);
}

static void a_range_is_listed(void **state)
{
	static const char text[] = "{" HEADER ",\"kvs\":[" KV "],\"more\":true,\"count\":\"9\"}";
	static const char none[] = "{" HEADER "}";
	struct etcd_list list;

	assert_int_equal(etcd_listed(text, strlen(text), &list), 0);
	assert_int_equal(list.revision, 3);
	assert_true(list.more);
	assert_int_equal(list.cnt, 1);
	assert_string_equal(list.kvs[0].key, "/weft/lenders/abc");
	assert_string_equal(list.kvs[0].value, "hi\n");
	assert_int_equal(list.kvs[0].value_len, 3);
	assert_int_equal(list.kvs[0].lease, 77);
	etcd_list_fini(&list);
	assert_int_equal(etcd_listed(none, strlen(none), &list), 0);
	assert_int_equal(list.cnt, 0);
	assert_false(list.more);
	etcd_list_fini(&list);
	assert_int_equal(etcd_listed("{}", 2, &list), -EPROTO);
	assert_int_equal(etcd_listed("", 0, &list), -EPROTO);
}

/* A key with a zero byte, one that is no text, one that is too long, no object: and then one that is good. */
static void keys_that_can_not_be_ours_are_left_out(void **state)
{
	char *text = malloc(4096), *at = text;
	struct etcd_list list;

	at += sprintf(at, "{" HEADER
			  ",\"kvs\":[{\"key\":\"YQBi\"},{\"key\":\"*\"},{\"key\":7},{},7,"
			  "null,{\"key\":\"YWI=\",\"lease\":[]},{\"key\":\"");
	memset(at, 'Y', (ETCD_KEY_MAX / 3 + 1) * 4);
	at += (ETCD_KEY_MAX / 3 + 1) * 4;
	sprintf(at, "\"}," KV ",{\"key\":\"YWI=\",\"value\":\"!\"}]}");
	assert_int_equal(etcd_listed(text, strlen(text), &list), 0);
	assert_int_equal(list.cnt, 2);
	assert_string_equal(list.kvs[0].key, "/weft/lenders/abc");
	assert_string_equal(list.kvs[1].key, "ab");
	assert_null(list.kvs[1].value);
	etcd_list_fini(&list);
	free(text);
}

static int watched(const char *text, struct etcd_list *list)
{
	return etcd_watched(text, strlen(text), list, why, sizeof(why));
}

static void a_watch_begins_tells_and_ends(void **state)
{
	struct etcd_list list;

	assert_int_equal(watched("{\"result\":{" HEADER ",\"created\":true}}", &list), 0);
	assert_int_equal(list.cnt, 0);
	etcd_list_fini(&list);
	assert_int_equal(watched("{\"result\":{" HEADER ",\"events\":[{\"kv\":" KV "}," DELETED
				 "]}}",
				 &list),
			 0);
	assert_int_equal(list.cnt, 2);
	assert_false(list.kvs[0].deleted);
	assert_string_equal(list.kvs[0].value, "hi\n");
	assert_true(list.kvs[1].deleted);
	assert_null(list.kvs[1].value);
	etcd_list_fini(&list);
	assert_int_equal(watched("{\"result\":{" HEADER ",\"created\":true,\"canceled\":true,"
				 "\"compact_revision\":\"9\"}}",
				 &list),
			 -ESTALE);
	assert_int_equal(
		watched("{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":\"m\","
			"\"http_status\":\"Service Unavailable\"}}",
			&list),
		-EAGAIN);
	assert_int_equal(watched("{\"result\":7}", &list), -EPROTO);
	assert_int_equal(watched("", &list), -EPROTO);
}

/* A text with some bytes changed, or cut off, is refused or read; nothing is left allocated or read beyond its end. */
static void anything_else_is_refused_or_read(void **state)
{
	static const char good[] = "{\"result\":{" HEADER ",\"events\":[{\"kv\":" KV
				   "}," DELETED "]}}";
	unsigned seed = (unsigned)time(NULL), round, i;

	print_message("seed %u\n", seed);
	srand(seed);
	for (round = 0; round < 20000; round++) {
		size_t len = round % 2 ? sizeof(good) - 1 : (size_t)rand() % sizeof(good);
		char *text = malloc(len + 1);
		struct etcd_list list;
		uint64_t number;

		memcpy(text, good, len);
		for (i = 0; i < 1 + (unsigned)rand() % 3 && len; i++)
			text[(size_t)rand() % len] = (char)rand();
		if (!etcd_watched(text, len, &list, why, sizeof(why)))
			etcd_list_fini(&list);
		if (!etcd_listed(text, len, &list))
			etcd_list_fini(&list);
		etcd_kept(text, len, &number, why, sizeof(why));
		etcd_granted(text, len, &number);
		etcd_refused(500, text, len, why, sizeof(why));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_is_as_the_gateway_wants_it),
		cmocka_unit_test(refusals_are_told_apart),
		cmocka_unit_test(leases_are_granted_and_kept),
		cmocka_unit_test(a_range_is_listed),
		cmocka_unit_test(keys_that_can_not_be_ours_are_left_out),
		cmocka_unit_test(a_watch_begins_tells_and_ends),
		cmocka_unit_test(anything_else_is_refused_or_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
