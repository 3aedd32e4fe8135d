/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection to a lender; client.h and weft/device.h have the contracts.
 */
#define _GNU_SOURCE
#include "door.h"
#include "lenders.h"
#include "place.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* No status is below it: system calls have none either. */
#define ERRNO_MAX 4095

uint64_t client_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t until_of(const struct request *request)
{
	uint64_t until = client_now_ms() + LENDER_ANSWER_MS;

	return request->until_ms && request->until_ms < until ? request->until_ms : until;
}

static int left_ms(uint64_t until)
{
	uint64_t now = client_now_ms();

	return now < until ? (int)(until - now) : 0;
}

/*
 * Take the answer to the request of @seq. Answers to earlier ones, which nobody waits for any more, are dropped; what
 * has come beside them is closed. They come for no longer than the answer may take.
 */
static int take_answer(int fd, struct request *request, uint16_t kind, uint32_t seq)
{
	uint64_t until = until_of(request);
	struct iovec iov[2] = { { &request->msg, sizeof(request->msg) },
				{ request->data, request->data_room } };
	uint32_t cnt;
	ssize_t n;

	do {
		n = packet_recv(fd, iov, 2, request->got, &cnt, left_ms(until));
		if (n == -EMFILE && request->msg.seq != seq)
			continue;
		if (n <= 0)
			return n ? (int)n : -EPIPE;
		if (n >= (ssize_t)sizeof(request->msg) &&
		    request->msg.data_len == n - sizeof(request->msg) &&
		    request->msg.fd_cnt == cnt && request->msg.kind == kind &&
		    request->msg.status <= 0 && request->msg.status >= -ERRNO_MAX &&
		    request->msg.seq == seq)
			return 0;
		packet_close_fds(request->got, cnt);
		if (n < (ssize_t)sizeof(request->msg))
			return -EPROTO;
	} while (left_ms(until));
	return -ETIMEDOUT;
}

/* Answers that have descriptors beside them; those of others are nobody's. */
static bool brings_fds(const struct lease_message *msg)
{
	return !msg->status && (msg->kind == LEASE_QUEUES || msg->kind == LEASE_MEMORY ||
				msg->kind == LEASE_IMPORT);
}

int lender_ask_over(struct weft_lender *lender, int fd, struct request *request)
{
	uint16_t kind = request->msg.kind;
	uint32_t seq = atomic_fetch_add(&lender->seq, 1) + 1;
	struct iovec iov[2] = { { &request->msg, sizeof(request->msg) },
				{ request->data, request->msg.data_len } };
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int err;

	request->msg.version = LEASE_VERSION;
	request->msg.seq = seq;
	request->msg.status = 0;
	/* A lender that takes nothing does not answer either. */
	if (poll(&p, 1, left_ms(until_of(request))) == 0)
		return -ETIMEDOUT;
	err = packet_send(fd, iov, 2, request->fds, request->msg.fd_cnt);
	if (!err)
		err = take_answer(fd, request, kind, seq);
	if (err)
		return err;
	if (request->msg.version != LEASE_VERSION)
		request->msg.status = -ENOPROTOOPT;
	if (!brings_fds(&request->msg)) {
		packet_close_fds(request->got, request->msg.fd_cnt);
		request->msg.fd_cnt = 0;
	}
	return request->msg.status;
}

int lender_ask_end(struct weft_lender *lender, const struct lease_message *msg)
{
	uint64_t until = client_now_ms() + LENDER_ANSWER_MS;
	int err;

	for (;;) {
		struct request request = { .msg = *msg };

		err = lender_ask(lender, &request);
		if (err != -EINPROGRESS || client_now_ms() >= until)
			return err;
		poll(NULL, 0, LENDER_PAUSE_MS);
	}
}

int lender_take_info(const struct request *request, struct weft_device_info *info)
{
	if (request->msg.data_len != sizeof(*info))
		return -ENOPROTOOPT;
	memmove(info, request->data, sizeof(*info));
	info->name[sizeof(info->name) - 1] = 0;
	info->model[sizeof(info->model) - 1] = 0;
	info->serial[sizeof(info->serial) - 1] = 0;
	info->provider[sizeof(info->provider) - 1] = 0;
	return 0;
}

/* @until: of CLOCK_MONOTONIC; NULL: never. Returns 0 or -ETIMEDOUT */
static int lock_until(struct weft_lender *lender, const struct timespec *until)
{
	int err = 0;

	pthread_mutex_lock(&lender->lock);
	while (lender->held && !err)
		err = until ? pthread_cond_timedwait(&lender->released, &lender->lock, until)
			    : pthread_cond_wait(&lender->released, &lender->lock);
	/* It may have been released while this thread woke up. */
	if (!lender->held)
		err = 0;
	if (!err)
		lender->held = true;
	pthread_mutex_unlock(&lender->lock);
	return -err;
}

