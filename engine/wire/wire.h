/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The contract between the endpoint engine and a wire.
 *
 * A wire moves packets between two endpoints; it knows nothing of messages, tags or
 * completions. Shared memory is one, TCP is one, the fake wire of the tests is one.
 * An engine endpoint opens one struct wire of each kind that it uses; towards each peer
 * that it talks to there is at most one struct wire_conn per wire, usable in both
 * directions once it is up.
 *
 * Threads and locks: every call in either direction is made by the thread that holds the
 * endpoint's domain (FI_THREAD_DOMAIN: the caller's promise; FI_THREAD_SAFE: the domain's
 * lock). A wire has no lock of its own towards the engine.
 *
 * Re-entrancy: a wire calls the engine (wire_events below) only from within its poll(), but for
 * engine_wire_wake(); connect() and accept steps may call nothing else at all. Engine code called
 * from poll() may call claim, publish, sendv, get, connect and disconnect of any wire, the polling one
 * included; a wire must therefore not hold iterators across a call to the engine that those would
 * break (a conn that is disconnected during poll() is freed no earlier than the end of that poll()).
 *
 * Order: packets that are claimed and published on one conn arrive in that order. What sendv
 * carries travels on a lane of its own and may overtake them or be overtaken; the engine restores
 * message order by packet.seq. Control packets never wait behind the payload of sendv. What direct
 * does is in no order with any of that: the engine asks taken() first, and holds back what comes later.
 *
 * Sleeping: who is about to sleep arms every wire of its domain, and sleeps on their bells without
 * holding the domain; any number of threads may sleep at once, and each arms anew. What else moves
 * while somebody sleeps: a call of another thread. When that leaves something for poll(), and no bell
 * tells of it, the wire calls engine_wire_wake().
 *
 * Delivery: while a conn is up, everything published or accepted by sendv arrives once and whole,
 * or the conn goes down with an error. After conn_down the wire touches no memory of the engine
 * and calls no done() for that conn: the engine fails what was in flight.
 */
#ifndef WEFT_WIRE_H
#define WEFT_WIRE_H

#include "packet.h"

struct engine_access;
struct engine_ctx;
struct engine_ep;
struct engine_peer;
struct engine_msg;
struct fi_provider;
struct mr_memory;

/* What a domain shows to peers over one kind of wire: its key table. The wire's own. */
struct wire_share;

#define WIRE_IOV_MAX  8u
#define WIRE_DEST_MAX 64u /* pieces of where a payload goes: targets, in pieces each */
#define WIRE_REQUEST_MAX \
	8192u /* payload of a one-sided request, bytes: operands and what names them */

#define WIRE_FILL_MIN 512u /* payload from which on fill() is asked */

/* A wire's endpoint. The wire's own struct starts with it. */
struct wire {
	const struct wire_ops *ops;
	struct engine_ep *ep;
	/* place in the engine endpoint's list of wires; set by the engine */
	uint32_t idx;
};

/* A wire's state for one peer. The wire's own struct starts with it. */
struct wire_conn {
	struct wire *wire;
	/* NULL until the engine knows it */
	struct engine_peer *peer;
	/* hello exchanged in both directions: claim and sendv may be called */
	bool up;
	/* the engine's; the wire zeroes them */
	uint64_t tx_msgs, tx_bytes, rx_msgs, rx_bytes;
};

/*
 * An operation that the wire finishes later. Embedded in the engine's own object, which
 * stays in place until done() or conn_down().
 */
struct wire_op {
	/* 0 or -FI_E*; only from poll() */
	void (*done)(struct wire_op *op, int status);
	/* the wire's, while it has the operation */
	struct wire_op *next;
	uint64_t wire_private;
	/* of a get that ends with -FI_EBUSY; see there */
	uint64_t moved;
};

/* What get() reads: memory of the peer, as the peer named it. */
struct wire_source {
	/* engine_offered() knows it by that there */
	uint64_t id;
	uint32_t iov_cnt;
	/* addresses of the peer's */
	struct iovec iov[WIRE_IOV_MAX];
};

/*
 * Where the payload of an arriving packet goes. Filled by the engine in its answer to a header.
 * Payload beyond the iov is read and dropped by the wire.
 */
struct wire_dest {
	struct iovec iov[WIRE_DEST_MAX];
	/* 0: drop all of it */
	uint32_t iov_cnt;
	/* given back in engine_payload_done(); NULL: engine does not want to be called */
	void *cookie;
};

/* What an endpoint asks a wire to be. Borrowed during open(). */
struct wire_attr {
	/* family, port, ip to listen at; port 0: any; family 0: the default */
	const struct weft_addr *bind;
	/* operations that the endpoint can have under way */
	size_t tx_size;
	/* of its domain, for this kind of wire; NULL: there is none */
	struct wire_share *share;
	/* FI_REMOTE_READ, FI_REMOTE_WRITE: of these it has to be told, by packet */
	uint64_t remote_events;
	/* endpoints of one are held together; NULL: of none */
	const void *domain;
	/* peers know the nonce of its address: several may be found at one place */
	bool by_nonce;
};

