/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TCP wire: what its files share. The prototypes of NAME.c stand in tcp_NAME.h.
 *
 * A conn has two sockets. The control lane carries claimed packets, a byte stream of frames
 * (struct packet, payload, padding to 8 bytes). The data lane carries sendv() operations, a stream
 * of headers each followed by its payload without padding, so that the receiver can read payload
 * straight into its place. The side that connected opens the data lane, when either side first
 * needs it.
 *
 * Two sockets cost more than one: on each the kernel acknowledges what came, where an answer on
 * the same socket would have carried the acknowledgement. So a payload of medium size that is
 * answered before the next one is sent travels on the control lane, from the caller's memory
 * (carry.c). A stream of them takes the data lane, since control packets would wait behind all
 * that are under way.
 *
 *	hub.c	   what the endpoints of a domain share: epoll, ports, accepted sockets
 *	lane.c	   the bytes of a lane: what is read and written
 *	secret.c   the secret by which processes know each other
 *	prove.c	   both sides of a lane prove that they know it
 *	options.c  socket options
 *	wire.c	   open, close, poll: events and timers
 *	bell.c	   waking a thread that sleeps
 *	greet.c	   connecting: until a lane is up
 *	admit.c	   accepting: until a lane is up
 *	conn.c	   a conn from its creation to its end, orderly or not
 *	control.c  the control lane when it is up
 *	data.c	   the data lane when it is up
 *	carry.c	   sendv() payload on the control lane
 *	hot.c	   the control lane that is read without asking epoll
 *	flow.c	   payload that arrives after its header, on either lane
 *	session.c  what outlives the sockets: counts, what is retained, acknowledgements
 *	resume.c   a lane that has broken is made again
 *	shown.c    counts, for tools
 *	idle.c	   conns that are closed where descriptors run out
 *
 * All of it runs on the thread that holds the endpoint's domain.
 */
#ifndef WEFT_TCP_WIRE_H
#define WEFT_TCP_WIRE_H

#include <rdma/fi_errno.h>
#include <weft/mem_stats.h>
#include "address.h"
#include "list.h"
#include "wire.h"

#define TCP_CLAIM_MAX  WIRE_REQUEST_MAX
#define TCP_EAGER_MAX  (512u << 10)
#define TCP_SEND_MAX   16u	   /* sendv operations under way on a conn */
#define TCP_CARRY_MAX  (64u << 10) /* largest sendv payload on the control lane */
#define TCP_CARRY_REST 16u	   /* answers, after a stream, before control takes one again */
#define TCP_OUT_LEN    (256u << 10) /* output of a conn that the peer has not acknowledged */
#define TCP_OUT_SPARE  4096u	    /* room beyond it for the wire's own packets */
#define TCP_OUT_FIRST \
	1024u /* bytes of the output buffer at first; each next is 4 times as large */
#define TCP_OUT_TURN \
	(48u << 10) /* where the output begins anew at the front, if that is cheap */
#define TCP_ACK_LEN (16u << 10) /* input of the control lane after which it is acknowledged */
#define TCP_IN_LEN  (64u << 10) /* bytes of one read from a lane */
/*
 * Bytes of the first read: a packet of this length takes one read, and of a larger one no more than
 * this is copied. If the read is full, more input is there, and the next one reads up to
 * TCP_IN_LEN.
 */
#define TCP_IN_FIRST ((16u << 10) + 256u)
/*
 * Bytes of the first read where the last packet that took another read was large: the rest of a payload goes
 * straight into its place.
 */
#define TCP_IN_LARGE 1024u
#define TCP_IN_HEAD      \
	(TCP_CLAIM_MAX + \
	 CACHE_LINE) /* room in front of what is read, for the first part of a packet */
#define TCP_PART_MAX  (sizeof(struct packet) + TCP_CLAIM_MAX) /* first part of a packet */
#define TCP_BURST     4u /* packets written one by one between two polls; see tcp_publish() */
#define TCP_BATCH_LEN (16u << 10) /* gathered bytes that are written at once */
#define TCP_GUEST_MAX 256u	  /* accepted sockets of a port that are not admitted yet */
#define TCP_END_NS    1000000000u /* time between the ends of the two lanes of a conn */
#define TCP_TURN_NS   1000000u	  /* time between looks at headers that wait for their turn */
#define TCP_RETRY_NS  100000000u  /* without descriptors: time until the next try */

