/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The contract between the endpoint engine and a wire.
 *
 * A wire moves packets between two endpoints and knows nothing of messages, tags or completions.
 * Shared memory and TCP are wires, and so is the fake wire of the tests. An engine endpoint opens
 * one struct wire of each kind that it uses. A struct wire_conn leads to one peer, and is usable in
 * both directions once it is up. A peer may have several over one wire, its rails; a wire does not
 * tell them apart.
 *
 * Threads and locks: every call in either direction is made by the thread that holds the domain of
 * the endpoint (domain/guard.h): with FI_THREAD_DOMAIN the program guarantees that there is one,
 * otherwise the thread has the domain's lock. No lock of a wire is held across a call to the
 * engine. The exception to both is engine_wire_wake(), which is called from any context.
 *
 * Re-entrancy: a wire calls the engine (the functions behind struct wire_ops) only from its poll();
 * the exception is engine_wire_wake(). connect() and accept() in particular call nothing else. The
 * engine, called from poll(), may call claim, publish, sendv, get, connect, accept, refuse and
 * disconnect of any wire, the polling one included. A wire therefore keeps no iterator across a
 * call to the engine that those calls would invalidate. A conn that is disconnected during poll()
 * is freed no earlier than the end of that poll().
 *
 * Requests: a wire that receives a connection request makes a conn and passes it to the engine by
 * engine_conn_request(). The engine owns the request until it answers by accept() or refuse():
 * within that call, later, or never if the endpoint closes first. Until then the wire keeps the
 * conn and reports nothing of it, even if the requester gives up or dies, and the engine calls
 * nothing else for it. The requester decides how long it waits; the endpoint bounds the number of
 * requests that it leaves unanswered.
 *
 * Order: packets that are claimed and published on one conn arrive in that order. The payload of
 * sendv may travel on a lane of its own: it may overtake published packets and be overtaken by
 * them, and the engine restores the order of messages by packet.seq. Control packets never wait
 * behind the payload of sendv. Accesses by direct are not ordered with packets: the engine calls
 * taken() before it starts one, and holds back later operations until it ends.
 *
 * Sleeping: a thread that is about to sleep arms every wire of its domain, and sleeps on their
 * bells without holding the domain. Any number of threads may sleep at once; each arms the wires
 * again. While they sleep, other threads may make calls. A wire rings by its bell, which is a
 * descriptor, or by engine_wire_wake(), which needs none. It may use both: the bell for what comes
 * over the network, say, and engine_wire_wake() for work that a call leaves for poll().
 *
 * Delivery: while a conn is up, everything that was published or accepted by sendv arrives once and
 * whole, or the conn goes down with an error. After engine_conn_down() the wire accesses no memory
 * of the engine for that conn and calls no done(): the engine fails the operations that were in
 * flight.
 */
#ifndef WEFT_WIRE_H
#define WEFT_WIRE_H

#include "list.h"
#include "packet.h"

struct engine_access;
struct engine_ctx;
struct engine_ep;
struct engine_peer;
struct engine_msg;
struct fi_provider;
struct mr_memory;
struct mr_ops;

/* The key table that a domain shows to its peers over one kind of wire. Defined by the wire. */
struct wire_share;

#define WIRE_IOV_MAX 8u
/* Most entries of a struct wire_dest: PACKET_TARGET_MAX targets, each in several pieces */
#define WIRE_DEST_MAX 64u
/*
 * Largest payload of a one-sided request, bytes: struct packet_targets, the request's struct,
 * operands
 */
#define WIRE_REQUEST_MAX 8192u

/* Least length, in bytes, for which the engine calls fill() */
#define WIRE_FILL_MIN 512u

/* A wire's endpoint. First member of the wire's own struct. */
struct wire {
	const struct wire_ops *ops;
	struct engine_ep *ep;
	/* Index in ep->wires; set by the engine */
	uint32_t idx;
};

