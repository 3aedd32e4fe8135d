/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The proof of the secret; tcp_prove.h has the protocol and the contract. Everything read here is
 * untrusted. Called while lanes come up, on the thread that holds the endpoint's domain.
 */
#include "net_socket.h"
#include "platform.h"
#include "tcp.h"
#include "tcp_greet.h"
#include "tcp_hub.h"
#include "tcp_lane.h"
#include "tcp_options.h"
#include "tcp_prove.h"
#include "tcp_say.h"
#include "tcp_secret.h"
#include "tcp_shown.h"

#define LABEL_LEN 16

enum step {
	STEP_INTRO,	/* what the other side speaks */
	STEP_NONCE,	/* the rest of its first message */
	STEP_SECURE,	/* TLS, once this side's first message is sent */
	STEP_HANDSHAKE, /* TLS */
	STEP_EVIDENCE,	/* accepting: evidence and preamble */
	STEP_SEAL,	/* connecting: the seal of the answer */
	STEP_DONE,
};

struct tcp_proof {
	const struct tcp_crypto *crypto;
	uint8_t key[TCP_KEY_LEN];
	/* Who is at the other end: the socket does not tell any more once it was reset */
	union ip_sockaddr peer;
	uint8_t mode;
	uint8_t step;
	/* Bytes of the message in @in that have arrived */
	uint32_t len;
	struct tcp_offer offer;
	struct tcp_counter counter;
	struct tcp_evidence evidence;
	uint8_t seal[TCP_KEY_LEN];
	/* What arrives: the first 8 bytes are an intro */
	union {
		struct tcp_intro intro;
		struct tcp_offer offer;
		struct tcp_counter counter;
		struct {
			struct tcp_evidence evidence;
			struct tcp_preamble preamble;
		} claim;
	} in;
};

static const char *const causes[TCP_PROVE_REASONS] = {
	[TCP_PROVE_MODES] = "one side has a secret or TLS and the other has not: set "
			    "FI_TCP_SECRET_FILE and FI_TCP_TLS alike on both",
	[TCP_PROVE_WRONG] = "the secrets differ: the files of FI_TCP_SECRET_FILE must be the same "
			    "on both",
};

/* Counts, and logs once for each cause. @reason: one with a cause. Returns -FI_EKEYREJECTED. */
static int reject(struct tcp_hub *hub, const union ip_sockaddr *peer, const char *direction,
		  enum tcp_prove_reason reason, enum weft_mem_tcp_count shown)
{
	char name[80];

	tcp_shown_refused(hub, shown);
	if (hub->prove_logged & 1u << reason)
		return -FI_EKEYREJECTED;
	hub->prove_logged |= (uint8_t)(1u << reason);
	ip_sockaddr_str(peer, name, sizeof(name));
	FI_WARN(&tcp_provider, FI_LOG_EP_CTRL, "no connection %s %s: %s\n", direction, name,
		causes[reason]);
	return -FI_EKEYREJECTED;
}

static const char *direction_of(const struct tcp_lane *lane)
{
	return lane->kind == TCP_LANE_GUEST ? "from" : "to";
}

/* @reason: also the other side's, which may be none. */
static int rejected(struct tcp_hub *hub, const struct tcp_lane *lane, uint8_t reason)
{
	const union ip_sockaddr *peer = &lane->proof->peer;

	if (reason == TCP_PROVE_WRONG)
		return reject(hub, peer, direction_of(lane), TCP_PROVE_WRONG,
			      WEFT_MEM_TCP_REFUSED_SECRET);
	return reject(hub, peer, direction_of(lane), TCP_PROVE_MODES, WEFT_MEM_TCP_REFUSED_NONE);
}

static struct tcp_intro intro_of(const struct tcp_lane *lane, uint8_t mode, uint8_t reason)
{
	return (struct tcp_intro){
		.magic = lane->kind == TCP_LANE_GUEST ? TCP_PROVE_ANSWER_MAGIC : TCP_PROVE_MAGIC,
		.version = TCP_PROVE_VERSION,
		.mode = mode,
		.reason = reason,
	};
}

/* Tells the other side that this one ends the proof. */
static void tell(struct tcp_lane *lane, uint8_t mode, uint8_t reason)
{
	struct tcp_intro last = intro_of(lane, mode, reason);

	if (sys_socket_send(lane->fd, &last, sizeof(last), 0) > 0)
		sys_socket_shut(lane->fd);
}

static uint8_t secret_mode(const struct tcp_secret *secret)
{
	if (!secret)
		return TCP_PROVE_NOTHING;
	return secret->tls ? TCP_PROVE_TLS : TCP_PROVE_SECRET;
}

/* ---- keyed hashes ---- */

