/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lane of a session that breaks, and is made again: see tcp_session.h. What a preamble says here
 * is untrusted until it has named the session's secret, and the counts are checked even then.
 * Called from the wire's poll and from sendv, on the thread that holds the endpoint's domain.
 */
#include "tcp.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_greet.h"
#include "tcp_hub.h"
#include "tcp_idle.h"
#include "tcp_options.h"
#include "tcp_prove.h"
#include "tcp_session.h"
#include "tcp_shown.h"
#include "tcp_wire.h"

#define PAUSE_MIN_NS 10000000u	 /* between attempts, first and while the port refuses */
#define PAUSE_MAX_NS 200000000u	 /* between attempts, later; between questions to who lives */
#define DIAL_NS	     1000000000u /* until an attempt without any answer makes way for the next */
/* Sockets without an answer, one after the other, that are signs of life */
#define VAIN_MAX 16u

static uint64_t dead_ns(void)
{
	return (uint64_t)tcp_settings.dead_ms * 1000000u;
}

static bool can_dial(const struct tcp_conn *conn, const struct tcp_lane *lane)
{
	return conn->ours || (lane == &conn->control && ip_sockaddr_port(&conn->remote));
}

static const char *lane_name(const struct tcp_conn *conn, const struct tcp_lane *lane)
{
	return lane == &conn->control ? "control" : "data";
}

static void log_lane(struct tcp_conn *conn, const struct tcp_lane *lane, const char *what,
		     int err)
{
	char name[80];

	ip_sockaddr_str(&conn->remote, name, sizeof(name));
	FI_INFO(&tcp_provider, FI_LOG_EP_CTRL,
		"%s lane of the peer at %s %s (%s): bytes received: %llu; retained: %u\n",
		lane_name(conn, lane), name, what, err ? strerror(-err) : "in order",
		(unsigned long long)tcp_session_stream(conn, lane)->in, conn->tail - conn->kept);
}

/*
 * Returns true for an error that the next socket would have as well: the program has unmapped the
 * memory that payload goes to, or has closed the descriptor; or someone has changed bytes (TLS).
 */
static bool is_final(int err)
{
	return err == -EFAULT || err == -EBADF || err == -ENOTSOCK || err == -EIO;
}

void tcp_session_unplug(struct tcp_conn *conn, struct tcp_lane *lane, enum tcp_lane_state state)
{
	tcp_lane_close(tcp_wire_of(conn)->hub, lane);
	lane->state = state;
	lane->want_out = state != TCP_LANE_NONE;
	lane->write_failed = false;
	conn->shut = false; /* the next socket has to be ended in turn */
	if (lane == &conn->control)
		conn->held = false;
}

static void lane_break(struct tcp_conn *conn, struct tcp_lane *lane)
{
	tcp_session_unplug(conn, lane, TCP_LANE_BROKEN);
}

/*
 * Has the timer give up the one whose peer has given no sign for longest. Returns false if none
 * waits.
 */
static bool lost_oldest(struct tcp_wire *wire)
{
	struct tcp_conn *conn, *oldest = NULL;

	list_for_each_entry(conn, &wire->conns, link)
		if (conn->session.counted &&
		    (!oldest ||
		     conn->session.control.contact_ns < oldest->session.control.contact_ns))
			oldest = conn;
	if (!oldest)
		return false;
	tcp_session_end(oldest);
	oldest->session.control.over = true;
	tcp_due(oldest, platform_now_ns());
	return true;
}

/* Counts the conn among those that cost memory until a peer comes back. */
static bool lost_room(struct tcp_conn *conn, const struct tcp_lane *lane)
{
	struct tcp_wire *wire = tcp_wire_of(conn);

	if (conn->ours || lane != &conn->control || conn->session.counted)
		return true;
	if (wire->lost_cnt == TCP_LOST_MAX && !lost_oldest(wire))
		return false;
	wire->lost_cnt++;
	conn->session.counted = true;
	return true;
}