void lender_lock(struct weft_lender *lender)
{
	lock_until(lender, NULL);
}

void lender_unlock(struct weft_lender *lender)
{
	pthread_mutex_lock(&lender->lock);
	lender->held = false;
	pthread_cond_signal(&lender->released);
	pthread_mutex_unlock(&lender->lock);
}

/* Who waits for others that wait for an answer waits no longer than for one of its own. */
static int lock_to_ask(struct weft_lender *lender, const struct request *request)
{
	int ms = left_ms(until_of(request));
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	return lock_until(lender, &until);
}

int lender_ask(struct weft_lender *lender, struct request *request)
{
	bool lost;
	int err;

	if (lender->directory)
		return directory_ask(lender->directory, request);
	err = lock_to_ask(lender, request);
	if (err)
		return err;
	err = -EPIPE;
	if (lender->fd >= 0)
		err = lender_ask_over(lender, lender->fd, request);
	/* The lender may have ended this connection alone: the keeper makes new ones. */
	if (err == -EPIPE && lender->fd >= 0) {
		close(lender->fd);
		lender->fd = -1;
	}
	lost = lender->fd < 0;
	lender_unlock(lender);
	if (lost)
		keeper_wake(lender);
	/* Whether it was stopped or has ended makes no difference to who asks: the lease goes on. */
	return err == -EPIPE ? -ETIMEDOUT : err;
}

int lender_connect(struct weft_lender *lender)
{
	char path[sizeof(lender->path)], provider[sizeof(lender->provider)];

	pthread_mutex_lock(&lender->path_lock);
	strcpy(path, lender->path);
	strcpy(provider, lender->provider);
	pthread_mutex_unlock(&lender->path_lock);
	return lender->remote ? door_connect(&lender->doors, path, provider)
			      : packet_connect(path);
}

void lender_path(struct weft_lender *lender, char *path)
{
	pthread_mutex_lock(&lender->path_lock);
	strcpy(path, lender->path);
	pthread_mutex_unlock(&lender->path_lock);
}

void lender_move(struct weft_lender *lender, const char *path, const char *provider)
{
	if (!*path || strlen(path) >= sizeof(lender->path))
		return;
	pthread_mutex_lock(&lender->path_lock);
	strcpy(lender->path, path);
	snprintf(lender->provider, sizeof(lender->provider), "%s", provider);
	pthread_mutex_unlock(&lender->path_lock);
}

void lender_release(struct weft_lender *lender)
{
	if (lender->listed)
		listed_release(lender->listed);
}

static int find_path(const char *name, char *path, size_t room)
{
	char own[108];

	if (!name)
		name = getenv("WEFT_LENDER");
	if (name && *name) {
		if (strlen(name) >= room)
			return -ENAMETOOLONG;
		strcpy(path, name);
		return 0;
	}
	if (!lease_own_socket(own, sizeof(own)) && !access(own, F_OK)) {
		strcpy(path, own);
		return 0;
	}
	strcpy(path, LEASE_SYSTEM_SOCKET);
	return 0;
}

static int greet(struct weft_lender *lender)
{
	struct request request = { .msg = { .kind = LEASE_HELLO } };
	int err = lender_ask_over(lender, lender->fd, &request);

	if (!err)
		lender->node = request.msg.device;
	/* Where nobody is, a provider may try for ever. */
	if (lender->remote && (err == -EPIPE || err == -ETIMEDOUT))
		return -ECONNREFUSED;
	return err == -EPIPE ? -ENOPROTOOPT : err;
}

static struct weft_lender *create(struct fid_eq *eq, struct listed *listed)
{
	struct weft_lender *lender = calloc(1, sizeof(*lender));
	pthread_condattr_t attr;

	if (!lender)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&lender->released, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&lender->lock, NULL);
	pthread_mutex_init(&lender->path_lock, NULL);
	pthread_mutex_init(&lender->devices_lock, NULL);
	doors_init(&lender->doors);
	lender->fd = lender->keeper_fd = -1;
	lender->eq = eq;
	lender->listed = listed;
	return lender;
}

/* Nothing is left of it: no descriptor, and no thread of a connection. */
static void destroy(struct weft_lender *lender)
{
	if (lender->fd >= 0)
		close(lender->fd);
	doors_wait(&lender->doors);
	pthread_mutex_destroy(&lender->devices_lock);
	pthread_mutex_destroy(&lender->path_lock);
	pthread_mutex_destroy(&lender->lock);
	pthread_cond_destroy(&lender->released);
	free(lender);
}