#define TCP_KNOWN_CNT 128u /* lists of conns by their peer's epoch */

#define TCP_DATA_WINDOW (4 << 20) /* first size of a data lane's receive buffer */

#define TCP_CONGESTION_LEN 16u /* name of a congestion control, its NUL included */

enum tcp_lane_kind {
	TCP_LANE_LISTENER,
	TCP_LANE_GUEST,	      /* accepted: its peer and its kind are not known yet */
	TCP_LANE_CONTROL = 4, /* this value and the next ones are in preambles */
	TCP_LANE_DATA = 5,
	TCP_LANE_PROBE = 6, /* no lane: the side that was connected to asks for one */
};

enum tcp_lane_state {
	TCP_LANE_NONE,
	TCP_LANE_CONNECTING,
	TCP_LANE_GREETING,  /* the preamble is sent, the answer has not arrived */
	TCP_LANE_REQUESTED, /* the preamble has arrived, the answer is not sent */
	TCP_LANE_UP,
	TCP_LANE_ENDED,	 /* nothing more arrives: closed by the peer, or broken for good */
	TCP_LANE_BROKEN, /* without a socket, until it is made again: see tcp_session.h */
	TCP_LANE_IDLE, /* control lane: without a socket, until it is needed: see tcp_idle.h */
};

/* A data lane without a socket that has something to send. */
enum tcp_want {
	TCP_WANT_NONE,
	TCP_WANT_DUE, /* for lack of resources it was not opened, nor asked for: the timer does so */
	TCP_WANT_ASKED, /* TCP_OP_LANE was sent, for its last socket */
};

/* One socket. */
struct tcp_lane {
	/* Socket; -1: none */
	int fd;
	uint8_t kind;
	uint8_t state;
	/* The kernel took less than there was: epoll reports when it can take more */
	bool want_out;
	/* Writing has failed; reading finds the reason, after the data before it */
	bool write_failed;
	/* Events that epoll watches */
	uint32_t events;
	/* Events that epoll reported, for the next poll of the wire */
	uint32_t revents;
	/* Link in wire->ready: @revents is set */
	struct list ready;
	/* While both sides prove the secret; NULL: there is nothing to prove, or it is done */
	struct tcp_proof *proof;
	/* Encrypts the lane; NULL: nothing does */
	struct tcp_secure *secure;
	/* While greeting: what the kernel has not taken (tcp_say.h), or NULL */
	struct tcp_unsaid *unsaid;
};

#define TCP_MAGIC 0x77746370u /* "pctw" */
#define TCP_ANSWER_MAGIC \
	0x61746370u /* not TCP_MAGIC: a socket that is connected to itself reads its own preamble */
#define TCP_VERSION 5u
/* Bytes of a session's secret */
#define TCP_COOKIE_LEN 16u

/* First bytes of the side that connects. The first 8 are the same in all versions. */
struct tcp_preamble {
	uint32_t magic;
	uint16_t version;
	/* TCP_LANE_CONTROL, TCP_LANE_DATA or TCP_LANE_PROBE */
	uint8_t lane;
	/* Zero */
	uint8_t reserved;
	/* Sockets that this lane has had, this one included, but for the first one of a conn */
	uint32_t turn;
	/* 1: control lane of a conn whose answer has not arrived yet; else 0 */
	uint32_t fresh;
	/* Bytes of the lane that have arrived at the side that connects */
	uint64_t received;
	/* The session's secret, which the side that connects has drawn; not zero */
	uint8_t cookie[TCP_COOKIE_LEN];
	/* Nonce of the endpoint among those that listen at the port; zero: the port's owner */
	uint8_t to[ADDR_NONCE_LEN];
	struct hello hello;
};