void tcp_session_ask(struct tcp_conn *conn)
{
	if (tcp_control_own(conn, TCP_OP_LANE, 0, conn->session.data.turn)) {
		conn->want = TCP_WANT_ASKED;
		tcp_conn_dirty(conn);
	} else {
		conn->want = TCP_WANT_DUE;
		tcp_due(conn, platform_now_ns() + TCP_RETRY_NS);
	}
}

/* How long the peer may be silent, and who refuses, counts from now on. */
static void stream_anew(struct tcp_stream *stream, uint64_t now)
{
	stream->contact_ns = now;
	stream->refused_ns = stream->pause_ns = stream->vain = 0;
}

void tcp_session_lost(struct tcp_conn *conn, struct tcp_lane *lane, uint64_t now, int err)
{
	struct tcp_stream *stream = tcp_session_stream(conn, lane);

	conn->session.err = err ? err : -FI_ECONNRESET;
	stream_anew(stream, now);
	stream->over = false;
	/* The side that connected knows that it has to; the other side is asked some time later. */
	stream->dial_ns = conn->ours || !err ? now : now + PAUSE_MIN_NS;
	tcp_due(conn, stream->dial_ns);
}

bool tcp_session_broken(struct tcp_conn *conn, struct tcp_lane *lane, int err)
{
	uint64_t now;

	if (tcp_idle_ended(conn, lane))
		return true;
	if (!conn->session.on || !conn->conn.up || conn->dead || conn->ending || conn->err ||
	    conn->bye_received || tcp_conn_over(conn) || tcp_session_silence(err) ||
	    is_final(err) || !lost_room(conn, lane))
		return false;
	if (lane == &conn->data && conn->bye_sent) { /* the rest is that of unfinished sends */
		lane_break(conn, lane);
		return true;
	}
	now = platform_now_ns();
	log_lane(conn, lane, "broke", err ? err : -ECONNRESET);
	tcp_wire_of(conn)->breaks++;
	tcp_shown_broken(conn, tcp_session_stream(conn, lane));
	lane_break(conn, lane);
	tcp_session_lost(conn, lane, now, err ? err : -FI_ECONNRESET);
	if (!can_dial(conn, lane) && lane != &conn->control)
		tcp_session_ask(conn);
	return true;
}

/*
 * A socket that was accepted breaks before the answer: the peer's host lived until now, however
 * long the peer has computed. Whoever accepts again and again, and breaks, may be another process.
 */
static void unanswered(struct tcp_stream *stream, uint64_t now)
{
	if (stream->vain == VAIN_MAX)
		return;
	stream->vain++;
	stream->contact_ns = now;
}

bool tcp_session_failed(struct tcp_conn *conn, struct tcp_lane *lane, int err)
{
	struct tcp_stream *stream = tcp_session_stream(conn, lane);
	uint64_t now = platform_now_ns();

	if (!conn->session.on || !conn->conn.up)
		return false;
	if (!stream->contact_ns) /* it never was */
		stream->contact_ns = now;
	if (lane->state == TCP_LANE_GREETING && !tcp_session_silence(err))
		unanswered(stream, now);
	lane_break(conn, lane);
	if (err != -FI_ECONNREFUSED || conn->session.elsewhere) {
		stream->refused_ns = 0;
		stream->pause_ns = stream->pause_ns ? 2 * stream->pause_ns : PAUSE_MIN_NS;
		if (stream->pause_ns > PAUSE_MAX_NS)
			stream->pause_ns = PAUSE_MAX_NS;
		stream->over = stream->over || now - stream->contact_ns >= dead_ns();
	} else {
		stream->refused_ns = stream->refused_ns ? stream->refused_ns : now;
		stream->pause_ns = PAUSE_MIN_NS;
		stream->over = stream->over || now - stream->refused_ns >= TCP_REFUSED_NS;
	}
	if (!conn->session.err)
		conn->session.err = err;
	stream->dial_ns = stream->over ? now : now + stream->pause_ns;
	tcp_due(conn, stream->dial_ns);
	return true;
}

