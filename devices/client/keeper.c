/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread of a connection to a lender: it renews leases, hears of events over a connection of its own, and connects
 * again when the lender has come back, where it shows the leases that go on.
 */
#define _GNU_SOURCE
#include "lenders.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define AGAIN_MS 100

/* Between two looks at a lease that nobody renews, when little of it is left. */
#define KEEP_MS_MIN 20u

static void tell(struct weft_lender *lender, uint32_t kind, uint64_t device, uint32_t lease)
{
	struct weft_event event = {
		.kind = kind, .lease = lease, .device = device, .node = lender->node
	};

	if (lender->listed)
		listed_hear(lender->listed, &event);
	else if (lender->eq)
		fi_eq_write(lender->eq, WEFT_DEVICE_EVENT, &event, sizeof(event), 0);
}

/* When the first of the leases must have ended: the thread waits for no answer past that, for it tells of the end. */
static uint64_t first_end_locked(struct weft_lender *lender)
{
	struct weft_device *dev;
	uint64_t first = 0, over;

	for (dev = lender->devices; dev; dev = dev->next) {
		over = atomic_load(&dev->over_ms) + 1;
		if (!device_ended(dev, false) && (!first || over < first))
			first = over;
	}
	return first;
}

static uint64_t first_end(struct weft_lender *lender)
{
	uint64_t first;

	pthread_mutex_lock(&lender->devices_lock);
	first = first_end_locked(lender);
	pthread_mutex_unlock(&lender->devices_lock);
	return first;
}

/* As lender_ask_over(); keeper_stop() ends it. */
static int ask_over(struct weft_lender *lender, int fd, struct request *request)
{
	int err = -EPIPE;

	pthread_mutex_lock(&lender->path_lock);
	lender->keeper_fd = fd;
	pthread_mutex_unlock(&lender->path_lock);
	if (!atomic_load(&lender->stop))
		err = lender_ask_over(lender, fd, request);
	pthread_mutex_lock(&lender->path_lock);
	lender->keeper_fd = -1;
	pthread_mutex_unlock(&lender->path_lock);
	return err;
}

