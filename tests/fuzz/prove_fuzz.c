/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: the proof of a secret and TLS, with someone in between. One side connects to the
 * other through the target, which passes on what they say, whole, in pieces, bent, cut, in another
 * order, on another connection or once more later, says what an earlier connection of sides with
 * the same secret had said, and messages of its own. The sides have the secret, TLS, or nothing.
 *
 * Checked: nothing crashes; a side that has a secret has no conn up unless on some socket all that
 * it was told until then is what the other side had said on one socket, in that order; whatever the
 * target leaves behind is gone when it is.
 */
#include <sys/socket.h>
#include <unistd.h>
#include "fuzz.h"
#include "input.h"
#include "mock_secret.h"
#include "raw_peer.h"
#include "tcp_conn.h"
#include "tcp_greet.h"
#include "tcp_peer.h"
#include "tcp_prove.h"

#define SECRET	  "a secret of more than sixteen bytes"
#define LINKS	  4
#define HEARD_MAX 8192u

/* One socket of the target. */
struct end {
	int fd; /* -1: none */
	uint8_t heard[HEARD_MAX];
	size_t heard_len, passed;
	/* told to the side at this socket, and how much of that is what the other end has heard */
	size_t told, same;
};

/* The two sockets of what is to be one connection. */
struct link {
	struct end down, up; /* of the side that connects; of the one that accepts */
};

/* Sides that have one mode (enum tcp_prove_mode), and what passes until a conn of theirs is up. */
struct pair {
	struct side *port, *caller;
	struct relay *taped; /* an earlier connection of theirs, which has ended */
};

static struct {
	struct pair pairs[TCP_PROVE_TLS + 1];
	struct pair *of_port, *of_caller;
	struct side *port, *caller;
	int listener; /* where the caller connects to */
	struct weft_addr at;
	struct link links[LINKS];
	/* Sockets over which all of a proof has come to the side, as it was said */
	int port_proved, caller_proved;
} f;

/* ---- the sides ---- */

/* Has the sides connect once, and keeps what passes. */
static void tape(struct pair *pair)
{
	struct relay *relay = relay_open(pair->port);
	struct wire_conn *conn = side_connect(pair->caller, relay->at);
	int downs = pair->port->downs;

	start_clock();
	while (!conn->up) {
		side_poll(pair->caller);
		relay_pump(relay);
		side_poll(pair->port);
		MUST(!expired() && !pair->caller->downs);
	}
	MUST(relay->out.len <= HEARD_MAX && relay->back.len <= HEARD_MAX);
	tcp_disconnect(conn);
	pair->taped = calloc(1, sizeof(*relay));
	MUST(pair->taped);
	*pair->taped = *relay;
	relay_close(relay);
	while (pair->port->downs == downs) {
		side_poll(pair->port);
		side_poll(pair->caller);
		MUST(!expired());
	}
}

static void open_sides(void)
{
	for (int mode = TCP_PROVE_NOTHING; mode <= TCP_PROVE_TLS; mode++) {
		const char *secret = mode == TCP_PROVE_NOTHING ? NULL : SECRET;

		f.pairs[mode].port = secret_side(secret, mode == TCP_PROVE_TLS);
		f.pairs[mode].caller = secret_side(secret, mode == TCP_PROVE_TLS);
		tape(&f.pairs[mode]);
	}
}

static void call(void)
{
	struct wire_conn *conn;
	int err = tcp_connect(f.caller->wire, (struct engine_peer *)f.port, &f.at,
			      &f.caller->hello, &conn);

	MUST(!err || err == -FI_EAGAIN);
}

/* The conn that came up last opens its data lane, or asks for it. */
static void use_data(struct side *side)
{
	if (side->conn_cnt && !side->downs)
		tcp_data_open(tcp_conn_from(side->conns[(side->conn_cnt - 1) % SIDE_CONN_MAX]));
}

/* ---- who is in between ---- */

static void open_end(struct end *end, int fd)
{
	*end = (struct end){ .fd = fd };
}

static void close_end(struct end *end)
{
	if (end->fd >= 0)
		close(end->fd);
	open_end(end, -1);
}

