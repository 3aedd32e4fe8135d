/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of entry.h: what a lender registers comes back, and what anyone else may have written does no harm.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "entry.h"

#define NODE 0x4a0e6a8b13c7d3f0u

static struct weft_device_info device(uint64_t id, const char *name, uint32_t state)
{
	struct weft_device_info info = {
		.id = id,
		.node = NODE,
		.model = "a model \"of\" some \\ kind",
		.serial = "X1",
		.provider = "verbs;ofi_rxm",
		.device_class = WEFT_CLASS_NVME,
		.state = state,
		.vendor = 0x1b36,
		.leases = 3,
		.blocks = 1ULL << 40,
		.block_size = 512,
		.queue_pairs = 64,
		.queue_pairs_free = 61,
	};

	snprintf(info.name, sizeof(info.name), "%s", name);
	return info;
}

static struct directory_lender lender(struct weft_device_info *devices, uint32_t cnt)
{
	struct directory_lender l = {
		.node = NODE,
		.host = "0b5b1e4c-7f5b-4b43-8a4e-0d1f8a1f7e55",
		.socket = "/run/user/1000/weft/gerät",
		.address = "[fe80::1]:4711",
		.provider = "verbs;ofi_rxm",
		.devices = devices,
		.device_cnt = cnt,
	};

	return l;
}

static void keys_name_lenders(void **state)
{
	char key[ENTRY_KEY_MAX];
	uint64_t node = 7;

	entry_key(NODE, key);
	assert_string_equal(key, "/weft/lenders/4a0e6a8b13c7d3f0");
	assert_int_equal(entry_node(key, &node), 0);
	assert_int_equal(node, NODE);
	assert_true(strcmp(ENTRY_PREFIX, key) < 0);
	assert_true(strcmp(key, ENTRY_PREFIX_END) < 0);
	assert_int_equal(entry_node("/weft/lenders/", &node), -EINVAL);
	assert_int_equal(entry_node("/weft/lenders/4A0E6A8B13C7D3F0", &node), -EINVAL);
	assert_int_equal(entry_node("/weft/lenders/4a0e6a8b13c7d3f00", &node), -EINVAL);
	assert_int_equal(entry_node("/weft/lenders/+a0e6a8b13c7d3f0", &node), -EINVAL);
	assert_int_equal(entry_node("/weft/lender/4a0e6a8b13c7d3f0", &node), -EINVAL);
	assert_int_equal(node, NODE);
}

static void what_is_registered_comes_back(void **state)
{
	struct weft_device_info devices[4] = {
		device(1, "nvme-4a0e6a8b-1", WEFT_DEVICE_FREE),
		device(2, "nvme-4a0e6a8b-2", WEFT_DEVICE_SHARED),
		device(3, "nvme-4a0e6a8b-3", WEFT_DEVICE_EXCLUSIVE),
		device(UINT64_MAX, "nvme-4a0e6a8b-4", WEFT_DEVICE_FAILED),
	};
	struct directory_lender from = lender(devices, 4), back;
	char *value;

	assert_int_equal(entry_encode(&from, &value), 0);
	assert_int_equal(entry_decode(value, strlen(value), NODE, &back), 0);
	assert_int_equal(back.node, NODE);
	assert_string_equal(back.host, from.host);
	assert_string_equal(back.socket, from.socket);
	assert_string_equal(back.address, from.address);
	assert_string_equal(back.provider, from.provider);
	assert_int_equal(back.device_cnt, 4);
	assert_memory_equal(back.devices, devices, sizeof(devices));
	entry_fini(&back);
	assert_int_equal(entry_decode(value, strlen(value), NODE + 1, &back), -EPROTO);
	free(value);
	from.device_cnt = 0;
	assert_int_equal(entry_encode(&from, &value), 0);
	assert_int_equal(entry_decode(value, strlen(value), NODE, &back), 0);
	assert_int_equal(back.device_cnt, 0);
	entry_fini(&back);
	free(value);
}