_Static_assert(sizeof(struct tcp_preamble) == 392, "layout");
_Static_assert(offsetof(struct tcp_preamble, turn) == 8, "layout");
_Static_assert(offsetof(struct tcp_preamble, received) == 16, "layout");
_Static_assert(offsetof(struct tcp_preamble, cookie) == 24, "layout");
_Static_assert(offsetof(struct tcp_preamble, to) == 40, "layout");
_Static_assert(offsetof(struct tcp_preamble, hello) == 48, "layout");

/* First bytes of the side that accepts. */
struct tcp_answer {
	uint32_t magic;
	uint16_t version;
	/*
	 * 0, or the reason of a refusal: a positive FI_E*. Then the rest is zero, except for
	 * hello.data on the control lane
	 */
	uint16_t err;
	/* Bytes of the lane that have arrived at the side that accepts */
	uint64_t received;
	/* Control lane: that of the preamble; else zero */
	uint8_t cookie[TCP_COOKIE_LEN];
	/* Control lane; else zero */
	struct hello hello;
};

_Static_assert(sizeof(struct tcp_answer) == 376, "layout");
_Static_assert(offsetof(struct tcp_answer, received) == 8, "layout");
_Static_assert(offsetof(struct tcp_answer, cookie) == 16, "layout");
_Static_assert(offsetof(struct tcp_answer, hello) == 32, "layout");

/* The wire's own packets, on the control lane, without payload. All other header fields are zero. */
enum tcp_op {
	/* Orderly end: nothing follows on this lane. data: bytes that were sent on the data lane */
	TCP_OP_BYE = 0xf0,
	/*
	 * To the side that connected: open the data lane, this side has data for it, or has lost
	 * it. data: how many sockets that lane has had
	 */
	TCP_OP_LANE = 0xf1,
	/* tag, data: bytes that have arrived on the control lane and on the data lane */
	TCP_OP_ACK = 0xf2,
	/* As TCP_OP_ACK; and this side agrees to close both lanes, as long as nothing follows */
	TCP_OP_IDLE = 0xf3,
};

/* A sendv operation. */
struct tcp_send {
	struct packet header;
	/* @header, then the payload */
	struct iovec iov[1 + WIRE_IOV_MAX];
	size_t iov_cnt;
	struct wire_op *op;
};

/* Payload that arrives after its header, and where it goes. */
struct tcp_flow {
	struct iovec iov[WIRE_DEST_MAX];
	uint32_t iov_cnt;
	/* Bytes that have arrived */
	uint64_t done;
	/* Bytes that have not arrived; 0: no payload is under way */
	uint64_t left;
	void *cookie;
};

/* Operations under way on a data lane; allocated when the lane is first needed. */
struct tcp_bulk {
	/* Out: free-running counters into sends[]: completed <= acked <= written <= queued. */
	struct tcp_send sends[TCP_SEND_MAX];
	/* Operations for which done() was called */
	uint32_t completed;
	/* Operations that the peer has acknowledged; without a session: as @written */
	uint32_t acked;
	/* Operations that the kernel has taken */
	uint32_t written;
	uint32_t queued;
	/* Bytes of sends[written] that the kernel has taken */
	size_t part;
	/* Bytes of the lane up to sends[acked], those acknowledged, those that the kernel has */
	uint64_t acked_pos, acked_len, out_len;

	/* In. */
	struct packet header;
	/* Bytes of @header that have arrived; all of them: it waits for its turn */
	uint32_t header_len;
	struct tcp_flow flow;
};

/* What is known of a lane's byte stream, whatever socket it has. */
struct tcp_stream {
	/* Bytes that have arrived: handled, or kept until the rest of a packet is there */
	uint64_t in;
	/* Bytes of these that the peer knows to have arrived */
	uint64_t in_told;
	/* Sockets that the lane has had, after the first one of the control lane */
	uint32_t turn;
	/* Sockets that were accepted and broke without an answer, one after the other */
	uint32_t vain;
	/* It breaks for good with the next look at the conn's timer */
	bool over;
	/* It has lost its socket: counted in hub->counts */
	bool broken;
	/* Its socket was closed because the conn was idle */
	bool rested;
	/* While it is broken: last sign of the peer's host; since when its port refuses, or 0 */
	uint64_t contact_ns, refused_ns;
	/* Time of the next attempt; while connecting: until when the attempt may take */
	uint64_t dial_ns;
	/* Time from one attempt to the next, ns */
	uint64_t pause_ns;
	uint32_t answer_len;
	/* While greeting */
	struct tcp_answer answer;
};