static void hear(struct end *end)
{
	end->heard_len += tcp_peer_hears(end->fd, end->heard + end->heard_len,
					 HEARD_MAX - end->heard_len);
}

/* The proof of a socket is whole once @whole bytes have come as the other side had said them. */
static void tell(struct link *link, bool up, const uint8_t *bytes, size_t len)
{
	struct end *to = up ? &link->up : &link->down;
	const struct end *from = up ? &link->down : &link->up;
	const struct relay *taped = f.of_port->taped;
	size_t whole = up ? taped->out.len : taped->back.len, same = to->same;

	if (to->fd < 0 || !tcp_peer_say(to->fd, bytes, len))
		return;
	for (size_t i = 0; i < len; i++, to->told++)
		if (to->same == to->told && to->told < from->heard_len &&
		    from->heard[to->told] == bytes[i])
			to->same++;
	if (f.of_port == f.of_caller && same < whole && to->same >= whole)
		*(up ? &f.port_proved : &f.caller_proved) += 1;
}

/* Passes on what has come, or some of it; bent, or some of it left out. */
static void pass(struct link *link, bool up)
{
	struct end *from = up ? &link->down : &link->up;
	uint8_t how = input_byte(), bytes[HEARD_MAX];
	size_t len;

	if (from->fd < 0)
		return;
	hear(from);
	len = from->heard_len - from->passed;
	if (how & 1)
		len = input_word() % (len + 1);
	memcpy(bytes, from->heard + from->passed, len);
	from->passed += len;
	if (how & 2 && len >= sizeof(uint32_t))
		tcp_peer_bend(bytes, len, input_byte() % (len - sizeof(uint32_t) + 1));
	if (!(how & 4) || !(how & 8))
		tell(link, up, bytes, len);
}

/* Says a part of what was said before, by whomever. */
static void replay(struct link *link, bool up)
{
	const struct link *other = &f.links[input_byte() % LINKS];
	const struct relay *taped = f.pairs[input_byte() % (TCP_PROVE_TLS + 1)].taped;
	uint8_t how = input_byte();
	const uint8_t *said = how & 1 ? taped->out.bytes : taped->back.bytes;
	size_t len = how & 1 ? taped->out.len : taped->back.len, at;

	if (how & 2) {
		said = how & 1 ? other->down.heard : other->up.heard;
		len = how & 1 ? other->down.heard_len : other->up.heard_len;
	}
	at = how & 4 ? input_word() % (len + 1) : 0;
	len -= at;
	if (how & 8)
		len = input_word() % (len + 1);
	tell(link, up, said + at, len);
}

/* Says a message of the proof that the target has made up: its hashes are none. */
static void forge(struct link *link, bool up)
{
	union {
		struct tcp_intro intro;
		uint8_t bytes[sizeof(struct tcp_evidence) + sizeof(struct tcp_preamble)];
	} say = { .intro = { .magic = up ? TCP_PROVE_MAGIC : TCP_PROVE_ANSWER_MAGIC,
			     .version = TCP_PROVE_VERSION } };
	static const size_t lens[] = { sizeof(struct tcp_intro), sizeof(struct tcp_offer),
				       sizeof(struct tcp_counter), sizeof(say) };
	uint8_t how = input_byte();
	size_t len = lens[how & 3];

	say.intro.mode = (uint8_t)(how >> 2 & 3);
	say.intro.reason = (uint8_t)(how >> 4 & 3);
	if (how & 0x40)
		tcp_peer_bend(&say, len, offsetof(struct tcp_intro, version));
	if (how & 0x80)
		len = input_word() % (len + 1);
	tell(link, up, say.bytes, len);
}

/* Answers the preamble that has come, with a seal that is none. */
static void answer(struct link *link)
{
	struct {
		uint8_t seal[TCP_KEY_LEN];
		struct tcp_answer answer;
	} say = { .answer = tcp_peer_answer() };
	struct tcp_preamble preamble;
	size_t at = sizeof(struct tcp_offer) + sizeof(struct tcp_evidence);

	if (link->down.fd < 0)
		return;
	hear(&link->down);
	if (link->down.heard_len < at + sizeof(preamble))
		return;
	memcpy(&preamble, link->down.heard + at, sizeof(preamble));
	memcpy(say.answer.cookie, preamble.cookie, sizeof(preamble.cookie));
	tell(link, false, (uint8_t *)&say, sizeof(say));
}

