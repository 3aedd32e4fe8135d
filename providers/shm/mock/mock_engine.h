/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An engine for the tests of this wire: it answers and remembers. The linker puts its
 * __wrap_ functions in the place of the engine's own; packets of the tests are of kind
 * PACKET_DATA, which the inlined fast path hands on. Tests only.
 */
#ifndef WEFT_SHM_MOCK_ENGINE_H
#define WEFT_SHM_MOCK_ENGINE_H

#include "conn.h"
#include "shm.h"

/* One endpoint: a wire and what it reported to its engine. */
struct mock {
	struct wire *wire;
	struct weft_addr addr;
	struct hello hello;	     /* hello of this side */
	int refuse;		     /* -FI_E* by which requests are refused */
	bool later;		     /* requests are not answered by engine_conn_request() */
	struct wire_conn *request;   /* the last request */
	struct hello_data peer_data; /* private data of the last request or refusal */
	struct wire_conn *conn;	     /* the last one that came up, NULL once it is down */
	struct hello heard;	     /* hello of the other side of that conn */
	int ups, downs, down_err;
	int woken;
	/* Packets, in order of arrival. */
	uint32_t packets;
	uint64_t tags[512]; /* of the first ones */
	uint64_t next_tag;  /* tags below MOCK_BIG arrive in this order */
	bool garbled;	    /* payload or order was not as sent, fragments included */
	int packet_err;	    /* -FI_E* that engine_packet() answers */
	struct wire_conn *end_in_packet; /* to be disconnected from within engine_packet() */
	void (*in_packet)(void); /* called there, before payload is copied; NULL: nothing */
	/* Destination of payload that arrives in fragments. */
	unsigned char *room;
	size_t room_len;
	uint32_t room_iovs; /* 0: drop it */
	struct packet big;  /* the last one */
	uint32_t big_done;
	/* A send whose buffer the peer may read. */
	uint64_t offer_id;
	struct iovec offer[WIRE_IOV_MAX];
	uint32_t offer_cnt; /* 0: none */
	int poll_set;	    /* what it sleeps on; 0: none yet */
};

#define MOCK_BIG 1000000u /* tags of payload by sendv start here */

/* A sendv or get under way. */
struct mock_op {
	struct wire_op op;
	int done, status;
};

/* mock_open - an endpoint of the shm wire; asserts that it works */
void mock_open(struct mock *m);
/* mock_open_sharing - the same of a domain that shows its regions; as struct wire_attr has them */
void mock_open_sharing(struct mock *m, struct wire_share *share, uint64_t remote_events);
/* mock_close - end it, if it is open */
void mock_close(struct mock *m);

/* mock_accept - accept a request that waits in m->request */
void mock_accept(struct mock *m, struct wire_conn *conn);

/* mock_connect - begin to connect; returns what the wire's connect() does */
int mock_connect(struct mock *from, const struct weft_addr *to, struct wire_conn **conn);

/* mock_connected - connect to @addr, which is @to's if that is not NULL; asserts that it works */
void mock_connected(struct mock *from, struct mock *to, const struct weft_addr *addr);

/* mock_meet - two endpoints, of which @a has connected to @b; asserts that it works */
void mock_meet(struct mock *a, struct mock *b);

/* mock_hide_proc - /proc leads to no other process's descriptors any more, until sys_fault_clear() */
void mock_hide_proc(void);

/* mock_poll - one poll of each; NULL is left out */
void mock_poll(struct mock *a, struct mock *b);

/* mock_sweep - a thousand polls of each, in which a poll's rarest work is done; no core is given up */
void mock_sweep(struct mock *a, struct mock *b);

/*
 * mock_worked_ns - time for which this thread has run on a core: polling counts, waiting for a core
 * does not
 */
uint64_t mock_worked_ns(void);

/* Polls before mock_until() fails: 10 seconds may pass with few of them on a busy machine. */
#define MOCK_POLLS_MIN 20000u

/* mock_until - poll both until @cond, or fail after 10 seconds and MOCK_POLLS_MIN polls */
#define mock_until(a, b, cond)                                       \
	do {                                                         \
		uint64_t mock_end = platform_now_ns() + 10000000000; \
		uint32_t mock_polls = 0;                             \
		while (!(cond)) {                                    \
			mock_poll(a, b);                             \
			assert_true(++mock_polls < MOCK_POLLS_MIN || \
				    platform_now_ns() < mock_end);   \
		}                                                    \
	} while (0)

/* mock_poll_set - what it sleeps on, with its bell; asserts that there is one */
int mock_poll_set(struct mock *m);
/* mock_rings - returns true if a sleeping endpoint would be woken now */
bool mock_rings(struct mock *m);
/*
 * mock_arm_idle - poll it and arm it, until nothing is left of what connecting did. For how many
 * ns it may sleep
 */
uint64_t mock_arm_idle(struct mock *m);

/* mock_pattern - payload of the packet with this tag */
void mock_pattern(void *buf, size_t len, uint64_t tag);
/* mock_is_pattern - is it that */
bool mock_is_pattern(const void *buf, size_t len, uint64_t tag);

/* mock_put - claim and publish one packet with that payload; false when there is no room */
bool mock_put(struct wire_conn *conn, uint64_t tag, uint32_t len);

/* mock_sendv - send @len bytes at @buf in @iov_cnt pieces */
int mock_sendv(struct wire_conn *conn, uint64_t tag, void *buf, size_t len, size_t iov_cnt,
	       struct mock_op *op);

/* mock_op_init - for an op of get */
void mock_op_init(struct mock_op *op);

/* mock_get - read @from in the peer's memory, of its send @id. Returns what get returns */
int mock_get(struct wire_conn *conn, uint64_t id, const void *from, const struct iovec *iov,
	     size_t iov_cnt, struct mock_op *op);

#endif
