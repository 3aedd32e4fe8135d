/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wait sets, as their members see them. Any thread; no lock is held. */
#ifndef WEFT_UDP_WAIT_SET_H
#define WEFT_UDP_WAIT_SET_H

#include "objects.h"

/*
 * udp_set_join - add a queue or counter that is being opened to a wait set
 * @member: of it, zeroed; the rest of it is complete
 * @object: the queue or counter
 * @set:    what its attributes name; may be NULL or another object
 * @descriptor: readable while it may have something
 * Returns 0, -FI_EINVAL if @set is no wait set of @fabric, or another -FI_E*.
 */
int udp_set_join(struct udp_member *member, struct fid *object, struct fid_wait *set,
		 const struct udp_fabric *fabric, int descriptor);

/* udp_set_leave - remove it, if it is in a set */
void udp_set_leave(struct udp_member *member, int descriptor);

/*
 * udp_set_try - fi_trywait of a set. Returns 0: the program may sleep on it, -FI_EAGAIN: a member has
 * something, or another -FI_E*
 */
int udp_set_try(struct fid *set);

/* udp_wait_set_open - the slot of a fabric. Source: fi_poll(3) */
int udp_wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		      struct fid_wait **set);

#endif
