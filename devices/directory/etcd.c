/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is asked of etcd and what it answers; etcd.h has the contract.
 */
#define _GNU_SOURCE
#include "etcd.h"
#include "base64.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of gRPC, which the gateway repeats. */
enum {
	CODE_DEADLINE = 4,
	CODE_NOT_FOUND = 5,
	CODE_PERMISSION = 7,
	CODE_UNIMPLEMENTED = 12,
	CODE_UNAVAILABLE = 14,
	CODE_UNAUTHENTICATED = 16,
};

static char *encoded(const char *bytes)
{
	size_t len = strlen(bytes);
	char *text = malloc(BASE64_ROOM(len));

	if (text)
		base64_encode(bytes, len, text);
	return text;
}

char *etcd_ask_grant(uint32_t seconds)
{
	char *text;

	return asprintf(&text, "{\"TTL\":\"%" PRIu32 "\"}", seconds) < 0 ? NULL : text;
}

char *etcd_ask_lease(uint64_t lease)
{
	char *text;

	return asprintf(&text, "{\"ID\":\"%" PRIu64 "\"}", lease) < 0 ? NULL : text;
}

char *etcd_ask_put(const char *key, const char *value, uint64_t lease)
{
	char *key64 = encoded(key), *value64 = encoded(value), *text = NULL;

	if (key64 && value64 &&
	    asprintf(&text, "{\"key\":\"%s\",\"value\":\"%s\",\"lease\":\"%" PRIu64 "\"}",
		     key64, value64, lease) < 0)
		text = NULL;
	free(key64);
	free(value64);
	return text;
}

/* The keys of a range, as members of an object. */
static char *range_members(const struct etcd_range *range)
{
	char *key = encoded(range->key), *end = range->end ? encoded(range->end) : NULL;
	char *text = NULL;
	int n = -1;

	if (key && range->end && end)
		n = asprintf(&text, "\"key\":\"%s\",\"range_end\":\"%s\"", key, end);
	else if (key && !range->end)
		n = asprintf(&text, "\"key\":\"%s\"", key);
	free(key);
	free(end);
	return n < 0 ? NULL : text;
}

char *etcd_ask_range(const struct etcd_range *range)
{
	char *members = range_members(range), *text;
	int n = -1;

	if (members)
		n = asprintf(&text,
			     "{%s,\"revision\":\"%" PRIu64 "\",\"limit\":\"%" PRIu32
			     "\",\"keys_only\":%s}",
			     members, range->revision, range->limit,
			     range->keys_only ? "true" : "false");
	free(members);
	return n < 0 ? NULL : text;
}

char *etcd_ask_watch(const struct etcd_range *range)
{
	char *members = range_members(range), *text;
	int n = -1;

	if (members)
		n = asprintf(&text,
			     "{\"create_request\":{%s,\"start_revision\":\"%" PRIu64 "\"}}",
			     members, range->revision);
	free(members);
	return n < 0 ? NULL : text;
}

/* A member of an object that is a number of 64 bits, as text or number; 0 where it is left out. False: it is none. */
static bool get_number(const json_t *object, const char *name, uint64_t *value)
{
	const json_t *member = json_object_get(object, name);
	const char *text = json_string_value(member);
	size_t len;

	*value = 0;
	if (!member)
		return true;
	if (json_is_integer(member) && json_integer_value(member) >= 0) {
		*value = (uint64_t)json_integer_value(member);
		return true;
	}
	len = text ? strspn(text, "0123456789") : 0;
	if (!len || text[len] || len > 19)
		return false;
	*value = strtoull(text, NULL, 10);
	return true;
}

static int code_error(uint64_t code)
{
	switch (code) {
	case CODE_NOT_FOUND:
		return -ENOENT;
	case CODE_PERMISSION:
	case CODE_UNAUTHENTICATED:
		return -EACCES;
	case CODE_UNAVAILABLE:
	case CODE_DEADLINE:
		return -EAGAIN;
	case CODE_UNIMPLEMENTED:
		return -ENOPROTOOPT;
	default:
		return -EPROTO;
	}
}

/* For a terminal: what others have written may be anything. */
static void printable(char *to, size_t room, const char *from)
{
	size_t i;

	for (i = 0; from[i] && i < room - 1; i++)
		to[i] = isascii(from[i]) && isprint(from[i]) ? from[i] : '?';
	to[i] = 0;
}

/* The error of an answer, or 0: it has none. A stream has it in an object of its own. */
static int find_error(const json_t *root, char *why, size_t room)
{
	const json_t *error = json_object_get(root, "error");
	const json_t *from = json_is_object(error) ? error : root;
	const char *text = json_string_value(json_object_get(from, "message"));
	uint64_t code;

	if (!error)
		return 0;
	if (!get_number(from, json_is_object(error) ? "grpc_code" : "code", &code))
		code = 0;
	if (!text)
		text = json_string_value(error);
	printable(why, room, text ? text : "an error without a text");
	return code_error(code);
}

