/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TCP wire inside: what its files share.
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

/* ---- wire.c: see wire.h for these ---- */

int tcp_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
	     struct wire **wire, char *why, size_t why_len);
void tcp_close(struct wire *wire);
int tcp_poll(struct wire *wire);
void tcp_local(struct wire *wire, char *buf, size_t len);

/* tcp_reap - free what is dead; not while polling */
void tcp_reap(struct tcp_wire *wire);

/* tcp_due - have poll look at the conn at that time */
void tcp_due(struct tcp_conn *conn, uint64_t ns);

/* ---- hub.c ---- */

/*
 * tcp_hub_join - be one of the wires of a domain
 * @domain: NULL: of none, which takes a hub of its own
 * Sets wire->hub and returns 0, or -FI_E*.
 */
int tcp_hub_join(struct tcp_wire *wire, const void *domain);

/* tcp_hub_leave - the last one closes it; nothing for a wire that has not joined */
void tcp_hub_leave(struct tcp_wire *wire);

/*
 * tcp_port_join - listen at @wish, whose port may be 0
 * @share: together with others of the hub that wish the same, unless a port is asked for
 * Sets wire->port and returns 0, or -FI_E*. Whom the port stands for is port->owner.
 */
int tcp_port_join(struct tcp_wire *wire, const union tcp_sockaddr *wish, bool share);

/* tcp_port_leave - the last one closes it; who has come for this wire is sent away */
void tcp_port_leave(struct tcp_wire *wire);

/*
 * tcp_hub_look - ask epoll, unless another wire has just now, and hand out what it says: lanes to the
 * wires of their conns, guests to those that they are for
 */
void tcp_hub_look(struct tcp_wire *wire);

/* tcp_hub_bury - free guests that are dead; not while events are looked at */
void tcp_hub_bury(struct tcp_hub *hub);

/* tcp_port_rest - not watched for a while: epoll would tell of what we can't take again and again */
void tcp_port_rest(struct tcp_port *port, uint64_t now);

/* tcp_hub_rearm - watch listeners again whose time has come */
void tcp_hub_rearm(struct tcp_hub *hub);

/* tcp_hub_due - when that is next; UINT64_MAX: all are watched */
uint64_t tcp_hub_due(const struct tcp_hub *hub);

/*
 * tcp_watch - have epoll tell of these events of the lane; 0: of none. 0 or -FI_E*
 * Not in the child of a fork, which shares epoll with its parent.
 */
int tcp_watch(struct tcp_hub *hub, struct tcp_lane *lane, uint32_t events);

/* tcp_watch_move - the socket of @from is @to's from here on, with what epoll watches */
void tcp_watch_move(struct tcp_hub *hub, struct tcp_lane *from, struct tcp_lane *to);

/* tcp_lane_close - close the socket; the lane is NONE afterwards, and no event of it is left */
void tcp_lane_close(struct tcp_hub *hub, struct tcp_lane *lane);

/* tcp_starved - no descriptors or memory for a socket: say so once */
void tcp_starved(struct tcp_hub *hub, const char *what, int err);

/* ---- options.c ---- */

/*
 * tcp_set_connecting, tcp_set_connected - congestion control of a lane of ours, before and after
 * tcp_set_listening, tcp_set_accepted - ... of those that others make
 * Reno where a connection stays inside this host; elsewhere it keeps the system's choice, or that of its route.
 */
void tcp_set_connecting(int fd, const union tcp_sockaddr *to);
void tcp_set_connected(int fd);
void tcp_set_listening(struct tcp_hub *hub, int fd);
void tcp_set_accepted(const struct tcp_hub *hub, int fd);

/* tcp_set_options - small packets leave at once, and a dead host is noticed while nothing is under way */
void tcp_set_options(int fd);

/* tcp_set_window - a receive buffer for @len bytes to begin with */
void tcp_set_window(int fd, int len);

/* tcp_set_timeout - how long data may stay without acknowledgement; 0: as long as the kernel likes */
void tcp_set_timeout(int fd, unsigned int ms);

/* ---- bell.c: see wire.h for these ---- */

int tcp_bell(struct wire *wire, int poll_set);
uint64_t tcp_arm(struct wire *wire);
void tcp_disarm(struct wire *wire);

/* tcp_wake - poll has got something to do of which no socket tells: wake who sleeps */
void tcp_wake(struct tcp_wire *wire);

/* ---- greet.c ---- */

int tcp_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		const struct hello *hello, struct wire_conn **conn);

/*
 * tcp_data_open - begin to make the data lane, or ask the other side to
 * The outcome shows in poll: the lane is up, the conn fails, or for lack of descriptors it is
 * tried again later.
 */
void tcp_data_open(struct tcp_conn *conn);

/* tcp_accept - take what waits at the listener, a bounded number */
void tcp_accept(struct tcp_port *port);

/* tcp_guest_event - read of its preamble; once that is whole the guest is in wire->arrived, or refused */
void tcp_guest_event(struct tcp_guest *guest);

/* tcp_guest_admit - what came to this wire: a lane, or none that it takes. Only from poll */
void tcp_guest_admit(struct tcp_guest *guest, struct tcp_wire *wire);
void tcp_guest_drop(struct tcp_guest *guest);

/* tcp_greet_event - something happened on a lane that we are connecting. Returns things moved */
int tcp_greet_event(struct tcp_conn *conn, struct tcp_lane *lane);

/* ---- conn.c ---- */

/* tcp_conn_create - a conn without sockets, linked; NULL without memory */
struct tcp_conn *tcp_conn_create(struct tcp_wire *wire);

/* tcp_conn_bury - close the sockets; tcp_reap() frees the memory: poll at its end, else the caller */
void tcp_conn_bury(struct tcp_conn *conn);

