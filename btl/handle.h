/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The bytes that travel between transports: names of transports and handles of registered memory.
 * Little-endian; what arrives is not trusted. Pure functions.
 *
 * A handle has its transport's id and a checksum: one that was changed, or is another transport's,
 * is refused by the initiator. Against someone who forges both the provider's keys protect, as
 * without this library.
 */
#ifndef BTL_HANDLE_H
#define BTL_HANDLE_H

#include <stdbool.h>
#include <string.h>
#include <weft/btl.h>

/* Where the bytes of a handle have its address and its memory; handle.c has the whole layout. */
#define BTL_HANDLE_ADDR_AT 16u
#define BTL_HANDLE_MEM_AT  40u

/*
 * struct btl_handle - registered memory of a transport
 * @id:     of the transport
 * @addr:   of its first byte, in the owner
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE
 * @cnt:    devices; @keys: the provider's key on each
 * @offset: bit i: device i counts addresses from the first byte of the region
 * @mem:    what the owner knows it by, where it is asked by messages
 */
struct btl_handle {
	uint64_t id;
	uint64_t addr;
	uint64_t len;
	uint64_t access;
	uint32_t cnt;
	uint32_t offset;
	uint64_t mem;
	uint64_t keys[WEFT_BTL_DEVICES_MAX];
};

/* btl_handle_covers - Returns whether @len bytes at @addr lie within the memory */
static inline bool btl_handle_covers(const struct btl_handle *handle, uint64_t addr,
				     uint64_t len)
{
	return addr >= handle->addr && addr - handle->addr <= handle->len &&
	       len <= handle->len - (addr - handle->addr);
}

/*
 * btl_handle_hash - 32 bits that spread the handles of different memory over a table
 * @in: WEFT_BTL_HANDLE_MAX bytes, which need not be a handle
 */
static inline uint32_t btl_handle_hash(const unsigned char *in)
{
	uint64_t addr, mem;

	/* as this processor has them: the hash stays in the process */
	memcpy(&addr, in + BTL_HANDLE_ADDR_AT, sizeof(addr));
	memcpy(&mem, in + BTL_HANDLE_MEM_AT, sizeof(mem));
	return (uint32_t)(((addr >> 12) + mem) * 0x9e3779b97f4a7c15u >> 32);
}

/*
 * btl_handle_write - @out has WEFT_BTL_HANDLE_MAX bytes
 * Returns how many have to travel; those behind are zero.
 */
size_t btl_handle_write(const struct btl_handle *handle, unsigned char *out);

/* btl_handle_len - bytes of the handle that begins at @in, if it is one; 0: it is none */
size_t btl_handle_len(const unsigned char *in);

/* btl_handle_read - Returns whether @in, of WEFT_BTL_HANDLE_MAX bytes, is a handle */
bool btl_handle_read(const unsigned char *in, struct btl_handle *handle);

/* Bytes of the longest address of a device. */
#define BTL_ADDR_MAX 240u

/*
 * struct btl_name - how a transport is reached
 * @devices: for each device the format of its addresses (FI_ADDR_STR, ...), an address, and that of
 *	    who serves requests by messages, of @server_len 0 if the device needs none; borrowed
 *	    from the name
 */
struct btl_name {
	uint64_t id;
	uint32_t cnt;
	struct btl_name_device {
		uint32_t format;
		uint32_t len;
		const unsigned char *addr;
		uint32_t server_len;
		const unsigned char *server;
	} devices[WEFT_BTL_DEVICES_MAX];
};

/* btl_name_len - bytes that btl_name_write() writes */
size_t btl_name_len(const struct btl_name *name);

/* btl_name_write - @out has btl_name_len() bytes */
void btl_name_write(const struct btl_name *name, unsigned char *out);

/* btl_name_read - Returns whether the @len bytes at @in are a name */
bool btl_name_read(const unsigned char *in, size_t len, struct btl_name *name);

#endif
