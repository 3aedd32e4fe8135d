/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection to the lender of another host: a thread that carries what the library writes to a socket to the lender's
 * door, and back, so that everything else is as with a lender of this host. door.h has the contract.
 *
 * What is asked is sent again until it is answered, or the next thing is asked. Where the lender is not reached any more
 * the socket is closed, as by the end of a lender of this host.
 */
#define _GNU_SOURCE
#include "door.h"
#include "client.h"
#include "port.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECEIVES    8u
#define AGAIN_MS    500	 /* until a request is sent once more */
#define WATCH_MS    1000 /* until the lender is asked again whether it is there */
#define NO_FD_MS    1	 /* between looks, where the provider has nothing to wait for */
#define LOOK_MS	    100	 /* and where it has */
#define HOST_MAX    256u
#define SEND_LETTER RECEIVES

/*
 * struct door
 * @doors:    count it
 * @fd:       our end of the socket
 * @letters:  RECEIVES that are listened with, and one to be sent, LEASE_LETTER_MAX each
 * @sending:  the provider has that one
 * @asked:    bytes of a request in it that is not answered; @seq: which
 * @sent_ms:  when it was sent last; 0: not yet
 * @watching: events are to come; @renews: the library knows that, and this is asked again
 * @heard_ms: when the lender last answered
 * @broken:   it is not reached
 */
struct door {
	struct doors *doors;
	int fd;
	struct port port;
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t peer;
	uint8_t *letters;
	struct fi_context2 contexts[RECEIVES + 1];
	struct lease_envelope envelope;
	bool sending;
	size_t asked;
	uint32_t seq;
	uint64_t sent_ms;
	bool watching;
	bool renews;
	uint64_t heard_ms;
	bool broken;
};

static uint8_t *letter(struct door *door, uint32_t idx)
{
	return door->letters + idx * LEASE_LETTER_MAX;
}

static int post(struct door *door, uint32_t idx)
{
	return (int)fi_recv(door->ep, letter(door, idx), LEASE_LETTER_MAX, port_desc(door->mr),
			    FI_ADDR_UNSPEC, &door->contexts[idx]);
}

/* Send what is asked, if it is time. */
static void send_again(struct door *door, uint64_t now)
{
	int ret;

	if (!door->asked || door->sending || (door->sent_ms && now - door->sent_ms < AGAIN_MS))
		return;
	ret = (int)fi_send(door->ep, letter(door, SEND_LETTER), door->asked,
			   port_desc(door->mr), door->peer, &door->contexts[SEND_LETTER]);
	if (!ret) {
		door->sending = true;
		door->sent_ms = now;
	} else if (ret != -FI_EAGAIN) {
		door->broken = true;
	}
}

static void ask(struct door *door, const struct lease_message *msg, const void *data)
{
	uint8_t *to = letter(door, SEND_LETTER);

	memcpy(to, &door->envelope, sizeof(door->envelope));
	memcpy(to + sizeof(door->envelope), msg, sizeof(*msg));
	if (msg->data_len)
		memcpy(to + sizeof(door->envelope) + sizeof(*msg), data, msg->data_len);
	door->asked = sizeof(door->envelope) + sizeof(*msg) + msg->data_len;
	door->seq = msg->seq;
	door->sent_ms = 0;
}

/* Ask whether the lender is there: whoever does not ask for events any more is not told of them. */
static void watch_again(struct door *door, uint64_t now)
{
	struct lease_message msg = { .version = LEASE_VERSION, .kind = LEASE_WATCH };

	if (!door->watching || door->sending)
		return;
	if (now - door->heard_ms > LEASE_WATCH_MS) {
		door->broken = true;
	} else if (!door->asked && now - door->heard_ms >= WATCH_MS) {
		msg.seq = door->seq + 1;
		ask(door, &msg, NULL);
		door->renews = true;
	}
}

