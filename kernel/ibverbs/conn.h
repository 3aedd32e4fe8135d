/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conns of kofi_ibverbs: a link each (link.h), and what is under way on it. Called by the engine and by the wire's poll
 * with the domain held, which protects all of it.
 */
#ifndef KOFI_IBVERBS_CONN_H
#define KOFI_IBVERBS_CONN_H

#include "protocol.h"
#include "wire.h"

/* Messages that packets leave to the wire's own: of the peer's receives, and of this side's memory */
#define KIB_RESERVE 2u
/* Offers of a conn that are under way */
#define KIB_OFFERS 8u
/* The same of the peer: to it one is over before this side's last windows of it are shut */
#define KIB_OFFERED_MAX (KIB_OFFERS + KIB_WINDOWS)
/* Peers that have not said their hello, at most: each has queues and memory already */
#define KIB_GREETED_MAX 64u
/* Time that a peer has to say its hello, and that a refusal has to be delivered */
#define KIB_ANSWER_NS 5000000000u
/* How often the device of a peer is asked whether it is there */
#define KIB_PROBE_NS 5000000000u

enum kib_state {
	/* Dialled: the link is being made */
	KIB_DIALLING,
	/* Received: the peer's hello is expected */
	KIB_GREETED,
	/* The peer's hello has come: the engine has the request */
	KIB_REQUESTED,
	/* Dialled: the peer's answer is expected */
	KIB_ASKED,
	/* Accepted: up in the next poll */
	KIB_ACCEPTED,
	KIB_UP,
	/* The wire's alone: a refusal is being delivered */
	KIB_REFUSING,
};

/* Payload that this side has asked for: of a get(), or of an offer. */
struct kib_pull {
	/* in conn->pulls */
	struct list node;
	struct kib_conn *conn;
	/* NULL: of an offer; @cookie: of engine_payload_done() */
	struct wire_op *op;
	void *cookie;
	uint64_t id, total, asked;
	struct kib_range piece[WIRE_DEST_MAX];
	uint32_t piece_cnt, at_piece;
	size_t at_byte;
	/* Windows that are open for it */
	uint32_t open;
	int status;
};

/* One window: what was asked for by its key. */
struct kib_slot {
	struct kib_window *window;
	/* NULL: it is free */
	struct kib_pull *pull;
	uint32_t token;
	int status;
	/* The peer has answered: the window is being shut */
	bool answered;
};

enum kib_push_state {
	KIB_PUSH_FREE,
	/* The write is to be posted */
	KIB_PUSH_WRITE,
	/* The answer is to be sent */
	KIB_PUSH_ANSWER,
	/* The write has not ended */
	KIB_PUSH_WRITTEN,
};

/* What a peer has asked for. */
struct kib_push {
	struct kib_conn *conn;
	enum kib_push_state state;
	struct kib_ask ask;
	/* NULL: of a send */
	struct kib_offer *offer;
	struct kib_range piece[KIB_PIECES];
	uint32_t piece_cnt;
	bool writing;
	int err;
};

/* A sendv() whose payload the peer asks for. */
struct kib_offer {
	/* NULL: it is free */
	struct wire_op *op;
	uint32_t id, pushes, iov_cnt;
	uint64_t len, asked;
	bool last;
	struct iovec iov[WIRE_IOV_MAX];
};

struct kib_wire {
	struct wire wire;
	struct kib_port *port;
	struct kib_address where;
	/* struct kib_conn; those in the grave are freed when poll() ends */
	struct list conns, grave;
	uint32_t conn_cnt;
	/* poll() has something to report that nothing wakes for */
	bool due;
	bool dials, polling, closing;
};

struct kib_conn {
	struct wire_conn conn;
	/* in wire->conns, or in its grave */
	struct list node;
	struct kib_wire *wire;
	struct kib_link *link;
	enum kib_state state;
	/* The link has ended, with err; the engine hears of it when all that was received is handled */
	bool ended, buried, bye_received, bye_sent, hello_sent;
	/* Something waits for room */
	bool stuck;
	int err;
	/* Messages that the peer receives, and that this side has to tell that it receives again */
	uint32_t receives, depth, due;
	struct kib_message *claimed;
	uint64_t deadline_ns, probe_ns;
	/* The peer's; what this side says */
	struct hello hello, mine;
	struct kib_refusal refusal;

	/* Messages that wait behind one which ends a send that is being written */
	struct kib_done held[KIB_DEPTH];
	uint32_t held_cnt;
	/* sendv()s whose payload was copied */
	struct wire_ended sent;
	struct list pulls;
	/* Pulls of offers */
	uint32_t offered;
	struct kib_slot slots[KIB_WINDOWS];
	struct kib_push pushes[KIB_WINDOWS];
	struct kib_offer offers[KIB_OFFERS];
	uint32_t tokens;
};