/* A wire's state for one peer. First member of the wire's own struct. */
struct wire_conn {
	struct wire *wire;
	/* Set by connect(), and by the engine before accept(); NULL: an unanswered request */
	struct engine_peer *peer;
	/* Hellos were exchanged in both directions: claim and sendv may be called */
	bool up;
	/*
	 * wire_ops.access of the wire, set by the engine when it is linked to its peer; the wire may
	 * replace it by one that does more
	 */
	bool (*access)(struct engine_ctx *ctx, struct engine_peer *peer,
		       const struct engine_access *access);

	/* What follows belongs to the engine; zeroed by the wire. */
	/* This side connected */
	bool ours;
	/* engine_conn_up() has taken it: it may be the peer's route */
	bool joined;
	/* It is the peer's route, or was: packets of this side may be lost with it */
	bool routed;
	/* hello.rail of both sides */
	uint16_t rail;
	/* Traffic */
	uint64_t tx_msgs, tx_bytes, rx_msgs, rx_bytes;
	/* Link in peer->conns; zero before */
	struct list link;
};

/*
 * An operation that the wire completes later. Embedded in an object of the engine, which stays in
 * place until done() or engine_conn_down().
 */
struct wire_op {
	/* done - called once, from poll(), with 0 or -FI_E* */
	void (*done)(struct wire_op *op, int status);
	/* Belong to the wire until done() */
	struct wire_op *next;
	uint64_t wire_private;
	/* Bytes copied by a get() that ends with -FI_EBUSY; 0 before */
	uint64_t moved;
};

/* Operations whose done() is to be called, in order, by next. Zeroed it has none. */
struct wire_ended {
	struct wire_op *first, *last;
};

static inline void wire_ended_add(struct wire_ended *ended, struct wire_op *op)
{
	op->next = NULL;
	if (ended->first)
		ended->last->next = op;
	else
		ended->first = op;
	ended->last = op;
}

/* Returns the first one, which is no longer there, or NULL. */
static inline struct wire_op *wire_ended_take(struct wire_ended *ended)
{
	struct wire_op *op = ended->first;

	if (op)
		ended->first = op->next;
	return op;
}

/* Source of get(): memory of the peer, as the peer described it. */
struct wire_source {
	/* Id of the send at the peer, looked up there by engine_offered() */
	uint64_t id;
	uint32_t iov_cnt;
	/* Addresses in the peer's address space */
	struct iovec iov[WIRE_IOV_MAX];
};

/*
 * Destination of the payload of an arriving packet. Filled by the engine when it is handed the
 * header. The wire reads and discards payload beyond the iov.
 */
struct wire_dest {
	struct iovec iov[WIRE_DEST_MAX];
	/* 0: the whole payload is discarded */
	uint32_t iov_cnt;
	/* Argument of engine_payload_done(); NULL: the engine does not need that call */
	void *cookie;
};

/* Properties of an endpoint that a wire is opened for. Borrowed during open(). */
struct wire_attr {
	/* Family, IP address and port to listen at; port 0: any; family 0: the wire's default */
	const struct weft_addr *bind;
	/* Number of operations that the endpoint may have under way */
	size_t tx_size;
	/* Share of the domain for this kind of wire; NULL: none */
	struct wire_share *share;
	/*
	 * FI_REMOTE_READ, FI_REMOTE_WRITE: such accesses are sent by packet, since they are counted
	 * here
	 */
	uint64_t remote_events;
	/*
	 * Identifies the domain: one thread at a time holds all endpoints of it; NULL: belongs to
	 * none
	 */
	const void *domain;
	/* Peers know the nonce of the address, so that several endpoints may share a port */
	bool by_nonce;
	/*
	 * The endpoint connects and no peer connects to it: it listens nowhere, and its address has
	 * no network part. @bind is where its connections come from
	 */
	bool dials;
};