static void numbers_that_json_has_not_are_the_greatest_that_it_has(void **state)
{
	struct weft_device_info info = device(1, "n", WEFT_DEVICE_FREE);
	struct directory_lender from = lender(&info, 1), back;
	char *value;

	info.blocks = UINT64_MAX;
	assert_int_equal(entry_encode(&from, &value), 0);
	assert_int_equal(entry_decode(value, strlen(value), NODE, &back), 0);
	assert_int_equal(back.devices[0].blocks, INT64_MAX);
	entry_fini(&back);
	free(value);
}

static void a_text_that_is_no_utf8_is_not_registered(void **state)
{
	struct directory_lender from = lender(NULL, 0);
	char *value;

	memcpy(from.socket, "/\xff", 3);
	assert_int_equal(entry_encode(&from, &value), -EILSEQ);
}

/* The value of a lender with a device, where a piece is replaced by another one. */
static int decode_with(const char *piece, const char *other)
{
	struct weft_device_info info = device(5, "nvme-4a0e6a8b-X1", WEFT_DEVICE_FREE);
	struct directory_lender from = lender(&info, 1), back;
	char *value, *at, *changed;
	int err;

	assert_int_equal(entry_encode(&from, &value), 0);
	at = strstr(value, piece);
	assert_non_null(at);
	assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - value), value, other,
			     at + strlen(piece)) > 0);
	err = entry_decode(changed, strlen(changed), NODE, &back);
	if (!err) {
		err = (int)back.device_cnt;
		entry_fini(&back);
	}
	free(changed);
	free(value);
	return err;
}

static void what_a_lender_would_not_write_is_refused(void **state)
{
	static const char *const changes[][2] = {
		{ "\"version\":1", "\"version\":2" },
		{ "\"version\":1", "\"version\":\"1\"" },
		{ "\"node\":\"4a0e6a8b13c7d3f0\"", "\"node\":\"4a0e6a8b13c7d3f1\"" },
		{ "\"node\":\"4a0e6a8b13c7d3f0\"", "\"node\":5" },
		{ "\"host\":\"0b5b", "\"host\":\"much longer than any that there is0b5b" },
		{ "/run/user", "/run\\u001b[2Juser" },
		{ "/run/user", "/run\\u007fuser" },
		{ "/run/user", "run/user" },
		{ "[fe80::1]:4711", "/run/other" },
		{ "[fe80::1]:4711", "ho\xc3\xa4st:1" },
		{ "\"devices\":[", "\"devices\":7,\"d\":[" },
		{ "\"name\":\"nvme-4a0e6a8b-X1\"", "\"name\":\"\"" },
		{ "\"name\":\"nvme-", "\"name\":\"\\nnvme-" },
		{ "nvme-4a0e6a8b-X1",
		  "0123456789012345678901234567890123456789012345678901234567890123" },
		{ "\"id\":\"0000000000000005\"", "\"id\":\"0000000000000000\"" },
		{ "\"id\":\"0000000000000005\"", "\"id\":\"5\"" },
		{ "\"state\":\"free\"", "\"state\":\"other\"" },
		{ "\"state\":\"free\"", "\"state\":0" },
		{ "\"vendor\":6966", "\"vendor\":-1" },
		{ "\"vendor\":6966", "\"vendor\":4294967296" },
		{ "\"vendor\":6966", "\"vendor\":1.5" },
		{ "\"blocks\":1099511627776", "\"blocks\":99999999999999999999" },
		{ "\"blocks\":1099511627776", "\"blocks\":-2" },
		{ "\"queue_pairs_free\":61", "\"queue_pairs_free\":65" },
		{ "\"serial\":\"X1\"", "\"serial\":null" },
		{ "\"model\":", "\"modell\":" },
	};
	size_t i;

	assert_int_equal(decode_with("\"version\":1", "\"version\":1"), 1);
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (decode_with(changes[i][0], changes[i][1]) != -EPROTO)
			fail_msg("%s is taken", changes[i][1]);
}

