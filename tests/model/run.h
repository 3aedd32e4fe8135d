/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A run of the model test: its state, and what its three files do for each other. operate.c
 * makes random calls, observe.c compares what comes of them with the model, model_test.c makes
 * rounds of both. One thread.
 */
#ifndef WEFT_MODEL_RUN_H
#define WEFT_MODEL_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include "fake_ends.h"
#include "reference.h"
#include <cmocka.h>

#define LEN_MAX	  (64u << 10)
#define RECENT	  64
#define UNTOUCHED 0xc7

enum op_kind {
	OP_SEND,
	OP_RECV,
	OP_PEEK,
};

struct op {
	struct list link; /* run.ops */
	enum op_kind kind;
	int end;
	struct ref_msg msg;
	struct ref_recv recv;
	uint64_t id;
	uint64_t data;
	size_t len; /* of the message, or room of the receive */
	bool has_data;
	bool unknown; /* send: the receiver did not know us when it arrived */
	bool wants;   /* a completion when all goes well */
	bool done;    /* completed */
	bool cancelled;
	bool found;	 /* peek */
	bool rts;	 /* send: its payload stays with the sender until it is asked for */
	bool whole;	 /* send: its payload has arrived */
	bool lost;	 /* send: its payload will not come; receives that get it fail */
	bool exposed;	 /* its connection broke while it was under way: it may have failed */
	bool adrift;	 /* send: had not arrived when its connection broke: it may be lost */
	bool failed;	 /* receive: its only sender is gone */
	struct op *seen; /* peek: the message */
	struct iovec iov[ENGINE_IOV_MAX];
	uint32_t cnt;
};

struct run {
	struct fake_end ends[FAKE_ENDS_MAX];
	struct fake_end_attr attrs[FAKE_ENDS_MAX];
	int owner[FAKE_ENDS_MAX]; /* whose address vector and queues an end uses */
	int cnt;
	fi_addr_t addr[FAKE_ENDS_MAX][FAKE_ENDS_MAX]; /* [owner][of] */
	bool service[FAKE_ENDS_MAX][FAKE_ENDS_MAX];
	struct ref ref;
	struct list ops, freed;
	struct op *recent[RECENT];
	struct op *claimed[RECENT];
	uint64_t next_id;
	uint64_t sequence;
	size_t owed;	  /* completions to come */
	uint32_t hunger;  /* how much the round prefers to post receives, of 256 */
	uint32_t bigness; /* how often messages are large, of 256 */
	uint32_t chatter; /* polls per operation, of 256 */
	bool closing;	  /* some endpoints are closed */
	uint32_t breaks;  /* how often connections break, of 65536 */
	uint32_t most;	  /* receives posted and messages stored at one end */
};

/* What the run has seen, so that a reader can tell what it is worth. */
struct run_seen {
	uint64_t ops, sends, full, receives, truncated, peeks, found, claims, cancels, silent;
	uint64_t packets, rendezvous, early, bytes, rounds;
	uint64_t breaks, failed_sends, failed_receives, lost;
};

extern struct run run;
extern struct run_seen seen;
extern uint64_t round_seed;
extern int round_test;
extern bool run_trace;

#define FAIL(...)                                                                           \
	do {                                                                                \
		print_error(__VA_ARGS__);                                                   \
		print_error("\nreproduce with MODEL_SEED=%llu MODEL_OPS=1 MODEL_TEST=%d\n", \
			    (unsigned long long)round_seed, round_test);                    \
		fail();                                                                     \
	} while (0)

#define CHECK(cond, ...)                   \
	do {                               \
		if (!(cond))               \
			FAIL(__VA_ARGS__); \
	} while (0)

#define TRACE(...)                           \
	do {                                 \
		if (run_trace)               \
			printf(__VA_ARGS__); \
	} while (0)

/* below, chance - the run's own random numbers; chances are of 256 */
uint32_t below(uint32_t n);
bool chance(uint32_t of_256);

static inline struct op *op_of_msg(struct ref_msg *msg)
{
	return container_of(msg, struct op, msg);
}

static inline fi_addr_t addr_of(int end, int of)
{
	return run.addr[run.owner[end]][of];
}

/* observe.c */

/* pattern_into - write the bytes of an operation's message where the operation wants them */
void pattern_into(struct op *op);
/* op_iov_alloc - memory of op->len bytes in @cnt pieces; op_iov_free - overwrite and release it */
void op_iov_alloc(struct op *op, uint32_t cnt);
void op_iov_free(struct op *op);
/* check_bytes - a receive has the bytes of @msg as far as there is room, and no others */
void check_bytes(struct op *op, struct op *msg);
/* observe_begin - watch the wires, and tell the model */
void observe_begin(void);
/* poke - read the queues of an endpoint, and check what they say */
void poke(int end);

/* operate.c */

/* step - one random operation, and some polls */
void step(void);
/* receive_stored - post a receive for each kind of message that is stored at an endpoint */
void receive_stored(int end);
/* use_claim - receive or drop what a peek has claimed, if there is something in that slot */
void use_claim(uint32_t slot);
/* cancel_posted - cancel all receives that are posted */
void cancel_posted(void);
/* name_for - the address by which the vector of @owner knows an endpoint */
struct weft_addr name_for(int owner, int of);

#endif
