/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lender as the directory has it; entry.h has the contract.
 */
#define _GNU_SOURCE
#include "entry.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1

static const char *const states[] = {
	[WEFT_DEVICE_FREE] = "free",
	[WEFT_DEVICE_SHARED] = "shared",
	[WEFT_DEVICE_EXCLUSIVE] = "exclusive",
	[WEFT_DEVICE_FAILED] = "failed",
};

#define STATES (sizeof(states) / sizeof(states[0]))

void entry_key(uint64_t node, char key[ENTRY_KEY_MAX])
{
	snprintf(key, ENTRY_KEY_MAX, ENTRY_PREFIX "%016" PRIx64, node);
}

/* Exactly 16 digits, none of them upper case. */
static int read_id(const char *text, uint64_t *id)
{
	if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return -EINVAL;
	*id = strtoull(text, NULL, 16);
	return 0;
}

int entry_node(const char *key, uint64_t *node)
{
	size_t len = strlen(ENTRY_PREFIX);

	return strncmp(key, ENTRY_PREFIX, len) ? -EINVAL : read_id(key + len, node);
}

/* JSON has numbers of 63 bits. */
static json_int_t limited(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (json_int_t)value;
}

static json_t *encode_device(const struct weft_device_info *info)
{
	char id[17];

	snprintf(id, sizeof(id), "%016" PRIx64, info->id);
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "id",
			 id, "name", info->name, "class", "nvme", "state",
			 states[info->state < STATES ? info->state : WEFT_DEVICE_FAILED],
			 "vendor", (json_int_t)info->vendor, "model", info->model, "serial",
			 info->serial, "blocks", limited(info->blocks), "block_size",
			 (json_int_t)info->block_size, "leases", (json_int_t)info->leases,
			 "queue_pairs", (json_int_t)info->queue_pairs, "queue_pairs_free",
			 (json_int_t)info->queue_pairs_free);
}

int entry_encode(const struct directory_lender *lender, char **value)
{
	json_t *devices = json_array(), *root;
	char node[17], *text = NULL;
	uint32_t i;
	int err = devices ? 0 : -ENOMEM;

	for (i = 0; !err && i < lender->device_cnt; i++)
		if (json_array_append_new(devices, encode_device(&lender->devices[i])))
			err = -EILSEQ;
	snprintf(node, sizeof(node), "%016" PRIx64, lender->node);
	/* Takes the array, also when it fails. */
	root = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:o}", "version", VERSION, "node",
			 node, "host", lender->host, "socket", lender->socket, "address",
			 lender->address, "provider", lender->provider, "devices", devices);
	if (!root && !err)
		err = -EILSEQ;
	if (!err) {
		text = json_dumps(root, JSON_COMPACT);
		err = text ? 0 : -ENOMEM;
	}
	json_decref(root);
	if (!err)
		*value = text;
	return err;
}

