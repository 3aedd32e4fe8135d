/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random operations with one peer; churn.h has the contract. */
#include <sys/mman.h>
#include "churn.h"

#define TAG_NONE 0x6e6f6e65u /* of receives that match no send */

static uint8_t *room; /* CHURN_OPS buffers, and the region that peers reach */

void churn_room(void)
{
	room = mmap(NULL, (CHURN_OPS + 1) * (size_t)CHURN_LEN, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NODE_CHECK(NULL, room != MAP_FAILED);
}

void churn_open(struct churn *c, struct node *node, uint64_t key, uint64_t seed)
{
	*c = (struct churn){ .node = node, .key = key, .seed = seed, .peer = FI_ADDR_UNSPEC };
	for (uint32_t i = 0; i < CHURN_OPS; i++)
		c->ops[i].buf = room + i * (size_t)CHURN_LEN;
	node_expose(node, room + CHURN_OPS * (size_t)CHURN_LEN, CHURN_LEN, key);
}

void churn_close(struct churn *c)
{
	c->under_way = c->receives = 0;
}

static struct churn_op *free_op(struct churn *c)
{
	for (uint32_t i = 0; i < CHURN_OPS; i++)
		if (!c->ops[i].busy)
			return &c->ops[i];
	return NULL;
}

static void posted(struct churn *c, struct churn_op *op, bool receive, ssize_t ret)
{
	if (ret == -FI_EAGAIN)
		return;
	NODE_CHECK(c->node->stage, !ret);
	op->busy = true;
	op->receive = receive;
	op->since_ns = node_now_ns();
	c->under_way++;
	c->receives += receive;
}

/* Small ones most often, every size now and then. */
static size_t some_len(struct churn *c)
{
	static const size_t most[] = { 8, 64, 300, 4096, 70000, CHURN_LEN };

	return seeded_below(&c->seed, most[seeded_below(&c->seed, 6)] + 1);
}

static ssize_t send_one(struct churn *c, struct churn_op *op)
{
	struct iovec iov = { .iov_base = op->buf, .iov_len = op->len = some_len(c) };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = c->peer, .context = op
	};

	op->what = "send";
	if (seeded_below(&c->seed, 3))
		return fi_tsend(c->node->ep, op->buf, iov.iov_len, NULL, c->peer, 0, op);
	op->what = "send to be delivered";
	return fi_tsendmsg(c->node->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static ssize_t reach_one(struct churn *c, struct churn_op *op)
{
	static const char *const names[] = { "write", "read", "atomic", "fetch" };
	uint64_t kind = seeded_below(&c->seed, 4);
	size_t len = op->len = kind < 2 ? some_len(c) : 8;
	struct fid_ep *ep = c->node->rma;

	op->what = names[kind];
	switch (kind) {
	case 0:
		return fi_write(ep, op->buf, len, NULL, c->peer, 0, c->key, op);
	case 1:
		return fi_read(ep, op->buf, len, NULL, c->peer, 0, c->key, op);
	case 2:
		return fi_atomic(ep, op->buf, 1, NULL, c->peer, 0, c->key, FI_UINT64, FI_SUM,
				 op);
	default:
		return fi_fetch_atomic(ep, op->buf, 1, NULL, op->buf + 64, NULL, c->peer, 0,
				       c->key, FI_UINT64, FI_SUM, op);
	}
}

static void receive_one(struct churn *c, struct churn_op *op)
{
	op->what = "receive";
	op->len = CHURN_LEN;
	posted(c, op, true, fi_trecv(c->node->ep, op->buf, CHURN_LEN, NULL, c->peer, 0, 0, op));
}

void churn_send(struct churn *c)
{
	struct churn_op *op = free_op(c);

	NODE_CHECK(c->node->stage, op);
	NODE_UNTIL(c->node->stage, (posted(c, op, false, send_one(c, op)), op->busy),
		   churn_take(c));
}

void churn_step(struct churn *c, unsigned int may)
{
	struct churn_op *op = free_op(c);
	uint64_t what = seeded_below(&c->seed, 16);

	churn_take(c);
	if (!op)
		return;
	if (what < 7 && may & CHURN_RECEIVE && c->receives < CHURN_OPS / 2)
		receive_one(c, op);
	else if (what < 12 && may & CHURN_SEND)
		posted(c, op, false, send_one(c, op));
	else if (may & CHURN_SEND)
		posted(c, op, false, reach_one(c, op));
}

void churn_wildcard(struct churn *c)
{
	NODE_CHECK(c->node->stage, !fi_trecv(c->node->ep, room, 8, NULL, FI_ADDR_UNSPEC,
					     TAG_NONE, 0, &c->wildcard_ended));
}

static void ended(struct churn *c, struct churn_op *op)
{
	NODE_CHECK(c->node->stage, op >= c->ops && op < c->ops + CHURN_OPS && op->busy);
	op->busy = false;
	c->under_way--;
	c->receives -= op->receive;
	c->last_ns = node_now_ns();
}

/* An error has its reason and names its source. */
static void failed(struct churn *c)
{
	const struct fi_cq_err_entry *e = &c->node->error;

	if (e->op_context == &c->wildcard_ended) {
		NODE_CHECK(c->node->stage, e->err == FI_ECANCELED);
		c->wildcard_ended = true;
		return;
	}
	ended(c, e->op_context);
	if (e->err == FI_ECANCELED)
		return;
	c->errors++;
	NODE_CHECK(c->node->stage, e->err);
	NODE_CHECK(c->node->stage, e->src_addr == c->peer);
	NODE_CHECK(c->node->stage, c->loose || !c->dead || atomic_load(c->dead));
}

bool churn_take(struct churn *c)
{
	ssize_t ret = node_turn(c->node);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		failed(c);
		return true;
	}
	NODE_CHECK(c->node->stage, c->node->entry.op_context != &c->wildcard_ended);
	ended(c, c->node->entry.op_context);
	c->received += (c->node->entry.flags & FI_RECV) != 0;
	return true;
}

void churn_sleep(struct churn *c, int ms)
{
	struct fi_cq_tagged_entry *e = &c->node->entry;
	ssize_t ret = fi_cq_sreadfrom(c->node->cq, e, 1, &c->node->source, NULL, ms);

	if (ret == 1) {
		ended(c, e->op_context);
		c->received += (e->flags & FI_RECV) != 0;
		return;
	}
	NODE_CHECK(c->node->stage, ret == -FI_EAGAIN || ret == -FI_EAVAIL);
	if (ret == -FI_EAVAIL)
		churn_take(c);
}

uint32_t churn_owed(const struct churn *c, uint64_t killed_ns)
{
	uint32_t pending = 0;

	for (uint32_t i = 0; i < CHURN_OPS; i++)
		pending += c->ops[i].busy && c->ops[i].receive && c->ops[i].since_ns < killed_ns;
	return pending;
}

void churn_tell(const struct churn *c)
{
	for (uint32_t i = 0; i < CHURN_OPS; i++)
		if (c->ops[i].busy)
			fprintf(stderr, "under way: %s, %zu bytes\n", c->ops[i].what,
				c->ops[i].len);
}

void churn_cancel(struct churn *c)
{
	for (uint32_t i = 0; i < CHURN_OPS; i++)
		if (c->ops[i].busy && c->ops[i].receive)
			fi_cancel(&c->node->ep->fid, &c->ops[i]);
}
