/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs of other hosts' devices that someone else uses, such as a kernel; weft/nvme.h has the contract. */
#include "bridged.h"
#include "nvme.h"
#include "wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof(struct remote_place) <= WEFT_NVME_PLACE_MAX, "a place has room");

int weft_nvme_session_close(struct weft_device *dev, uint32_t id)
{
	struct lease_message msg = { .kind = LEASE_UNQUEUES, .index = id };
	int err;

	device_name(dev, &msg);
	/* Also where the lease has ended: the lender knows whether the device is at commands of it still. */
	err = lender_ask_end(dev->lender, &msg);
	/* Who does not answer, or knows neither the device nor the lease, ends nothing more. */
	if ((err == -ETIMEDOUT || err == -ENODEV || err == -EACCES) && device_ended(dev, true))
		err = -ESTALE;
	if (err == -ESTALE)
		device_end(dev, err);
	return err;
}

static void name_host(struct weft_device *dev, struct weft_nvme_session *session)
{
	char name[sizeof(dev->lender->path)];
	const char *service;

	lender_path(dev->lender, name);
	if (door_split(name, session->host, sizeof(session->host), &service))
		session->host[0] = '\0';
}

int weft_nvme_session_open(struct weft_device *dev, uint32_t depth,
			   struct weft_nvme_session *session)
{
	uint8_t place[WEFT_NVME_PLACE_MAX] = { 0 };
	struct request request = {
		.msg = { .kind = LEASE_QUEUES, .count = depth },
		.data = place,
		.data_room = sizeof(place),
	};
	int err;

	if (session->size < sizeof(*session) || !depth || depth > REMOTE_DEPTH_MAX)
		return -EINVAL;
	if (!dev->lender->remote)
		return -EOPNOTSUPP;
	err = device_ask(dev, &request);
	if (err)
		return err;
	if (request.msg.data_len != sizeof(struct remote_place) ||
	    bridge_is_place(place, request.msg.data_len)) {
		weft_nvme_session_close(dev, request.msg.index);
		return -EOPNOTSUPP;
	}
	session->id = request.msg.index;
	session->place_len = request.msg.data_len;
	memcpy(session->place, place, sizeof(place));
	name_host(dev, session);
	return 0;
}