/* A one-sided access to registered memory of the peer. */
struct wire_access {
	/* True: write; false: read */
	bool write;
	const struct packet_target *targets;
	/* 1 to PACKET_TARGET_MAX */
	uint32_t target_cnt;
	/* Local memory: as many bytes as the targets together */
	const struct iovec *iov;
	/* At most WIRE_IOV_MAX */
	size_t iov_cnt;
};

struct wire_ops {
	/* Size of this struct, bytes; new members are appended */
	size_t size;
	/* Name of the wire and of its provider, such as "shm" */
	const char *name;

	/*
	 * Largest payload of a message that is sent by claim and publish, bytes; at least 64.
	 * claim() accepts WIRE_REQUEST_MAX in any case.
	 */
	uint32_t claim_max;
	/*
	 * Largest payload that is sent eagerly, bytes: by sendv above claim_max. Larger ones use a
	 * rendezvous.
	 */
	uint32_t eager_max;
	/*
	 * A packet that is claimed after the done() of a sendv does not overtake the header of that
	 * sendv.
	 */
	bool in_order;
	/*
	 * A packet that was published, or whose sendv is done, reaches the receiver even if this
	 * process ends.
	 */
	bool arrives;
	/*
	 * Published packets may be gathered until poll(), or only a system call finds the answer:
	 * after a send the engine polls the wire in every round again, and reads that find
	 * completions make a round too.
	 */
	bool polls_after_send;
	/*
	 * poll() copies payload that comes with its packet, so that it is in the cache of this
	 * core.
	 */
	bool payload_local;

	/*
	 * open - open the wire's endpoint: it listens, and peers can find it
	 * @attr:    borrowed during the call
	 * @addr:    in: the fields that other wires have filled; out: the fields of this wire as
	 *           well
	 * @wire:    out: the wire, owned by the caller until close()
	 * @why:     out: on failure, one sentence that gives the reason
	 * @why_len: room in @why, bytes
	 * Returns 0 or -FI_E*. -FI_EACCES: what shall keep strangers out is not to be had, so that
	 * the endpoint is not opened over other wires either.
	 */
	int (*open)(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
		    struct wire **wire, char *why, size_t why_len);

	/*
	 * close - end all conns in an orderly way, and free the wire
	 * Published packets are delivered if the peer lives. Unanswered requests are refused, and
	 * the engine must not answer them any more. engine_conn_down() is not called. May block for
	 * up to a second.
	 */
	void (*close)(struct wire *wire);

	/*
	 * connect - start to connect to @peer
	 * @addr:  address of the peer
	 * @hello: the hello of this side; copied
	 * @conn:  out: the conn
	 *
	 * engine_conn_up(), engine_conn_refused() or engine_conn_down() follows from poll().
	 * Returns 0, or
	 * -FI_EHOSTUNREACH: this wire can't reach such an address; another wire may,
	 * -FI_ECONNREFUSED: it is proven that no endpoint is at the address any more,
	 * -FI_EAGAIN: the wire has no resources left for now,
	 * or another -FI_E*.
	 */
	int (*connect)(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		       const struct hello *hello, struct wire_conn **conn);

	/*
	 * disconnect - end one conn
	 * The engine is not called, and operations under way are dropped. The wire owns the conn
	 * from here on. While the peer writes into the memory of a get() the call waits for it, for
	 * up to a second.
	 */
	void (*disconnect)(struct wire_conn *conn);

	/*
	 * claim - reserve room for one packet
	 * @len:     bytes of payload; at most claim_max, or WIRE_REQUEST_MAX if that is larger
	 * @payload: out: where the caller writes the payload; not necessarily behind the header
	 * Returns the header, which the caller fills, or NULL: no room now, nothing happened. A
	 * claimed packet is published or held before any other call on the conn.
	 */
	struct packet *(*claim)(struct wire_conn *conn, size_t len, void **payload);

	/*
	 * publish - send the claimed packet
	 * @more: another packet follows at once (FI_MORE); the wire may wait for it
	 */
	void (*publish)(struct wire_conn *conn, struct packet *packet, bool more);

