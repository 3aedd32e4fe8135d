/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Knowing other transports. Any thread. */
#include <stdlib.h>
#include <string.h>
#include "transport.h"

/* Whether a device of @btl can reach one of the peer's, by what their addresses look like. */
static bool reaches(const struct weft_btl *btl, const struct btl_name *name)
{
	for (uint32_t i = 0; i < btl->device_cnt && i < name->cnt; i++)
		if (btl_name_device_fits(&btl->devices[i], &name->devices[i]))
			return true;
	return false;
}

static int place(struct weft_btl *btl, struct weft_btl_peer *peer)
{
	size_t idx = 0, room = btl->peer_room ? 2 * btl->peer_room : 8;
	struct weft_btl_peer **more;

	while (btl->peer_cnt < btl->peer_room && btl->peers[idx])
		idx++;
	if (btl->peer_cnt == btl->peer_room) {
		more = realloc(btl->peers, room * sizeof(struct weft_btl_peer *));
		if (!more)
			return -FI_ENOMEM;
		idx = btl->peer_room;
		memset(more + idx, 0, (room - idx) * sizeof(struct weft_btl_peer *));
		btl->peers = more;
		btl->peer_room = room;
	}
	btl->peers[idx] = peer;
	btl->peer_cnt++;
	peer->idx = idx;
	peer->serial = ++btl->peer_last;
	return 0;
}

int weft_btl_peer_open(struct weft_btl *btl, const void *name, size_t len,
		       struct weft_btl_peer **out)
{
	struct weft_btl_peer *peer;
	int ret;

	if (!btl || !name || !out || len > WEFT_BTL_NAME_MAX)
		return -FI_EINVAL;
	peer = malloc(sizeof(*peer) + len);
	if (!peer)
		return -FI_ENOMEM;
	memcpy(peer->bytes, name, len);
	if (!btl_name_read(peer->bytes, len, &peer->name)) {
		free(peer);
		return -FI_EINVAL;
	}
	if (!reaches(btl, &peer->name)) {
		free(peer);
		return -FI_EADDRNOTAVAIL;
	}
	peer->btl = btl;
	pthread_mutex_lock(&btl->lock);
	ret = place(btl, peer);
	pthread_mutex_unlock(&btl->lock);
	if (ret) {
		free(peer);
		return ret;
	}
	*out = peer;
	return 0;
}

void weft_btl_peer_close(struct weft_btl_peer *peer)
{
	struct weft_btl *btl;

	if (!peer)
		return;
	btl = peer->btl;
	pthread_mutex_lock(&btl->lock);
	btl->peers[peer->idx] = NULL;
	btl->peer_cnt--;
	pthread_mutex_unlock(&btl->lock);
	free(peer);
}
