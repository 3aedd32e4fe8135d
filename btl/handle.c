/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writing and reading what travels between transports. A handle:
 *
 *	0 magic  4 checksum of all that follows  8 id  16 addr  24 len
 *	32 access (2)  34 devices (1)  35 zero (1)  36 offsets (2)  38 zero (2)  40 memory
 *	48 keys, 8 each
 *
 * A name: 0 magic  4 checksum  8 id  16 devices (2)  18 zero (6), and for each device
 *	0 format  4 bytes of the address (2)  6 bytes of the server's (2)  8 both addresses
 */
#include <assert.h>
#include <string.h>
#include <rdma/fabric.h>
#include "bytes.h"
#include "handle.h"

#define HANDLE_MAGIC 0x31544257u /* WBT1 */
#define NAME_MAGIC   0x314e4257u /* WBN1 */
#define HANDLE_HEAD  48u
#define NAME_HEAD    24u
#define DEVICE_HEAD  8u

static_assert(HANDLE_HEAD + 8 * WEFT_BTL_DEVICES_MAX <= WEFT_BTL_HANDLE_MAX,
	      "a handle has room");
static_assert(NAME_HEAD + WEFT_BTL_DEVICES_MAX * (DEVICE_HEAD + 2 * BTL_ADDR_MAX) <=
		      WEFT_BTL_NAME_MAX,
	      "a name has room");

/* 32 bits of FNV-1a. */
static uint32_t checksum(const unsigned char *at, size_t len)
{
	uint32_t sum = 2166136261u;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ at[i]) * 16777619u;
	return sum;
}

size_t btl_handle_write(const struct btl_handle *handle, unsigned char *out)
{
	size_t len = HANDLE_HEAD + 8 * handle->cnt;

	memset(out, 0, WEFT_BTL_HANDLE_MAX);
	btl_bytes_put(out, HANDLE_MAGIC, 4);
	btl_bytes_put(out + 8, handle->id, 8);
	btl_bytes_put(out + BTL_HANDLE_ADDR_AT, handle->addr, 8);
	btl_bytes_put(out + 24, handle->len, 8);
	btl_bytes_put(out + 32, handle->access, 2);
	btl_bytes_put(out + 34, handle->cnt, 1);
	btl_bytes_put(out + 36, handle->offset, 2);
	btl_bytes_put(out + BTL_HANDLE_MEM_AT, handle->mem, 8);
	for (uint32_t i = 0; i < handle->cnt; i++)
		btl_bytes_put(out + HANDLE_HEAD + 8 * i, handle->keys[i], 8);
	btl_bytes_put(out + 4, checksum(out + 8, len - 8), 4);
	return len;
}

size_t btl_handle_len(const unsigned char *in)
{
	uint64_t cnt = in[34];

	if (btl_bytes_get(in, 4) != HANDLE_MAGIC || !cnt || cnt > WEFT_BTL_DEVICES_MAX)
		return 0;
	return HANDLE_HEAD + 8 * cnt;
}

bool btl_handle_read(const unsigned char *in, struct btl_handle *handle)
{
	size_t len = btl_handle_len(in);

	if (!len || btl_bytes_get(in + 4, 4) != checksum(in + 8, len - 8))
		return false;
	*handle = (struct btl_handle){
		.id = btl_bytes_get(in + 8, 8),
		.addr = btl_bytes_get(in + BTL_HANDLE_ADDR_AT, 8),
		.len = btl_bytes_get(in + 24, 8),
		.access = btl_bytes_get(in + 32, 2),
		.cnt = in[34],
		.offset = (uint32_t)btl_bytes_get(in + 36, 2),
		.mem = btl_bytes_get(in + BTL_HANDLE_MEM_AT, 8),
	};
	for (uint32_t i = 0; i < handle->cnt; i++)
		handle->keys[i] = btl_bytes_get(in + HANDLE_HEAD + 8 * i, 8);
	return handle->len && handle->addr + (handle->len - 1) >= handle->addr;
}

size_t btl_name_len(const struct btl_name *name)
{
	size_t len = NAME_HEAD;

	for (uint32_t i = 0; i < name->cnt; i++)
		len += DEVICE_HEAD + name->devices[i].len + name->devices[i].server_len;
	return len;
}

void btl_name_write(const struct btl_name *name, unsigned char *out)
{
	unsigned char *at = out + NAME_HEAD;

	memset(out, 0, NAME_HEAD);
	btl_bytes_put(out, NAME_MAGIC, 4);
	btl_bytes_put(out + 8, name->id, 8);
	btl_bytes_put(out + 16, name->cnt, 2);
	for (uint32_t i = 0; i < name->cnt; i++) {
		const struct btl_name_device *device = &name->devices[i];

		btl_bytes_put(at, device->format, 4);
		btl_bytes_put(at + 4, device->len, 2);
		btl_bytes_put(at + 6, device->server_len, 2);
		at += DEVICE_HEAD;
		memcpy(at, device->addr, device->len);
		at += device->len;
		if (device->server_len)
			memcpy(at, device->server, device->server_len);
		at += device->server_len;
	}
	btl_bytes_put(out + 4, checksum(out + 8, (size_t)(at - out) - 8), 4);
}

bool btl_name_read(const unsigned char *in, size_t len, struct btl_name *name)
{
	size_t at = NAME_HEAD;

	if (len < NAME_HEAD || len > WEFT_BTL_NAME_MAX || btl_bytes_get(in, 4) != NAME_MAGIC)
		return false;
	name->id = btl_bytes_get(in + 8, 8);
	name->cnt = (uint32_t)btl_bytes_get(in + 16, 2);
	if (!name->cnt || name->cnt > WEFT_BTL_DEVICES_MAX)
		return false;
	for (uint32_t i = 0; i < name->cnt; i++) {
		struct btl_name_device *device = &name->devices[i];

		if (len - at < DEVICE_HEAD)
			return false;
		device->format = (uint32_t)btl_bytes_get(in + at, 4);
		device->len = (uint32_t)btl_bytes_get(in + at + 4, 2);
		device->server_len = (uint32_t)btl_bytes_get(in + at + 6, 2);
		at += DEVICE_HEAD;
		if (!device->len || device->len > BTL_ADDR_MAX ||
		    device->server_len > BTL_ADDR_MAX ||
		    len - at < device->len + device->server_len)
			return false;
		device->addr = in + at;
		device->server = in + at + device->len;
		at += device->len + device->server_len;
	}
	/* bytes may follow: a modex hands on more than was given to it */
	return btl_bytes_get(in + 4, 4) == checksum(in + 8, at - 8);
}