/* A request of the library. False: it has closed the connection. */
static bool take_request(struct door *door)
{
	struct lease_message msg;
	uint8_t data[LEASE_DATA_MAX];
	struct iovec iov[2] = { { &msg, sizeof(msg) }, { data, sizeof(data) } };
	int fds[PACKET_FDS_MAX];
	uint32_t fd_cnt;
	ssize_t n = packet_recv(door->fd, iov, 2, fds, &fd_cnt, -1);

	if (n < (ssize_t)sizeof(msg) || msg.data_len != n - sizeof(msg))
		return false;
	/* The lender has no use for them, and refuses what needs them. */
	packet_close_fds(fds, fd_cnt);
	msg.fd_cnt = 0;
	ask(door, &msg, data);
	door->watching = msg.kind == LEASE_WATCH;
	door->heard_ms = client_now_ms();
	return true;
}

static void take_letter(struct door *door, const uint8_t *bytes, size_t len)
{
	struct lease_envelope envelope;
	struct lease_message msg;
	struct iovec iov = { (void *)(uintptr_t)(bytes + sizeof(envelope)),
			     len - sizeof(envelope) };

	if (len < sizeof(envelope) + sizeof(msg))
		return;
	memcpy(&envelope, bytes, sizeof(envelope));
	memcpy(&msg, bytes + sizeof(envelope), sizeof(msg));
	if (envelope.version != LEASE_VERSION || envelope.life != door->envelope.life ||
	    msg.data_len != iov.iov_len - sizeof(msg) || msg.fd_cnt)
		return;
	if (msg.kind != LEASE_EVENT) {
		if (!door->asked || msg.seq != door->seq)
			return;
		door->asked = 0;
		door->heard_ms = client_now_ms();
		if (door->renews)
			return;
	}
	if (packet_send(door->fd, &iov, 1, NULL, 0))
		door->broken = true;
}

/* Which message a completion is of; RECEIVES + 1: of none, as what a stranger writes with remote CQ data is */
static uint32_t index_of(const struct door *door, const void *context)
{
	uintptr_t at = (uintptr_t)context - (uintptr_t)door->contexts;

	return at < sizeof(door->contexts) ? (uint32_t)(at / sizeof(door->contexts[0]))
					   : RECEIVES + 1;
}

/* A message that is longer than a lender's are is a stranger's. */
static void take_error(struct door *door, const struct fi_cq_err_entry *e)
{
	uint32_t idx = index_of(door, e->op_context);

	if (e->err != FI_ETRUNC || idx >= RECEIVES || post(door, idx))
		door->broken = true;
}

static void take_completions(struct door *door)
{
	struct fi_cq_data_entry entries[RECEIVES];
	struct fi_cq_err_entry e = { 0 };
	ssize_t n = fi_cq_read(door->port.cq, entries, RECEIVES), i;

	if (n == -FI_EAVAIL && fi_cq_readerr(door->port.cq, &e, 0) > 0) {
		take_error(door, &e);
		return;
	}
	for (i = 0; i < n; i++) {
		uint32_t idx = index_of(door, entries[i].op_context);

		if (idx == SEND_LETTER)
			door->sending = false;
		if (idx >= RECEIVES)
			continue;
		take_letter(door, letter(door, idx), entries[i].len);
		if (post(door, idx))
			door->broken = true;
	}
}

static void close_door(struct door *door)
{
	if (door->ep)
		fi_close(&door->ep->fid);
	if (door->mr)
		fi_close(&door->mr->fid);
	port_close(&door->port);
	close(door->fd);
	free(door->letters);
	free(door);
}

void doors_init(struct doors *doors)
{
	*doors = (struct doors){ .cnt = 0 };
	pthread_mutex_init(&doors->lock, NULL);
	pthread_cond_init(&doors->closed, NULL);
}

void doors_wait(struct doors *doors)
{
	pthread_mutex_lock(&doors->lock);
	while (doors->cnt)
		pthread_cond_wait(&doors->closed, &doors->lock);
	pthread_mutex_unlock(&doors->lock);
}

static void doors_add(struct doors *doors)
{
	pthread_mutex_lock(&doors->lock);
	doors->cnt++;
	pthread_mutex_unlock(&doors->lock);
}

static void doors_remove(struct doors *doors)
{
	pthread_mutex_lock(&doors->lock);
	if (!--doors->cnt)
		pthread_cond_broadcast(&doors->closed);
	pthread_mutex_unlock(&doors->lock);
}

/*
 * Wait for something to do, and take what the library asks. Another request is taken once the provider has done with the
 * last one: where the lender is not reached that may be never, but that the library closes its end is seen all the same.
 * False: it has.
 */
