/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Segments; segment.h has the contract. Called by the forwarder, one thread. */
#include <netinet/in.h>
#include <string.h>
#include "segment.h"

#define IP_LEN	20u
#define TCP_LEN 20u

#define FLAG_FIN 0x01u
#define FLAG_SYN 0x02u
#define FLAG_RST 0x04u
#define FLAG_ACK 0x10u

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, (uint16_t)(value >> 16));
	put16(at + 2, (uint16_t)value);
}

bool segment_read(struct segment *s, const uint8_t *packet, size_t len)
{
	size_t ip_len, tcp_len, total;
	const uint8_t *tcp;
	uint8_t flags;

	if (len < IP_LEN || packet[0] >> 4 != 4 || packet[9] != IPPROTO_TCP)
		return false;
	ip_len = (packet[0] & 15u) * 4u;
	total = get16(packet + 2);
	if (ip_len < IP_LEN || total > len || total < ip_len + TCP_LEN ||
	    get16(packet + 6) & 0x3fffu)
		return false;
	tcp = packet + ip_len;
	tcp_len = (tcp[12] >> 4) * 4u;
	if (tcp_len < TCP_LEN || total < ip_len + tcp_len)
		return false;
	flags = tcp[13];
	*s = (struct segment){ .from = get32(packet + 12),
			       .to = get32(packet + 16),
			       .from_port = get16(tcp),
			       .to_port = get16(tcp + 2),
			       .seq = get32(tcp + 4),
			       .has_ack = flags & FLAG_ACK,
			       .syn = flags & FLAG_SYN,
			       .rst = flags & FLAG_RST };
	if (s->has_ack)
		s->ack = get32(tcp + 8);
	s->next = s->seq + (uint32_t)(total - ip_len - tcp_len) + s->syn + !!(flags & FLAG_FIN);
	return true;
}

/* Adds words of 16 bits; Source: RFC 1071. */
static uint32_t add_words(uint32_t sum, const uint8_t *at, size_t len)
{
	for (; len > 1; len -= 2, at += 2)
		sum += get16(at);
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffffu) + (sum >> 16);
	return (uint16_t)~sum;
}

void segment_reset(const struct segment *s, uint32_t seq, uint32_t ack,
		   uint8_t packet[SEGMENT_RESET_LEN])
{
	uint8_t *tcp = packet + IP_LEN;

	memset(packet, 0, SEGMENT_RESET_LEN);
	packet[0] = 4 << 4 | IP_LEN / 4;
	put16(packet + 2, SEGMENT_RESET_LEN);
	packet[8] = 64; /* hops */
	packet[9] = IPPROTO_TCP;
	put32(packet + 12, s->from);
	put32(packet + 16, s->to);
	put16(packet + 10, fold(add_words(0, packet, IP_LEN)));
	put16(tcp, s->from_port);
	put16(tcp + 2, s->to_port);
	put32(tcp + 4, seq);
	put32(tcp + 8, ack);
	tcp[12] = TCP_LEN / 4 << 4;
	tcp[13] = FLAG_RST | FLAG_ACK;
	put16(tcp + 16, fold(add_words(IPPROTO_TCP + TCP_LEN, packet + 12, 8 + TCP_LEN)));
}
