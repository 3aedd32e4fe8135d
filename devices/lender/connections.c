/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections of each user; connections.h has the contract.
 */
#define _GNU_SOURCE
#include "connections.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

/* struct user - one who has connections; @cnt 0: nobody, the place is free */
struct user {
	uid_t uid;
	uint32_t cnt;
};

/* struct connections - @lock: of all */
struct connections {
	pthread_mutex_t lock;
	uint32_t of_a_user;
	struct user *users;
	uint32_t room;
};

struct connections *connections_create(uint32_t of_a_user)
{
	struct connections *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	c->of_a_user = of_a_user;
	return c;
}

void connections_destroy(struct connections *c)
{
	pthread_mutex_destroy(&c->lock);
	free(c->users);
	free(c);
}

uid_t connections_user(int fd)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(cred);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	return cred.uid;
}

/* The place of a user, or a free one; NULL: there is no memory */
static struct user *place_of(struct connections *c, uid_t uid)
{
	struct user *place = NULL, *more;
	uint32_t i, room = c->room * 2 + 8;

	for (i = 0; i < c->room; i++) {
		if (c->users[i].cnt && c->users[i].uid == uid)
			return &c->users[i];
		if (!c->users[i].cnt)
			place = &c->users[i];
	}
	if (place)
		return place;
	more = reallocarray(c->users, room, sizeof(*more));
	if (!more)
		return NULL;
	for (i = c->room; i < room; i++)
		more[i] = (struct user){ 0 };
	c->users = more;
	place = &more[c->room];
	c->room = room;
	return place;
}

bool connections_begin(struct connections *c, uid_t uid)
{
	struct user *user;
	bool may;

	pthread_mutex_lock(&c->lock);
	user = place_of(c, uid);
	may = user && user->cnt < c->of_a_user;
	if (may)
		*user = (struct user){ uid, user->cnt + 1 };
	pthread_mutex_unlock(&c->lock);
	return may;
}

void connections_end(struct connections *c, uid_t uid)
{
	uint32_t i;

	pthread_mutex_lock(&c->lock);
	for (i = 0; i < c->room; i++)
		if (c->users[i].cnt && c->users[i].uid == uid) {
			c->users[i].cnt--;
			break;
		}
	pthread_mutex_unlock(&c->lock);
}