/* What a conn has in hub->counts: tcp_shown.h */
struct tcp_shown {
	/* It is one of those that are up, that are proved, that are encrypted */
	bool up, proved, encrypted;
	/* Bytes, when they were looked at last */
	uint64_t retained, sent, received;
};

/* What outlives the sockets of a conn. */
struct tcp_session {
	/* Both sides retain what was sent until it is acknowledged: not for MSG endpoints */
	bool on;
	/* An acknowledgement is due: it leaves with the next packet, if not before */
	bool ack_due;
	/* It is one of wire->lost_cnt */
	bool counted;
	/*
	 * The peer names another address than its socket came from, and has not answered there: another
	 * host may have it, where addresses are translated
	 */
	bool elsewhere;
	/* Ends of payload on the data lane that the peer has not been told of */
	uint32_t ends;
	/* wire->tick when ack_due was set last, and at the first of @ends */
	uint32_t ack_tick, data_tick;
	/* How it broke last, -FI_E* */
	int err;
	/* Without @ours: what this side has answered, for a peer that has not received it */
	struct hello said;
	/* Of the peer's TCP_OP_BYE */
	uint64_t bye_len;
	struct tcp_stream control, data;
};

/* What both sides have said about closing a conn that is idle: see tcp_idle.h */
struct tcp_idle {
	/* Bytes of the control lane up to the last TCP_OP_IDLE of this side and of the peer; 0: none */
	uint64_t said, heard;
	/* Bytes and operations of the conn at the last look */
	uint64_t seen;
	/* When the peer was asked last; when the conn was closed */
	uint64_t since_ns;
	/* A TCP_OP_IDLE has arrived: the end of the poll looks whether both sides agree */
	bool due;
};

struct tcp_conn {
	struct wire_conn conn;
	struct tcp_lane control;
	struct tcp_lane data;
	/*
	 * Link in wire->conns; in wire->requests until the engine answers; in wire->dead_conns when
	 * @dead
	 */
	struct list link;
	/* Link in wire->known, without @ours: a peer may name its session */
	struct list known;
	/* Link in wire->dirty: the next poll has to write, or to end the conn */
	struct list dirty;
	/* Link in wire->finished: done() is due */
	struct list finished;
	/* Link in wire->timed: due_ns is set */
	struct list timed;
	/* Link in wire->telling: an acknowledgement leaves with the next packet, or polls later */
	struct list telling;
	/* Link in wire->waiting: the data lane is not read until the turn of its header */
	struct list waiting;
	/* Link in hub->used, while the control lane of a session is up */
	struct list used;
	/* Time of the next look at what has to be done without an event */
	uint64_t due_ns;
	/* When @ending: time at which to end the conn, if no more than so many bytes have arrived by then */
	uint64_t end_ns, end_seen;
	/* This side connected */
	bool ours;
	bool dead;
	/* The engine has accepted, and poll has not reported the conn yet */
	bool accepted;
	/* The peer closes in order */
	bool bye_received;
	bool bye_sent;
	/* enum tcp_want */
	uint8_t want;
	/* One lane has ended */
	bool ending;
	/* What was sent before TCP_OP_BYE had all arrived when that was sent: a break is the end */
	bool delivered;
	/* The end of both lanes was sent */
	bool shut;
	/* It has failed: what the kernel still has of it must not arrive */
	bool lost;
	/* Reason of the end; 0: not known yet */
	int err;

	/*
	 * Control lane, out: bytes head..tail are still to be written, bytes kept..head are
	 * retained until the peer has acknowledged them.
	 */
	uint8_t *out;
	/* Bytes of @out; of them, those that are used before it begins anew, or grows */
	uint32_t out_size, out_turn;
	uint32_t kept, head, tail;
	/* Place of out[0] in the lane's byte stream */
	uint64_t out_pos;
	uint32_t burst, burst_tick;
	/* The kernel holds back what it has: see tcp_hold() */
	bool held;