/* A text without control characters, which has room at @to. */
static bool get_text(const json_t *object, const char *name, char *to, size_t room)
{
	const json_t *member = json_object_get(object, name);
	const char *text = json_string_value(member);
	size_t len = json_string_length(member), i;

	if (!text || len >= room)
		return false;
	for (i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	memcpy(to, text, len + 1);
	return true;
}

/* As get_text(), ASCII alone: what tools print in columns. */
static bool get_name(const json_t *object, const char *name, char *to, size_t room)
{
	size_t i;

	if (!get_text(object, name, to, room))
		return false;
	for (i = 0; to[i]; i++)
		if ((unsigned char)to[i] > 0x7e)
			return false;
	return true;
}

/* A lender of an earlier version does not say. */
static bool get_provider(const json_t *object, char *to, size_t room)
{
	*to = 0;
	return !json_object_get(object, "provider") || get_name(object, "provider", to, room);
}

/* A socket has a path, an address has none: which is which is seen by that. */
static bool get_places(const json_t *object, struct directory_lender *lender)
{
	return get_text(object, "socket", lender->socket, sizeof(lender->socket)) &&
	       (!*lender->socket || *lender->socket == '/') &&
	       get_name(object, "address", lender->address, sizeof(lender->address)) &&
	       !strchr(lender->address, '/') &&
	       get_provider(object, lender->provider, sizeof(lender->provider));
}

static bool get_u64(const json_t *object, const char *name, uint64_t *value)
{
	const json_t *member = json_object_get(object, name);

	if (!json_is_integer(member) || json_integer_value(member) < 0)
		return false;
	*value = (uint64_t)json_integer_value(member);
	return true;
}

static bool get_u32(const json_t *object, const char *name, uint32_t *value)
{
	uint64_t wide;

	if (!get_u64(object, name, &wide) || wide > UINT32_MAX)
		return false;
	*value = (uint32_t)wide;
	return true;
}

static bool get_state(const json_t *object, uint32_t *state)
{
	const char *text = json_string_value(json_object_get(object, "state"));

	for (*state = 0; text && *state < STATES; ++*state)
		if (!strcmp(text, states[*state]))
			return true;
	return false;
}

/* A class that is not known is of a later version: such a device is nothing for this one. */
static bool is_known(const json_t *object)
{
	const char *text = json_string_value(json_object_get(object, "class"));

	return text && !strcmp(text, "nvme");
}

static bool decode_device(const json_t *object, const struct directory_lender *lender,
			  struct weft_device_info *info)
{
	const char *id = json_string_value(json_object_get(object, "id"));

	*info = (struct weft_device_info){ .node = lender->node,
					   .device_class = WEFT_CLASS_NVME };
	strcpy(info->provider, lender->provider);
	return !read_id(id, &info->id) && info->id &&
	       get_name(object, "name", info->name, sizeof(info->name)) && *info->name &&
	       get_name(object, "model", info->model, sizeof(info->model)) &&
	       get_name(object, "serial", info->serial, sizeof(info->serial)) &&
	       get_state(object, &info->state) && get_u32(object, "vendor", &info->vendor) &&
	       get_u64(object, "blocks", &info->blocks) &&
	       get_u32(object, "block_size", &info->block_size) &&
	       get_u32(object, "leases", &info->leases) &&
	       get_u32(object, "queue_pairs", &info->queue_pairs) &&
	       get_u32(object, "queue_pairs_free", &info->queue_pairs_free) &&
	       info->queue_pairs_free <= info->queue_pairs;
}

static int decode_devices(const json_t *array, struct directory_lender *lender)
{
	size_t cnt = json_array_size(array), i;

	if (!json_is_array(array) || cnt > DIRECTORY_DEVICES_MAX)
		return -EPROTO;
	lender->devices = calloc(cnt + 1, sizeof(*lender->devices));
	if (!lender->devices)
		return -ENOMEM;
	for (i = 0; i < cnt; i++) {
		const json_t *object = json_array_get(array, i);

		if (!is_known(object))
			continue;
		if (!decode_device(object, lender, &lender->devices[lender->device_cnt]))
			return -EPROTO;
		lender->device_cnt++;
	}
	return 0;
}

int entry_decode(const char *value, size_t len, uint64_t node, struct directory_lender *out)
{
	json_t *root = json_loadb(value, len, 0, NULL);
	struct directory_lender lender = { .node = node };
	uint64_t version, said;
	int err = -EPROTO;

	if (get_u64(root, "version", &version) && version == VERSION &&
	    !read_id(json_string_value(json_object_get(root, "node")), &said) && said == node &&
	    get_text(root, "host", lender.host, sizeof(lender.host)) &&
	    get_places(root, &lender))
		err = decode_devices(json_object_get(root, "devices"), &lender);
	json_decref(root);
	if (err)
		free(lender.devices);
	else
		*out = lender;
	return err;
}

void entry_fini(struct directory_lender *lender)
{
	free(lender->devices);
	lender->devices = NULL;
	lender->device_cnt = 0;
}
