/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A peer of the provider rds that speaks by a socket of its own, over mock_datagram.c. One thread. */
#ifndef WEFT_RDS_RAW_H
#define WEFT_RDS_RAW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "conn.h"

struct raw {
	int fd;
	union ip_sockaddr where;
	/* The endpoint, and later its socket of the conn */
	union ip_sockaddr to;
	/* This peer's id of the conn, and the endpoint's, of its hello or its answer; 0: none has come */
	uint64_t id, to_id;
	uint32_t number;
	/* Datagrams that have come, by their op, and the last one's error */
	uint32_t got[16];
	uint32_t err;
};

/* raw_open - a peer of the endpoint with this name, a sockaddr_in. Returns 0 or -FI_E* */
int raw_open(struct raw *raw, const void *name);
void raw_close(struct raw *raw);

/* raw_hear - take what has come */
void raw_hear(struct raw *raw);

/* raw_say - send a datagram. Returns as rds_socket_send() */
int raw_say(struct raw *raw, const struct rds_head *head, const void *body, size_t len);

/* raw_head - the right one for @len bytes; raw_greeting - of an endpoint of its own each time */
struct rds_head raw_head(const struct raw *raw, uint8_t op, size_t len);
struct rds_greeting raw_greeting(const struct raw *raw);

#endif