	/*
	 * sendv - send a header and its payload from the caller's memory
	 * @hdr: copied; hdr->len bytes of payload follow
	 * @iov: the array is copied; its memory is borrowed until op->done() or engine_conn_down()
	 * Returns 0, or -FI_EAGAIN: too many are under way, nothing happened.
	 */
	int (*sendv)(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
		     size_t iov_cnt, struct wire_op *op);

	/*
	 * get - read memory of the peer into @iov until that is full
	 * @from: copied; at least as many bytes as @iov
	 * @iov:  the array is copied; its memory is borrowed until op->done() or
	 *	  engine_conn_down(). The wire may have the peer write there too; the peer has
	 *	  stopped by then.
	 * @op:	  op->moved is 0
	 *
	 * Returns 1: done, op->done() is not called; 0: op->done() will be called; or -FI_E*: it
	 * can't be done, the contents of @iov are undefined, and the engine asks the sender for the
	 * payload. The status of op->done() may be such an error too, or -FI_EBUSY: the sender
	 * polls and copies faster. Then the first op->moved bytes, fewer than all, are there, and
	 * the engine asks for the rest.
	 * NULL: the receiver can't read the sender's memory (PACKET_PULL), and always asks for it.
	 */
	int (*get)(struct wire_conn *conn, const struct wire_source *from,
		   const struct iovec *iov, size_t iov_cnt, struct wire_op *op);

	/*
	 * poll - make progress without waiting; calls the engine
	 * The work of one call is bounded. The engine polls a wire less often after polls that
	 * moved nothing, see polls_after_send.
	 * Returns the number of packets and operations that moved.
	 */
	int (*poll)(struct wire *wire);

	/*
	 * check - check that the peer is alive
	 * Called about once a millisecond for conns with work pending, more rarely for others.
	 * Returns 0, or the error that ends the conn: the engine then calls disconnect. NULL: no
	 * peer dies without the wire's knowing.
	 */
	int (*check)(struct wire_conn *conn);

	/* local - write the local address for reports; the empty string, or NULL: there is none */
	void (*local)(struct wire *wire, char *buf, size_t len);

	/*
	 * send - the fast path of a send over this wire
	 * engine_send_on() of message/send.h, instantiated by the provider with its constant ops.
	 */
	ssize_t (*send)(struct engine_ep *ep, struct engine_peer *peer,
			const struct engine_msg *msg);
	/*
	 * tsend, tinject, tsenddata, tinjectdata - the same for the call of that name, whose peer
	 * is known
	 * Called with the domain entered, which they leave: as the last step of a call they need
	 * no stack frame. engine_tagged_on() or engine_wire_tsend() of message/send.h.
	 */
	ssize_t (*tsend)(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			 size_t len, uint64_t tag, void *context);
	ssize_t (*tinject)(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			   size_t len, uint64_t tag);
	ssize_t (*tsenddata)(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			     size_t len, uint64_t tag, void *context, uint64_t data);
	ssize_t (*tinjectdata)(struct engine_ctx *ctx, struct engine_peer *peer,
			       const void *buf, size_t len, uint64_t tag, uint64_t data);

	/*
	 * Largest payload of the straight line of message/brief.h, bytes, at most 32; 0: the wire
	 * has none, and the functions that follow are NULL. It is inlined in tsend and its like,
	 * and nothing in it is a call.
	 *
	 * has_brief - returns true if claim_brief() may be called; else claim() decides
	 * claim_brief - claim() for a line that this side has at hand
	 * publish_brief - publish() without waking the peer; returns true if wake() has to follow
	 * wake - wake a peer that sleeps, or does not poll this conn
	 */
	uint32_t brief_max;
	bool (*has_brief)(const struct wire_conn *conn);
	struct packet *(*claim_brief)(struct wire_conn *conn, void **payload);
	bool (*publish_brief)(struct wire_conn *conn, struct packet *packet);
	void (*wake)(struct wire_conn *conn);

