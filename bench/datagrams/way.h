/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ways in which weft-datagrams exchanges datagrams of 8 bytes. One thread each. */
#ifndef WEFT_BENCH_DATAGRAMS_WAY_H
#define WEFT_BENCH_DATAGRAMS_WAY_H

#include <netinet/in.h>

#define LEN   8
#define BURST 32

struct way {
	/* open - open one end at the loopback interface, and tell its address */
	void (*open)(struct sockaddr_in *name);
	/* meet - the address of the other end */
	void (*meet)(const struct sockaddr_in *peer);
	/* send - send @cnt datagrams, at most BURST */
	void (*send)(int cnt);
	/* receive - returns how many have come, at most @cnt, which is at most BURST; does not wait */
	int (*receive)(int cnt);
};

/* A libfabric's provider udp; a socket with a system call for each; one with sendmmsg and recvmmsg. */
extern const struct way way_udp, way_socket, way_batch;

/* must - end the program with a reason if a call failed */
void must(int ok, const char *what);

#endif
