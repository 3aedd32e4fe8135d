/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The peer of rds_raw.h. */
#include <string.h>
#include "rds_raw.h"

static uint8_t room[RDS_DATAGRAM_MAX];

int raw_open(struct raw *raw, const void *name)
{
	memset(raw, 0, sizeof(*raw));
	memcpy(&raw->to.in, name, sizeof(raw->to.in));
	raw->where = raw->to;
	ip_sockaddr_set_port(&raw->where, 0);
	raw->fd = rds_socket_open(&raw->where, &raw->where);
	raw->id = 0x1234567890u;
	return raw->fd < 0 ? raw->fd : 0;
}

void raw_close(struct raw *raw)
{
	sys_socket_close(raw->fd);
}

void raw_hear(struct raw *raw)
{
	union ip_sockaddr from;
	struct rds_greeting greeting;
	struct rds_head head;

	while (rds_socket_recv(raw->fd, &from, room, sizeof(room)) >= (ssize_t)sizeof(head)) {
		memcpy(&head, room, sizeof(head));
		raw->got[head.op % 16]++;
		if (head.op == RDS_END || head.op == RDS_REFUSE)
			memcpy(&raw->err, room + sizeof(head), sizeof(raw->err));
		if (head.op != RDS_ANSWER && head.op != RDS_HELLO)
			continue;
		memcpy(&greeting, room + sizeof(head), sizeof(greeting));
		raw->to = from;
		raw->to_id = greeting.id;
	}
}

int raw_say(struct raw *raw, const struct rds_head *head, const void *body, size_t len)
{
	struct iovec iov[2] = { { (void *)head, sizeof(*head) }, { (void *)body, len } };

	return rds_socket_send(raw->fd, &raw->to, iov, 2);
}

struct rds_head raw_head(const struct raw *raw, uint8_t op, size_t len)
{
	return (struct rds_head){ .magic = RDS_MAGIC,
				  .version = RDS_VERSION,
				  .op = op,
				  .to = raw->to_id,
				  .number = raw->number,
				  .len = (uint32_t)len };
}

struct rds_greeting raw_greeting(const struct raw *raw)
{
	static uint8_t number;
	struct rds_greeting g = { .id = raw->id,
				  .hello = { .magic = HELLO_MAGIC,
					     .version = HELLO_VERSION,
					     .kind = HELLO_RDM,
					     .epoch = 77,
					     .window = 65536,
					     .seq = 5 } };

	g.hello.addr = (struct weft_addr){ .version = ADDR_VERSION,
					   .kind = ADDR_NONCE,
					   .nonce = { 1, 2, 3, ++number, 9 } };
	ip_sockaddr_get(&raw->where, &g.hello.addr);
	return g;
}