	/* Payload moves through memory that both processes map or may read. */
	bool shares_memory;

	/*
	 * hold - send the claimed packet together with the next one on this conn, which is likely
	 * to follow
	 * The packet is sent by the next poll at the latest, and without one within a second.
	 * NULL: the wire gains nothing by that; the caller uses publish.
	 */
	void (*hold)(struct wire_conn *conn, struct packet *packet);

	/*
	 * fill - copy payload into a claimed packet
	 * @to:	 the address that claim() returned, or one behind it
	 * @len: bytes, WIRE_FILL_MIN or more
	 * NULL: the wire does not prefer any way of copying.
	 */
	void (*fill)(struct wire_conn *conn, void *to, const struct iovec *iov, size_t iov_cnt,
		     size_t len);

	/*
	 * bell - get a descriptor that is readable while the wire is armed and poll() may have
	 * something
	 * @poll_set: poll set on which the caller sleeps, and to which it adds the descriptor.
	 *	      Until that is closed the wire may add other descriptors to it and remove them.
	 *	      The same in every call.
	 *
	 * The descriptor is owned by the wire, or shared by several wires of a domain and closed
	 * with the last of them. The caller polls it for reading and does nothing else with it.
	 * Returns the descriptor, or -FI_E*: there is none, also in the child of a fork in which
	 * the wire does not work. The engine then sleeps for a millisecond at most. The same holds
	 * if this is NULL, unless there is arm: then the wire reports everything by
	 * engine_wire_wake(), and has no descriptor.
	 */
	int (*bell)(struct wire *wire, int poll_set);

	/*
	 * arm - ring from now on: the bell is readable, or engine_wire_wake() is called, as soon as
	 * poll() may have something
	 * That is a packet, the end of an operation, a step of a connection or its end, but not
	 * room after claim or sendv were refused: while an operation waits for room the engine
	 * polls once a millisecond. A bell may ring without need. Called also while the wire is
	 * armed: a bell that has rung, and for which poll() was called since, is silent afterwards.
	 *
	 * Returns 0: poll() has something now, and the wire is not armed; the engine polls and
	 * calls again. Otherwise the longest time in ns to sleep before the next poll: UINT64_MAX
	 * if there is no limit, less while something happens without a bell (a retry, a connection
	 * step).
	 */
	uint64_t (*arm)(struct wire *wire);

	/*
	 * disarm - no thread sleeps any more: senders no longer ring
	 * The bell is silent afterwards, if that is possible without poll(). Not called from within
	 * poll(). Has no effect on a wire that is not armed.
	 */
	void (*disarm)(struct wire *wire);

	/*
	 * share_open - open what a domain shows of its regions to peers that use direct
	 * @share:  out: owned by the caller until share_close()
	 * @memory: out: provides the shared part of the key table (tables/mr.h); valid until
	 *          share_close()
	 * @regions: how many regions the domain has, with keys and without; valid until then too
	 *
	 * The endpoints of the domain are opened with the share, and closed before it. NULL,
	 * together with share_close, share_used, taken and direct: peers can't access memory by
	 * keys.
	 * Returns 0 or -FI_E*.
	 */
	int (*share_open)(struct wire_share **share, struct mr_memory *memory,
			  const _Atomic uint32_t *regions);
	void (*share_close)(struct wire_share *share);

	/*
	 * share_used - returns true if a peer accesses the region at @index of the key table
	 * Called after mr_invalidate(); once it returns false the region is neither read nor
	 * written any more. The end of the peer or of its conn does not decide the answer: only
	 * whether it may still access.
	 */
	bool (*share_used)(struct wire_share *share, uint32_t index);

	/*
	 * share_marked - share_used(), by a thread that need not hold the domain, where a short look
	 * tells
	 * The conns of the domain do not change meanwhile (engine_conns_change()). It changes nothing.
	 * Returns true if a peer may access the region: share_used() tells. NULL: it always may.
	 */
	bool (*share_marked)(const struct wire_share *share, uint32_t index);

