/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How many connections each user has, so that none takes the lender's descriptors and threads away from the others. Any
 * thread.
 */
#ifndef WEFT_DEVICES_LENDER_CONNECTIONS_H
#define WEFT_DEVICES_LENDER_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct connections;

/* connections_create - returns NULL without memory; @of_a_user: that a user may have */
struct connections *connections_create(uint32_t of_a_user);

void connections_destroy(struct connections *connections);

/* connections_user - who is at the other end of a socket, or was when it connected; -1: it is not known */
uid_t connections_user(int fd);

/* connections_begin - count one more of a user. Returns false, and it is not counted: there are as many as may be, or no memory */
bool connections_begin(struct connections *connections, uid_t uid);

/* connections_end - one that was counted has ended */
void connections_end(struct connections *connections, uid_t uid);

#endif
