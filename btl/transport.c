/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening and closing a transport. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "client.h"
#include "service.h"

/*
 * The bytes of this library's attr that a caller has, who may have been built with an older or a
 * newer one.
 */
static int attr_read(const struct weft_btl_attr *in, struct weft_btl_attr *attr)
{
	*attr = (struct weft_btl_attr){ .size = sizeof(*attr) };
	if (in && in->size < offsetof(struct weft_btl_attr, provider))
		return -FI_EINVAL;
	if (in)
		memcpy(attr, in, in->size < sizeof(*attr) ? in->size : sizeof(*attr));
	if (attr->device_cnt > WEFT_BTL_DEVICES_MAX ||
	    attr->flags & ~(uint64_t)WEFT_BTL_ONE_THREAD)
		return -FI_EINVAL;
	return 0;
}

int btl_random(uint64_t *id)
{
	ssize_t n;

	do
		n = getrandom(id, sizeof(*id), 0);
	while (n < 0 && errno == EINTR);
	return n == sizeof(*id) ? 0 : -FI_EIO;
}

/* The name, from the addresses of the home context's endpoints. */
static int make_name(struct weft_btl *btl)
{
	unsigned char addrs[WEFT_BTL_DEVICES_MAX][BTL_ADDR_MAX];
	unsigned char servers[WEFT_BTL_DEVICES_MAX][BTL_ADDR_MAX];
	struct btl_name name = { .id = btl->id, .cnt = btl->device_cnt };

	for (uint32_t i = 0; i < btl->device_cnt; i++) {
		size_t len = BTL_ADDR_MAX, server_len = BTL_ADDR_MAX;
		int ret = fi_getname(&btl->home->lanes[i].ep->fid, addrs[i], &len);

		if (!ret)
			ret = btl_service_name(btl, i, servers[i], &server_len);
		if (ret)
			return ret;
		btl->devices[i].addr_len = len;
		name.devices[i] = (struct btl_name_device){
			.format = btl->devices[i].info->addr_format,
			.len = (uint32_t)len,
			.addr = addrs[i],
			.server_len = (uint32_t)server_len,
			.server = servers[i],
		};
	}
	btl->name_len = btl_name_len(&name);
	btl->name = malloc(btl->name_len);
	if (!btl->name)
		return -FI_ENOMEM;
	btl_name_write(&name, btl->name);
	return 0;
}

static int open_home(struct weft_btl *btl)
{
	int ret = btl_ctx_create(btl, &btl->home);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < btl->device_cnt; i++)
		btl_device_probe(&btl->devices[i], btl->home->lanes[i].domain);
	for (uint32_t i = 0; i < btl->device_cnt; i++)
		if (btl_device_needs_server(&btl->devices[i]) && !btl->devices[i].has_messages)
			ret = -FI_ENODATA;
	if (!ret)
		ret = btl_client_open(btl->home);
	if (!ret)
		ret = btl_service_open(btl);
	if (!ret)
		ret = make_name(btl);
	if (!ret)
		ret = btl_service_start(btl);
	if (ret) {
		btl_service_close(btl);
		free(btl->name);
		btl_ctx_destroy(btl->home);
	}
	return ret;
}

int weft_btl_open(const struct weft_btl_attr *in, struct weft_btl **out)
{
	struct weft_btl_attr attr;
	struct weft_btl *btl;
	int ret;

	ret = out ? attr_read(in, &attr) : -FI_EINVAL;
	if (ret)
		return ret;
	btl = calloc(1, sizeof(*btl));
	if (!btl)
		return -FI_ENOMEM;
	pthread_mutex_init(&btl->lock, NULL);
	ret = btl_random(&btl->id);
	if (ret)
		goto err_free;
	ret = btl_devices_open(&attr, btl->devices, attr.device_cnt ? attr.device_cnt : 1);
	if (ret < 0)
		goto err_free;
	btl->device_cnt = (uint32_t)ret;
	ret = open_home(btl);
	if (ret)
		goto err_devices;
	*out = btl;
	return 0;

err_devices:
	btl_devices_close(btl->devices, btl->device_cnt);
err_free:
	pthread_mutex_destroy(&btl->lock);
	free(btl);
	return ret;
}

int weft_btl_close(struct weft_btl *btl)
{
	bool busy;

	if (!btl)
		return -FI_EINVAL;
	pthread_mutex_lock(&btl->lock);
	busy = btl->ctx_cnt || btl->peer_cnt || btl->mem_cnt;
	pthread_mutex_unlock(&btl->lock);
	if (busy)
		return -FI_EBUSY;
	btl_service_close(btl);
	btl_ctx_destroy(btl->home);
	btl_devices_close(btl->devices, btl->device_cnt);
	pthread_mutex_destroy(&btl->lock);
	free(btl->peers);
	free(btl->name);
	free(btl);
	return 0;
}

int weft_btl_name(struct weft_btl *btl, void *name, size_t *len)
{
	size_t room;

	if (!btl || !len)
		return -FI_EINVAL;
	room = *len;
	*len = btl->name_len;
	if (!name || room < btl->name_len)
		return -FI_ETOOSMALL;
	memcpy(name, btl->name, btl->name_len);
	return 0;
}

const char *weft_btl_provider(const struct weft_btl *btl)
{
	return btl ? btl->devices[0].info->fabric_attr->prov_name : NULL;
}
