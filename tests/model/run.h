/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A run of the model test: its state, and the functions that its three files share. operate.c makes
 * random calls, observe.c compares their results with the model, model_test.c makes rounds of both.
 * One thread.
 */
#ifndef WEFT_MODEL_RUN_H
#define WEFT_MODEL_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include "access.h"
#include "atomics.h"
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
	OP_ACCESS,
};

#define MEMORY_MAX 3 /* pieces of a region */

/* What an access does, and where. */
struct access {
	uint8_t op; /* PACKET_WRITE, PACKET_READ, PACKET_ATOMIC */
	struct atomics_update update;
	struct packet_target targets[3]; /* key: enum region_kind, or none */
	uint32_t cnt;
	int refused; /* FI_E* that it ends with */
	bool large;  /* a rendezvous, or a read that is not answered in its turn */
	int slot;    /* a large write has the memory for itself; -1 */
	bool told;   /* an error is reported with its context */
	bool fenced;
	uint8_t *operand, *compare, *result, *expect; /* owned; result: of reads too */
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
	bool wants;   /* a completion is expected on success */
	bool done;    /* completed */
	bool cancelled;
	bool found;	 /* peek */
	bool rts;	 /* send: its payload stays with the sender until it is asked for */
	bool whole;	 /* send: its payload has arrived */
	bool lost;	 /* send: its payload will not come; receives that get it fail */
	bool exposed;	 /* its connection broke while it was under way: it may have failed */
	bool adrift;	 /* send: had not arrived when its connection broke: it may be lost */
	bool failed;	 /* receive: its only sender has closed */
	struct op *seen; /* peek: the message */
	uint64_t level;	 /* send: FI_DELIVERY_COMPLETE, FI_TRANSMIT_COMPLETE */
	struct access access;
	struct list data_link; /* access: run.data_due[to] */
	struct iovec iov[ENGINE_IOV_MAX];
	uint32_t cnt;
};

enum region_kind {
	REGION_ALL = 1, /* all of the memory */
	REGION_READ,	/* may be read only */
	REGION_PIECES,	/* some of the part that is kept in order */
	REGION_KINDS,
};

#define ORDERED_LEN 16384u /* memory whose contents the model predicts at any time */
#define SLOT_LEN    (64u << 10)
#define SLOTS	    4
#define MEMORY_LEN  (ORDERED_LEN + (1 + SLOTS) * SLOT_LEN) /* first slot: never written */

/* What peers reach at an end. */
struct memory {
	uint8_t *bytes, *mirror; /* contents of the memory by the model */
	struct fid_mr *mrs[REGION_KINDS];
	struct op *slots[SLOTS];			 /* that are being written */
	uint64_t events[FAKE_CNTRS], errors[FAKE_CNTRS]; /* what the counters have to say */
	uint64_t unsure;				 /* events that a break has left open */
};

struct run {
	struct fake_end ends[FAKE_ENDS_MAX];
	struct fake_end_attr attrs[FAKE_ENDS_MAX];
	int owner[FAKE_ENDS_MAX]; /* end whose address vector and queues an end uses */
	int cnt;
	fi_addr_t addr[FAKE_ENDS_MAX][FAKE_ENDS_MAX]; /* [owner][of] */
	bool service[FAKE_ENDS_MAX][FAKE_ENDS_MAX];
	struct ref ref;
	struct list ops, freed;
	struct op *recent[RECENT];
	struct op *claimed[RECENT];
	uint64_t next_id;
	uint64_t sequence;
	size_t credit_due; /* completions to come */
	uint32_t hunger;   /* how much the round prefers to post receives, of 256 */
	uint32_t bigness;  /* how often messages are large, of 256 */
	uint32_t chatter;  /* polls per operation, of 256 */
	bool closing;	   /* some endpoints are closed */
	uint32_t breaks;   /* how often connections break, of 65536 */
	uint32_t most;	   /* receives posted and messages stored at one end */
	uint32_t reach;	   /* how often it is a one-sided operation, of 256 */
	uint64_t nameless; /* refusals of injected operations, whose errors have no context of theirs */
	struct memory memory[FAKE_ENDS_MAX];
	struct list data_due[FAKE_ENDS_MAX]; /* struct op whose remote CQ data has not been read */
};

/* What the run has seen, so that a reader can tell what it is worth. */
struct run_seen {
	uint64_t ops, sends, full, receives, truncated, peeks, found, claims, cancels, silent;
	uint64_t packets, rendezvous, early, waits, bytes, rounds;
	uint64_t breaks, failed_sends, failed_receives, lost;
	uint64_t writes, reads, atomics, large, refused, fences, data_events, failed_accesses;
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

/* onesided.c */

/* memories_open - memory and regions of all ends; memories_close - nothing holds them any more */
void memories_open(void);
void memories_close(void);
/* memories_check - every end's memory is what the model says, as far as the model says */
void memories_check(void);
/* counters_check - the counters of an end, once all is quiet */
bool counters_agree(int end);
/* try_access - a one-sided operation of an end */
void try_access(int end);
/* access_carried - the request has its turn at its target */
void access_carried(struct op *op);
/* access_fenced - a request behind a fence has come: all before it has ended */
void access_fenced(struct op *op);
/* access_done - an operation has ended, and well: what it has brought and left is as it must be */
void access_done(struct op *op);
/* access_ended - what the engine wrote to is released; after access_done(), or without */
void access_ended(struct op *op);
/* access_free - free it in the model, too: until then its target may still execute it */
void access_free(struct op *op);
/* access_flags - of its completion */
uint64_t access_flags(const struct op *op);
/* access_cntr - which counter of its initiator counts it */
enum fake_cntr access_cntr(const struct op *op);
/* remote_data - an entry that reports a peer's write; @src: NULL or its source */
void remote_data(int owner, const struct fi_cq_tagged_entry *e, enum fi_cq_format format,
		 const fi_addr_t *src);

/* operate.c */

/* op_new - an operation of an end; op_drop - it did not come about */
struct op *op_new(enum op_kind kind, int end);
void op_drop(struct op *op);
/* some_dest - returns a random end that the end can send to, or -1 */
int some_dest(int end);
/* wants_by_default - is there a completion of a call without flags of its own */
bool wants_by_default(int end, uint64_t op_flags);

/* step - one random operation, and some polls */
void step(void);
/* receive_stored - post a receive for each kind of message that is stored at an endpoint */
void receive_stored(int end);
/* use_claim - receive or drop what a peek has claimed, if there is something in that slot */
void use_claim(uint32_t slot);
/* cancel_posted - cancel all receives that are posted */
void cancel_posted(void);
/* name_for - returns the address of an endpoint in the vector of @owner */
struct weft_addr name_for(int owner, int of);

#endif
