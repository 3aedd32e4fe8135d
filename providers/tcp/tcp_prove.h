/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who may come in: both sides of a lane prove that they know the secret, before the preamble is
 * looked at. With a key K of the secret and HMAC-SHA-256:
 *
 *	offer	  connecting: what it speaks, and a fresh nonce
 *	counter	  accepting: the same, and HMAC(K, "accept", offer, counter)
 *	evidence  connecting: HMAC(K, "connect", offer, counter, preamble); the preamble follows
 *	seal	  accepting: HMAC(K, "answer", offer, counter, evidence, answer); the answer follows
 *
 * Each covers all before it, so that none is of use on another lane, in another place or direction, or
 * again. What follows is neither encrypted nor authenticated: who can change packets between the
 * hosts needs TLS to be kept out.
 *
 * With TLS, offer and counter have no nonces and no hashes: the handshake follows, whose PSK is of the
 * secret too, and then preamble and answer inside of it.
 */
#ifndef WEFT_TCP_PROVE_H
#define WEFT_TCP_PROVE_H

#include "tcp_crypto.h"
#include "tcp_wire.h"

#define TCP_PROVE_MAGIC	       0x70746370u /* "pctp" */
#define TCP_PROVE_ANSWER_MAGIC 0x71746370u
#define TCP_PROVE_VERSION      1u

enum tcp_prove_mode {
	TCP_PROVE_NOTHING, /* the sender has no secret */
	TCP_PROVE_SECRET,
	TCP_PROVE_TLS,
};

/* Why a side ends the proof. */
enum tcp_prove_reason {
	TCP_PROVE_GO_ON,
	TCP_PROVE_MODES, /* one has no secret, or no TLS, and the other has */
	TCP_PROVE_WRONG, /* another secret */
	TCP_PROVE_REASONS,
};

/* Begins every message. */
struct tcp_intro {
	/* TCP_PROVE_MAGIC connecting, TCP_PROVE_ANSWER_MAGIC accepting */
	uint32_t magic;
	uint16_t version;
	uint8_t mode;
	uint8_t reason;
};

struct tcp_offer {
	struct tcp_intro intro;
	uint8_t nonce[TCP_KEY_LEN];
};

struct tcp_counter {
	struct tcp_intro intro;
	uint8_t nonce[TCP_KEY_LEN];
	uint8_t mac[TCP_KEY_LEN];
};

struct tcp_evidence {
	struct tcp_intro intro;
	uint8_t mac[TCP_KEY_LEN];
};

_Static_assert(sizeof(struct tcp_intro) == 8, "layout");
_Static_assert(sizeof(struct tcp_offer) == 40, "layout");
_Static_assert(sizeof(struct tcp_counter) == 72, "layout");
_Static_assert(sizeof(struct tcp_evidence) == 40, "layout");

/* tcp_prove_begin - the connected lane says its offer. Returns 0 or -FI_E* */
int tcp_prove_begin(struct tcp_hub *hub, struct tcp_lane *lane);

/*
 * tcp_prove_connecting - read what the side that accepts says before its answer
 * @preamble: what follows the evidence; it is sent once that is due
 *
 * Returns 1 when the answer is what comes next, 0 when more has to arrive, or -FI_E*: -FI_EKEYREJECTED, of
 * which a line was logged; -FI_ENOPROTOOPT for another protocol.
 */
int tcp_prove_connecting(struct tcp_hub *hub, struct tcp_lane *lane,
			 const struct tcp_preamble *preamble);

/* tcp_prove_answered - check the whole answer. Returns 0 or -FI_EKEYREJECTED, of which a line was logged */
int tcp_prove_answered(struct tcp_hub *hub, struct tcp_lane *lane,
		       const struct tcp_answer *answer);

/* tcp_prove_expect - an accepted lane has to prove the secret of the hub, if that has one. Returns 0 or -FI_ENOMEM */
int tcp_prove_expect(struct tcp_hub *hub, struct tcp_lane *lane);

/*
 * tcp_prove_accepting - read what the side that connects says until its preamble
 * @preamble: out: the preamble, if all of it was read
 * @len: out: its bytes: all or none, if the result is 1
 *
 * Returns 1 when the preamble may be looked at; 0 when more has to arrive; -FI_EKEYREJECTED: a line was logged, and
 * the other side was told; another -FI_E*.
 */
int tcp_prove_accepting(struct tcp_hub *hub, struct tcp_lane *lane,
			struct tcp_preamble *preamble, uint32_t *len);

/* tcp_prove_seal - in front of an answer: its seal. Returns the bytes of it: 0 if the lane proves nothing */
size_t tcp_prove_seal(const struct tcp_lane *lane, const struct tcp_answer *answer,
		      uint8_t seal[TCP_KEY_LEN]);

/*
 * tcp_prove_stranger - what a side without a secret does on the first bytes of one with a secret
 * @intro: the first 8 bytes of the lane
 * @to: where this side has connected to; NULL: it accepts
 * Returns -FI_EKEYREJECTED if they are of the proof: a line was logged, and the other side was told; else 0.
 */
int tcp_prove_stranger(struct tcp_hub *hub, struct tcp_lane *lane, const void *intro,
		       const union ip_sockaddr *to);

/* tcp_prove_end - the lane is up, or closed: what was needed to prove is freed */
void tcp_prove_end(struct tcp_lane *lane);

#endif
