/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A bad network: a process that copies IP packets between two TUN devices and loses, delays,
 * reorders and repeats some, is cut off for a while, and resets TCP connections with segments that
 * both ends believe. What happens to the n-th packet is a function of the seed; when a packet
 * comes is not.
 */
#ifndef WEFT_NET_FORWARD_H
#define WEFT_NET_FORWARD_H

#include <stdatomic.h>
#include <stdint.h>
#include "node.h"
#include "tunnel.h"

/* In memory that the test and the forwarder share; may be changed at any time. */
struct forward {
	uint64_t seed; /* before it starts */
	/*
	 * Packets per million that are lost, repeated, late by up to 3 ms, and that reset their
	 * connection
	 */
	_Atomic uint32_t lose, repeat, late, reset;
	_Atomic uint32_t delay_us; /* of every packet, in one direction */
	_Atomic bool cut;	   /* all packets are lost */
	/* Packets until cut is set; counts down; 0: it is left alone */
	_Atomic uint64_t cut_in;
	/* Packets of TCP until the one that resets its connection; counts down; 0: none */
	_Atomic uint64_t reset_in;
	/* What it did, in packets; resets: connections */
	_Atomic uint64_t taken, lost, repeated, delayed_more, cut_off, overflowed, resets;
};

/* What forward_start() needs beside the memory of @f. */
struct forward_stage {
	struct stage stage;
	struct forward forward;
	struct tunnel tunnels[2];
};

/* forward_start - a process that forwards until it is killed, for @secs at most */
pid_t forward_start(struct forward_stage *s, unsigned int secs);

/* forward_report - print what was done */
void forward_report(const struct forward *f);

#endif
