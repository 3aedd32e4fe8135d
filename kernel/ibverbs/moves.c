/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload of kofi_ibverbs that is longer than a message. Its receiver opens a window for each part, of at most
 * KIB_WINDOW_MAX bytes, and asks the sender to write there; the sender's answer closes the window. Several parts are
 * under way at once. Called with the domain held, by the engine and from the wire's poll.
 */
#include <rdma/fi_errno.h>
#include "conn.h"
#include "copy.h"

/* Tokens of windows, and ids of offers: the index, and a count by which an old one is told from the present */
#define INDEX_BITS 8u

static uint32_t number_new(struct kib_conn *c, uint32_t idx)
{
	return ++c->tokens << INDEX_BITS | idx;
}

static uint32_t number_index(uint32_t number)
{
	return number & ((1u << INDEX_BITS) - 1);
}

/* Pulls: what this side has asked for */

static struct kib_pull *pull_new(struct kib_conn *c, uint64_t id, const struct iovec *iov,
				 size_t iov_cnt)
{
	struct kib_pull *pull;

	if (iov_cnt > WIRE_DEST_MAX)
		return NULL;
	pull = platform_alloc(sizeof(*pull));
	if (!pull)
		return NULL;
	pull->conn = c;
	pull->id = id;
	for (size_t i = 0; i < iov_cnt; i++) {
		if (!iov[i].iov_len)
			continue;
		pull->piece[pull->piece_cnt++] = (struct kib_range){ iov[i].iov_base,
								     iov[i].iov_len };
		pull->total += iov[i].iov_len;
	}
	list_add_tail(&c->pulls, &pull->node);
	return pull;
}

static struct kib_slot *slot_find(struct kib_conn *c)
{
	for (uint32_t i = 0; i < KIB_WINDOWS; i++)
		if (!c->slots[i].pull)
			return &c->slots[i];
	return NULL;
}

/* Returns true if the wire can say something at once. */
static bool may_say(const struct kib_conn *c)
{
	return !c->ended && c->receives > 1 && kib_link_spare(c->link);
}

/* Opens a window for the next part, and asks for it. Returns 0, -FI_EAGAIN: no room; or -FI_E*: it fails. */
static int pull_ask(struct kib_pull *pull)
{
	struct kib_conn *c = pull->conn;
	const struct kib_range *piece = &pull->piece[pull->at_piece];
	size_t left = piece->len - pull->at_byte;
	struct kib_range range = { (uint8_t *)piece->addr + pull->at_byte,
				   left < KIB_WINDOW_MAX ? left : KIB_WINDOW_MAX };
	struct kib_ask ask = { .id = pull->id, .skip = pull->asked, .len = range.len };
	struct kib_slot *slot = slot_find(c);
	int ret;

	if (!slot || !may_say(c))
		return -FI_EAGAIN;
	ret = kib_window_open(c->link, &range, slot, &slot->window, &ask.key, &ask.at);
	if (ret)
		return ret;
	slot->pull = pull;
	slot->token = ask.token = number_new(c, (uint32_t)(slot - c->slots));
	slot->answered = false;
	slot->status = 0;
	pull->open++;
	pull->asked += range.len;
	pull->at_byte += range.len;
	if (pull->at_byte == piece->len) {
		pull->at_piece++;
		pull->at_byte = 0;
	}
	if (!pull->op)
		ask.flags = KIB_ASK_OFFER | (pull->asked == pull->total ? KIB_ASK_LAST : 0);
	kib_say(c, KIB_ASK, &ask, sizeof(ask));
	return 0;
}

static void pull_go(struct kib_pull *pull)
{
	int ret = 0;

	while (pull->asked < pull->total && !pull->status && !ret)
		ret = pull_ask(pull);
	if (ret == -FI_EAGAIN)
		pull->conn->stuck = true;
	else if (ret)
		pull->status = ret;
}

/* Reports a pull that is over. Returns 0, or -FI_E* that ends the conn. */
static int pull_over(struct kib_pull *pull)
{
	struct kib_conn *c = pull->conn;
	struct wire_op *op = pull->op;
	void *cookie = pull->cookie;
	int status = pull->status;

	if (pull->open || (pull->asked < pull->total && !status))
		return 0;
	list_remove(&pull->node);
	platform_free(pull);
	c->offered -= !op;
	if (op)
		op->done(op, status);
	else if (status)
		return status;
	else if (cookie)
		engine_payload_done(c->wire->wire.ep, &c->conn, cookie);
	return 0;
}

int kib_get(struct wire_conn *conn, const struct wire_source *from, const struct iovec *iov,
	    size_t iov_cnt, struct wire_op *op)
{
	struct kib_conn *c = kib_conn_of(conn);
	struct kib_pull *pull = pull_new(c, from->id, iov, iov_cnt);

	if (!pull)
		return -FI_ENOMEM;
	pull->op = op;
	pull_go(pull);
	if (pull->status || !pull->total) {
		c->stuck = true;
		c->wire->due = true;
	}
	return 0;
}