/* A one-sided access to registered memory of the peer. */
struct wire_access {
	/* else read */
	bool write;
	const struct packet_target *targets;
	/* 1 to PACKET_TARGET_MAX */
	uint32_t target_cnt;
	/* as many bytes as the targets have together */
	const struct iovec *iov;
	/* at most WIRE_IOV_MAX */
	size_t iov_cnt;
};

struct wire_ops {
	/* of this struct: it grows at the end */
	size_t size;
	/* of the wire and its provider: "shm" */
	const char *name;

	/*
	 * Most payload of a message that is sent by claim/publish; at least 64. claim() has room for
	 * WIRE_REQUEST_MAX whatever this is.
	 */
	uint32_t claim_max;
	/* Most payload that is sent eagerly (by sendv when above claim_max); larger ones make a rendezvous. */
	uint32_t eager_max;
	/* Nothing that is claimed once a sendv is done overtakes its header. */
	bool in_order;
	/* What is published, and what a sendv has done, reaches the receiver even if this process ends. */
	bool arrives;
	/* get() may work: the receiver may read the sender's memory (PACKET_PULL). */
	bool has_get;
	/*
	 * What was published may wait for poll() (it is gathered), or an answer is found by a system call
	 * only: after each send the engine polls in every round again, also to take completions.
	 */
	bool polls_after_send;
	/* poll() has just copied payload that comes with its packet (out of a socket, say): this core has it. */
	bool payload_local;

	/*
	 * open - make the wire's endpoint: listen, be findable
	 * @addr: in: what other wires have filled; out: this wire's own fields added
	 * Returns 0 and the wire, owned; or -FI_E* and one sentence in @why (why_len bytes).
	 */
	int (*open)(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
		    struct wire **wire, char *why, size_t why_len);

	/*
	 * close - orderly end: what was published is delivered if the peer lives, then every conn
	 * ends without conn_down. May block for up to a second. The wire is freed.
	 */
	void (*close)(struct wire *wire);

	/*
	 * connect - start to connect to @addr for @peer
	 * @hello: what we say; copied
	 *
	 * Returns 0 and the conn (conn_up or conn_down follows from poll()),
	 * -FI_EHOSTUNREACH when this wire can't reach such an address (another wire may),
	 * -FI_ECONNREFUSED when it is proven that nobody is there any more,
	 * -FI_EAGAIN when the wire is out of room for now, or another -FI_E*.
	 */
	int (*connect)(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		       const struct hello *hello, struct wire_conn **conn);

	/*
	 * disconnect - end one conn without calling the engine; operations under way are dropped
	 * The conn is the wire's to free from here on. Where the peer is writing into memory of a get() this
	 * waits until that is over, for up to a second.
	 */
	void (*disconnect)(struct wire_conn *conn);

	/*
	 * claim - room for one packet with @len bytes of payload, at most claim_max or WIRE_REQUEST_MAX
	 * @payload: out: where the payload is to be written (behind the header or elsewhere)
	 * Returns the header to fill, or NULL when there is no room now (nothing happened). A claimed
	 * packet is published before any other call on the conn.
	 */
	struct packet *(*claim)(struct wire_conn *conn, size_t len, void **payload);

	/*
	 * publish - send the claimed packet
	 * @more: another one follows at once (FI_MORE): the wire may wait for it
	 */
	void (*publish)(struct wire_conn *conn, struct packet *packet, bool more);

	/*
	 * sendv - send a header and its payload (hdr->len bytes) from the caller's memory
	 * @hdr: copied; @iov: array copied, memory borrowed until op->done() or conn_down
	 * Returns 0, or -FI_EAGAIN when too many are under way (nothing happened).
	 */
	int (*sendv)(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
		     size_t iov_cnt, struct wire_op *op);

	/*
	 * get - read the peer's memory into @iov, until iov is full
	 * @from: copied; its pieces have as many bytes as @iov or more
	 * @iov:  array copied, memory borrowed until op->done() or conn_down. The peer may be asked to write
	 *	  there too, and has ended that then.
	 * Returns 1 when it is done already (op->done is not called), 0 when op->done() will be called,
	 * or -FI_E* when it can't be done (nothing usable in @iov; the engine asks the sender instead).
	 * done() may bring an error likewise; and -FI_EBUSY where the sender attends and copies faster: then the
	 * first op->moved bytes are there, less than all, and the engine asks for the rest. The engine
	 * sets that to 0 before.
	 */
	int (*get)(struct wire_conn *conn, const struct wire_source *from,
		   const struct iovec *iov, size_t iov_cnt, struct wire_op *op);

