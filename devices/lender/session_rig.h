/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests of sessions and requests: a lender of one device, which is a model, and borrowers of it. Each borrower has a
 * session on a thread of its own, at the other end of a socket. It has lender.h's log, and function.h's way to a device.
 *
 * A program with it is linked with --wrap=getsockopt, which says who a borrower is, and with the model of time.
 */
#ifndef WEFT_DEVICES_LENDER_SESSION_RIG_H
#define WEFT_DEVICES_LENDER_SESSION_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/socket.h>

#include "fake_device.h"
#include "message.h"
#include "packet.h"
#include "session.h"

#define RIG_NODE 0x1122334455667788ULL

/* struct rig_peer - a borrower's end of a session */
struct rig_peer {
	int fd;
	int other;
	pthread_t thread;
	uint32_t seq;
};

/* struct rig_answer - to a request */
struct rig_answer {
	struct lease_message msg;
	uint8_t data[LEASE_DATA_MAX];
	int fds[PACKET_FDS_MAX];
	uint32_t fd_cnt;
};

/*
 * struct rig
 * @creds: of who connects from now on
 * @lines: that were logged
 * @last:  the answer that was taken last
 */
struct rig {
	struct fake_device device;
	struct lender lender;
	struct lent *lents[1];
	struct ucred creds;
	_Atomic unsigned lines;
	struct rig_answer last;
	char folder[64];
	unsigned open_before;
};

extern struct rig rig;

/* rig_setup, rig_teardown - for cmocka, which fails where descriptors are left */
int rig_setup(void **state);
int rig_teardown(void **state);

void rig_connect(struct rig_peer *peer);

/* rig_leave - when it returns the session has ended */
void rig_leave(struct rig_peer *peer);

/* rig_take - take a message. Returns its bytes, or 0 at the end of the session */
ssize_t rig_take(struct rig_peer *peer);

/* rig_ask_beside - ask, with descriptors; what comes beside the answer stays in rig.last. Returns the status */
int rig_ask_beside(struct rig_peer *peer, const struct lease_message *request, const int *fds);

/* rig_ask - the same without */
int rig_ask(struct rig_peer *peer, struct lease_message request);

#define RIG_ASK(peer, ...) rig_ask(peer, (struct lease_message){ __VA_ARGS__ })

/* rig_borrow - returns what names the lease */
struct lease_message rig_borrow(struct rig_peer *peer, uint32_t flags);

/* rig_about - a request about a lease */
struct lease_message rig_about(const struct lease_message *lease, uint16_t kind);

int rig_renew(struct rig_peer *peer, const struct lease_message *lease);

/* rig_memory - a file; returns its descriptor */
int rig_memory(size_t len, int seals);

#endif