static void devices_of_classes_that_are_not_known_are_left_out(void **state)
{
	assert_int_equal(decode_with("\"class\":\"nvme\"", "\"class\":\"gpu\""), 0);
	assert_int_equal(decode_with("\"class\":\"nvme\"", "\"class\":7"), 0);
	assert_int_equal(decode_with("\"devices\":[", "\"devices\":[7,{},null,"), 1);
	assert_int_equal(decode_with("\"version\":1", "\"version\":1,\"later\":{\"x\":[1]}"), 1);
}

static void too_many_devices_are_refused(void **state)
{
	struct weft_device_info *infos = calloc(DIRECTORY_DEVICES_MAX + 1, sizeof(*infos));
	struct directory_lender from = lender(infos, DIRECTORY_DEVICES_MAX), back;
	char *value;
	uint32_t i;

	for (i = 0; i <= DIRECTORY_DEVICES_MAX; i++)
		infos[i] = device(i + 1, "n", WEFT_DEVICE_FREE);
	assert_int_equal(entry_encode(&from, &value), 0);
	assert_int_equal(entry_decode(value, strlen(value), NODE, &back), 0);
	assert_int_equal(back.device_cnt, DIRECTORY_DEVICES_MAX);
	entry_fini(&back);
	free(value);
	from.device_cnt++;
	assert_int_equal(entry_encode(&from, &value), 0);
	assert_int_equal(entry_decode(value, strlen(value), NODE, &back), -EPROTO);
	free(value);
	free(infos);
}

static void deep_and_broken_values_are_refused(void **state)
{
	size_t len = 1 << 20;
	char *deep = malloc(len);
	struct directory_lender back;

	memset(deep, '[', len);
	assert_int_equal(entry_decode(deep, len, NODE, &back), -EPROTO);
	free(deep);
	assert_int_equal(entry_decode("", 0, NODE, &back), -EPROTO);
	assert_int_equal(entry_decode("{", 1, NODE, &back), -EPROTO);
	assert_int_equal(entry_decode("null", 4, NODE, &back), -EPROTO);
	assert_int_equal(entry_decode("\xff\xfe", 2, NODE, &back), -EPROTO);
}

/* A value with some bytes changed, or cut off: whatever is taken of it is a lender as there may be. */
static void anything_else_is_refused_or_good(void **state)
{
	struct weft_device_info infos[2] = { device(1, "nvme-1", WEFT_DEVICE_FREE),
					     device(2, "nvme-2", WEFT_DEVICE_SHARED) };
	struct directory_lender from = lender(infos, 2), back;
	unsigned seed = (unsigned)time(NULL), round, i;
	char *value, *text;
	size_t len;

	print_message("seed %u\n", seed);
	srand(seed);
	assert_int_equal(entry_encode(&from, &value), 0);
	for (round = 0; round < 20000; round++) {
		len = round % 8 ? strlen(value) : (size_t)rand() % strlen(value);
		text = malloc(len + 1);
		memcpy(text, value, len);
		for (i = 0; i < 1 + (unsigned)rand() % 3 && len; i++)
			text[(size_t)rand() % len] =
				(char)(rand() % 2 ? rand() : "\"{}[],:0e\\u"[rand() % 11]);
		if (!entry_decode(text, len, NODE, &back)) {
			assert_true(back.device_cnt <= 2);
			for (i = 0; i < back.device_cnt; i++) {
				assert_int_equal(back.devices[i].node, NODE);
				assert_non_null(
					memchr(back.devices[i].name, 0, WEFT_DEVICE_NAME_MAX));
				assert_true(back.devices[i].state <= WEFT_DEVICE_FAILED);
			}
			entry_fini(&back);
		}
		free(text);
	}
	free(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_name_lenders),
		cmocka_unit_test(what_is_registered_comes_back),
		cmocka_unit_test(numbers_that_json_has_not_are_the_greatest_that_it_has),
		cmocka_unit_test(a_text_that_is_no_utf8_is_not_registered),
		cmocka_unit_test(what_a_lender_would_not_write_is_refused),
		cmocka_unit_test(devices_of_classes_that_are_not_known_are_left_out),
		cmocka_unit_test(too_many_devices_are_refused),
		cmocka_unit_test(deep_and_broken_values_are_refused),
		cmocka_unit_test(anything_else_is_refused_or_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
