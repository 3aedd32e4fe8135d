/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Strangers at the port of an endpoint of tcp (strangers.h). Meanwhile the endpoint talks to a peer,
 * and every message of theirs arrives; when the strangers have gone, so have their descriptors and
 * their memory. With a secret and TLS where the environment says so.
 *
 *	strangers_test [ROUNDS]		SURVIVE_SEED, SURVIVE_ROUNDS
 */
#define _GNU_SOURCE
#include <unistd.h>
#include "echo.h"
#include "strangers.h"

#define ECHO_TAG   (1ull << 63) /* strangers' messages have no such bit, unless it was bent */
#define GROWTH_MAX (4u << 20)

enum gate { GATE_NAMED, GATE_TALKING, GATE_STRANGERS_OVER, GATE_OVER };

struct street {
	struct stage stage;
	char names[2][NODE_NAME]; /* of the host, whose port it is, and of its peer */
	_Atomic uint64_t talked;  /* messages there and back */
	uint64_t seed;
	uint32_t rounds;
};

/* The host */

struct host {
	struct street *street;
	struct node node;
	struct echo echo;
	uint64_t foreign; /* messages of strangers, and what failed of theirs */
	char in[64];
};

/* Takes whatever strangers send, so that it does not wait in memory for ever. */
static void take_foreign(struct host *h)
{
	NODE_CHECK(h->street, !fi_trecv(h->node.ep, h->in, sizeof(h->in), NULL, FI_ADDR_UNSPEC,
					0, ~ECHO_TAG, h->in));
}

static bool host_turn(struct host *h)
{
	ssize_t turn = node_turn(&h->node);

	if (turn == -FI_EAGAIN)
		return false;
	if (echo_took(&h->echo, turn))
		return true;
	h->foreign++;
	if (turn == 1 || h->node.error.op_context == h->in)
		take_foreign(h);
	return true;
}

static void host_role(void *stage, int rank)
{
	struct node_attr attr = { .provider = "tcp" };
	struct street *s = stage;
	struct host h = { .street = s };
	void *region = calloc(1, STRANGERS_SPAN);
	int descriptors;
	size_t heap;

	NODE_CHECK(s, region && !node_open(&h.node, s, &attr));
	node_expose(&h.node, region, STRANGERS_SPAN, STRANGERS_KEY);
	node_name(&h.node, s->names[0]);
	stage_pass(s, GATE_NAMED);
	NODE_UNTIL(s, stage_passed(s, GATE_NAMED) == 2, false);
	echo_open(&h.echo, &h.node, node_knows(&h.node, s->names[1]), ECHO_TAG);
	echo_expect(&h.echo);
	take_foreign(&h);
	NODE_UNTIL(s, stage_passed(s, GATE_TALKING), host_turn(&h));
	descriptors = node_descriptors();
	heap = node_heap();
	while (!stage_passed(s, GATE_STRANGERS_OVER)) {
		NODE_CHECK(s, !h.echo.err);
		if (!host_turn(&h))
			node_pause(s);
	}
	NODE_UNTIL(s, node_descriptors() <= descriptors, host_turn(&h));
	printf("%llu messages and failures of strangers; %d descriptors; %zu bytes allocated before, %zu after\n",
	       (unsigned long long)h.foreign, node_descriptors(), heap, node_heap());
	/* What of a broken connection is kept for its peer's return is given up after a while. */
	NODE_UNTIL(s, NODE_SANITIZED || node_heap() < heap + GROWTH_MAX, host_turn(&h));
	stage_pass(s, GATE_OVER);
	NODE_UNTIL(s, stage_passed(s, GATE_OVER) == 2, host_turn(&h));
	node_close(&h.node);
	echo_close(&h.echo);
	free(region);
}

/* The peer */

static void peer_role(void *stage, int rank)
{
	struct node_attr attr = { .provider = "tcp" };
	struct street *s = stage;
	struct echo e;
	struct node n;

	NODE_CHECK(s, !node_open(&n, s, &attr));
	node_name(&n, s->names[1]);
	stage_pass(s, GATE_NAMED);
	NODE_UNTIL(s, stage_passed(s, GATE_NAMED) == 2, false);
	echo_open(&e, &n, node_knows(&n, s->names[0]), ECHO_TAG);
	for (size_t i = 0; !stage_passed(s, GATE_OVER); i++) {
		if (!echo_sizes[i]) {
			i = 0;
			if (!stage_passed(s, GATE_TALKING))
				stage_pass(s, GATE_TALKING);
		}
		echo_ask(&e, echo_sizes[i]);
		NODE_UNTIL(s, echo_over(&e), echo_took(&e, node_turn(&n)));
		NODE_CHECK(s, !e.err);
		atomic_fetch_add(&s->talked, 1);
	}
	stage_pass(s, GATE_OVER);
	node_close(&n);
	echo_close(&e);
}

/* The strangers */

/* Sends until its connection was bent; what comes of that is seen by the host. */
static void stranger_bent(struct strangers *s)
{
	struct node_attr attr = { .provider = "tcp" };
	uint64_t before = strangers_deeds(s);

	node_close(&s->node);
	NODE_CHECK(s->stage, !node_open(&s->node, s->stage, &attr));
	s->under_way = 0;
	NODE_CHECK(s->stage,
		   fi_av_insert(s->node.av, &s->relay.here, 1, &s->host, 0, NULL) == 1);
	strangers_bend(s, before, strangers_look);
}

static void strangers_role(void *stage, int rank)
{
	struct street *street = stage;
	struct strangers s;

	NODE_UNTIL(street, stage_passed(street, GATE_TALKING), (usleep(1000), false));
	strangers_open(&s, street, street->names[0], street->seed);
	strangers_come(&s, street->rounds, stranger_bent);
	node_close(&s.node);
	strangers_close(&s, street->rounds);
	stage_pass(street, GATE_STRANGERS_OVER);
}

int main(int argc, char **argv)
{
	static void (*const roles[])(void *, int) = { host_role, peer_role, strangers_role };
	struct street *s = stage_open(sizeof(*s));
	bool ok;

	s->rounds = strangers_rounds(argc, argv);
	s->seed = node_seed();
	ok = strangers_play(s, roles);
	printf("%llu messages of the peer there and back meanwhile\n",
	       (unsigned long long)s->talked);
	return !ok;
}
