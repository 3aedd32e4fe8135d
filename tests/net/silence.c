/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A network that goes away; silence.h has the contract. One thread. */
#include <unistd.h>
#include "silence.h"

#define LARGE (4u << 20)
#define TAG   1u

/* One look at the queue; all that ends does so with @err. */
static bool ended(struct node *node, uint32_t *cnt, bool well)
{
	ssize_t ret = node_turn(node);

	if (ret == -FI_EAGAIN) {
		usleep(100);
		return false;
	}
	NODE_CHECK(node->stage, well == (ret == 1));
	++*cnt;
	return true;
}

static void await(struct node *node, uint32_t cnt, bool well)
{
	uint32_t got = 0;

	NODE_UNTIL(node->stage, got == cnt, ended(node, &got, well));
}

void silence_run(struct silence *s, struct node *node, fi_addr_t peer, int rank)
{
	char *large = calloc(1, LARGE), in[8], out[8] = "";
	uint32_t none = 0;

	NODE_CHECK(node->stage, large);
	NODE_CHECK(node->stage, !fi_trecv(node->ep, in, sizeof(in), NULL, peer, TAG, 0, in));
	NODE_UNTIL(node->stage, !fi_tsend(node->ep, out, sizeof(out), NULL, peer, TAG, out),
		   (fi_cq_read(node->cq, NULL, 0), false));
	await(node, 2, true);
	NODE_CHECK(node->stage, !fi_trecv(node->ep, in, sizeof(in), NULL, peer, TAG, 0, in));
	atomic_fetch_add(&s->met, 1);
	NODE_UNTIL(node->stage, atomic_load(&s->cut_ns), ended(node, &none, true));
	NODE_CHECK(node->stage, !none);
	if (!rank)
		NODE_CHECK(node->stage, !fi_tsend(node->ep, large, LARGE, NULL, peer, TAG, out));
	await(node, rank ? 1 : 2, false);
	NODE_CHECK(node->stage, node->error.err);
	atomic_store(&s->took_ns[rank], node_now_ns() - atomic_load(&s->cut_ns));
	free(large);
}