	/*
	 * share_cut - take the memory of a region away from peers that do not end their accesses
	 * @addr, @len: of the region
	 * Called after share_used() has returned true for long; may wait for a second. The contents of the
	 * memory stay, as memory of this process alone.
	 * Returns true if it is not written any more by those who use it, and nothing that they read
	 * of it reaches their programs; false: that is not possible. NULL: it never is.
	 */
	bool (*share_cut)(struct wire_share *share, uint32_t index, const void *addr,
			  size_t len);

	/*
	 * taken - returns true if the peer's engine has been handed all packets of this conn, the
	 * headers of sendv too
	 * Returns false while that is not known. Not NULL if direct is not.
	 */
	bool (*taken)(struct wire_conn *conn);

	/* Least length for which direct is faster than a packet, bytes. */
	uint64_t direct_min;

	/*
	 * direct - read or write memory of the peer by its keys, without the peer's participation
	 * @access: borrowed during the call; the memory of its iov is borrowed until the operation
	 *          ends
	 *
	 * Returns 1: done, op->done() is not called; 0: op->done() will be called; or -FI_E*: it
	 * can't be done this way. The engine then sends a request by packet, and the target reports
	 * what is wrong with the access, if anything. -FI_EBUSY: the peer polls its endpoint, and
	 * packets are faster. The status of op->done() may be such an error too. After an error
	 * some of the bytes may have been moved.
	 */
	int (*direct)(struct wire_conn *conn, const struct wire_access *access,
		      struct wire_op *op);

	/*
	 * reach - begin an access to memory of the peer by this processor's loads and stores
	 * @target: range of a region of the peer, not empty
	 * @kind:   FI_REMOTE_READ, FI_REMOTE_WRITE: what the caller is about to do
	 *
	 * The caller makes the access at once, without a call of the wire in between, and then
	 * calls reached(). NULL, together with reached: the wire has no memory of peers.
	 * Returns where the range is mapped, or NULL: it is not, or the peer does not allow it; the
	 * engine sends a request then.
	 */
	void *(*reach)(struct wire_conn *conn, const struct packet_target *target,
		       uint64_t kind);
	/*
	 * reached - the access is over
	 * @kind: as for reach
	 * Returns true if the peer has allowed it until now. If not, what was loaded may be anything,
	 * and what was stored may be lost, but is nowhere else.
	 */
	bool (*reached)(struct wire_conn *conn, uint64_t kind);

	/*
	 * stored - returns true if a peer has stored to memory of this process by itself since the last
	 * call, as far as the wire looks: a hint
	 * Called about as often as the core is yielded. NULL: no peer can.
	 */
	bool (*stored)(struct wire *wire);

	/*
	 * lends - returns true if the peer can read this memory itself: sendv is faster then than claim
	 * @len: lends_min or more, at most claim_max
	 * NULL: no peer can.
	 */
	bool (*lends)(struct wire_conn *conn, const void *buf, size_t len);
	uint32_t lends_min;
	/*
	 * lent - returns true while a peer has not read what is lent to it
	 * What was published behind that is lost if the conn ends now. NULL if lends is.
	 */
	bool (*lent)(const struct wire *wire);

	/*
	 * Least payload of a sendv to which engine_packet() may answer -FI_EAGAIN, bytes; more than
	 * claim_max. Published packets do not wait behind such a payload. 0: engine_packet() never
	 * answers so.
	 */
	uint32_t waits_min;

	/*
	 * access - the fast path of a small one-sided operation, to a peer that is ready and routed
	 * over this wire
	 * engine_access_on() of onesided/now.h, instantiated like send. Not NULL.
	 * Returns false: no room, nothing happened.
	 */
	bool (*access)(struct engine_ctx *ctx, struct engine_peer *peer,
		       const struct engine_access *access);

