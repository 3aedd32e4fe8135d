/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lender of a model, and borrowers of it; session_rig.h has the contract.
 */
#define _GNU_SOURCE
#include "session_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weft/device.h>

#include "descriptors.h"
#include "exports.h"
#include "fake_time.h"
#include "log.h"
#include "watch.h"

struct rig rig;

/* In the places of others'. */
void lender_log(const char *format, ...)
{
	rig.lines++;
}

int function_open_slot(const char *path, struct function **function)
{
	return fake_device_open(&rig.device, function);
}

int function_slot_fd(const struct function *function)
{
	return fake_function_fd(function);
}

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

/* Who is at the other end. */
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (level != SOL_SOCKET || name != SO_PEERCRED)
		return __real_getsockopt(fd, level, name, value, len);
	memcpy(value, &rig.creds, sizeof(rig.creds));
	return 0;
}

void lender_tell(struct lender *of, uint32_t kind, uint64_t id, uint32_t lease)
{
	watchers_tell(of->watchers, kind, id, lease);
}

static void tell(void *arg, struct lent *lent, uint32_t kind, uint32_t lease)
{
	lender_tell(&rig.lender, kind, lent_id(lent), lease);
}

static void run(void *arg)
{
	fake_device_run(&rig.device);
}

int rig_setup(void **state)
{
	rig.open_before = descriptors_open();
	rig.lines = 0;
	rig.creds = (struct ucred){ getpid(), geteuid(), getegid() };
	fake_device_init(&rig.device);
	fake_time_idle(run, NULL);
	strcpy(rig.folder, "/tmp/weft-session.XXXXXX");
	if (!mkdtemp(rig.folder))
		return -1;
	rig.lender = (struct lender){ .node = RIG_NODE,
				      .devices = rig.lents,
				      .device_cnt = 1,
				      .connections = connections_create(256),
				      .exports = exports_create(256) };
	rig.lender.watchers = watchers_create(rig.lender.connections);
	return lent_open("slot", RIG_NODE, rig.folder, tell, NULL, &rig.lents[0]);
}

int rig_teardown(void **state)
{
	DIR *dir = opendir(rig.folder);
	struct dirent *entry;
	char path[512];

	lent_close(rig.lents[0]);
	watchers_destroy(rig.lender.watchers);
	connections_destroy(rig.lender.connections);
	free(rig.lender.exports);
	fake_device_fini(&rig.device);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", rig.folder, entry->d_name);
		if (*entry->d_name != '.')
			unlink(path);
	}
	closedir(dir);
	rmdir(rig.folder);
	return descriptors_open() == rig.open_before ? 0 : -1;
}

static void *serve(void *arg)
{
	const struct rig_peer *peer = arg;

	session_serve(&rig.lender, peer->other);
	return NULL;
}

void rig_leave(struct rig_peer *peer)
{
	shutdown(peer->fd, SHUT_RDWR);
	close(peer->fd);
	pthread_join(peer->thread, NULL);
}

static void send_request(struct rig_peer *peer, const struct lease_message *request,
			 const int *fds)
{
	struct lease_message msg = *request;
	struct iovec iov = { &msg, sizeof(msg) };

	msg.version = LEASE_VERSION;
	msg.seq = ++peer->seq;
	assert_int_equal(packet_send(peer->fd, &iov, 1, fds, msg.fd_cnt), 0);
}

ssize_t rig_take(struct rig_peer *peer)
{
	struct iovec iov[2] = { { &rig.last.msg, sizeof(rig.last.msg) },
				{ rig.last.data, sizeof(rig.last.data) } };

	return packet_recv(peer->fd, iov, 2, rig.last.fds, &rig.last.fd_cnt, -1);
}

int rig_ask_beside(struct rig_peer *peer, const struct lease_message *request, const int *fds)
{
	send_request(peer, request, fds);
	assert_true(rig_take(peer) >= (ssize_t)sizeof(rig.last.msg));
	assert_int_equal(rig.last.msg.seq, peer->seq);
	assert_int_equal(rig.last.msg.kind, request->kind);
	assert_int_equal(rig.last.msg.version, LEASE_VERSION);
	assert_int_equal(rig.last.msg.fd_cnt, rig.last.fd_cnt);
	return rig.last.msg.status;
}

int rig_ask(struct rig_peer *peer, struct lease_message request)
{
	int status = rig_ask_beside(peer, &request, NULL);

	packet_close_fds(rig.last.fds, rig.last.fd_cnt);
	return status;
}

void rig_connect(struct rig_peer *peer)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(packet_limit(fds[1]), 0);
	*peer = (struct rig_peer){ .fd = fds[0], .other = fds[1] };
	assert_int_equal(pthread_create(&peer->thread, NULL, serve, peer), 0);
	/* It knows who that is once it answers. */
	assert_int_equal(RIG_ASK(peer, .kind = LEASE_HELLO), 0);
}

struct lease_message rig_borrow(struct rig_peer *peer, uint32_t flags)
{
	assert_int_equal(RIG_ASK(peer, .kind = LEASE_BORROW, .flags = flags, .ms = 10000), 0);
	assert_int_equal(rig.last.msg.data_len, sizeof(struct weft_device_info));
	return (struct lease_message){ .device = rig.last.msg.device,
				       .lease = rig.last.msg.lease,
				       .generation = rig.last.msg.generation,
				       .token = rig.last.msg.token };
}

struct lease_message rig_about(const struct lease_message *lease, uint16_t kind)
{
	struct lease_message msg = *lease;

	msg.kind = kind;
	return msg;
}

int rig_renew(struct rig_peer *peer, const struct lease_message *lease)
{
	struct lease_message msg = rig_about(lease, LEASE_RENEW);

	msg.ms = 5000;
	return rig_ask(peer, msg);
}

int rig_memory(size_t len, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}
