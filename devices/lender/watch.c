/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Borrowers that hear of events; watch.h has the contract.
 */
#define _GNU_SOURCE
#include "watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* struct watcher - a connection, and whose */
struct watcher {
	int fd;
	uid_t uid;
};

/* struct watchers - @lock: of all */
struct watchers {
	pthread_mutex_t lock;
	struct connections *connections;
	struct watcher *each;
	uint32_t cnt, room;
};

struct watchers *watchers_create(struct connections *connections)
{
	struct watchers *watchers = calloc(1, sizeof(*watchers));

	if (!watchers)
		return NULL;
	pthread_mutex_init(&watchers->lock, NULL);
	watchers->connections = connections;
	return watchers;
}

/* End the connection of one; the last one has its place then. */
static void drop(struct watchers *watchers, uint32_t i)
{
	close(watchers->each[i].fd);
	connections_end(watchers->connections, watchers->each[i].uid);
	watchers->each[i] = watchers->each[--watchers->cnt];
}

void watchers_destroy(struct watchers *watchers)
{
	while (watchers->cnt)
		drop(watchers, 0);
	pthread_mutex_destroy(&watchers->lock);
	free(watchers->each);
	free(watchers);
}

/* Those at whose other end nobody is any more. */
static void drop_closed(struct watchers *watchers)
{
	uint32_t i = 0;
	char byte;

	while (i < watchers->cnt) {
		ssize_t n = recv(watchers->each[i].fd, &byte, 1, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			i++;
			continue;
		}
		drop(watchers, i);
	}
}

static bool send_at_once(int fd, const struct lease_message *msg)
{
	return send(fd, msg, sizeof(*msg), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*msg);
}

static bool has_room(struct watchers *watchers)
{
	uint32_t room = watchers->room * 2 + 16;
	struct watcher *each;

	if (watchers->cnt < watchers->room)
		return true;
	each = reallocarray(watchers->each, room, sizeof(*each));
	if (!each)
		return false;
	watchers->each = each;
	watchers->room = room;
	return true;
}

void watchers_add(struct watchers *watchers, int fd, const struct lease_message *answer)
{
	uid_t uid = connections_user(fd);
	bool counted;

	pthread_mutex_lock(&watchers->lock);
	drop_closed(watchers);
	counted = connections_begin(watchers->connections, uid);
	if (counted && has_room(watchers) && send_at_once(fd, answer)) {
		watchers->each[watchers->cnt++] = (struct watcher){ fd, uid };
	} else {
		close(fd);
		if (counted)
			connections_end(watchers->connections, uid);
	}
	pthread_mutex_unlock(&watchers->lock);
}

void watchers_tell(struct watchers *watchers, uint32_t kind, uint64_t device, uint32_t lease)
{
	struct lease_message msg = {
		.version = LEASE_VERSION,
		.kind = LEASE_EVENT,
		.index = kind,
		.device = device,
		.lease = lease,
	};
	uint32_t i = 0;

	pthread_mutex_lock(&watchers->lock);
	while (i < watchers->cnt) {
		if (send_at_once(watchers->each[i].fd, &msg)) {
			i++;
			continue;
		}
		drop(watchers, i);
	}
	pthread_mutex_unlock(&watchers->lock);
}
