/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: what a directory says. The first byte of an input is the kind of text, the rest the text: answers of etcd's
 * JSON gateway, values of lenders, base64, URLs of members.
 *
 * Checked: nothing crashes; what was understood is within its bounds, and is understood the same way when it is said again.
 */
#include <errno.h>
#include <string.h>

#include "base64.h"
#include "entry.h"
#include "etcd.h"
#include "fuzz.h"
#include "input.h"
#include "members.h"

#define WHY_MAX 160u

static void check_list(struct etcd_list *list)
{
	size_t i;

	for (i = 0; i < list->cnt; i++) {
		const struct etcd_kv *kv = &list->kvs[i];

		MUST(kv->key && strlen(kv->key) <= ETCD_KEY_MAX);
		MUST(!kv->value || !kv->value[kv->value_len]);
		MUST(!kv->deleted || !kv->value);
	}
	etcd_list_fini(list);
}

static void check_why(int err, const char *why)
{
	size_t i;

	MUST(err != -ENOENT || strlen(why) < WHY_MAX);
	for (i = 0; err && err != -EPROTO && err != -ESTALE && why[i]; i++)
		MUST(why[i] >= ' ' && why[i] <= '~');
}

/* A lender that was understood is the same when it is registered again. */
static void try_entry(const char *text, size_t len)
{
	const uint64_t node = 0x1122334455667788ULL;
	struct directory_lender lender, again;
	uint32_t i;
	char *value;

	if (entry_decode(text, len, node, &lender))
		return;
	MUST(lender.node == node && lender.device_cnt <= DIRECTORY_DEVICES_MAX);
	for (i = 0; i < lender.device_cnt; i++)
		MUST(memchr(lender.devices[i].name, 0, sizeof(lender.devices[i].name)));
	MUST(!entry_encode(&lender, &value));
	MUST(!entry_decode(value, strlen(value), node, &again));
	MUST(!strcmp(lender.host, again.host) && !strcmp(lender.socket, again.socket) &&
	     !strcmp(lender.address, again.address) && lender.device_cnt == again.device_cnt);
	free(value);
	entry_fini(&lender);
	entry_fini(&again);
}

static void try_base64(const char *text, size_t len)
{
	char bytes[4096], again[BASE64_ROOM(sizeof(bytes))];
	ssize_t n = base64_decode(text, len, bytes, len % sizeof(bytes));

	MUST(n <= (ssize_t)(len % sizeof(bytes)));
	if (n < 0)
		return;
	base64_encode(bytes, (size_t)n, again);
	MUST(base64_decode(again, strlen(again), bytes, sizeof(bytes)) == n);
}

static void try_members(const char *text)
{
	uint32_t order[MEMBERS_MAX], i;
	struct members m;
	char key[ENTRY_KEY_MAX];
	uint64_t node;

	if (!members_parse(&m, text, 7)) {
		members_order(&m, 1, order);
		for (i = 0; i < m.cnt; i++)
			MUST(order[i] < m.cnt && strlen(m.url[i]) < MEMBER_URL_MAX);
	}
	if (entry_node(text, &node))
		return;
	entry_key(node, key);
	MUST(!strcmp(key, text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char why[WHY_MAX] = "", *text;
	struct etcd_list list;
	uint64_t number;
	int err = 0;

	if (!len)
		return 0;
	text = malloc(len);
	MUST(text);
	memcpy(text, data + 1, len - 1);
	text[--len] = 0;
	switch (data[0] % 8) {
	case 0:
		if (!etcd_listed(text, len, &list))
			check_list(&list);
		break;
	case 1:
		err = etcd_watched(text, len, &list, why, sizeof(why));
		if (!err)
			check_list(&list);
		break;
	case 2:
		err = etcd_refused(200 + len % 400, text, len, why, sizeof(why));
		break;
	case 3:
		MUST(etcd_granted(text, len, &number) || number);
		break;
	case 4:
		err = etcd_kept(text, len, &number, why, sizeof(why));
		break;
	case 5:
		try_entry(text, len);
		break;
	case 6:
		try_base64(text, len);
		break;
	default:
		try_members(text);
	}
	check_why(err, why);
	free(text);
	return 0;
}