/* The payload of an offer is not wanted. */
static int offer_leave(struct kib_conn *c, struct kib_pull *pull)
{
	struct kib_answer answer = { .token = (uint32_t)pull->id };

	if (!may_say(c)) {
		c->stuck = true;
		return 0;
	}
	kib_say(c, KIB_TAKEN, &answer, sizeof(answer));
	return pull_over(pull);
}

int kib_offered(struct kib_conn *c, const struct kib_offer_say *say)
{
	struct wire_dest dest = { .iov_cnt = 0 };
	struct kib_pull *pull;
	int ret;

	if (!say->packet.len || say->reserved || c->offered == KIB_OFFERED_MAX)
		return -FI_EINVAL;
	ret = engine_packet(c->wire->wire.ep, &c->conn, &say->packet, say, 0, &dest);
	if (ret || c->buried)
		return ret;
	pull = pull_new(c, say->id, dest.iov, dest.iov_cnt);
	if (!pull)
		return -FI_ENOMEM;
	if (pull->total > say->packet.len) {
		/* The engine's, not the peer's */
		pull->total = say->packet.len;
	}
	pull->cookie = dest.cookie;
	c->offered++;
	if (!pull->total)
		return offer_leave(c, pull);
	pull_go(pull);
	return pull_over(pull);
}

/* The memory of a window is this side's again. Returns as pull_over(). */
static int slot_over(struct kib_slot *slot)
{
	struct kib_pull *pull = slot->pull;
	struct kib_conn *c = pull->conn;

	slot->pull = NULL;
	pull->open--;
	if (slot->status)
		pull->status = slot->status;
	c->stuck = true;
	pull_go(pull);
	return pull_over(pull);
}

int kib_answered(struct kib_conn *c, const struct kib_answer *answer, uint32_t given_up)
{
	uint32_t idx = number_index(answer->token);
	struct kib_slot *slot;
	int ret;

	if (idx >= KIB_WINDOWS || answer->err > INT16_MAX)
		return -FI_EINVAL;
	slot = &c->slots[idx];
	if (!slot->pull || slot->token != answer->token || slot->answered)
		return -FI_EINVAL;
	slot->answered = true;
	slot->status = answer->err ? -FI_EIO : 0;
	ret = kib_window_shut(slot->window, given_up);
	return ret > 0 ? slot_over(slot) : ret;
}

int kib_shut(struct kib_conn *c, struct kib_slot *slot)
{
	return slot_over(slot);
}

/* Offers, and pushes: what the peer asks for */

static struct kib_offer *offer_find(struct kib_conn *c)
{
	for (uint32_t i = 0; i < KIB_OFFERS; i++)
		if (!c->offers[i].op)
			return &c->offers[i];
	return NULL;
}

int kib_offer(struct kib_conn *c, const struct packet *hdr, const struct iovec *iov,
	      size_t iov_cnt, struct wire_op *op)
{
	struct kib_offer *offer = offer_find(c);
	struct kib_offer_say say = { .packet = *hdr };

	if (!offer || iov_cnt > WIRE_IOV_MAX || c->receives <= KIB_RESERVE || !may_say(c))
		return -FI_EAGAIN;
	offer->op = op;
	offer->id = say.id = number_new(c, (uint32_t)(offer - c->offers));
	offer->len = hdr->len;
	offer->asked = 0;
	offer->pushes = 0;
	offer->last = false;
	offer->iov_cnt = (uint32_t)iov_cnt;
	memcpy(offer->iov, iov, iov_cnt * sizeof(*iov));
	kib_say(c, KIB_OFFER, &say, sizeof(say));
	return 0;
}

static struct kib_offer *offer_of(struct kib_conn *c, uint64_t id)
{
	uint32_t idx = number_index((uint32_t)id);

	if (idx >= KIB_OFFERS || !c->offers[idx].op || c->offers[idx].id != id)
		return NULL;
	return &c->offers[idx];
}

static void offer_over(struct kib_offer *offer)
{
	struct wire_op *op = offer->op;

	if (!offer->last || offer->pushes)
		return;
	offer->op = NULL;
	op->done(op, 0);
}

int kib_taken(struct kib_conn *c, const struct kib_answer *answer)
{
	struct kib_offer *offer = offer_of(c, answer->token);

	if (!offer || offer->asked || offer->last || answer->err)
		return -FI_EINVAL;
	offer->last = true;
	offer_over(offer);
	return 0;
}

static void push_over(struct kib_push *push)
{
	struct kib_offer *offer = push->offer;

	push->state = KIB_PUSH_FREE;
	push->offer = NULL;
	if (!offer)
		return;
	offer->pushes--;
	offer_over(offer);
}