	/* sendv operations on the control lane for which done() is due */
	struct wire_op *carried, *carried_last;
	/* Medium payloads sent since a packet last arrived */
	uint32_t carry_cnt;
	/* Payloads to be answered before the control lane takes one again */
	uint32_t carry_rest;

	struct tcp_bulk *bulk;
	struct tcp_session session;
	struct tcp_shown shown;
	struct tcp_idle idle;
	uint8_t cookie[TCP_COOKIE_LEN];
	uint64_t peer_epoch;
	/* Time of the last look at the kernel's state of the connection */
	uint64_t check_ns;
	/* Hello of the side that connected; of the peer only until the conn is up */
	struct hello hello;
	/* Where the peer listens: with @ours the address of both lanes. Port 0: not known */
	union ip_sockaddr remote;
	/* Nonce of the peer there */
	uint8_t to[ADDR_NONCE_LEN];

	/*
	 * Control lane, in: the first part of a packet; or, for a large packet, its payload and the
	 * padding behind that.
	 */
	struct tcp_flow flow;
	/* A large packet is expected: the first read is of TCP_IN_LARGE bytes */
	bool in_large;
	/* Bytes of padding that have not arrived */
	uint32_t padding;
	/* While the endpoint closes: bytes of a packet to be discarded, in place of the three above */
	uint64_t skip;
	uint32_t part_len;
	/* Room for TCP_PART_MAX bytes; NULL: no packet has come in parts lately */
	uint8_t *part;
};

_Static_assert(TCP_PART_MAX <= TCP_IN_HEAD, "goes in front of what is read");

/* An accepted socket until its preamble is complete and its wire has admitted it. */
struct tcp_guest {
	struct tcp_lane lane;
	/* Link in port->guests by arrival; in wire->arrived when complete; or in hub->dead_guests */
	struct list link;
	struct tcp_port *port;
	bool arrived;
	uint64_t since_ns;
	uint32_t len;
	struct tcp_preamble preamble;
};

/* A listening socket, of one wire or several. */
struct tcp_port {
	/* Link in hub->ports */
	struct list link;
	struct tcp_hub *hub;
	struct tcp_lane listener;
	/* Time until which the listener is not watched; 0: it is watched */
	uint64_t rearm_ns;
	/* The wire of peers that know host and port alone; NULL: it is closed */
	struct tcp_wire *owner;
	/* Wires that listen here */
	uint32_t refs;
	/* Other wires may join: none asked for this port by number */
	bool shared;
	uint16_t number;
	/* Address that was asked for */
	union ip_sockaddr requested;
	uint32_t guest_cnt;
	struct list guests;
};

/* What the wires of a domain share; a wire without a domain has its own. */
struct tcp_hub {
	/* Link in the list of the process, for lookup and for fork */
	struct list all;
	/* NULL: no other wire joins */
	const void *domain;
	int epoll_fd;
	struct list wires, ports;
	/* Dead guests, freed once the events have been handled */
	struct list dead_guests;
	/* Conns that may be closed when they are idle; those in use lately are behind others */
	struct list used;
	/* When no such conn was found last */
	uint64_t vain_ns;
	/* Ports whose listener is not watched for a while */
	uint32_t paused_cnt;
	/* Calls of epoll_wait() */
	uint32_t wait_cnt;
	/* Time of the last one, if there are several wires */
	uint64_t look_ns;
	/* epoll had more events than were taken */
	bool more_events;
	/* This is the copy in the child of a fork: every socket belongs to the parent */
	bool forked;
	/* A lack of descriptors was logged */
	bool shortage_logged;
	/* A peer of another version was logged */
	bool foreign_logged;
	/* Reasons for which a proof has failed, and which were logged: bits of enum tcp_prove_reason */
	uint8_t prove_logged;
	/* What peers have to know; NULL: nothing. Owned */
	struct tcp_secret *secret;
	/* For tools: tcp_shown.h. NULL: nothing shows them */
	struct weft_mem_part *part;
	/* It was tried to open that */
	bool part_tried;
	uint64_t counts[WEFT_MEM_TCP_COUNTS];
	/* The system's congestion control, if listeners may not set it; else empty */
	char congestion[TCP_CONGESTION_LEN];
	/* Input of a control lane; data that is discarded goes here too */
	uint8_t *in;
};

