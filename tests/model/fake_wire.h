/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two wires that implement the contract of engine/wire/wire.h between the endpoints of one process,
 * and do everything that the contract allows: they delay, split, reorder the lanes, refuse for lack
 * of room, finish operations early or late, and break. One seeded sequence decides what they do in
 * each call, so that a run can be repeated.
 *
 * "fake-a" is like shared memory: it reaches endpoints of its own host by their nonce, or by their
 * service. "fake-b" is like a network: it reaches every endpoint that listens, by address and port.
 *
 * Called by the tests of the engine, on one thread, or on one for each domain: the wires have a
 * lock, which ranks after the domains'. A call of the engine that breaks the contract (a claim on a
 * conn that is not up, two claims, a packet above the limit, arming in a poll) aborts.
 */
#ifndef WEFT_FAKE_WIRE_H
#define WEFT_FAKE_WIRE_H

#include "engine.h"

enum fake_kind {
	FAKE_A,
	FAKE_B,
	FAKE_KINDS,
};

/* Chances are of 256. */
struct fake_knobs {
	uint32_t claim_max, eager_max, waits_min; /* bytes, see struct wire_ops */
	uint32_t claim_room;			  /* packets under way per direction */
	uint32_t sendv_room;			  /* operations under way per direction */
	uint32_t burst;	    /* packets of a lane that one poll delivers at most */
	uint16_t move;	    /* that a lane moves in a poll at all */
	uint16_t stall;	    /* that a lane begins to stand still for some polls */
	uint16_t refuse;    /* claim, sendv, connect: no room, for no reason */
	uint16_t split;	    /* payload of sendv arrives in pieces */
	uint16_t buffer;    /* sendv copies, and is done before it is delivered */
	uint16_t get_now;   /* get works at once; else, of the rest: */
	uint16_t get_later; /* get works later; else it is refused */
	uint16_t get_fails; /* of those later: fails after all */
	uint16_t deaf;	    /* arm promises no bell, but to be polled in time */
	uint16_t fickle;    /* arm says that there is something, and there is not */
	uint16_t spurious;  /* the bell of an armed wire rings for nothing */
	uint16_t proof;	    /* fake-a detects at once that an endpoint has closed */
	bool has_get;
	bool mute;    /* connections are never answered */
	bool no_bell; /* there are no descriptors */
	bool bare;    /* rings by engine_wire_wake() alone; constant while endpoints use it */
};

/* fake_knobs_default - a quick wire without whims */
void fake_knobs_default(struct fake_knobs *knobs);

/* fake_knobs_random - any wire that the contract allows */
void fake_knobs_random(struct fake_knobs *knobs);

/* fake_knobs_set - what a wire is from now on; the limits must not change while endpoints use it */
void fake_knobs_set(enum fake_kind kind, const struct fake_knobs *knobs);

/* fake_wires_register - make both known to the engine; may be called again */
void fake_wires_register(void);

/* fake_seed - begin the sequence that decides everything; without endpoints, ports begin anew too */
void fake_seed(uint64_t seed);

/* fake_random - a number below @n from a sequence of the wires' own */
uint32_t fake_random(uint32_t n);

/* fake_host - host number of endpoints that are enabled from now on: fake-a stays inside one */
void fake_host(uint32_t host);

/* fake_listen_at - the next endpoint that is enabled listens at this place of fake-b */
void fake_listen_at(const struct weft_addr *service);

/*
 * Callbacks for tests; NULL at first.
 *
 * packet: a header is about to be handed to the endpoint of @conn; @whole: with all its payload
 * payload: payload that arrived in pieces is whole
 * ended: it was reported to the engine that a conn is down, with @err as in engine_conn_down()
 * dropped: the engine is about to disconnect a conn that was up, on its own initiative
 */
struct fake_watch {
	void (*packet)(const struct wire_conn *conn, const struct packet *packet, bool whole);
	void (*payload)(const struct wire_conn *conn, const struct packet *packet);
	void (*ended)(const struct wire_conn *conn, int err);
	void (*dropped)(const struct wire_conn *conn);
};
extern struct fake_watch fake_watch;

/*
 * fake_break - break every conn between two endpoints
 * @err: what is reported to both sides; 0: as if the other had closed in order
 * It is reported by a later poll of each side. Returns how many conns there were.
 */
int fake_break(struct engine_ep *a, struct engine_ep *b, int err);

/* fake_stop - let nothing pass from one endpoint to the other, or let it pass again */
void fake_stop(struct engine_ep *from, struct engine_ep *to, bool stop);

/* fake_under_way - packets and operations that have not been delivered, on all wires */
uint32_t fake_under_way(void);

/* fake_armed_cnt - wires that are armed */
uint32_t fake_armed_cnt(void);

/* fake_conn_cnt - conns that exist, on all wires */
uint32_t fake_conn_cnt(void);

/*
 * A raw peer: a conn of an endpoint whose other end is the test itself.
 *
 * fake_raw_open - send @hello to an endpoint over fake-b, or over the only wire that it has; the
 * endpoint answers at once
 * Returns 0 and the conn, or the error with which the endpoint refused. Not called from a poll.
 */
struct fake_raw;
int fake_raw_open(struct engine_ep *to, const struct hello *hello, struct fake_raw **raw,
		  struct hello *answer);

/*
 * fake_raw_request - like fake_raw_open(), to an endpoint that may answer later
 * Returns 0 and the conn, which fake_raw_close() ends, or the error of an invalid hello.
 */
int fake_raw_request(struct engine_ep *to, const struct hello *hello, struct fake_raw **raw);

/*
 * fake_raw_answered - get the endpoint's answer to a request
 * @answer: out: its hello; of a refusal the data alone
 * Returns 0, -FI_E* of a refusal, or 1 without an answer.
 */
int fake_raw_answered(const struct fake_raw *raw, struct hello *answer);

/*
 * fake_raw_answer - send @hello to an endpoint that connects over fake-b to an address where no
 * endpoint is
 * Called before the wire's poll reports the failure. Returns 0 and the conn, -FI_ENOENT if the
 * endpoint waits for no such answer, or the error of an invalid hello, which was reported to the
 * endpoint.
 */
int fake_raw_answer(struct engine_ep *from, const struct hello *hello, struct fake_raw **raw);

/* fake_raw_hello - the hello of an endpoint at the host of @like that differs from all others */
void fake_raw_hello(struct hello *hello, const struct weft_addr *like, uint32_t window);

/*
 * fake_raw_send - have a packet arrive now, as its wire's poll would
 * @payload: @avail bytes, copied to a place of exactly that length
 * @rest:    written to where the engine wants it; NULL: leave it under way
 *
 * Returns what the engine returned; an error has ended the conn (fake_raw_alive() says so).
 */
int fake_raw_send(struct fake_raw *raw, const struct packet *packet, const void *payload,
		  size_t avail, const void *rest);

/* fake_raw_finish - what fake_raw_send() left under way arrives. Returns how many there were */
int fake_raw_finish(struct fake_raw *raw);

/*
 * fake_raw_read - take the next packet that the endpoint sent to the raw peer
 * @payload: room for @len bytes: what exceeds it is dropped
 * Returns 1, or 0 when there is none.
 */
int fake_raw_read(struct fake_raw *raw, struct packet *packet, void *payload, size_t len);

/* fake_raw_alive - has the conn not ended */
bool fake_raw_alive(const struct fake_raw *raw);

/* fake_raw_close - close the raw end; @err is reported to the endpoint if it still has the conn */
void fake_raw_close(struct fake_raw *raw, int err);

#endif