int tcp_session_dial(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_stream *stream = tcp_session_stream(conn, lane);
	bool was = lane->state != TCP_LANE_NONE;
	int err;

	/* It begins, maybe after a rest: what is known of its last socket is old. */
	if (!was)
		stream_anew(stream, platform_now_ns());
	err = tcp_lane_connect(conn, lane);
	if (err && was) /* its socket is closed again, and it still gathers what is sent */
		lane_break(conn, lane);
	if (err)
		return err == -FI_EAGAIN || !tcp_session_failed(conn, lane, err) ? err : 0;
	lane->want_out = true;
	stream->answer_len = 0;
	if (conn->ours)
		stream->turn++;
	if (!stream->contact_ns)
		stream->contact_ns = platform_now_ns();
	stream->dial_ns = platform_now_ns() + DIAL_NS;
	if (conn->session.on)
		tcp_due(conn, stream->dial_ns);
	return 0;
}

/*
 * Returns true if the other side has lost the @turn-th socket of the lane, which this side still
 * has.
 */
static bool is_stale(struct tcp_conn *conn, const struct tcp_lane *lane, uint64_t turn)
{
	return conn->session.on && conn->conn.up &&
	       tcp_session_stream(conn, lane)->turn == turn &&
	       (lane->state == TCP_LANE_UP || lane->state == TCP_LANE_GREETING);
}

void tcp_session_wanted(struct tcp_conn *conn, uint64_t turn)
{
	if (is_stale(conn, &conn->data, turn))
		tcp_lane_ended(conn, &conn->data, -FI_ECONNRESET);
	tcp_data_open(
		conn); /* also if it has ended as a lane that nobody needs: see tcp_idle.h */
}

/* A lane without a socket: an attempt, once it is time. */
static void lane_retry(struct tcp_conn *conn, struct tcp_lane *lane, uint64_t now)
{
	struct tcp_stream *stream = tcp_session_stream(conn, lane);

	if (!can_dial(conn, lane)) {
		stream->over = now - stream->contact_ns >= dead_ns();
		stream->dial_ns = stream->contact_ns + dead_ns();
		tcp_due(conn, stream->dial_ns);
		return;
	}
	if (now >= stream->dial_ns && tcp_session_dial(conn, lane) == -FI_EAGAIN) {
		/*
		 * No descriptor, or no memory: a peer whose control lane has broken does not wait
		 * for longer either. It waits for one that was idle, and for the data lane.
		 */
		if (stream->rested ||
		    (lane == &conn->data && conn->control.state == TCP_LANE_UP))
			stream->contact_ns = now;
		stream->over = now - stream->contact_ns >= dead_ns();
		stream->dial_ns = now + TCP_RETRY_NS;
	}
	tcp_due(conn, stream->dial_ns);
}

static void lane_timer(struct tcp_conn *conn, struct tcp_lane *lane, uint64_t now)
{
	struct tcp_stream *stream = tcp_session_stream(conn, lane);

	if (lane->state == TCP_LANE_CONNECTING && now >= stream->dial_ns)
		tcp_session_failed(conn, lane, -FI_ETIMEDOUT);
	else if (lane->state == TCP_LANE_CONNECTING)
		tcp_due(conn, stream->dial_ns);
	else if (lane->state == TCP_LANE_BROKEN && !stream->over &&
		 (conn->ours || lane == &conn->control))
		lane_retry(conn, lane, now);
	if (!stream->over)
		return;
	log_lane(conn, lane, "is given up", conn->session.err);
	tcp_lane_vain(conn, lane, conn->session.err);
}

void tcp_session_timer(struct tcp_conn *conn, uint64_t now)
{
	lane_timer(conn, &conn->control, now);
	if (!conn->dead)
		lane_timer(conn, &conn->data, now);
}

void tcp_session_say(const struct tcp_conn *conn, const struct tcp_lane *lane,
		     struct tcp_preamble *preamble)
{
	const struct tcp_stream *stream = lane == &conn->control ? &conn->session.control
								 : &conn->session.data;