static int mac(const struct tcp_proof *proof, const char *label, const struct iovec *more,
	       size_t more_cnt, uint8_t out[TCP_KEY_LEN])
{
	char purpose[LABEL_LEN] = "";
	struct iovec iov[5] = {
		{ purpose, sizeof(purpose) },
		{ (void *)(uintptr_t)&proof->offer, sizeof(proof->offer) },
		{ (void *)(uintptr_t)&proof->counter, offsetof(struct tcp_counter, mac) },
	};

	memcpy(purpose, label, strlen(label));
	for (size_t i = 0; i < more_cnt; i++)
		iov[3 + i] = more[i];
	return proof->crypto->mac(proof->key, iov, 3 + more_cnt, out);
}

static int counter_mac(const struct tcp_proof *proof, uint8_t out[TCP_KEY_LEN])
{
	return mac(proof, "accept", NULL, 0, out);
}

static int evidence_mac(const struct tcp_proof *proof, const struct tcp_preamble *preamble,
			uint8_t out[TCP_KEY_LEN])
{
	struct iovec more = { (void *)(uintptr_t)preamble, sizeof(*preamble) };

	return mac(proof, "connect", &more, 1, out);
}

static int answer_mac(const struct tcp_proof *proof, const struct tcp_answer *answer,
		      uint8_t out[TCP_KEY_LEN])
{
	struct iovec more[2] = {
		{ (void *)(uintptr_t)&proof->evidence, sizeof(proof->evidence) },
		{ (void *)(uintptr_t)answer, sizeof(*answer) },
	};

	return mac(proof, "answer", more, 2, out);
}

/* ---- both sides ---- */

static int proof_create(const struct tcp_secret *secret, struct tcp_lane *lane)
{
	struct tcp_proof *proof = calloc(1, sizeof(*proof));
	socklen_t len = sizeof(proof->peer);

	if (!proof)
		return -FI_ENOMEM;
	proof->crypto = secret->crypto;
	proof->mode = secret_mode(secret);
	memcpy(proof->key, secret->key, sizeof(proof->key));
	sys_socket_peer(lane->fd, &proof->peer.sa, &len);
	lane->proof = proof;
	return 0;
}

void tcp_prove_end(struct tcp_lane *lane)
{
	struct tcp_proof *proof = lane->proof;

	if (!proof)
		return;
	proof->crypto->wipe(proof, sizeof(*proof));
	free(proof);
	lane->proof = NULL;
}

/*
 * Reads up to @whole bytes of the current message. Returns 1 when they are there, 0 when more has to
 * arrive, or -FI_E*
 */
static int fill(struct tcp_lane *lane, size_t whole)
{
	struct tcp_proof *proof = lane->proof;

	return proof->len >= whole ? 1 : tcp_greet_fill(lane, &proof->in, whole, &proof->len);
}

/* Begins TLS over the lane. Returns 0 or -FI_E* */
static int secure(struct tcp_hub *hub, struct tcp_lane *lane)
{
	lane->proof->step = STEP_HANDSHAKE;
	return tcp_lane_secure(lane, hub->secret, lane->kind == TCP_LANE_GUEST);
}

/* Returns 1 when TLS is up, 0 when more has to arrive or to leave, or -FI_E* */
static int handshake(struct tcp_hub *hub, struct tcp_lane *lane)
{
	bool out = false;
	int ret;

	if (lane->proof->step == STEP_SECURE) {
		if (lane->unsaid)
			return 0;
		if (secure(hub, lane))
			return -FI_ENOMEM;
	}
	ret = tcp_lane_handshake(lane, &out);
	if (ret == -FI_EKEYREJECTED)
		return reject(hub, &lane->proof->peer, direction_of(lane), TCP_PROVE_WRONG,
			      WEFT_MEM_TCP_REFUSED_TLS);
	if (ret < 0)
		return ret;
	if (ret)
		lane->proof->step = STEP_DONE;
	return tcp_watch(hub, lane, out ? EPOLLIN | EPOLLOUT : EPOLLIN) ? -FI_ENOMEM : ret;
}

/*
 * Reads the intro that begins a message. Returns 1 when the rest of the message is to be read, 0
 * when more has to arrive, or -FI_E*: another protocol, or an end of the proof.
 */
static int intro_read(struct tcp_hub *hub, struct tcp_lane *lane, uint32_t magic)
{
	struct tcp_proof *proof = lane->proof;
	const struct tcp_intro *intro = &proof->in.intro;
	int ret = fill(lane, sizeof(*intro));

	if (ret <= 0)
		return ret;
	/* What this side has said came back: the kernel connected the socket to itself. */
	if (magic == TCP_PROVE_ANSWER_MAGIC && intro->magic == TCP_PROVE_MAGIC)
		return -FI_ECONNREFUSED;
	if (intro->magic != magic || intro->version != TCP_PROVE_VERSION)
		return -FI_ENOPROTOOPT;
	if (intro->reason != TCP_PROVE_GO_ON)
		return rejected(hub, lane, intro->reason);
	return intro->mode == proof->mode ? 1 : rejected(hub, lane, TCP_PROVE_MODES);
}

