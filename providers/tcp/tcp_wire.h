/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TCP wire inside: what its files share. The prototypes of NAME.c stand in tcp_NAME.h.
 *
 * A conn has two sockets. The control lane carries claimed packets, a byte stream of frames
 * (struct packet, payload, padding to 8 bytes). The data lane carries what sendv() takes, a
 * stream of headers each followed by its payload without padding, so that the receiver can
 * read payload straight to where it belongs. The side that connected makes the data lane,
 * when either side first needs it.
 *
 * Two sockets cost more than one: of each the kernel acknowledges what came, where an answer on
 * the same one would have said it. So a payload of medium size that is answered before the next
 * one travels on the control lane, from the caller's memory (carry.c); of a stream of them
 * none does, since control would wait behind all that are under way.
 *
 *	hub.c	   what the endpoints of a domain share: epoll, ports, who has just come
 *	options.c  what the kernel is told of sockets
 *	wire.c	   open, close, poll: events and timers
 *	bell.c	   what who sleeps wakes by
 *	greet.c	   connecting, accepting, preambles and answers: until a lane is up
 *	conn.c	   a conn's life once it exists: ends, orderly and not
 *	control.c  the control lane when it is up
 *	data.c	   the data lane when it is up
 *	carry.c	   what of sendv() the control lane takes
 *	flow.c	   payload that arrives after its header, on either lane
 *
 * All of it runs on the thread that holds the endpoint's domain.
 */
#ifndef WEFT_TCP_WIRE_H
#define WEFT_TCP_WIRE_H

#include <rdma/fi_errno.h>
#include "address.h"
#include "list.h"
#include "wire.h"

#define TCP_CLAIM_MAX  WIRE_REQUEST_MAX
#define TCP_EAGER_MAX  (512u << 10)
#define TCP_SEND_MAX   16u	   /* sendv operations that a conn keeps */
#define TCP_CARRY_MAX  (64u << 10) /* payload of a sendv that the control lane may take */
#define TCP_CARRY_REST 16u	   /* answers to single ones, after a stream of them */
#define TCP_OUT_LEN    (96u << 10) /* a conn's output that the kernel has not taken yet */
#define TCP_OUT_SPARE  64u	   /* more of it, for the wire's own packets */
#define TCP_IN_LEN     (64u << 10) /* read at once from a lane */
/*
 * ... at first: a packet of this length comes with one read, and of a larger one no more than that is
 * copied. When so much was there, there is more, and more is read at once.
 */
#define TCP_IN_FIRST ((16u << 10) + 256u)
#define TCP_IN_HEAD      \
	(TCP_CLAIM_MAX + \
	 CACHE_LINE)	 /* room in front of that: a packet of which a part was there */
#define TCP_BURST     4u /* packets written each at once between two polls; see tcp_publish() */
#define TCP_BATCH_LEN (16u << 10) /* gathered packets that are worth a system call */
#define TCP_GUEST_MAX 256u	  /* accepted sockets of a port that wait to be let in */
#define TCP_END_NS    1000000000u /* how long the lanes of one conn may end after another */
#define TCP_TURN_NS   1000000u	  /* between looks at headers that wait, where nothing moves */
#define TCP_RETRY_NS  100000000u  /* without descriptors: try again after this */

#define TCP_DATA_WINDOW (4 << 20) /* what a data lane's receive buffer begins with */

#define TCP_CONGESTION_LEN 16u /* name of a congestion control, its NUL included */

enum tcp_lane_kind {
	TCP_LANE_LISTENER,
	TCP_LANE_GUEST,	      /* accepted: which peer's and which lane is not known yet */
	TCP_LANE_CONTROL = 4, /* these two stand in preambles */
	TCP_LANE_DATA = 5,
};

enum tcp_lane_state {
	TCP_LANE_NONE,
	TCP_LANE_CONNECTING,
	TCP_LANE_GREETING, /* our preamble is out, the answer is not in */
	TCP_LANE_UP,
	TCP_LANE_ENDED, /* nothing more comes in: closed by the peer, or broken */
};

/* One socket. */
struct tcp_lane {
	/* -1: none */
	int fd;
	uint8_t kind;
	uint8_t state;
	/* the kernel took less than we had: epoll tells when it can take more */
	bool want_out;
	/* writing has failed; reading tells the reason after what came before it */
	bool mute;
	/* that epoll watches */
	uint32_t events;
	/* what epoll told, for the next poll of its wire */
	uint32_t happened;
	/* wire->ready: something has */
	struct list ready;
};