	/*
	 * accept - accept a request: it is a conn of conn->peer from now on
	 * @hello: the hello of this side; copied
	 *
	 * engine_conn_up() follows from poll(), or engine_conn_down() if the requester has given up
	 * or died; neither before engine_conn_request() for this conn has returned.
	 */
	void (*accept)(struct wire_conn *conn, const struct hello *hello);

	/*
	 * refuse - refuse a request: a requester that still waits receives @err and @data by
	 * engine_conn_refused()
	 * @err:  -FI_E*
	 * @data: copied; NULL: none
	 * The wire owns the conn from here on.
	 */
	void (*refuse)(struct wire_conn *conn, int err, const struct hello_data *data);

	/* How regions are registered with the device of the wire; NULL: it needs none (mr_ops.h). */
	const struct mr_ops *mr;

	/*
	 * What MSG endpoints need besides. NULL, all four: the wire connects RDM endpoints alone.
	 *
	 * names - the addresses of both ends of an unanswered request, or of a conn that is up
	 * @local, @remote: out: service addresses
	 * Returns 0 or -FI_E*.
	 */
	int (*names)(struct wire_conn *conn, struct weft_addr *local, struct weft_addr *remote);
	/*
	 * part - take an unanswered request away from its wire: it belongs to none until join() or
	 * drop(), and the thread that has it may call either
	 * Not called from within poll().
	 */
	void (*part)(struct wire_conn *conn);
	/*
	 * join - a request that was parted is one of @wire, of another endpoint and domain
	 * The engine answers it as any request. The requester reaches the endpoint of @wire for
	 * what it connects besides, at the address in the hello of accept().
	 * Returns 0 or -FI_E*: the request is parted still.
	 */
	int (*join)(struct wire_conn *conn, struct wire *wire);
	/* drop - end and free a request that was parted: its requester sees a broken connection */
	void (*drop)(struct wire_conn *conn);

	/*
	 * get() finds the payload by wire_source.id alone: no address of the sender's is told to the peer, and
	 * a payload in several pieces is read at once.
	 */
	bool get_by_id;
};

/*
 * The functions that a wire calls: only from poll(), but for engine_wire_wake(),
 * engine_conns_change(), engine_conn_busy() and engine_conn_awaited().
 */

/*
 * engine_conn_request - a peer requests a connection, and has sent its hello
 * @conn:  not up and without a peer; the engine owns it until accept() or refuse()
 * @hello: passed hello_check(); borrowed during the call
 *
 * A refusal by -FI_EALREADY: simultaneous open; the connection that this endpoint opened to the
 * same peer on this wire and rail is under way or up, and stays because this endpoint's epoch is
 * smaller. With the larger epoch the engine disconnects its own one before it accepts.
 */
void engine_conn_request(struct wire_conn *conn, const struct hello *hello);

/*
 * engine_conn_refused - the other side has refused the connection that this side opened
 * @err:  -FI_E*
 * @data: passed hello_data_check(); borrowed during the call
 * The wire frees the conn after the call.
 */
void engine_conn_refused(struct wire_conn *conn, int err, const struct hello_data *data);

/*
 * engine_conn_up - hellos have been exchanged
 * @conn:  its peer and up are set
 * @hello: hello of the other side
 */
void engine_conn_up(struct wire_conn *conn, const struct hello *hello);

/*
 * engine_conn_down - the conn has ended, or could not be made
 * @err: -FI_E*, or 0 for an orderly close by the peer
 * Packets that were received before have been handed on. The wire frees the conn after the call.
 */
void engine_conn_down(struct wire_conn *conn, int err);

/*
 * engine_conns_change - what share_marked() looks at is about to change: the conns of the domain
 * The domain is held, in any function of the wire but share_marked(). Until the domain is given up
 * no other thread is in share_marked().
 */
void engine_conns_change(struct wire *wire);

/*
 * engine_conn_busy - returns true if operations under way need the peer of a conn that is up
 * engine_conn_awaited - returns true if posted receives name that peer as their source
 * The domain is held, in any function of the wire. Nothing changes. The latter looks at all receives
 * that are posted.
 */
