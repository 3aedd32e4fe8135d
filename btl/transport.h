/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of a transport, and who may touch what:
 *
 *	struct weft_btl       as @lock, @key_last, @mem_closes and @listeners say; the rest is not
 *			      changed after weft_btl_open()
 *	struct weft_btl_peer  not changed
 *	struct weft_btl_mem   not changed, but for @next, under the transport's lock
 *	struct weft_btl_ctx   its thread's alone
 *
 * Each context has a domain, an endpoint and a completion queue on each device (struct btl_lane),
 * so that no two share a lock of libfabric's. Peers reach the first context's, where all memory is
 * registered.
 */
#ifndef BTL_TRANSPORT_H
#define BTL_TRANSPORT_H

#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "device.h"
#include "handle.h"

/* Lists of registered memory, a power of two. */
#define BTL_MEM_BINS 256u

/* Ids of messages. */
#define BTL_LISTENERS 256u

/* struct btl_listener - what is called with the messages of an id; @fn: NULL: nothing */
struct btl_listener {
	void (*fn)(void *arg, const void *data, size_t len);
	void *arg;
};

/*
 * @mem_closes: how often memory has been closed; written with @lock held, by which it is ordered, and read without
 * struct weft_btl
 * @service: NULL: no device needs it
 * @lock:    protects @home_is_taken, the counts, @mems, @peers, @peer_room, @peer_last and
 *	     @mem_last; never held across a call of libfabric's
 * @mems:    by their ids
 * @home:    the first context, which is open as long as the transport
 * @home_is_taken: weft_btl_ctx_open() has given it to the program
 * @name:    owned
 * @peers:   owned array of @peer_room; NULL where none is open
 * @key_last: atomic
 * @listeners: by id; the home context's thread's
 */
struct weft_btl {
	struct btl_service *service;
	struct btl_device devices[WEFT_BTL_DEVICES_MAX];
	uint32_t device_cnt;
	uint64_t id;
	_Atomic uint64_t mem_closes;
	struct weft_btl_ctx *home;
	unsigned char *name;
	size_t name_len;
	pthread_mutex_t lock;
	bool home_is_taken;
	size_t ctx_cnt, mem_cnt;
	struct weft_btl_mem *mems[BTL_MEM_BINS];
	struct weft_btl_peer **peers;
	size_t peer_room, peer_cnt;
	uint64_t peer_last, mem_last, key_last;
	struct btl_listener listeners[BTL_LISTENERS];
};

/*
 * struct weft_btl_peer
 * @idx:    its place in the transport's array, where others follow it
 * @serial: counts from 1: no two peers of a transport have the same
 * @name:   refers to @bytes
 */
struct weft_btl_peer {
	struct weft_btl *btl;
	size_t idx;
	uint64_t serial;
	struct btl_name name;
	unsigned char bytes[];
};

/*
 * btl_name_device_fits - Returns whether a device of a peer's has an address that one of ours takes
 */
static inline bool btl_name_device_fits(const struct btl_device *device,
					const struct btl_name_device *theirs)
{
	return theirs->format == device->info->addr_format &&
	       btl_device_takes(device, theirs->addr, theirs->len);
}

/* btl_random - 64 random bits. Returns 0 or -FI_E* */
int btl_random(uint64_t *id);

/*
 * btl_needs_server - Returns whether a device of the transport has operations that peers are asked
 * for
 */
static inline bool btl_needs_server(const struct weft_btl *btl)
{
	for (uint32_t i = 0; i < btl->device_cnt; i++)
		if (btl_device_needs_server(&btl->devices[i]))
			return true;
	return false;
}

#endif