	/*
	 * poll - move everything that can move without waiting; calls the engine
	 * Bounded work per call. The engine leaves out a wire that moves nothing for a while:
	 * see polls_after_send. Returns the number of packets and operations that moved.
	 */
	int (*poll)(struct wire *wire);

	/*
	 * check - is the peer still there, for conns with work pending; up to about once a millisecond
	 * Returns 0 or the error that ends the conn (the engine then calls disconnect).
	 */
	int (*check)(struct wire_conn *conn);

	/* local - printable local address for reports, or an empty string */
	void (*local)(struct wire *wire, char *buf, size_t len);

	/*
	 * send - the engine's fast path over this wire: engine_send_on() of send.h, instantiated by the
	 * provider with its own constant ops
	 */
	ssize_t (*send)(struct engine_ep *ep, struct engine_peer *peer,
			const struct engine_msg *msg);

	/* It moves payload through memory that both processes map or may read. */
	bool shares_memory;

	/*
	 * hold - send the claimed packet together with the next one on this conn, which is likely to follow
	 * It leaves in the next poll at the latest, and by itself within a second when none comes. NULL:
	 * nothing would be gained, publish() it.
	 */
	void (*hold)(struct wire_conn *conn, struct packet *packet);

	/*
	 * fill - copy @len bytes, WIRE_FILL_MIN or more, into a claimed packet's payload
	 * @to: where claim() said, or behind it
	 * NULL: it does not matter how.
	 */
	void (*fill)(struct wire_conn *conn, void *to, const struct iovec *iov, size_t iov_cnt,
		     size_t len);

	/*
	 * bell - a descriptor that is readable while the wire is armed and poll() may have something
	 * The wire's own, or the same one for several wires of a domain; closed with the last of them.
	 * Whoever gets it polls for reading and does nothing else with it. In the child of a fork that the
	 * wire does not work in: none.
	 * @poll_set: what the caller sleeps on (platform_poll_set), and puts that descriptor into. Until it is
	 * closed the wire may put others into it, and take them out. The same one each time
	 * Returns it, or -FI_E* when there can be none: the engine naps for a millisecond at most. So
	 * it does when this is NULL, unless there is arm: then what comes to the wire comes from calls of
	 * this domain alone, and the wire tells of it by engine_wire_wake().
	 */
	int (*bell)(struct wire *wire, int poll_set);

	/*
	 * arm - from now on the bell rings: it is readable as soon as poll() may have something
	 * What poll() may have is a packet, the end of an operation, a step of a connection or its end,
	 * but not room for what was refused: while something waits for that the engine looks once a
	 * millisecond. A bell may ring for nothing. Called also while the wire is armed: a bell that has
	 * rung, and for which poll() has been since, is silent then.
	 * Returns 0 when poll() has something now (nothing is armed then: the engine polls and comes
	 * again), else for how many ns at most the caller may sleep before it polls again:
	 * UINT64_MAX for as long as it likes, less while something has to be looked at in time
	 * (a retry, a connection of which no bell tells).
	 */
	uint64_t (*arm)(struct wire *wire);

	/*
	 * disarm - nobody sleeps any more: whoever sends pays nothing for waking from now on
	 * The bell is silent afterwards, where it can be silenced without poll(). Not called from within
	 * poll(). Again: nothing happens.
	 */
	void (*disarm)(struct wire *wire);

	/*
	 * share_open - what a domain shows of its regions to peers that look for themselves
	 * @memory: out: where its key table (tables/mr.h) gets its shared side; valid until share_close()
	 * The endpoints of the domain are opened with it; their wires are closed before it.
	 * Returns 0 and the share, owned, or -FI_E*. NULL, as are the next three: nobody can look.
	 */
	int (*share_open)(struct wire_share **share, struct mr_memory *memory);
	void (*share_close)(struct wire_share *share);

	/*
	 * share_used - does a peer access the region at that index of the table, now
	 * After mr_invalidate(): false means that nothing is read or written any more. A peer that ended
	 * meanwhile, or whose conn did, is no reason to return either answer: it is whether it still may.
	 */
	bool (*share_used)(struct wire_share *share, uint32_t index);

	/*
	 * taken - have all packets of this conn, the headers of sendv too, been handed to the peer's engine
	 * False when it can't be told yet. Not NULL where there is direct.
	 */
	bool (*taken)(struct wire_conn *conn);

	/* Least length for which direct() is better than a packet, bytes. */
	uint64_t direct_min;

