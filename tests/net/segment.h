/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * TCP over IPv4 as a router sees it: what a packet of a connection says, and segments that end the
 * connection at one of its ends as if the other one had sent them.
 */
#ifndef WEFT_NET_SEGMENT_H
#define WEFT_NET_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_RESET_LEN 40u /* bytes of a forged packet: both headers, without options */

/* A segment, in host byte order. */
struct segment {
	uint32_t from, to; /* IPv4 addresses */
	uint16_t from_port, to_port;
	uint32_t seq, ack; /* ack: 0 unless has_ack */
	uint32_t next;	   /* sequence number after its payload, SYN and FIN */
	bool syn, rst, has_ack;
};

/*
 * segment_read - read the headers of a packet
 * @packet: IP packet of @len bytes
 *
 * Returns true, or false if the packet is no TCP segment, or a fragment.
 * Source: RFC 791 section 3.1, RFC 9293 section 3.1.
 */
bool segment_read(struct segment *s, const uint8_t *packet, size_t len);

/*
 * segment_reset - make a packet with RST and ACK
 * @s:	    addresses and ports of its alleged sender and of the end that it resets
 * @seq:    the number that this end expects next: others are answered, not obeyed
 * @ack:    the number that this end sends next
 * @packet: out: SEGMENT_RESET_LEN bytes
 *
 * Source: RFC 9293 section 3.10.7, RFC 5961 section 3.2.
 */
void segment_reset(const struct segment *s, uint32_t seq, uint32_t ack,
		   uint8_t packet[SEGMENT_RESET_LEN]);

#endif