static inline struct kib_wire *kib_wire_of(struct wire *wire)
{
	return container_of(wire, struct kib_wire, wire);
}

static inline struct kib_conn *kib_conn_of(struct wire_conn *conn)
{
	return container_of(conn, struct kib_conn, conn);
}

/* conn.c */

/* kib_conn_new - a conn of a link that is its own from then on; NULL without memory */
struct kib_conn *kib_conn_new(struct kib_wire *wire, struct engine_peer *peer,
			      enum kib_state state);
/* kib_conn_bury - end its link, and free it now or when poll() ends; the engine is not told */
void kib_conn_bury(struct kib_conn *c);
void kib_conn_free(struct kib_conn *c);
/* kib_conn_fail - the same, and the engine is told, in poll(). @err: why; 0: an orderly end */
void kib_conn_fail(struct kib_conn *c, int err);
/* kib_conn_broken - have poll() tell it. From any call */
void kib_conn_broken(struct kib_conn *c, int err);
/* kib_conn_turn - what has come, and what waited for room. In poll(). Returns how much has moved */
int kib_conn_turn(struct kib_conn *c);
/* kib_conn_closing - the same while the endpoint closes: nothing is handed on. Returns true once it is over */
bool kib_conn_closing(struct kib_conn *c);

/* kib_say - send a message of the wire's own. Returns false: no room now */
bool kib_say(struct kib_conn *c, enum kib_op op, const void *body, uint32_t len);
/* kib_say_ending - the same, and the key @key of the peer is given up by it */
bool kib_say_ending(struct kib_conn *c, enum kib_op op, const void *body, uint32_t len,
		    uint32_t key);
/* kib_head_put - the head of a message that is about to be sent */
void kib_head_put(struct kib_conn *c, void *to, enum kib_op op, uint32_t len);

/* connect.c */

/* kib_conn_step - what rdma_cm says of a link */
void kib_conn_step(struct kib_wire *wire, const struct kib_event *event);
/* kib_hello_say - say what this side asks for or answers, now or when there is room */
void kib_hello_say(struct kib_conn *c);

/* as in struct wire_ops */
int kib_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		const struct hello *hello, struct wire_conn **conn);
void kib_disconnect(struct wire_conn *conn);
void kib_accept(struct wire_conn *conn, const struct hello *hello);
void kib_refuse(struct wire_conn *conn, int err, const struct hello_data *data);
int kib_names(struct wire_conn *conn, struct weft_addr *local, struct weft_addr *remote);
void kib_part(struct wire_conn *conn);
int kib_join(struct wire_conn *conn, struct wire *wire);
void kib_drop(struct wire_conn *conn);

/* take.c */

/* kib_head_taken - check the head of a message, and take what it says of receives. Returns 0 or -FI_EINVAL */
int kib_head_taken(struct kib_conn *c, const struct kib_done *done, struct kib_head *head);
/*
 * kib_take - handle the message behind @head
 * Returns 0; 1: it waits behind a write; or -FI_E* that ends the conn. The conn may be buried afterwards.
 */
int kib_take(struct kib_conn *c, const struct kib_head *head, const uint8_t *bytes,
	     uint32_t given_up);

/* moves.c */

/* as in struct wire_ops */
int kib_get(struct wire_conn *conn, const struct wire_source *from, const struct iovec *iov,
	    size_t iov_cnt, struct wire_op *op);
/* kib_offer - sendv() of a payload that no message holds. Returns 0 or -FI_EAGAIN */
int kib_offer(struct kib_conn *c, const struct packet *hdr, const struct iovec *iov,
	      size_t iov_cnt, struct wire_op *op);

/* kib_offered, kib_asked, kib_answered, kib_taken - messages of the peer. Return 0, or -FI_E* that ends the conn */
int kib_offered(struct kib_conn *c, const struct kib_offer_say *say);
int kib_asked(struct kib_conn *c, const struct kib_ask *ask);
int kib_answered(struct kib_conn *c, const struct kib_answer *answer, uint32_t given_up);
int kib_taken(struct kib_conn *c, const struct kib_answer *answer);
/* kib_written, kib_shut - a write, or a window's end, is over. Return 0, or -FI_E* that ends the conn */
int kib_written(struct kib_conn *c, struct kib_push *push);
int kib_shut(struct kib_conn *c, struct kib_slot *slot);
/* kib_moves_go - what waited for room. Returns 0, or -FI_E* that ends the conn */
int kib_moves_go(struct kib_conn *c);
/* kib_moves_drop - the link has ended: nothing is reported */
void kib_moves_drop(struct kib_conn *c);
/*
 * kib_ends_send - what a packet says of a send whose memory is being written from here
 * Returns 0: nothing; 1: it waits until the write has ended; -FI_EINVAL: no peer of this version sends it then.
 */
int kib_ends_send(const struct kib_conn *c, const struct packet *packet);

#endif
