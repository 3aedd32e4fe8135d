/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: an event queue that keeps what is written to it. Any thread.
 */
#ifndef WEFT_DEVICES_FAKE_EQ_H
#define WEFT_DEVICES_FAKE_EQ_H

#include <pthread.h>
#include <string.h>
#include <weft/device.h>

#define FAKE_EVENTS 64u

/* struct fake_eq - @eq is passed on; @lock is of the events */
struct fake_eq {
	struct fid_eq eq;
	struct fi_ops_eq ops;
	pthread_mutex_t lock;
	struct weft_event events[FAKE_EVENTS];
	uint32_t cnt;
};

static inline ssize_t fake_eq_write(struct fid_eq *fid, uint32_t event, const void *buf,
				    size_t len, uint64_t flags)
{
	struct fake_eq *eq = (struct fake_eq *)fid;

	pthread_mutex_lock(&eq->lock);
	if (event == WEFT_DEVICE_EVENT && len == sizeof(eq->events[0]) && eq->cnt < FAKE_EVENTS)
		memcpy(&eq->events[eq->cnt++], buf, len);
	pthread_mutex_unlock(&eq->lock);
	return (ssize_t)len;
}

static inline void fake_eq_init(struct fake_eq *eq)
{
	memset(eq, 0, sizeof(*eq));
	pthread_mutex_init(&eq->lock, NULL);
	eq->ops.size = sizeof(eq->ops);
	eq->ops.write = fake_eq_write;
	eq->eq.fid.fclass = FI_CLASS_EQ;
	eq->eq.ops = &eq->ops;
}

/* fake_eq_count - events of a kind about a lease so far */
static inline uint32_t fake_eq_count(struct fake_eq *eq, uint32_t kind, uint32_t lease)
{
	uint32_t i, cnt = 0;

	pthread_mutex_lock(&eq->lock);
	for (i = 0; i < eq->cnt; i++)
		cnt += eq->events[i].kind == kind && eq->events[i].lease == lease;
	pthread_mutex_unlock(&eq->lock);
	return cnt;
}

#endif
