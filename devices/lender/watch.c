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

/* struct watchers - connections; @lock: of all */
struct watchers {
	pthread_mutex_t lock;
	int *fds;
	uint32_t cnt, room;
};

struct watchers *watchers_create(void)
{
	struct watchers *watchers = calloc(1, sizeof(*watchers));

	if (watchers)
		pthread_mutex_init(&watchers->lock, NULL);
	return watchers;
}

void watchers_destroy(struct watchers *watchers)
{
	while (watchers->cnt)
		close(watchers->fds[--watchers->cnt]);
	pthread_mutex_destroy(&watchers->lock);
	free(watchers->fds);
	free(watchers);
}

/* Those at whose other end nobody is any more. */
static void drop_closed(struct watchers *watchers)
{
	uint32_t i = 0;
	char byte;

	while (i < watchers->cnt) {
		ssize_t n = recv(watchers->fds[i], &byte, 1, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			i++;
			continue;
		}
		close(watchers->fds[i]);
		watchers->fds[i] = watchers->fds[--watchers->cnt];
	}
}

static bool send_at_once(int fd, const struct lease_message *msg)
{
	return send(fd, msg, sizeof(*msg), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*msg);
}

static bool has_room(struct watchers *watchers)
{
	uint32_t room = watchers->room * 2 + 16;
	int *fds;

	if (watchers->cnt < watchers->room)
		return true;
	fds = reallocarray(watchers->fds, room, sizeof(*fds));
	if (!fds)
		return false;
	watchers->fds = fds;
	watchers->room = room;
	return true;
}

void watchers_add(struct watchers *watchers, int fd, const struct lease_message *answer)
{
	pthread_mutex_lock(&watchers->lock);
	drop_closed(watchers);
	if (has_room(watchers) && send_at_once(fd, answer))
		watchers->fds[watchers->cnt++] = fd;
	else
		close(fd);
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
		if (send_at_once(watchers->fds[i], &msg)) {
			i++;
			continue;
		}
		close(watchers->fds[i]);
		watchers->fds[i] = watchers->fds[--watchers->cnt];
	}
	pthread_mutex_unlock(&watchers->lock);
}
