/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The reference model: message order and matching as fi_msg(3) and fi_tagged(3) define them, with
 * nothing but lists that are walked from the front.
 *
 * Messages from one endpoint to another arrive in the order they were sent. A message that arrives
 * matches the receive that was posted first of those that fit; without one it is stored. A receive
 * that is posted takes the message that arrived first of those that fit. The order in which
 * messages of different senders arrive is free: the test reports to the model which packet the wire
 * hands over next, and from there on everything is determined.
 */
#ifndef WEFT_REFERENCE_H
#define WEFT_REFERENCE_H

#include "list.h"

#define REF_ENDS_MAX 4
#define REF_ANYONE   (-1)

enum ref_msg_state {
	REF_SENT,      /* not arrived in its turn */
	REF_STORED,    /* arrived, matched by no receive yet */
	REF_CLAIMED,   /* reserved by a peek */
	REF_MATCHED,   /* a receive has it */
	REF_DISCARDED, /* dropped by the receiver */
	REF_CANCELLED, /* taken back by the sender */
	REF_FAILED,    /* the connection broke before it left */
	REF_CARRIED,   /* a one-sided request that has had its turn */
};

struct ref_recv;

struct ref_msg {
	struct list link; /* stored */
	int from, to;
	bool tagged;
	bool access; /* a one-sided request: in the same order, and matched with nothing */
	uint64_t tag;
	enum ref_msg_state state;
	struct ref_recv *recv; /* REF_MATCHED */
};

struct ref_recv {
	struct list link; /* posted */
	int from;	  /* or REF_ANYONE */
	bool tagged;
	uint64_t tag, ignore;
	bool posted;
	struct ref_msg *msg; /* that it got */
};

/* Messages from one endpoint to another, in the order they were sent. */
struct ref_pair {
	struct ref_msg **msgs;
	bool *here; /* its header has arrived */
	size_t cnt, cap;
	size_t turn; /* the next that arrives in its turn */
	uint64_t first_seq;
};

struct ref {
	struct list posted[REF_ENDS_MAX][2]; /* by tagged */
	struct list stored[REF_ENDS_MAX][2];
	struct ref_pair pairs[REF_ENDS_MAX][REF_ENDS_MAX]; /* [from][to] */
	size_t posted_cnt[REF_ENDS_MAX], stored_cnt[REF_ENDS_MAX];
	/* called when a receive and a message have found each other */
	void (*matched)(struct ref_recv *recv, struct ref_msg *msg);
	/* called when a one-sided request has its turn */
	void (*carried)(struct ref_msg *msg);
};

void ref_init(struct ref *ref);
void ref_fini(struct ref *ref);

/* ref_send - @msg was sent: from, to, tagged and tag are set */
void ref_send(struct ref *ref, struct ref_msg *msg);

/* ref_unsend - @msg was taken back; false when its header has arrived: that can't be */
bool ref_unsend(struct ref *ref, struct ref_msg *msg);

/*
 * ref_header - the message with that sequence number reaches its receiver
 * Returns it, or NULL when no such message was sent, or it arrived before. ref_turns() follows.
 */
struct ref_msg *ref_header(struct ref *ref, int from, int to, uint32_t seq);

/* ref_turns - let everything arrive that has its turn */
void ref_turns(struct ref *ref, int from, int to);

/*
 * ref_cut_sender, ref_cut_receiver - the sender's or the receiver's end of a connection broke
 * @left: so many messages had left the sender; the others never do
 */
void ref_cut_sender(struct ref *ref, int from, int to, size_t left);
void ref_cut_receiver(struct ref *ref, int from, int to);

/* ref_fits - the first stored message that a receive would get, or NULL */
struct ref_msg *ref_fits(struct ref *ref, int at, const struct ref_recv *recv);

/* ref_take - a stored message leaves the store for @state */
void ref_take(struct ref *ref, struct ref_msg *msg, enum ref_msg_state state);

/* ref_give - a receive gets a message that is not stored (any more) */
void ref_give(struct ref *ref, struct ref_recv *recv, struct ref_msg *msg);

/* ref_post - a receive is posted at an endpoint */
void ref_post(struct ref *ref, int at, struct ref_recv *recv);

/* ref_cancel - false when it is not posted any more */
bool ref_cancel(struct ref *ref, int at, struct ref_recv *recv);

#endif
