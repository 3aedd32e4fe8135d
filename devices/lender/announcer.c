/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a lender registers at a directory; announcer.h has the contract.
 */
#define _GNU_SOURCE
#include "announcer.h"
#include "door.h"
#include "load.h"
#include "log.h"
#include "message.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often it is looked whether the devices are as they were. */
#define LOOK_MS 500u

/*
 * struct announcer
 * @now:  what is registered; its devices are ours
 * @lock: of @registration; NULL: it is closed
 */
struct announcer {
	struct lender *lender;
	const struct directory_ops *ops;
	struct directory_lender now;
	pthread_mutex_t lock;
	struct directory_registration *registration;
};

static void tell(const char *line)
{
	lender_log("%s", line);
}

/* False: it is closed. */
static bool look(struct announcer *a)
{
	bool open;
	uint32_t i;
	int err = 0;

	for (i = 0; i < a->now.device_cnt; i++)
		lent_info(a->lender->devices[i], &a->now.devices[i]);
	pthread_mutex_lock(&a->lock);
	open = a->registration;
	/* What is the same is not registered again. */
	if (open)
		err = a->ops->register_set(a->registration, &a->now);
	pthread_mutex_unlock(&a->lock);
	if (err)
		lender_log("what is lent can't be registered: %s", strerror(-err));
	return open;
}

static void *watch(void *arg)
{
	while (look(arg))
		usleep(LOOK_MS * 1000);
	return NULL;
}

/* Where borrowers of other hosts come: at any address of this one they ask for its name. */
static int describe_door(struct announcer *a, const struct lend_options *opt)
{
	const char *port = opt->service ? opt->service : LEASE_PORT, *host = opt->address;
	char name[HOST_NAME_MAX + 1] = "";
	size_t room = sizeof(a->now.address);
	bool is_v6;

	if (!host) {
		gethostname(name, sizeof(name) - 1);
		host = name;
	}
	snprintf(a->now.provider, sizeof(a->now.provider), "%s", door_provider(a->lender->door));
	is_v6 = strchr(host, ':');
	return (size_t)snprintf(a->now.address, room, is_v6 ? "[%s]:%s" : "%s:%s", host, port) <
			       room
		       ? 0
		       : -ENAMETOOLONG;
}

/* Borrowers have other working directories. */
static int describe(struct announcer *a, const struct lend_options *opt)
{
	int err = opt->door ? describe_door(a, opt) : 0;
	char path[PATH_MAX];

	if (err)
		return err;
	if (!realpath(opt->socket, path))
		return -errno;
	if (strlen(path) >= sizeof(a->now.socket))
		return -ENAMETOOLONG;
	strcpy(a->now.socket, path);
	directory_host(a->now.host);
	a->now.node = a->lender->node;
	a->now.device_cnt = a->lender->device_cnt;
	a->now.devices = calloc(a->now.device_cnt + 1, sizeof(*a->now.devices));
	return a->now.devices ? 0 : -ENOMEM;
}

static const char *explain(int err)
{
	if (err == -EOPNOTSUPP)
		return "there is no " DIRECTORY_LIBRARY ": this Weft was built without libcurl";
	if (err == -EINVAL)
		return "it takes URLs of members: http://HOST[:PORT] or https://HOST[:PORT], with "
		       "commas between";
	return strerror(-err);
}

int announcer_open(struct lender *lender, const struct lend_options *opt, struct announcer **out)
{
	struct announcer *a = calloc(1, sizeof(*a));
	pthread_t thread;
	int err;

	if (!a)
		return -ENOMEM;
	a->lender = lender;
	pthread_mutex_init(&a->lock, NULL);
	err = directory_load(&a->ops);
	if (!err)
		err = describe(a, opt);
	if (!err)
		err = a->ops->register_open(opt->directory, tell, &a->registration);
	if (err)
		goto err_free;
	err = -pthread_create(&thread, NULL, watch, a);
	if (err)
		goto err_close;
	pthread_detach(thread);
	*out = a;
	return 0;

err_close:
	a->ops->register_close(a->registration);
err_free:
	lender_log("--directory=%s: %s", opt->directory, explain(err));
	pthread_mutex_destroy(&a->lock);
	free(a->now.devices);
	free(a);
	return err;
}

/* The thread may be waiting for a controller, and so is not waited for: the process ends. */
void announcer_close(struct announcer *a)
{
	struct directory_registration *registration;

	pthread_mutex_lock(&a->lock);
	registration = a->registration;
	a->registration = NULL;
	pthread_mutex_unlock(&a->lock);
	a->ops->register_close(registration);
}