int lender_open(const char *name, const char *provider, struct fid_eq *eq,
		struct listed *listed, struct weft_lender **out)
{
	struct weft_lender *lender = create(eq, listed);
	int err;

	if (!lender)
		return -ENOMEM;
	snprintf(lender->provider, sizeof(lender->provider), "%s", provider);
	err = find_path(name, lender->path, sizeof(lender->path));
	lender->remote = !err && !strchr(lender->path, '/');
	if (!err) {
		lender->fd = lender_connect(lender);
		err = lender->fd < 0 ? lender->fd : greet(lender);
		/* Nothing is there: nobody is. */
		err = err == -ENOENT ? -ECONNREFUSED : err;
		if (!err)
			err = keeper_start(lender);
	}
	if (err)
		destroy(lender);
	else
		*out = lender;
	return err;
}

static int open_directory(const char *urls, struct fid_eq *eq, struct weft_lender **out)
{
	struct weft_lender *lender = calloc(1, sizeof(*lender));
	int err = lender ? directory_open(urls, eq, &lender->directory) : -ENOMEM;

	if (err)
		free(lender);
	else
		*out = lender;
	return err;
}

int weft_lender_open(const char *name, const struct weft_lender_attr *attr,
		     struct weft_lender **out)
{
	struct fid_eq *eq = attr && attr->size >= sizeof(*attr) ? attr->eq : NULL;
	const char *urls = directory_urls(name);

	return urls ? open_directory(urls, eq, out) : lender_open(name, "", eq, NULL, out);
}

static int close_directory(struct weft_lender *lender)
{
	int err = directory_close(lender->directory);

	if (!err)
		free(lender);
	return err;
}

int weft_lender_close(struct weft_lender *lender)
{
	bool busy;

	if (lender->directory)
		return close_directory(lender);
	pthread_mutex_lock(&lender->devices_lock);
	busy = lender->devices;
	pthread_mutex_unlock(&lender->devices_lock);
	if (busy)
		return -EBUSY;
	keeper_stop(lender);
	destroy(lender);
	return 0;
}

int weft_device_list(struct weft_lender *lender, struct weft_device_info *infos, size_t *cnt)
{
	size_t room = *cnt, n;
	int err;

	if (lender->directory)
		return directory_list(lender->directory, infos, cnt);
	for (n = 0; n <= LENDER_DEVICES_MAX; n++) {
		struct weft_device_info info;
		struct request request = {
			.msg = { .kind = LEASE_LIST, .index = (uint32_t)n },
			.data = &info,
			.data_room = sizeof(info),
		};

		err = lender_ask(lender, &request);
		if (err == -ENOENT) {
			*cnt = n;
			return n > room ? -FI_ETOOSMALL : 0;
		}
		if (!err)
			err = lender_take_info(&request, &info);
		if (err)
			return err;
		if (n < room)
			infos[n] = info;
	}
	return -ENOPROTOOPT;
}

int weft_lease_list(struct weft_lender *lender, uint64_t device, struct weft_lease_info *infos,
		    size_t *cnt)
{
	size_t room = *cnt, n;
	uint32_t after = 0;

	for (n = 0;; n++) {
		struct request request = {
			.msg = { .kind = LEASE_LEASES, .device = device, .lease = after }
		};
		const struct lease_message *msg = &request.msg;
		int err = lender_ask(lender, &request);

		if (err == -ENOENT)
			break;
		/* By number: it would begin anew for ever, or go on for as long as there are numbers. */
		if (!err && (msg->lease <= after || n == LENDER_LEASES_MAX))
			err = -ENOPROTOOPT;
		if (err)
			return err;
		after = msg->lease;
		if (n < room)
			infos[n] = (struct weft_lease_info){
				.device = device,
				.lease = msg->lease,
				.generation = msg->generation,
				.ms = msg->ms,
				.flags = msg->flags & LEASE_SHARED ? WEFT_BORROW_SHARED : 0,
				.kept = !!(msg->flags & LEASE_KEPT),
				.queue_pairs = msg->count,
				.pid = (int32_t)msg->len,
				.uid = (uint32_t)(msg->len >> 32),
			};
	}
	*cnt = n;
	return n > room ? -FI_ETOOSMALL : 0;
}

int weft_lease_revoke(struct weft_lender *lender, const struct weft_lease_info *lease)
{
	const struct lease_message msg = { .kind = LEASE_REVOKE,
					   .device = lease->device,
					   .lease = lease->lease,
					   .generation = lease->generation };
	struct request request = { .msg = msg };
	int err = lender_ask(lender, &request);

	if (err != -EINPROGRESS)
		return err;
	err = lender_ask_end(lender, &msg);
	return err == -ESTALE ? 0 : err;
}
