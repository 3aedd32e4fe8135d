/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lender: a process that owns controllers, and lends them to whoever connects to its socket.
 */
#ifndef WEFT_DEVICES_LENDER_LEND_H
#define WEFT_DEVICES_LENDER_LEND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * struct lend_options - what to lend
 * @socket: path of the socket that borrowers connect to
 * @mode:   its permissions: who may write it may borrow
 * @state:  folder of the journals and of the node's number, which is made if it is not there; another lender's is refused
 * @slots:  sockets of controller processes
 * @door:   let borrowers of other hosts in, over @provider (NULL: the default one) at @address (NULL: any) and @service
 *	    (NULL: the default one)
 * @directory: URLs of the members of a directory (etcd) at which it registers, with commas between; NULL: nowhere
 */
struct lend_options {
	const char *socket;
	mode_t mode;
	const char *state;
	const char *const *slots;
	uint32_t slot_cnt;
	bool door;
	const char *provider;
	const char *address;
	const char *service;
	const char *directory;
};

/*
 * lend - lend until SIGTERM or SIGINT; prints a line to standard output when borrowers may come
 * Leases go on when it ends, until their time runs out, and the next lender of the same controllers and folder has them.
 * Returns 0, or 1 with a line on standard error: it could not begin.
 */
int lend(const struct lend_options *options);

#endif
