/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of a transport, and who may touch what:
 *
 *	struct weft_btl       its lists under its lock; the rest is not changed after weft_btl_open()
 *	struct weft_btl_peer  not changed
 *	struct weft_btl_mem   not changed
 *	struct weft_btl_ctx   its thread's alone
 *
 * Each context has a domain, an endpoint and a completion queue on each device (struct btl_lane), so that no two
 * share a lock of libfabric's. Peers reach the first context's, where all memory is registered.
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

/*
 * struct weft_btl
 * @service: NULL: no device needs it
 * @lock:    protects the counts; never held across a call of libfabric's
 * @home:    the first context, which is open as long as the transport
 * @home_is_taken: weft_btl_ctx_open() has given it to the program
 * @name:    owned
 * @peers:   owned array of @peer_room; NULL where none is open
 * @key_last: atomic
 */
struct weft_btl {
	struct btl_service *service;
	struct btl_device devices[WEFT_BTL_DEVICES_MAX];
	uint32_t device_cnt;
	uint64_t id;
	struct weft_btl_ctx *home;
	unsigned char *name;
	size_t name_len;
	pthread_mutex_t lock;
	bool home_is_taken;
	size_t ctx_cnt, mem_cnt;
	struct weft_btl_peer **peers;
	size_t peer_room, peer_cnt;
	uint64_t peer_last, key_last;
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

#endif