#define TCP_MAGIC 0x77746370u /* "pctw" */
#define TCP_ANSWER_MAGIC \
	0x61746370u /* differs: a socket that was connected to itself reads its own preamble */
#define TCP_VERSION 2u

/* First bytes from the side that connects. The first 8 stay as they are in all versions. */
struct tcp_preamble {
	uint32_t magic;
	uint16_t version;
	/* TCP_LANE_CONTROL, TCP_LANE_DATA */
	uint8_t lane;
	/* zero */
	uint8_t reserved;
	/* data: from the answer on the control lane; control: zero */
	uint64_t cookie;
	/* Whom it is for, of those who listen here; zero: the one that the port stands for. */
	uint8_t to[ADDR_NONCE_LEN];
	struct hello hello;
};

_Static_assert(sizeof(struct tcp_preamble) == 104, "layout");
_Static_assert(offsetof(struct tcp_preamble, cookie) == 8, "layout");
_Static_assert(offsetof(struct tcp_preamble, to) == 16, "layout");
_Static_assert(offsetof(struct tcp_preamble, hello) == 24, "layout");

/* First bytes from the side that accepts. */
struct tcp_answer {
	uint32_t magic;
	uint16_t version;
	/* 0, or why not: a positive FI_E*; the rest is zero then */
	uint16_t err;
	/* control: proves that a data lane belongs to this conn */
	uint64_t cookie;
	/* control; zero for data */
	struct hello hello;
};

_Static_assert(sizeof(struct tcp_answer) == 96, "layout");
_Static_assert(offsetof(struct tcp_answer, cookie) == 8, "layout");
_Static_assert(offsetof(struct tcp_answer, hello) == 16, "layout");

/* The wire's own packets, on the control lane, without payload. All else in the header is zero. */
enum tcp_op {
	TCP_OP_BYE = 0xf0, /* orderly end: nothing follows on this lane */
	TCP_OP_LANE =
		0xf1, /* to the side that connected: make the data lane, I have something for it */
};

/* A sendv operation. */
struct tcp_send {
	struct packet header;
	struct iovec iov[WIRE_IOV_MAX];
	uint32_t iov_cnt;
	struct wire_op *op;
};

/* Payload that arrives after its header: where the rest of it goes. */
struct tcp_flow {
	struct iovec iov[WIRE_DEST_MAX];
	uint32_t iov_cnt, iov_at;
	/* bytes that have not arrived; 0: there is none under way */
	uint64_t left;
	void *cookie;
};

/* What a data lane has under way; allocated with the first need of one. */
struct tcp_bulk {
	/* Out: free-running counters into sends[]: told <= written <= queued. */
	struct tcp_send sends[TCP_SEND_MAX];
	/* done() was called */
	uint32_t told;
	/* the kernel has it */
	uint32_t written;
	uint32_t queued;
	/* bytes that the kernel has of sends[written] */
	size_t part;

	/* In. */
	struct packet header;
	/* bytes of it that are there; all: it waits for its turn */
	uint32_t header_len;
	struct tcp_flow flow;

	uint32_t answer_len;
	/* while greeting */
	struct tcp_answer answer;
};

struct tcp_conn {
	struct wire_conn conn;
	struct tcp_lane control;
	struct tcp_lane data;
	/* wire->conns, or wire->graves when dead */
	struct list link;
	/* wire->dirty: something to write or to fail in the next poll */
	struct list dirty;
	/* wire->finished: done() is due */
	struct list finished;
	/* wire->timed: due_ns is set */
	struct list timed;
	/* wire->waiting: its data lane is not read until a header's turn */
	struct list waiting;
	/* data lane: open it now; ending: end now */
	uint64_t due_ns;
	/* we connected */
	bool ours;
	bool dead;
	/* the peer closes in order */
	bool bye;
	/* a lane ended in the middle of a packet */
	bool cut;
	bool bye_sent;
	/* OP_LANE is out */
	bool lane_asked;
	/* one lane has ended */
	bool ending;
	/* we have sent the end of both lanes */
	bool shut;
	/* why the conn ends; 0: not known yet */
	int err;

	/* Control lane, out: bytes head..tail are for the kernel. */
	uint8_t *out;
	uint32_t head, tail;
	uint32_t burst, burst_tick;
	/* the kernel waits with what it has: see tcp_hold() */
	bool held;

