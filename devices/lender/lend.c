/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lender; lend.h has the contract. The main thread accepts connections; each is served by a thread of its own, each
 * device is kept by another one.
 */
#define _GNU_SOURCE
#include "lend.h"
#include "announcer.h"
#include "connections.h"
#include "door.h"
#include "exports.h"
#include "journal.h"
#include "log.h"
#include "packet.h"
#include "port.h"
#include "session.h"
#include "watch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SESSION_STACK (512u << 10)

/* Connections that a user may have, where there are descriptors for so many: each is a thread. */
#define OF_A_USER_MAX 2048u

/* struct connection - what a session's thread begins with; @uid: whose it is */
struct connection {
	struct lender *lender;
	int fd;
	uid_t uid;
};

static void *serve(void *arg)
{
	struct connection connection = *(struct connection *)arg;

	free(arg);
	session_serve(connection.lender, connection.fd);
	connections_end(connection.lender->connections, connection.uid);
	return NULL;
}

static void accept_one(struct lender *lender, int listener, const pthread_attr_t *attr)
{
	struct connection *connection;
	pthread_t thread;
	uid_t uid;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
			lender_log("a borrower has to wait: %s", strerror(errno));
			usleep(100000);
		}
		return;
	}
	uid = connections_user(fd);
	if (!connections_begin(lender->connections, uid)) {
		lender_log(
			"a borrower was sent away: user %u has as many connections as one may",
			(unsigned)uid);
		close(fd);
		return;
	}
	connection = malloc(sizeof(*connection));
	/* A session must not wait for ever for who takes no answer. */
	if (connection && !packet_limit(fd)) {
		*connection = (struct connection){ lender, fd, uid };
		if (!pthread_create(&thread, attr, serve, connection))
			return;
	}
	lender_log("a borrower was sent away: no memory for another thread");
	connections_end(lender->connections, uid);
	free(connection);
	close(fd);
}

static void accept_all(struct lender *lender, int listener, int signals)
{
	struct pollfd p[2] = { { .fd = listener, .events = POLLIN },
			       { .fd = signals, .events = POLLIN } };
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, SESSION_STACK);
	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			break;
		if (p[0].revents)
			accept_one(lender, listener, &attr);
	}
	pthread_attr_destroy(&attr);
}

void lender_tell(struct lender *lender, uint32_t kind, uint64_t device, uint32_t lease)
{
	watchers_tell(lender->watchers, kind, device, lease);
	if (lender->door)
		door_tell(lender->door, kind, device, lease);
}

static void tell(void *arg, struct lent *lent, uint32_t kind, uint32_t lease)
{
	struct lender *lender = arg;

	lender_tell(lender, kind, lent_id(lent), lease);
}

/* A folder and those above it. */
static int make_folder(const char *path)
{
	char part[4096];
	size_t i, len = strlen(path);

	if (!len || len >= sizeof(part))
		return -ENAMETOOLONG;
	for (i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i])
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (mkdir(part, 0700) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int open_devices(struct lender *lender, const struct lend_options *opt)
{
	uint32_t i;
	int err;

	lender->devices = calloc(opt->slot_cnt, sizeof(struct lent *));
	if (!lender->devices)
		return -ENOMEM;
	for (i = 0; i < opt->slot_cnt; i++) {
		err = lent_open(opt->slots[i], lender->node, opt->state, tell, lender,
				&lender->devices[i]);
		if (err) {
			lender_log("there is no controller to be had at %s: %s", opt->slots[i],
				   strerror(-err));
			return err;
		}
		lender->device_cnt++;
	}
	return 0;
}

/* Each borrower keeps a few, exported segments more. Returns how many there may be */
static uint32_t raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 1024;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_max < INT_MAX ? (uint32_t)limit.rlim_max : INT_MAX;
}

/* Have the folder of the state, which nobody else has, and this host's number, which is there. */
static int take_state(struct lender *lender, const char *folder)
{
	pid_t owner = 0;
	int err = make_folder(folder);

	if (!err)
		err = journal_lock(folder, &owner);
	if (err == -EBUSY && owner) {
		lender_log("%s is the folder of another lender, process %d: each has its own "
			   "(--state)",
			   folder, (int)owner);
		return err;
	}
	if (err == -EBUSY) {
		lender_log("%s is the folder of another lender: each has its own (--state)",
			   folder);
		return err;
	}
	if (!err)
		err = journal_node(folder, &lender->node);
	if (err)
		lender_log("%s can't be the folder of the state: %s", folder, strerror(-err));
	return err;
}

static int begin(struct lender *lender, const struct lend_options *opt, int *listener,
		 struct announcer **announcer)
{
	uint32_t fds;
	int err = take_state(lender, opt->state);

	if (err)
		return err;
	fds = raise_descriptors();
	/* Each has two. */
	lender->connections = connections_create(fds / 8 < OF_A_USER_MAX ? fds / 8
									 : OF_A_USER_MAX);
	lender->exports = exports_create(fds / 4);
	if (!lender->connections || !lender->exports)
		return -ENOMEM;
	lender->watchers = watchers_create(lender->connections);
	if (!lender->watchers)
		return -ENOMEM;
	err = open_devices(lender, opt);
	if (err)
		return err;
	err = opt->door ? door_open(lender, opt->provider, opt->address, opt->service,
				    &lender->door)
			: 0;
	if (err) {
		lender_log("the door can't be opened: %s", port_strerror(err));
		return err;
	}
	*listener = packet_listen(opt->socket, opt->mode);
	if (*listener < 0) {
		lender_log("%s can't be listened at: %s", opt->socket, strerror(-*listener));
		return *listener;
	}
	if (!opt->directory)
		return 0;
	err = announcer_open(lender, opt, announcer);
	if (err)
		unlink(opt->socket);
	return err;
}

int lend(const struct lend_options *opt)
{
	static struct lender lender;
	struct announcer *announcer = NULL;
	sigset_t set;
	uint32_t i;
	int listener = -1, signals;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0 || begin(&lender, opt, &listener, &announcer))
		return 1;
	for (i = 0; i < lender.device_cnt; i++) {
		struct weft_device_info info;

		lent_info(lender.devices[i], &info);
		printf("lending %s (%s, %u queue pairs) at %s\n", info.name, info.model,
		       info.queue_pairs, opt->socket);
	}
	fflush(stdout);
	accept_all(&lender, listener, signals);
	unlink(opt->socket);
	if (announcer)
		announcer_close(announcer);
	/* Sessions end with the process, and leases do not. */
	return 0;
}