	if (!conn->ours)
		preamble->lane = TCP_LANE_PROBE;
	preamble->turn = stream->turn;
	preamble->fresh = !conn->conn.up;
	preamble->received = conn->ours ? stream->in : 0;
	memcpy(preamble->cookie, conn->cookie, sizeof(preamble->cookie));
}

/* The lane has a socket, and both sides know where to go on. */
static void lane_up(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_stream *stream = tcp_session_stream(conn, lane);

	tcp_prove_end(lane);
	tcp_set_greeted(lane->fd);
	lane->want_out = false;
	stream->in_told = stream->in;
	stream->refused_ns = stream->pause_ns = 0;
	stream->over = false;
	tcp_shown_resumed(conn, stream);
	if (!stream->rested && (lane == &conn->control || stream->turn > 1)) {
		tcp_wire_of(conn)->resumes++;
		log_lane(conn, lane, "goes on", conn->session.err);
	}
	stream->rested = false;
	if (lane == &conn->control) {
		tcp_session_end(conn);
		lane->state = TCP_LANE_UP;
		tcp_idle_up(conn);
		tcp_conn_dirty(conn);
		return;
	}
	tcp_data_up(conn);
	tcp_data_watch(conn);
	tcp_data_flush(conn);
}

/* Returns true for a refusal after which another attempt may succeed. */
static bool is_passing(int err)
{
	return err == -FI_ENOMEM || err == -FI_EAGAIN || err == -FI_EALREADY;
}

/* The peer has answered that the session lives there: it will connect. */
static void probed(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_stream *stream = tcp_session_stream(conn, lane);

	lane_break(conn, lane);
	conn->session.elsewhere = false;
	stream->contact_ns = platform_now_ns();
	stream->refused_ns = 0;
	stream->dial_ns = stream->contact_ns + PAUSE_MAX_NS;
	tcp_due(conn, stream->dial_ns);
}

/* Returns true if another attempt may succeed; @ret: of tcp_greet_answer() */
static bool may_pass(const struct tcp_stream *stream, int ret, int err)
{
	/* TCP_MAGIC: no process, the kernel connected the socket to itself */
	return err != -FI_EKEYREJECTED &&
	       (ret < 0 || is_passing(err) || stream->answer.magic == TCP_MAGIC);
}

int tcp_session_greeted(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_stream *stream = tcp_session_stream(conn, lane);
	int ret = tcp_greet_answer(conn, lane);
	int err = ret > 0 ? tcp_answer_error(&stream->answer) : ret;

	if (!ret)
		return 0;
	if (ret > 0 && !(err && conn->session.elsewhere))
		stream->vain = 0;
	if (err && (conn->session.elsewhere || may_pass(stream, ret, err)) &&
	    tcp_session_failed(conn, lane, err))
		return 1;
	if (!err && !conn->ours) {
		probed(conn, lane);
		return 1;
	}
	if (err)
		tcp_lane_vain(conn, lane, conn->session.err ? conn->session.err : err);
	else if (conn->session.on && tcp_session_rewind(conn, lane, stream->answer.received))
		tcp_conn_down(conn, -FI_EINVAL);
	else
		lane_up(conn, lane);
	return 1;
}

bool tcp_session_misnamed(const struct tcp_preamble *p)
{
	static const uint8_t none[TCP_COOKIE_LEN];
	bool named = memcmp(p->cookie, none, sizeof(none)) != 0;

	if (!named || p->fresh > 1)
		return true;
	if (p->lane == TCP_LANE_CONTROL)
		return p->fresh ? p->received != 0 : !p->turn;
	return p->fresh || (p->lane == TCP_LANE_PROBE ? p->received != 0 : !p->turn);
}