int etcd_refused(long status, const char *text, size_t len, char *why, size_t room)
{
	json_t *root;
	int err;

	if (status == 200)
		return 0;
	root = json_loadb(text, len, 0, NULL);
	err = find_error(root, why, room);
	json_decref(root);
	if (err)
		return err;
	snprintf(why, room, "HTTP status %ld", status);
	if (status == 401 || status == 403)
		return -EACCES;
	if (status == 404 || status == 405 || status == 501)
		return -ENOPROTOOPT;
	return status >= 500 ? -EAGAIN : -EPROTO;
}

int etcd_granted(const char *text, size_t len, uint64_t *lease)
{
	json_t *root = json_loadb(text, len, 0, NULL);
	uint64_t id;
	bool good = get_number(root, "ID", &id) && id;

	json_decref(root);
	if (good)
		*lease = id;
	return good ? 0 : -EPROTO;
}

int etcd_kept(const char *text, size_t len, uint64_t *seconds, char *why, size_t room)
{
	json_t *root = json_loadb(text, len, 0, NULL);
	const json_t *result = json_object_get(root, "result");
	int err = find_error(root, why, room);
	uint64_t ttl = 0;

	if (!err && (!json_is_object(result) || !get_number(result, "TTL", &ttl)))
		err = -EPROTO;
	json_decref(root);
	if (!err)
		*seconds = ttl;
	return err;
}

/* Bytes in base64, with a zero byte behind them; returned owned, NULL: they are none, or there is no memory. */
static char *get_bytes(const json_t *object, const char *name, size_t *len)
{
	const json_t *member = json_object_get(object, name);
	const char *text = json_string_value(member);
	size_t text_len = json_string_length(member);
	char *bytes = text ? malloc(text_len / 4 * 3 + 1) : NULL;
	ssize_t n = bytes ? base64_decode(text, text_len, bytes, text_len / 4 * 3) : -1;

	if (n < 0) {
		free(bytes);
		return NULL;
	}
	bytes[n] = 0;
	*len = (size_t)n;
	return bytes;
}

/* Take a key, if it can be one of ours. */
static void take_kv(struct etcd_list *list, const json_t *object, bool deleted)
{
	struct etcd_kv *kv = &list->kvs[list->cnt];
	size_t len;

	*kv = (struct etcd_kv){ .deleted = deleted };
	kv->key = get_bytes(object, "key", &len);
	if (!kv->key)
		return;
	if (len > ETCD_KEY_MAX || strlen(kv->key) != len ||
	    !get_number(object, "lease", &kv->lease)) {
		free(kv->key);
		return;
	}
	if (!deleted)
		kv->value = get_bytes(object, "value", &kv->value_len);
	list->cnt++;
}

/* Keys of an array, whose elements are keys, or events that have them. */
static int take_kvs(struct etcd_list *list, const json_t *array, bool events)
{
	size_t cnt = json_array_size(array), i;

	list->kvs = calloc(cnt + 1, sizeof(*list->kvs));
	if (!list->kvs)
		return -ENOMEM;
	for (i = 0; i < cnt; i++) {
		const json_t *element = json_array_get(array, i);
		const char *type = json_string_value(json_object_get(element, "type"));

		if (events)
			take_kv(list, json_object_get(element, "kv"),
				type && !strcmp(type, "DELETE"));
		else
			take_kv(list, element, false);
	}
	return 0;
}

int etcd_listed(const char *text, size_t len, struct etcd_list *list)
{
	json_t *root = json_loadb(text, len, 0, NULL);
	struct etcd_list found = { 0 };
	int err = -EPROTO;

	if (get_number(json_object_get(root, "header"), "revision", &found.revision) &&
	    found.revision) {
		found.more = json_is_true(json_object_get(root, "more"));
		err = take_kvs(&found, json_object_get(root, "kvs"), false);
	}
	json_decref(root);
	if (!err)
		*list = found;
	return err;
}

int etcd_watched(const char *text, size_t len, struct etcd_list *list, char *why, size_t room)
{
	json_t *root = json_loadb(text, len, 0, NULL);
	const json_t *result = json_object_get(root, "result");
	struct etcd_list found = { 0 };
	int err = find_error(root, why, room);

	if (!err && !json_is_object(result))
		err = -EPROTO;
	if (!err && json_is_true(json_object_get(result, "canceled")))
		err = -ESTALE;
	if (!err && !get_number(json_object_get(result, "header"), "revision", &found.revision))
		err = -EPROTO;
	if (!err)
		err = take_kvs(&found, json_object_get(result, "events"), true);
	json_decref(root);
	if (!err)
		*list = found;
	return err;
}

void etcd_list_fini(struct etcd_list *list)
{
	size_t i;

	for (i = 0; i < list->cnt; i++) {
		free(list->kvs[i].key);
		free(list->kvs[i].value);
	}
	free(list->kvs);
	*list = (struct etcd_list){ 0 };
}
