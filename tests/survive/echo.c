/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages there and back; echo.h has the contract. */
#include "echo.h"

const size_t echo_sizes[] = { 1,     24,    25,	    200,    257,     4096,    16384, 16385,
			      65536, 65537, 200000, 262145, 1048576, 4194304, 0 };

void echo_open(struct echo *e, struct node *node, fi_addr_t peer, uint64_t tag)
{
	*e = (struct echo){ .node = node, .peer = peer, .tag = tag };
	e->out = malloc(ECHO_MAX);
	e->in = malloc(ECHO_MAX);
	NODE_CHECK(node->stage, e->out && e->in);
}

void echo_close(struct echo *e)
{
	free(e->out);
	free(e->in);
}

/* Bytes of a message: what only its tag and direction have. */
static uint64_t bytes_of(const struct echo *e, bool answer)
{
	return (e->tag + e->cnt) * 2 + answer;
}

static void post_receive(struct echo *e)
{
	e->received = false;
	NODE_CHECK(e->node->stage, !fi_trecv(e->node->ep, e->in, ECHO_MAX, NULL, e->peer,
					     e->tag + e->cnt, 0, &e->received));
}

static void post_send(struct echo *e, size_t len, bool answer)
{
	ssize_t ret;

	e->len = len;
	e->sent = false;
	node_pattern(e->out, len, bytes_of(e, answer));
	/* Room is made by taking completions: there is one of each under way. */
	ret = fi_tsend(e->node->ep, e->out, len, NULL, e->peer, e->tag + e->cnt, &e->sent);
	for (uint64_t end = node_now_ns() + node_secs * 1000000000ull; ret == -FI_EAGAIN;) {
		fi_cq_read(e->node->cq, NULL, 0);
		NODE_CHECK(e->node->stage, node_now_ns() < end);
		ret = fi_tsend(e->node->ep, e->out, len, NULL, e->peer, e->tag + e->cnt,
			       &e->sent);
	}
	if (ret)
		e->err = (int)-ret;
}

void echo_ask(struct echo *e, size_t len)
{
	e->cnt++;
	post_receive(e);
	post_send(e, len, false);
}

void echo_expect(struct echo *e)
{
	e->cnt++;
	e->sent = true;
	e->answers = true;
	post_receive(e);
}

static void arrived(struct echo *e)
{
	size_t len = e->node->entry.len;

	e->received = true;
	NODE_CHECK(e->node->stage, e->node->entry.tag == e->tag + e->cnt);
	NODE_CHECK(e->node->stage, e->node->source == e->peer);
	NODE_CHECK(e->node->stage, e->answers || len == e->len);
	NODE_CHECK(e->node->stage, node_is_pattern(e->in, len, bytes_of(e, !e->answers)));
	if (e->answers)
		post_send(e, len, true);
}

bool echo_took(struct echo *e, ssize_t turn)
{
	void *context = turn == 1 ? e->node->entry.op_context : e->node->error.op_context;

	if (turn == -FI_EAGAIN || (context != &e->sent && context != &e->received))
		return false;
	if (turn == -FI_EAVAIL)
		e->err = e->node->error.err;
	else if (context == &e->sent)
		e->sent = true;
	else
		arrived(e);
	if (e->answers && !e->err && e->sent && e->received)
		echo_expect(e);
	return true;
}