	/*
	 * direct - read or write memory of the peer by its keys, without it
	 * @access: borrowed during the call, but for the memory that its iov names, which is borrowed
	 *	    until the end of the operation
	 *
	 * Returns 1 when it is done already (op->done is not called), 0 when op->done() will be called,
	 * or -FI_E* when it can't be done so: the engine sends a request by packet, which says what is
	 * wrong with the access if anything is. done() may bring an error likewise. Some of the bytes may
	 * have been moved then. -FI_EBUSY: the peer attends to its endpoint, and packets are faster.
	 */
	int (*direct)(struct wire_conn *conn, const struct wire_access *access,
		      struct wire_op *op);

	/*
	 * Least payload of a sendv that may be told to wait, more than can be claimed: see engine_packet().
	 * What is claimed and published does not wait behind it. 0: none may.
	 */
	uint32_t waits_min;

	/*
	 * access - a small one-sided operation to a peer that is ready and whose route this is:
	 * engine_access_on() of now.h, instantiated like send. Not NULL.
	 * Returns false when there was no room (nothing happened).
	 */
	bool (*access)(struct engine_ctx *ctx, struct engine_peer *peer,
		       const struct engine_access *access);
};

/*
 * What a wire calls. All only from within poll(), but for engine_wire_wake().
 */

/*
 * engine_accept - a peer that opened a connection said hello
 * @hello:  checked by hello_check() already
 * @answer: out: what to say back
 *
 * Returns 0 and the peer (the wire sets conn->peer, answers, and then calls engine_conn_up), or
 * -FI_E* to refuse. -FI_EALREADY: our own connection to the same endpoint is under way or up on this
 * wire and takes precedence (simultaneous open: the endpoint with the smaller epoch is the one whose
 * connection stays); the wire tells the other side, whose wire calls engine_conn_down(-FI_EALREADY).
 * When a conn of ours to the same endpoint gives way to this one, the engine has disconnected
 * it before it returns.
 */
int engine_accept(struct wire *wire, const struct hello *hello, struct engine_peer **peer,
		  struct hello *answer);

/*
 * engine_conn_up - hello has been exchanged; conn->peer is set, conn->up was set by the wire
 * @hello: the other side's
 */
void engine_conn_up(struct wire_conn *conn, const struct hello *hello);

/*
 * engine_conn_down - the conn ended or could not be made
 * @err: -FI_E*, or 0 for the peer's orderly close
 * The conn is the wire's to free after the call; packets received before were delivered before.
 */
void engine_conn_down(struct wire_conn *conn, int err);

/*
 * engine_wire_wake - poll() has something to do because of a call, while the wire is armed
 * From within any call of the wire that is not part of a poll(): nothing is done but waking who sleeps.
 */
void engine_wire_wake(struct wire *wire);

/*
 * engine_packet - a packet's header arrived (engine_packet_on() in arrive.h is the inlined form)
 * @packet:  private copy
 * @payload: the first @avail bytes of its payload; memory that the other side may change
 * @dest:    where the rest goes
 *
 * With avail == packet->len the payload is consumed on return and @dest is not touched.
 * Otherwise @dest is filled: the wire writes the whole payload there (the first @avail bytes
 * too) and then calls engine_payload_done(), unless the conn goes down first.
 * Returns 0; or -FI_EAGAIN for one with waits_min bytes or more that has not its turn: nothing happened,
 * and the wire hands it on again after it has moved something else, or soon (other wires may have); or
 * -FI_E* for a packet that no peer of this version sends: the wire ends the conn with that error.
 */
int engine_packet(struct engine_ep *ep, struct wire_conn *conn, const struct packet *packet,
		  const void *payload, size_t avail, struct wire_dest *dest);

/*
 * engine_offered - where is what the peer says it reads with get(): bytes of a send of ours, or none
 * @id:	  wire_source.id, from the peer
 * @skip: where the part begins in the whole; with @len, untrusted too
 * @iov:  out: room for WIRE_IOV_MAX
 * Returns how many pieces. They are the send's as long as the wire calls nothing else; 0: they are nobody's.
 */
size_t engine_offered(const struct wire_conn *conn, uint64_t id, uint64_t skip, uint64_t len,
		      struct iovec *iov);

/* engine_payload_done - the payload of a packet stands in its dest whole */
void engine_payload_done(struct engine_ep *ep, struct wire_conn *conn, void *cookie);

/*
 * The wires of this library. A provider registers its wire from its entry point; the link
 * and the provider's own endpoints use what is registered.
 */
#define WIRE_LAYOUT 4u /* of struct engine_ep and the inlined fast paths: same build */

struct wire_provider {
	size_t size;
	uint32_t version;
	/* WIRE_LAYOUT */
	uint32_t layout;
	const struct wire_ops *ops;
};

/* wire_register - @wp must stay; idempotent. Returns 0 or -FI_EINVAL for another layout */
int wire_register(const struct wire_provider *wp);
/* wire_find - the registered wire of that name, or NULL */
const struct wire_provider *wire_find(const char *name);

#endif