	/* sendv operations that the control lane has taken, and that are not told of yet */
	struct wire_op *carried, *carried_last;
	/* medium payloads that were sent since something last came */
	uint32_t carry_cnt;
	/* so many have to be answered before control takes one again */
	uint32_t carry_rest;

	struct tcp_bulk *bulk;
	uint64_t cookie;
	uint64_t peer_epoch;
	/* of the last look at the kernel's view */
	uint64_t check_ns;
	/* ours */
	struct hello hello;
	/* ours: where the data lane goes too */
	union tcp_sockaddr remote;
	/* ours: and whom it is for there */
	uint8_t to[ADDR_NONCE_LEN];

	/*
	 * Control lane, in: the answer while greeting, then the packet of which a part is there; or, when that
	 * is a large one, its payload and the padding behind that.
	 */
	struct tcp_flow flow;
	/* bytes of it that have not arrived */
	uint32_t padding;
	uint32_t part_len;
	uint8_t part[sizeof(struct packet) + TCP_CLAIM_MAX];
};

_Static_assert(sizeof(((struct tcp_conn *)0)->part) <= TCP_IN_HEAD,
	       "goes in front of what is read");

/* An accepted socket until its preamble is whole and the wire that it is for has looked at it. */
struct tcp_guest {
	struct tcp_lane lane;
	/* port->guests, in order of arrival; wire->arrived when whole; or hub->guest_graves */
	struct list link;
	struct tcp_port *port;
	bool arrived;
	uint64_t since_ns;
	uint32_t len;
	struct tcp_preamble preamble;
};

/* A listening socket, of one wire or several. */
struct tcp_port {
	/* hub->ports */
	struct list link;
	struct tcp_hub *hub;
	struct tcp_lane listener;
	/* the listener is not watched until then; 0: it is */
	uint64_t rearm_ns;
	/* whom those mean who know host and port alone; NULL: it is closed */
	struct tcp_wire *owner;
	/* wires that listen here */
	uint32_t refs;
	/* others may join: nobody asked for a port of his own */
	bool shared;
	uint16_t number;
	/* where it was to be opened */
	union tcp_sockaddr wish;
	uint32_t guest_cnt;
	struct list guests;
};

/* What the wires of a domain have together; of one wire, where that has no domain. */
struct tcp_hub {
	/* of the process: for fork, and to be found */
	struct list all;
	/* NULL: nobody else joins */
	const void *domain;
	int epoll_fd;
	struct list wires, ports;
	/* dead, freed once the events have been looked at */
	struct list guest_graves;
	/* ports that are not watched for a while */
	uint32_t resting;
	/* times that epoll was asked */
	uint32_t turn;
	/* when it was last, where there are several wires */
	uint64_t look_ns;
	/* it had more than was taken */
	bool more;
	/* we are a copy: every socket belongs to the parent */
	bool forked;
	/* a lack of descriptors was logged */
	bool starved;
	/* a peer of another version was logged */
	bool foreign;
	/* the system's choice, where listeners may not have it; else empty */
	char paced[TCP_CONGESTION_LEN];
	/* a control lane's input, and where data that nobody wants goes */
	uint8_t *in;
};

struct tcp_wire {
	struct wire wire;
	/* hub->wires */
	struct list link;
	struct tcp_hub *hub;
	struct tcp_port *port;
	/* hub->turn at our last poll */
	uint32_t seen;
	/* of poll */
	uint32_t tick;
	bool polling;
	/* somebody sleeps who has to be told of what sockets do not tell of */
	bool armed;
	/* in close(): the engine is not called any more */
	bool closing;
	/* of the endpoint */
	uint8_t nonce[ADDR_NONCE_LEN];
	/* lanes to which something has happened */
	struct list ready;
	/* guests who are for us */
	struct list arrived;
	struct list conns, dirty, finished, timed, waiting;
	/* dead, freed at the end of poll */
	struct list graves;
	union tcp_sockaddr local;
};

extern const struct wire_ops tcp_wire_ops;
extern const struct wire_provider tcp_wire_provider;

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

/* tcp_reap - free what is dead; not while polling */
void tcp_reap(struct tcp_wire *wire);

/* tcp_due - have poll look at the conn at that time */
void tcp_due(struct tcp_conn *conn, uint64_t ns);

#endif