/* Goes on with what was asked for. Returns 0, or -FI_E* that ends the conn. */
static int push_go(struct kib_push *push)
{
	struct kib_conn *c = push->conn;
	struct kib_answer answer = { .token = push->ask.token };
	int ret;

	if (push->state == KIB_PUSH_WRITE) {
		ret = kib_link_write(c->link, push->piece, push->piece_cnt, push->ask.at,
				     push->ask.key, push);
		if (ret == -FI_EAGAIN) {
			c->stuck = true;
			return 0;
		}
		if (ret && ret != -FI_EFAULT)
			return ret;
		push->writing = !ret;
		push->err = ret;
		push->state = KIB_PUSH_ANSWER;
	}
	if (push->state != KIB_PUSH_ANSWER)
		return 0;
	answer.err = (uint32_t)-push->err;
	/* Behind the write, of which it says that it is over. */
	if (!kib_say_ending(c, KIB_DONE, &answer, sizeof(answer),
			    push->err ? 0 : push->ask.key)) {
		c->stuck = true;
		return 0;
	}
	push->state = KIB_PUSH_WRITTEN;
	if (!push->writing)
		push_over(push);
	return 0;
}

int kib_written(struct kib_conn *c, struct kib_push *push)
{
	push->writing = false;
	c->stuck = true;
	if (push->state == KIB_PUSH_WRITTEN)
		push_over(push);
	return 0;
}

/* Where the part is that was asked for. Returns 0, or -FI_EINVAL that ends the conn. */
static int push_source(struct kib_conn *c, struct kib_push *push)
{
	const struct kib_ask *ask = &push->ask;
	struct iovec iov[WIRE_IOV_MAX];
	struct kib_offer *offer;
	size_t cnt;

	if (ask->flags & KIB_ASK_OFFER) {
		offer = offer_of(c, ask->id);
		if (!offer || offer->last || ask->skip != offer->asked ||
		    ask->len > offer->len - offer->asked)
			return -FI_EINVAL;
		cnt = iov_slice(offer->iov, offer->iov_cnt, ask->skip, ask->len, iov);
		push->offer = offer;
		offer->asked += ask->len;
		offer->last = ask->flags & KIB_ASK_LAST;
		offer->pushes++;
	} else {
		cnt = engine_offered(&c->conn, ask->id, ask->skip, ask->len, iov);
	}
	push->err = cnt ? 0 : -FI_EIO;
	push->state = cnt ? KIB_PUSH_WRITE : KIB_PUSH_ANSWER;
	push->piece_cnt = (uint32_t)cnt;
	for (size_t i = 0; i < cnt; i++)
		push->piece[i] = (struct kib_range){ iov[i].iov_base, iov[i].iov_len };
	return 0;
}

int kib_asked(struct kib_conn *c, const struct kib_ask *ask)
{
	struct kib_push *push = NULL;
	int ret;

	if (!ask->len || ask->len > KIB_WINDOW_MAX || ask->reserved ||
	    ask->flags & ~(uint32_t)(KIB_ASK_OFFER | KIB_ASK_LAST))
		return -FI_EINVAL;
	for (uint32_t i = 0; i < KIB_WINDOWS && !push; i++)
		if (c->pushes[i].state == KIB_PUSH_FREE)
			push = &c->pushes[i];
	if (!push)
		return -FI_EINVAL; /* more than there are windows */
	*push = (struct kib_push){ .conn = c, .ask = *ask };
	ret = push_source(c, push);
	return ret ? ret : push_go(push);
}

int kib_ends_send(const struct kib_conn *c, const struct packet *packet)
{
	uint64_t id;

	if (!packet_answers_send(packet, &id))
		return 0;
	for (uint32_t i = 0; i < KIB_WINDOWS; i++) {
		const struct kib_push *push = &c->pushes[i];

		if (push->state == KIB_PUSH_FREE || push->offer || push->ask.id != id)
			continue;
		return push->state == KIB_PUSH_WRITTEN ? 1 : -FI_EINVAL;
	}
	return 0;
}

/* All of them */

int kib_moves_go(struct kib_conn *c)
{
	struct list *node, *after;
	int ret = 0;

	for (uint32_t i = 0; i < KIB_WINDOWS && !ret; i++)
		ret = push_go(&c->pushes[i]);
	list_for_each(node, after, &c->pulls) {
		struct kib_pull *pull = container_of(node, struct kib_pull, node);

		if (ret || c->buried)
			break;
		pull_go(pull);
		if (!pull->op && !pull->total) {
			ret = offer_leave(c, pull);
			continue;
		}
		if (!pull->open && (pull->status || pull->asked == pull->total)) {
			/* What it is reported to may end any conn: the others in the next turn. */
			c->stuck = true;
			c->wire->due = true;
			return pull_over(pull);
		}
	}
	return ret;
}

void kib_moves_drop(struct kib_conn *c)
{
	struct list *node;

	while ((node = list_pop(&c->pulls)))
		platform_free(container_of(node, struct kib_pull, node));
}