/* The control lane that is read without asking epoll: hot.c */
struct tcp_hot {
	/* NULL: there is none */
	struct tcp_conn *conn;
	/* Lane that epoll last reported, and that had something; NULL: its conn has ended */
	const struct tcp_lane *last;
	/* Polls since a read found something */
	uint32_t vain;
	/* Reads that found something, since epoll was last asked to watch the lane */
	uint32_t hits;
};

struct tcp_wire {
	struct wire wire;
	/* Link in hub->wires */
	struct list link;
	struct tcp_hub *hub;
	struct tcp_port *port;
	/* Value of hub->wait_cnt at the last poll */
	uint32_t seen;
	/* Polls */
	uint32_t tick;
	bool polling;
	/* A thread sleeps, and has to be woken for work that no socket reports */
	bool armed;
	/* When that thread looks by itself at the latest; UINT64_MAX: never; 0: it is woken */
	uint64_t armed_ns;
	/* poll has found work for before that */
	bool wake_due;
	/* Inside close(): the engine is not called any more */
	bool closing;
	/* It connects, and listens nowhere; with @local, its connections come from there */
	bool dials;
	/* Nonce of the endpoint */
	uint8_t nonce[ADDR_NONCE_LEN];
	struct tcp_hot hot;
	/* Lanes with events */
	struct list ready;
	/* Guests for this wire */
	struct list arrived;
	struct list conns, dirty, finished, timed, telling, waiting;
	/* Conns that were accepted, by the peer's epoch: see tcp_session_known() */
	struct list known[TCP_KNOWN_CNT];
	/* Requests that the engine owns: it has not answered */
	struct list requests;
	/* Dead conns, freed at the end of poll */
	struct list dead_conns;
	union ip_sockaddr local;
	/* Conns that have lost their control lane, and wait until the peer makes it again */
	uint32_t lost_cnt;
	/* Sockets of conns that broke, and that were made again */
	uint64_t breaks, resumes;
	/* Conns that were closed because they were idle */
	uint64_t rests;
};

extern const struct wire_ops tcp_wire_ops;
extern const struct wire_provider tcp_wire_provider;

/* tcp_no_room - returns true if a send that fails with @err, -FI_E*, is to be tried again later */
static inline bool tcp_no_room(int err)
{
	return err == -FI_EAGAIN || err == -FI_ENOBUFS || err == -FI_ENOMEM;
}

/* tcp_none_yet - returns true if a read that fails with @err, -FI_E*, finds nothing for now */
static inline bool tcp_none_yet(ssize_t err)
{
	return err == -FI_EAGAIN || err == -FI_EINTR;
}

static inline struct tcp_wire *tcp_wire_of(const struct tcp_conn *conn)
{
	return (struct tcp_wire *)conn->conn.wire;
}

static inline struct tcp_wire *tcp_wire_from(struct wire *wire)
{
	return (struct tcp_wire *)wire;
}

static inline struct tcp_conn *tcp_conn_from(struct wire_conn *conn)
{
	return (struct tcp_conn *)conn;
}

/* Length of a control lane frame with @len bytes of payload. */
static inline size_t tcp_frame_len(size_t len)
{
	return sizeof(struct packet) + ((len + 7) & ~(size_t)7);
}

/* wire.c: tcp_open(), tcp_close(), tcp_poll(), tcp_local(): see wire.h */

int tcp_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
	     struct wire **wire, char *why, size_t why_len);
void tcp_close(struct wire *wire);
int tcp_poll(struct wire *wire);
void tcp_local(struct wire *wire, char *buf, size_t len);

/* tcp_reap - free dead conns; not while polling */
void tcp_reap(struct tcp_wire *wire);

/* tcp_due - have poll look at the conn at time @ns, or earlier if that was asked for before */
void tcp_due(struct tcp_conn *conn, uint64_t ns);

#endif