static void babble(struct link *link, bool up)
{
	uint8_t bytes[256];
	size_t len = input_byte();

	for (size_t i = 0; i < len; i++)
		bytes[i] = input_byte();
	tell(link, up, bytes, len);
}

/* Passes on all that both say, as an honest network does, until nothing comes any more. */
static void be_honest(struct link *link)
{
	for (int idle = 0; idle < 8; idle++) {
		size_t passed = link->down.passed + link->up.passed;

		side_poll(f.caller);
		side_poll(f.port);
		for (int up = 0; up < 2; up++) {
			struct end *from = up ? &link->down : &link->up;

			if (from->fd < 0)
				continue;
			hear(from);
			tell(link, up, from->heard + from->passed,
			     from->heard_len - from->passed);
			from->passed = from->heard_len;
		}
		if (link->down.passed + link->up.passed != passed)
			idle = 0;
	}
}

static void step(void)
{
	uint8_t what = input_byte();
	struct link *link = &f.links[what >> 4 & 3];
	bool up = what & 0x80;

	switch (what & 15) {
	case 0:
		call();
		break;
	case 1:
		if (link->down.fd < 0)
			open_end(&link->down, tcp_peer_take(f.listener));
		break;
	case 2:
		if (link->up.fd < 0)
			open_end(&link->up, tcp_peer_connect(f.port));
		break;
	case 3:
	case 4:
		pass(link, up);
		break;
	case 5:
		replay(link, up);
		break;
	case 6:
		forge(link, up);
		break;
	case 7:
		babble(link, up);
		break;
	case 8:
		be_honest(link);
		break;
	case 9:
		close_end(up ? &link->up : &link->down);
		break;
	case 10:
		if (up && link->up.fd >= 0)
			shutdown(link->up.fd, SHUT_WR);
		else if (!up && link->down.fd >= 0)
			shutdown(link->down.fd, SHUT_WR);
		break;
	case 11:
		use_data(up ? f.port : f.caller);
		break;
	case 12:
		answer(link);
		break;
	default:
		side_poll(f.caller);
		side_poll(f.port);
	}
}

static void check(void)
{
	MUST(f.of_port == &f.pairs[TCP_PROVE_NOTHING] || f.port->conn_cnt <= f.port_proved);
	MUST(f.of_caller == &f.pairs[TCP_PROVE_NOTHING] ||
	     f.caller->conn_cnt <= f.caller_proved);
}

static void begin(void)
{
	uint8_t modes = input_byte();

	if (!f.listener) {
		open_sides();
		f.listener = tcp_peer_listen(&f.at);
	}
	f.of_port = &f.pairs[(modes & 15) % (TCP_PROVE_TLS + 1)];
	f.of_caller = modes & 0x80 ? &f.pairs[(modes >> 4 & 7) % (TCP_PROVE_TLS + 1)]
				   : f.of_port;
	f.port = f.of_port->port;
	f.caller = f.of_caller->caller;
	f.port->conn_cnt = f.port->downs = f.caller->conn_cnt = f.caller->downs = 0;
	f.port_proved = f.caller_proved = 0;
	for (int i = 0; i < LINKS; i++) {
		open_end(&f.links[i].down, -1);
		open_end(&f.links[i].up, -1);
	}
}

/* The target goes, and with it all that it has left at the two sides. */
static void end(void)
{
	int fd;

	for (int i = 0; i < LINKS; i++) {
		close_end(&f.links[i].down);
		close_end(&f.links[i].up);
	}
	do {
		while ((fd = tcp_peer_take(f.listener)) >= 0)
			close(fd);
		tcp_peer_rest(f.port);
		check();
		tcp_peer_rest(f.caller);
	} while ((fd = tcp_peer_take(f.listener)) >= 0 && !close(fd));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	input_begin(data, len);
	begin();
	for (int i = 0; i < 64 && input_left(); i++) {
		step();
		check();
	}
	end();
	return 0;
}