/* ---- the side that connects ---- */

int tcp_prove_begin(struct tcp_hub *hub, struct tcp_lane *lane)
{
	struct tcp_proof *proof;
	int err = proof_create(hub->secret, lane);

	if (err)
		return err;
	proof = lane->proof;
	proof->offer.intro = intro_of(lane, proof->mode, TCP_PROVE_GO_ON);
	if (proof->mode == TCP_PROVE_TLS)
		return tcp_say(hub, lane, &proof->offer, sizeof(proof->offer.intro));
	if (platform_random(proof->offer.nonce, sizeof(proof->offer.nonce)))
		return -FI_EIO;
	return tcp_say(hub, lane, &proof->offer, sizeof(proof->offer));
}

/* The other side's proof has arrived: it is checked, and answered with this side's. */
static int counter_check(struct tcp_hub *hub, struct tcp_lane *lane,
			 const struct tcp_preamble *preamble)
{
	struct tcp_proof *proof = lane->proof;
	struct {
		struct tcp_evidence evidence;
		struct tcp_preamble preamble;
	} claim = { .preamble = *preamble };
	uint8_t want[TCP_KEY_LEN];

	proof->counter = proof->in.counter;
	if (counter_mac(proof, want))
		return -FI_EIO;
	if (!proof->crypto->equal(want, proof->counter.mac, sizeof(want))) {
		tell(lane, proof->mode, TCP_PROVE_WRONG);
		return rejected(hub, lane, TCP_PROVE_WRONG);
	}
	proof->evidence.intro = intro_of(lane, proof->mode, TCP_PROVE_GO_ON);
	if (evidence_mac(proof, preamble, proof->evidence.mac))
		return -FI_EIO;
	claim.evidence = proof->evidence;
	proof->step = STEP_SEAL;
	proof->len = 0;
	return tcp_say(hub, lane, &claim, sizeof(claim));
}

/* The seal, or an end of the proof, which is told apart by its first bytes and the end behind them. */
static int seal_read(struct tcp_hub *hub, struct tcp_lane *lane)
{
	struct tcp_proof *proof = lane->proof;
	const struct tcp_intro *intro = &proof->in.intro;
	int ret = fill(lane, TCP_KEY_LEN);

	if (ret < 0 && proof->len == sizeof(*intro) && intro->magic == TCP_PROVE_ANSWER_MAGIC)
		return rejected(hub, lane, intro->reason);
	if (ret <= 0)
		return ret;
	memcpy(proof->seal, &proof->in, sizeof(proof->seal));
	proof->step = STEP_DONE;
	return 1;
}

int tcp_prove_connecting(struct tcp_hub *hub, struct tcp_lane *lane,
			 const struct tcp_preamble *preamble)
{
	struct tcp_proof *proof = lane->proof;
	int ret = 1;

	if (proof->step == STEP_INTRO) {
		ret = intro_read(hub, lane, TCP_PROVE_ANSWER_MAGIC);
		if (ret <= 0)
			return ret;
		proof->step = proof->mode == TCP_PROVE_TLS ? STEP_SECURE : STEP_NONCE;
	}
	if (proof->step == STEP_NONCE) {
		ret = fill(lane, sizeof(struct tcp_counter));
		if (ret > 0)
			ret = counter_check(hub, lane, preamble);
		if (ret < 0)
			return ret;
	}
	if (proof->step == STEP_SECURE || proof->step == STEP_HANDSHAKE) {
		ret = handshake(hub, lane);
		if (ret <= 0)
			return ret;
		ret = tcp_say(hub, lane, preamble, sizeof(*preamble));
		return ret ? ret : 1;
	}
	return proof->step == STEP_SEAL ? seal_read(hub, lane) : ret;
}

int tcp_prove_answered(struct tcp_hub *hub, struct tcp_lane *lane,
		       const struct tcp_answer *answer)
{
	struct tcp_proof *proof = lane->proof;
	uint8_t want[TCP_KEY_LEN];
	int err = 0;

	if (proof->mode == TCP_PROVE_SECRET &&
	    (answer_mac(proof, answer, want) ||
	     !proof->crypto->equal(want, proof->seal, sizeof(want))))
		err = rejected(hub, lane, TCP_PROVE_WRONG);
	tcp_prove_end(lane);
	return err;
}

/* ---- the side that accepts ---- */

int tcp_prove_expect(struct tcp_hub *hub, struct tcp_lane *lane)
{
	return hub->secret ? proof_create(hub->secret, lane) : 0;
}