/* tcp_conn_down - bury it and tell the engine. Only from poll */
void tcp_conn_down(struct tcp_conn *conn, int err);

/*
 * tcp_lane_ended - nothing more comes in on this lane
 * @err: 0 for an end of file, else -FI_E*
 * The conn goes down when the other lane has ended too, or soon. Only from poll.
 */
void tcp_lane_ended(struct tcp_conn *conn, struct tcp_lane *lane, int err);

/* tcp_conn_end - how a conn whose lanes have ended has ended: 0 in order, or -FI_E* */
static inline int tcp_conn_end(const struct tcp_conn *conn)
{
	return conn->bye && !conn->cut ? 0 : conn->err;
}

/* tcp_conn_fail - the conn is to go down with @err in the next poll; for callers outside of it */
void tcp_conn_fail(struct tcp_conn *conn, int err);

/* tcp_conn_dirty - have the next poll, or the end of this one, look at the conn */
void tcp_conn_dirty(struct tcp_conn *conn);

void tcp_disconnect(struct wire_conn *conn);
int tcp_check(struct wire_conn *conn);

/*
 * tcp_conn_drained - one step of an orderly end: behind everything that was published and given
 * to sendv(), a packet that says so, then the end of both lanes
 * Returns true when the peer's kernel has all of it, or can't have it any more.
 */
bool tcp_conn_drained(struct tcp_conn *conn);

/* ---- control.c ---- */

struct packet *tcp_claim(struct wire_conn *conn, size_t len, void **payload);
void tcp_publish(struct wire_conn *conn, struct packet *packet, bool more);
void tcp_hold(struct wire_conn *conn, struct packet *packet);

/* tcp_control_room - have the output buffer; false without memory */
bool tcp_control_room(struct tcp_conn *conn);

/* tcp_control_flush - write what is gathered, as far as the kernel takes it */
void tcp_control_flush(struct tcp_conn *conn);

/* tcp_control_own - append one of the wire's own packets; false without memory */
bool tcp_control_own(struct tcp_conn *conn, enum tcp_op op);

/* tcp_control_raw - append bytes in front of any packet: the answer */
bool tcp_control_raw(struct tcp_conn *conn, const void *bytes, size_t len);

/* tcp_control_full - the kernel takes no more for now: the rest leaves when epoll says so */
void tcp_control_full(struct tcp_conn *conn);

/* tcp_control_read - read packets and hand them on. Only from poll. Returns their number */
int tcp_control_read(struct tcp_conn *conn);

/* ---- carry.c ---- */

/*
 * tcp_carry - send a header and its payload on the control lane, if that is the better one
 * @hdr, @iov, @op: as of sendv(), with a lane that is up
 * Returns whether it has: done() is due.
 */
bool tcp_carry(struct tcp_conn *conn, const struct packet *hdr, const struct iovec *iov,
	       size_t iov_cnt, struct wire_op *op);

/* tcp_carried_tell - call done() of what was carried. Only from poll. Returns operations */
int tcp_carried_tell(struct tcp_conn *conn);

/* tcp_answered - something has come: the peer attends */
static inline void tcp_answered(struct tcp_conn *conn)
{
	if (conn->carry_cnt > 1)
		conn->carry_rest = TCP_CARRY_REST;
	else if (conn->carry_cnt && conn->carry_rest)
		conn->carry_rest--;
	conn->carry_cnt = 0;
}

/* ---- flow.c ---- */

/*
 * tcp_flow_begin - hand on a header whose payload is to come
 * Returns 0, -FI_EAGAIN when it has to wait for its turn, or -FI_E* that ends the conn; the conn may have
 * ended otherwise.
 */
int tcp_flow_begin(struct tcp_conn *conn, struct tcp_flow *flow, const struct packet *packet);

/*
 * tcp_flow_pieces - where the next bytes go, @max of them about
 * @iov:   out: room for WIRE_DEST_MAX + 1 pieces
 * @total: out: bytes of them; flow->left when all of it fits
 * Returns the number of pieces.
 */
int tcp_flow_pieces(struct tcp_conn *conn, const struct tcp_flow *flow, struct iovec *iov,
		    size_t max, size_t *total);

/*
 * tcp_flow_take - @len bytes, flow->left at most, have come there
 * @from: where they stand, and are to be copied from; NULL: they are in place
 */
void tcp_flow_take(struct tcp_flow *flow, const uint8_t *from, size_t len);

/* tcp_flow_end - flow->left has become 0: the payload is whole. The engine may end the conn */
void tcp_flow_end(struct tcp_conn *conn, struct tcp_flow *flow);

/* ---- data.c ---- */

int tcp_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
	      size_t iov_cnt, struct wire_op *op);
int tcp_get(struct wire_conn *conn, const struct wire_source *from, const struct iovec *iov,
	    size_t iov_cnt, struct wire_op *op);

/* tcp_data_flush - write what is queued, as far as the kernel takes it */
void tcp_data_flush(struct tcp_conn *conn);

/*
 * tcp_data_resume - the header at which the data lane waits is due perhaps: go on reading
 * A conn in wire->waiting, which it leaves, perhaps to wait there again. Only from poll. Returns packets
 * moved
 */
int tcp_data_resume(struct tcp_conn *conn);

/* tcp_data_read - read headers and payload. Only from poll. Returns packets moved */
int tcp_data_read(struct tcp_conn *conn);

/* tcp_finished - what sendv() took may have left: have poll tell of it */
void tcp_finished(struct tcp_conn *conn);

/* tcp_data_tell - call done() of what was written. Only from poll. Returns operations */
int tcp_data_tell(struct tcp_conn *conn);

#endif