static bool wait_and_take(struct door *door)
{
	bool takes = !door->sending, has_fd = door->port.wait_fd >= 0;
	struct pollfd p[2] = { { .fd = door->fd, .events = takes ? POLLIN : 0 },
			       { .fd = door->port.wait_fd, .events = POLLIN } };
	int ms = !has_fd || (door->asked && !door->sent_ms) ? NO_FD_MS : LOOK_MS;

	poll(p, 2, port_may_sleep(&door->port) ? ms : 0);
	return !p[0].revents || (takes && take_request(door));
}

static void *carry(void *arg)
{
	struct door *door = arg;
	struct doors *doors = door->doors;

	do {
		uint64_t now = client_now_ms();

		watch_again(door, now);
		send_again(door, now);
		take_completions(door);
	} while (!door->broken && wait_and_take(door));
	close_door(door);
	doors_remove(doors);
	return NULL;
}

/* HOST, HOST:PORT, [ADDRESS]:PORT */
int door_split(const char *name, char *host, size_t room, const char **service)
{
	const char *colon = strrchr(name, ':'), *end = name + strlen(name);

	*service = LEASE_PORT;
	if (*name == '[') {
		end = strchr(name++, ']');
		if (!end || (end[1] && end[1] != ':'))
			return -EINVAL;
		if (end[1])
			*service = end + 2;
	} else if (colon && colon == strchr(name, ':')) {
		end = colon;
		*service = colon + 1;
	}
	if (end == name || (size_t)(end - name) >= room)
		return -EINVAL;
	memcpy(host, name, (size_t)(end - name));
	host[end - name] = 0;
	return 0;
}

static int open_letters(struct door *door)
{
	struct iovec all = { NULL, (RECEIVES + 1) * LEASE_LETTER_MAX };
	size_t len = sizeof(door->envelope.name);
	uint32_t i;
	int err;

	door->letters = calloc(1, all.iov_len);
	if (!door->letters)
		return -ENOMEM;
	all.iov_base = door->letters;
	err = port_ep_open(&door->port, &door->ep);
	if (!err)
		err = port_ep_name(door->ep, door->envelope.name, &len);
	door->envelope.version = LEASE_VERSION;
	door->envelope.name_len = (uint16_t)len;
	if (!err && getrandom(&door->envelope.life, sizeof(door->envelope.life), 0) < 0)
		err = -errno;
	if (!err && door->port.mr_mode & FI_MR_LOCAL)
		err = port_mr_open(&door->port, door->ep, &all, FI_SEND | FI_RECV, &door->mr);
	for (i = 0; !err && i < RECEIVES; i++)
		err = post(door, i);
	return err;
}

static int open_door(struct door *door, const char *name, const char *provider)
{
	char host[HOST_MAX];
	struct port_request request = {
		.provider = provider, .host = host, .len_max = LEASE_LETTER_MAX, .cq_len = 64
	};
	int err = door_split(name, host, sizeof(host), &request.service);

	if (!err)
		err = port_open(&request, &door->port);
	if (err)
		return err;
	if (!door->port.info->dest_addr)
		return -EHOSTUNREACH;
	err = open_letters(door);
	if (!err && fi_av_insert(door->port.av, door->port.info->dest_addr, 1, &door->peer, 0,
				 NULL) != 1)
		err = -EHOSTUNREACH;
	return err;
}

static int start(struct door *door)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* Signals are the program's, on its threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	doors_add(door->doors);
	err = -pthread_create(&thread, &attr, carry, door);
	if (err)
		doors_remove(door->doors);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

int door_connect(struct doors *doors, const char *name, const char *provider)
{
	struct door *door = calloc(1, sizeof(*door));
	const char *chosen = getenv("WEFT_FABRIC");
	int fds[2], err;

	if (!door)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
		free(door);
		return -errno;
	}
	door->doors = doors;
	door->fd = fds[1];
	if (!chosen)
		chosen = *provider ? provider : NULL;
	err = open_door(door, name, chosen);
	if (!err)
		err = start(door);
	if (!err)
		return fds[0];
	close_door(door);
	close(fds[0]);
	return err == -FI_ENODATA ? -EHOSTUNREACH : err;
}