/* Reads what the other side speaks. A refusal is told to a side without a secret too. */
static int offer_intro(struct tcp_hub *hub, struct tcp_lane *lane)
{
	struct tcp_proof *proof = lane->proof;
	struct tcp_intro reply = intro_of(lane, proof->mode, TCP_PROVE_GO_ON);
	int ret = intro_read(hub, lane, TCP_PROVE_MAGIC);

	if (ret == -FI_ENOPROTOOPT && proof->in.intro.magic == TCP_MAGIC)
		ret = rejected(hub, lane, TCP_PROVE_MODES);
	if (ret == -FI_EKEYREJECTED)
		tell(lane, proof->mode, TCP_PROVE_MODES);
	if (ret <= 0)
		return ret;
	proof->step = STEP_NONCE;
	if (proof->mode == TCP_PROVE_SECRET)
		return 1;
	ret = tcp_say(hub, lane, &reply, sizeof(reply));
	if (ret)
		return ret;
	proof->step = STEP_SECURE;
	return 1;
}

static int counter_say(struct tcp_hub *hub, struct tcp_lane *lane)
{
	struct tcp_proof *proof = lane->proof;

	proof->offer = proof->in.offer;
	proof->counter.intro = intro_of(lane, proof->mode, TCP_PROVE_GO_ON);
	if (platform_random(proof->counter.nonce, sizeof(proof->counter.nonce)) ||
	    counter_mac(proof, proof->counter.mac))
		return -FI_EIO;
	proof->step = STEP_EVIDENCE;
	proof->len = 0;
	return tcp_say(hub, lane, &proof->counter, sizeof(proof->counter));
}

static int evidence_read(struct tcp_hub *hub, struct tcp_lane *lane)
{
	struct tcp_proof *proof = lane->proof;
	uint8_t want[TCP_KEY_LEN];
	int ret = intro_read(hub, lane, TCP_PROVE_MAGIC);

	if (ret > 0)
		ret = fill(lane, sizeof(proof->in.claim));
	if (ret <= 0)
		return ret;
	proof->evidence = proof->in.claim.evidence;
	if (evidence_mac(proof, &proof->in.claim.preamble, want))
		return -FI_EIO;
	if (!proof->crypto->equal(want, proof->evidence.mac, sizeof(want))) {
		tell(lane, proof->mode, TCP_PROVE_WRONG);
		return rejected(hub, lane, TCP_PROVE_WRONG);
	}
	proof->step = STEP_DONE;
	return 1;
}

int tcp_prove_accepting(struct tcp_hub *hub, struct tcp_lane *lane,
			struct tcp_preamble *preamble, uint32_t *len)
{
	struct tcp_proof *proof = lane->proof;
	int ret = tcp_say_rest(hub, lane);

	*len = 0;
	if (ret <= 0)
		return ret;
	if (proof->step == STEP_INTRO) {
		ret = offer_intro(hub, lane);
		if (ret <= 0)
			return ret;
	}
	if (proof->step == STEP_NONCE) {
		ret = fill(lane, sizeof(struct tcp_offer));
		if (ret > 0)
			ret = counter_say(hub, lane);
		if (ret < 0)
			return ret;
	}
	if (proof->step == STEP_SECURE || proof->step == STEP_HANDSHAKE)
		return handshake(hub, lane);
	if (proof->step == STEP_EVIDENCE) {
		ret = evidence_read(hub, lane);
		if (ret > 0) {
			*preamble = proof->in.claim.preamble;
			*len = sizeof(*preamble);
		}
	}
	return ret;
}

size_t tcp_prove_seal(const struct tcp_lane *lane, const struct tcp_answer *answer,
		      uint8_t seal[TCP_KEY_LEN])
{
	const struct tcp_proof *proof = lane->proof;

	if (!proof || proof->mode != TCP_PROVE_SECRET)
		return 0;
	/* Without memory for a hash the peer finds a wrong one, and fails. */
	if (answer_mac(proof, answer, seal))
		memset(seal, 0, TCP_KEY_LEN);
	return TCP_KEY_LEN;
}

int tcp_prove_stranger(struct tcp_hub *hub, struct tcp_lane *lane, const void *first,
		       const union ip_sockaddr *to)
{
	union ip_sockaddr from = { 0 };
	socklen_t len = sizeof(from);
	struct tcp_intro intro;

	memcpy(&intro, first, sizeof(intro));
	if (intro.magic != TCP_PROVE_MAGIC && intro.magic != TCP_PROVE_ANSWER_MAGIC)
		return 0;
	if (to)
		return reject(hub, to, "to", TCP_PROVE_MODES, WEFT_MEM_TCP_REFUSED_NONE);
	sys_socket_peer(lane->fd, &from.sa, &len);
	tell(lane, TCP_PROVE_NOTHING, TCP_PROVE_MODES);
	return reject(hub, &from, "from", TCP_PROVE_MODES, WEFT_MEM_TCP_REFUSED_NONE);
}