static int watch(struct weft_lender *lender)
{
	struct request request = { .msg = { .kind = LEASE_WATCH },
				   .until_ms = first_end(lender) };
	int fd = lender_connect(lender), err;

	if (fd < 0)
		return fd;
	err = ask_over(lender, fd, &request);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static void hear(struct weft_lender *lender, const struct lease_message *msg)
{
	struct weft_device *dev;

	if (msg->index != WEFT_EVENT_LEASE_ENDED) {
		tell(lender, msg->index, msg->device, msg->lease);
		return;
	}
	pthread_mutex_lock(&lender->devices_lock);
	for (dev = lender->devices; dev; dev = dev->next)
		if (dev->info.id == msg->device && dev->lease == msg->lease)
			device_end(dev, -ESTALE);
	pthread_mutex_unlock(&lender->devices_lock);
}

/*
 * Tell once of each lease that has ended, whoever has found that out: the lender has said so, or its time has passed and
 * there is no lender. What was borrowed then waits for no interrupt any more.
 */
static void tell_ended(struct weft_lender *lender)
{
	struct weft_device *dev;

	pthread_mutex_lock(&lender->devices_lock);
	for (dev = lender->devices; dev; dev = dev->next) {
		if (dev->told || !device_ended(dev, true))
			continue;
		dev->told = true;
		tell(lender, WEFT_EVENT_LEASE_ENDED, dev->info.id, dev->lease);
		device_wake(dev);
	}
	pthread_mutex_unlock(&lender->devices_lock);
}

/* Take an event. False: the lender is gone. */
static bool take_event(struct weft_lender *lender, int fd)
{
	struct lease_message msg;
	struct iovec iov = { &msg, sizeof(msg) };
	int fds[PACKET_FDS_MAX];
	uint32_t cnt;
	ssize_t n = packet_recv(fd, &iov, 1, fds, &cnt, 0);

	if (n <= 0)
		return n == -ETIMEDOUT;
	packet_close_fds(fds, cnt);
	if (n != sizeof(msg) || msg.kind != LEASE_EVENT)
		return false;
	hear(lender, &msg);
	return true;
}

/* Show the leases that go on over a new connection. */
static int attach_all(struct weft_lender *lender, int fd)
{
	struct weft_device *dev;
	int err = 0;

	pthread_mutex_lock(&lender->devices_lock);
	for (dev = lender->devices; dev && !err; dev = dev->next) {
		struct weft_device_info info;
		struct request request = {
			.msg = { .kind = LEASE_ATTACH,
				 .device = dev->info.id,
				 .lease = dev->lease,
				 .generation = dev->generation,
				 .token = dev->token },
			.data = &info,
			.data_room = sizeof(info),
			.until_ms = first_end_locked(lender),
		};

		if (device_ended(dev, false))
			continue;
		err = ask_over(lender, fd, &request);
		if (err == -ESTALE)
			device_end(dev, err);
		/* Another answer is about this lease alone. */
		if (err == -ESTALE || err == -ENODEV || err == -EACCES)
			err = 0;
	}
	pthread_mutex_unlock(&lender->devices_lock);
	return err;
}

/*
 * Have the lender, which is back, know this process.
 * @asked: a connection over which it was asked that, and has not answered yet; -1: none. In and out
 *
 * A lender that is slow carries out what it was asked, however late, and to it the end of a connection that shows leases
 * is the end of these leases: so that one is kept, and asked again. A lender elsewhere does not see connections end.
 */
static bool connect_again(struct weft_lender *lender, int *asked)
{
	int fd = *asked >= 0 ? *asked : lender_connect(lender), err;

	*asked = -1;
	if (fd < 0)
		return false;
	lender_lock(lender);
	err = attach_all(lender, fd);
	if (!err) {
		if (lender->fd >= 0)
			close(lender->fd);
		lender->fd = fd;
	}
	lender_unlock(lender);
	if (err == -ETIMEDOUT && !lender->remote)
		*asked = fd;
	else if (err)
		close(fd);
	return !err;
}

/* Whether requests find no lender, though events may come. */
static bool is_lost(struct weft_lender *lender)
{
	bool lost;

	/* Who has it wakes the keeper afterwards if it is lost. */
	pthread_mutex_lock(&lender->lock);
	lost = !lender->held && lender->fd < 0;
	pthread_mutex_unlock(&lender->lock);
	return lost;
}

static void lose(struct weft_lender *lender)
{
	lender_lock(lender);
	if (lender->fd >= 0)
		close(lender->fd);
	lender->fd = -1;
	lender_unlock(lender);
	tell(lender, WEFT_EVENT_LENDER_LOST, 0, 0);
}

/*
 * A lease that is to be renewed now; its @renew_ms is the next time. NULL: none, and @ms is how long until one is, or
 * has to have ended.
 */
static struct weft_device *next_renewal(struct weft_lender *lender, int *ms)
{
	uint64_t now = client_now_ms(), next = UINT64_MAX;
	struct weft_device *dev;

	for (dev = lender->devices; dev; dev = dev->next) {
		uint64_t over = atomic_load(&dev->over_ms) + 1;

		if (device_ended(dev, true))
			continue;
		if (dev->renew_ms <= now) {
			dev->renew_ms = now + dev->ms / 3 + KEEP_MS_MIN;
			return dev;
		}
		next = dev->renew_ms < next ? dev->renew_ms : next;
		next = over < next ? over : next;
	}
	*ms = next == UINT64_MAX     ? -1
	      : next < now	     ? 0
	      : next - now > INT_MAX ? INT_MAX
				     : (int)(next - now);
	return NULL;
}

/* Renew what is to be renewed; returns how long until the next one. */
static int renew_all(struct weft_lender *lender)
{
	struct weft_device *dev;
	int ms = -1;

	pthread_mutex_lock(&lender->devices_lock);
	while ((dev = next_renewal(lender, &ms))) {
		uint64_t until = first_end_locked(lender);

		atomic_fetch_add(&dev->refs, 1);
		pthread_mutex_unlock(&lender->devices_lock);
		/* One that turns out to have ended is told of. */
		device_keep(dev, until);
		device_unref(dev);
		/* The next one may be waited for as long. */
		tell_ended(lender);
		pthread_mutex_lock(&lender->devices_lock);
	}
	pthread_mutex_unlock(&lender->devices_lock);
	return ms;
}

static void *keep(void *arg)
{
	struct weft_lender *lender = arg;
	int fd = watch(lender), asked = -1;
	uint64_t cnt;

	while (!atomic_load(&lender->stop)) {
		int ms = renew_all(lender);
		struct pollfd p[2] = { { .fd = lender->wake, .events = POLLIN },
				       { .fd = fd, .events = POLLIN } };

		tell_ended(lender);
		if (fd < 0 && (ms < 0 || ms > AGAIN_MS))
			ms = AGAIN_MS;
		if (poll(p, 2, ms) < 0 && errno != EINTR)
			break;
		if (p[0].revents && read(lender->wake, &cnt, sizeof(cnt)) < 0)
			break;
		if (fd < 0 && connect_again(lender, &asked)) {
			fd = watch(lender);
			if (fd >= 0)
				tell(lender, WEFT_EVENT_LENDER_BACK, 0, 0);
		} else if (fd >= 0 && ((p[1].revents && !take_event(lender, fd)) ||
				       (p[0].revents && is_lost(lender)))) {
			close(fd);
			fd = -1;
			lose(lender);
		}
	}
	if (fd >= 0)
		close(fd);
	if (asked >= 0)
		close(asked);
	return NULL;
}

int keeper_start(struct weft_lender *lender)
{
	sigset_t all, old;
	int err;

	lender->wake = eventfd(0, EFD_CLOEXEC);
	if (lender->wake < 0)
		return -errno;
	/* Signals are the program's, on its threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = -pthread_create(&lender->keeper, NULL, keep, lender);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		close(lender->wake);
	return err;
}

void keeper_wake(struct weft_lender *lender)
{
	uint64_t one = 1;

	if (write(lender->wake, &one, sizeof(one)) < 0)
		return; /* it has been woken already */
}

void keeper_stop(struct weft_lender *lender)
{
	atomic_store(&lender->stop, true);
	keeper_wake(lender);
	pthread_mutex_lock(&lender->path_lock);
	if (lender->keeper_fd >= 0)
		shutdown(lender->keeper_fd, SHUT_RDWR);
	pthread_mutex_unlock(&lender->path_lock);
	pthread_join(lender->keeper, NULL);
	close(lender->wake);
}
