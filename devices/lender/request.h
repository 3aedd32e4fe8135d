/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests of a borrower, which session.c receives and answers. Each is carried out in the place of its message: what the
 * request said is there before, the answer after. Called by the session's thread, or the door's.
 */
#ifndef WEFT_DEVICES_LENDER_REQUEST_H
#define WEFT_DEVICES_LENDER_REQUEST_H

#include "message.h"
#include "packet.h"
#include "session.h"
#include "uses.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * struct session - a borrower, and the request that it has made
 * @fd:      of the connection; @process: of who connected; readable when that has ended, though children hold the
 *	     connection; -1: not known
 * @trusted: of the lender's user, or root
 * @remote:  a borrower elsewhere: it has a session for each request, and nothing ends with it
 * @watching: the connection is a watcher's from now on
 * @complained: kinds of requests of which a refusal was logged, as bits
 * @held:    leases that end with it
 * @uses:    struct use, what is open by it; of a borrower elsewhere nothing
 * @msg, @data, @fds: the request, and then its answer
 */
struct session {
	struct lender *lender;
	int fd;
	int process;
	struct lent_borrower by;
	bool trusted;
	bool remote;
	bool watching;
	uint32_t complained;
	struct leased_list held;
	struct leased_list uses;
	struct lease_message msg;
	uint8_t data[LEASE_DATA_MAX];
	int fds[PACKET_FDS_MAX];
	uint32_t fd_cnt;
};

/* request_is_one - whether a message is a request, be its version what it may */
bool request_is_one(const struct lease_message *msg);

/* request_is_whole - whether @n bytes that came, and the descriptors beside them, are a request */
bool request_is_whole(const struct session *session, ssize_t n);

/* request_carry_out - carry the request out; then the answer is in its place. A mistake is logged once of each kind */
void request_carry_out(struct session *session);

/* request_refuse - answer a request with an error, and carry nothing out */
void request_refuse(struct session *session, int err);

/* request_drop_fds - close what came beside the request; what is to go beside the answer is in @fds from then on */
void request_drop_fds(struct session *session);

/* request_device - the device with an id, or NULL */
struct lent *request_device(struct session *session, uint64_t id);

/* request_lease - out: the lease that the request names. Returns 0; -ENODEV; -EACCES: it has no token */
int request_lease(struct session *session, struct lent **lent, struct lent_lease *lease);

/* request_wait_ms - how long commands under way are waited for: shortly at the door, whose one thread serves all borrowers */
uint32_t request_wait_ms(const struct session *session);

/* A kind of request each: devices and leases (request_lease.c). They return the answer's status. */
int request_hello(struct session *session);
int request_list(struct session *session);
int request_borrow(struct session *session);
int request_attach(struct session *session);
int request_renew(struct session *session);
int request_share(struct session *session);
int request_return(struct session *session);
int request_leases(struct session *session);
int request_revoke(struct session *session);

/* The same: what is had with a lease, and segments (request_use.c). */
int request_window(struct session *session);
int request_unwindow(struct session *session);
int request_queues(struct session *session);
int request_unqueues(struct session *session);
int request_memory(struct session *session);
int request_unmemory(struct session *session);
int request_admin(struct session *session);
int request_export(struct session *session);
int request_unexport(struct session *session);
int request_import(struct session *session);

#endif