/* In constant time: how long it takes tells nothing of the secret. */
static bool same_secret(const uint8_t *a, const uint8_t *b)
{
	uint8_t differ = 0;

	for (size_t i = 0; i < TCP_COOKIE_LEN; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

static bool is_named(const struct tcp_conn *conn, const struct tcp_preamble *preamble)
{
	return conn->hello.epoch == preamble->hello.epoch &&
	       same_secret(conn->cookie, preamble->cookie) && !conn->ending && !conn->err;
}

/*
 * The epoch is that of the side that connected, whoever asks. That side may be asked before it has
 * the answer. Every peer that connects passes here, so that not all conns are looked at.
 */
static struct tcp_conn *find_conn(struct tcp_wire *wire, const struct tcp_preamble *preamble)
{
	struct tcp_conn *conn;

	if (preamble->lane == TCP_LANE_PROBE) {
		list_for_each_entry(conn, &wire->conns, link)
			if (conn->ours && is_named(conn, preamble))
				return conn;
		return NULL;
	}
	list_for_each_entry(conn, tcp_session_known(wire, preamble->hello.epoch), known)
		if (conn->conn.up && is_named(conn, preamble))
			return conn;
	return NULL;
}

/* Returns false if the other side has gone already. */
static bool send_answer(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_answer answer = { .magic = TCP_ANSWER_MAGIC,
				     .version = TCP_VERSION,
				     .received = tcp_session_stream(conn, lane)->in };

	if (lane == &conn->control) { /* the peer may not have received them before */
		answer.hello = conn->session.said;
		memcpy(answer.cookie, conn->cookie, sizeof(answer.cookie));
	}
	return tcp_say_answer(lane, &answer);
}

/*
 * The other side waits for its lane: one that it has answered, and that seems fine here, has broken
 * there.
 */
static void admit_probe(struct tcp_conn *conn, struct tcp_guest *guest)
{
	const struct tcp_answer answer = { .magic = TCP_ANSWER_MAGIC, .version = TCP_VERSION };
	bool stale = is_stale(conn, &conn->control, guest->preamble.turn);

	tcp_say_answer(&guest->lane, &answer);
	tcp_guest_drop(guest);
	if (stale)
		tcp_lane_ended(conn, &conn->control, -FI_ECONNRESET);
	tcp_idle_wake(conn);
}

/* Returns 0, or why the guest is refused. */
static int admissible(struct tcp_conn *conn, const struct tcp_lane *lane,
		      const struct tcp_preamble *preamble)
{
	const struct tcp_stream *stream = tcp_session_stream(conn, lane);

	if (!conn->session.on && lane->state != TCP_LANE_NONE)
		return -FI_ECONNRESET;
	if (preamble->turn <= stream->turn)
		return -FI_EALREADY;
	if (lane == &conn->data &&
	    conn->shut) /* nothing more comes, as the other lane will say */
		return -FI_EAGAIN;
	if (lane == &conn->data && !conn->bulk)
		conn->bulk = calloc(1, sizeof(*conn->bulk));
	return lane == &conn->data && !conn->bulk ? -FI_ENOMEM : 0;
}

bool tcp_session_admit(struct tcp_wire *wire, struct tcp_guest *guest)
{
	const struct tcp_preamble preamble = guest->preamble;
	struct tcp_conn *conn = find_conn(wire, &preamble);
	struct tcp_lane *lane;
	int err = -FI_ECONNRESET;

	if (conn && preamble.lane == TCP_LANE_PROBE) {
		admit_probe(conn, guest);
		return true;
	}
	if (!conn && preamble.fresh)
		return false;
	if (conn) {
		lane = preamble.lane == TCP_LANE_CONTROL ? &conn->control : &conn->data;
		err = admissible(conn, lane, &preamble);
	}
	if (err) {
		tcp_guest_refuse(guest, err);
		return true;
	}
	if (lane->fd >= 0) /* half open, or a question that is under way */
		lane_break(conn, lane);
	if (conn->session.on && tcp_session_rewind(conn, lane, preamble.received)) {
		tcp_guest_refuse(guest, -FI_EINVAL);
		tcp_conn_down(conn, -FI_EINVAL);
		return true;
	}
	tcp_session_stream(conn, lane)->turn = preamble.turn;
	tcp_watch_move(wire->hub, &guest->lane, lane);
	tcp_guest_drop(guest);
	if (send_answer(conn, lane))
		lane_up(conn, lane);
	else
		tcp_lane_ended(conn, lane, -FI_ECONNRESET);
	return true;
}