bool engine_conn_busy(const struct wire_conn *conn);
bool engine_conn_awaited(const struct wire_conn *conn);

/*
 * engine_wire_wake - poll() of an armed wire may have something: wake the threads that sleep
 *
 * Called from any context, from arm() on until close() returns: in any function of the wire, by a
 * thread that holds nothing, in a signal handler, in the kernel also in an interrupt, whatever locks
 * are held there. It takes no lock, allocates nothing, and calls no function of the wire. While the
 * wire is not armed it may wake without need.
 *
 * The arm() and the poll() that follow see what the caller did before. No call is under way when
 * close() returns: the domain may end then. In the child of a fork none is made before arm().
 */
void engine_wire_wake(struct wire *wire);

/*
 * engine_packet - a packet's header has arrived; engine_packet_on() of progress/arrive.h is the
 * inlined form
 * @packet:  private copy
 * @payload: the first @avail bytes of the payload; the other side may still change them
 * @dest:    out: destination of the payload
 *
 * With @avail == packet->len the payload is consumed on return, and @dest is not written. Otherwise
 * @dest is filled: the wire writes the whole payload there, the first @avail bytes included, and
 *       then calls
 * engine_payload_done(), unless the conn goes down first.
 * Returns 0; -FI_EAGAIN: a packet of waits_min bytes or more whose turn has not come, nothing
 * happened; the wire hands it on again after another packet, or soon, since packets of other wires
 * count too; or another -FI_E*: no peer of this version sends such a packet, and the wire ends the
 * conn with that error.
 */
int engine_packet(struct engine_ep *ep, struct wire_conn *conn, const struct packet *packet,
		  const void *payload, size_t avail, struct wire_dest *dest);

/*
 * engine_offered - find the payload of a send that the peer reads with get()
 * @id:	  wire_source.id as the peer sent it
 * @skip: offset of the part in the payload, bytes; untrusted like @id and @len
 * @len:  length of the part, bytes
 * @iov:  out: room for WIRE_IOV_MAX entries
 * Returns the number of entries, valid until the wire calls another function of the engine; 0: no
 * such send, or no such part of it.
 */
size_t engine_offered(const struct wire_conn *conn, uint64_t id, uint64_t skip, uint64_t len,
		      struct iovec *iov);

/*
 * engine_payload_done - the whole payload of a packet is in its destination; @cookie: as in its
 * wire_dest
 */
void engine_payload_done(struct engine_ep *ep, struct wire_conn *conn, void *cookie);

/*
 * Registration. A provider registers its wire from its entry point; the link and the provider's own
 * endpoints use what is registered.
 */

/*
 * Layout of struct engine_ep and of the other structs that the inlined paths access. Only a wire
 * that was built with the same layout is registered.
 */
#define WIRE_LAYOUT 28u

struct wire_provider {
	size_t size;
	uint32_t version;
	/* WIRE_LAYOUT */
	uint32_t layout;
	const struct wire_ops *ops;
};

/* Bytes of the longest name of a wire, with its end */
#define WIRE_NAME_MAX 16u

/*
 * wire_register - register a wire; nothing happens if it is registered already
 * @wp: stays valid for the life of the process, or until it is unregistered
 * Called while providers are loaded, with the core's lock held. Of two with the same name the first is found.
 * Returns 0, -FI_EINVAL for another layout, a smaller struct, or a name that is empty or too long, or -FI_ENOMEM
 * when there are too many.
 */
int wire_register(const struct wire_provider *wp);

/*
 * wire_unregister - forget a wire; nothing happens if it is not registered
 * Called as wire_register() is, while nothing is open that uses the wire and nobody opens or asks for it. Endpoints over
 * other wires may be opened meanwhile. Of a module that is unloaded.
 */
void wire_unregister(const struct wire_provider *wp);

/* wire_find - returns the registered wire with that name, or NULL */
const struct wire_provider *wire_find(const char *name);

#endif
