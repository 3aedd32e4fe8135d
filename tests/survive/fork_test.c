/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process forks with an endpoint open, in the middle of messages of every size. In the child
 * every data call of that endpoint ends at once with -FI_EOPBADSTATE; it closes what it has
 * inherited, opens an endpoint of its own and talks to the same peer. The parent's messages go
 * on meanwhile, none lost and none doubled.
 *
 *	fork_test PROVIDER [CHILDREN]	SURVIVE_SEED, SURVIVE_ROUNDS
 */
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>
#include "echo.h"

#define TEST_SECS  120
#define CALL_NS	   10000000000u /* at once, where a processor is emulated, or busy with others */
#define KEY	   3
#define TAG_PARENT 0x100000000u
#define TAG_CHILD  0x200000000u

enum gate { GATE_NAMED, GATE_PEER_NAMED, GATE_CHILD_NAMED, GATE_CHILD_KNOWN, GATE_OVER };

struct family {
	struct stage stage;
	char parent[NODE_NAME], peer[NODE_NAME], child[NODE_NAME];
	uint32_t children;
	uint64_t seed;
};

static const char *provider;
static bool sleeps; /* the domain has a thread that is lost in the child */

static void open_node(struct node *n, struct family *f, char *name, int gate)
{
	struct node_attr attr = { .provider = provider, .sleeps = sleeps };

	NODE_CHECK(f, !node_open(n, f, &attr));
	node_name(n, name);
	stage_pass(f, gate);
}

/* The peer of all: answers the parent, and each child in its turn. */
static void peer(void *stage, int rank)
{
	struct family *f = stage;
	struct echo parent, child;
	uint32_t known = 0;
	struct node n;

	open_node(&n, f, f->peer, GATE_PEER_NAMED);
	NODE_UNTIL(f, stage_passed(f, GATE_NAMED), false);
	echo_open(&parent, &n, node_knows(&n, f->parent), TAG_PARENT);
	echo_expect(&parent);
	while (!stage_passed(f, GATE_OVER)) {
		ssize_t turn = node_turn(&n);

		if (stage_passed(f, GATE_CHILD_NAMED) > known) {
			if (known++)
				echo_close(&child);
			echo_open(&child, &n, node_knows(&n, f->child), TAG_CHILD);
			echo_expect(&child);
			stage_pass(f, GATE_CHILD_KNOWN);
		}
		if (turn == -FI_EAGAIN)
			node_pause(f);
		else if (!echo_took(&parent, turn))
			NODE_CHECK(f, known && echo_took(&child, turn));
		NODE_CHECK(f, !parent.err && !(known && child.err));
	}
	node_close(&n);
	echo_close(&parent);
	if (known)
		echo_close(&child);
}

/* The child */

#define REFUSED(f, call)                                         \
	do {                                                     \
		uint64_t since_ = node_now_ns();                 \
		NODE_CHECK(f, (call) == -FI_EOPBADSTATE);        \
		NODE_CHECK(f, node_now_ns() - since_ < CALL_NS); \
	} while (0)

static void messages_refused(struct family *f, struct fid_ep *ep, fi_addr_t to)
{
	struct iovec iov = { .iov_base = f, .iov_len = 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to };
	struct fi_msg_tagged tagged = { .msg_iov = &iov, .iov_count = 1, .addr = to };

	REFUSED(f, fi_send(ep, f, 8, NULL, to, NULL));
	REFUSED(f, fi_sendv(ep, &iov, NULL, 1, to, NULL));
	REFUSED(f, fi_sendmsg(ep, &msg, 0));
	REFUSED(f, fi_senddata(ep, f, 8, NULL, 1, to, NULL));
	REFUSED(f, fi_inject(ep, f, 8, to));
	REFUSED(f, fi_injectdata(ep, f, 8, 1, to));
	REFUSED(f, fi_recv(ep, &msg, 8, NULL, FI_ADDR_UNSPEC, NULL));
	REFUSED(f, fi_recvv(ep, &iov, NULL, 1, FI_ADDR_UNSPEC, NULL));
	REFUSED(f, fi_recvmsg(ep, &msg, 0));
	REFUSED(f, fi_tsend(ep, f, ECHO_MAX, NULL, to, 0, NULL));
	REFUSED(f, fi_tsendv(ep, &iov, NULL, 1, to, 0, NULL));
	REFUSED(f, fi_tsendmsg(ep, &tagged, 0));
	REFUSED(f, fi_tsenddata(ep, f, 8, NULL, 1, to, 0, NULL));
	REFUSED(f, fi_tinject(ep, f, 8, to, 0));
	REFUSED(f, fi_tinjectdata(ep, f, 8, 1, to, 0));
	REFUSED(f, fi_trecv(ep, &msg, 8, NULL, FI_ADDR_UNSPEC, 0, 0, NULL));
	REFUSED(f, fi_trecvv(ep, &iov, NULL, 1, FI_ADDR_UNSPEC, 0, 0, NULL));
	REFUSED(f, fi_trecvmsg(ep, &tagged, 0));
	REFUSED(f, fi_cancel(&ep->fid, f));
}

static void accesses_refused(struct family *f, struct fid_ep *ep, fi_addr_t to)
{
	struct iovec iov = { .iov_base = f, .iov_len = 8 };
	uint64_t one = 1, old;

	REFUSED(f, fi_read(ep, &old, 8, NULL, to, 0, KEY, NULL));
	REFUSED(f, fi_readv(ep, &iov, NULL, 1, to, 0, KEY, NULL));
	REFUSED(f, fi_write(ep, &one, 8, NULL, to, 0, KEY, NULL));
	REFUSED(f, fi_writev(ep, &iov, NULL, 1, to, 0, KEY, NULL));
	REFUSED(f, fi_writedata(ep, &one, 8, NULL, 1, to, 0, KEY, NULL));
	REFUSED(f, fi_inject_write(ep, &one, 8, to, 0, KEY));
	REFUSED(f, fi_inject_writedata(ep, &one, 8, 1, to, 0, KEY));
	REFUSED(f, fi_atomic(ep, &one, 1, NULL, to, 0, KEY, FI_UINT64, FI_SUM, NULL));
	REFUSED(f, fi_inject_atomic(ep, &one, 1, to, 0, KEY, FI_UINT64, FI_SUM));
	REFUSED(f, fi_fetch_atomic(ep, &one, 1, NULL, &old, NULL, to, 0, KEY, FI_UINT64, FI_SUM,
				   NULL));
	REFUSED(f, fi_compare_atomic(ep, &one, 1, NULL, &one, NULL, &old, NULL, to, 0, KEY,
				     FI_UINT64, FI_CSWAP, NULL));
}

static void child_talks(struct family *f)
{
	struct node own;
	struct echo e;

	open_node(&own, f, f->child, GATE_CHILD_NAMED);
	NODE_UNTIL(f, stage_passed(f, GATE_CHILD_KNOWN) == stage_passed(f, GATE_CHILD_NAMED),
		   false);
	echo_open(&e, &own, node_knows(&own, f->peer), TAG_CHILD);
	for (const size_t *len = echo_sizes; *len; len++) {
		echo_ask(&e, *len);
		NODE_UNTIL(f, echo_over(&e), echo_took(&e, node_turn(&own)));
		NODE_CHECK(f, !e.err);
	}
	echo_close(&e);
	node_close(&own);
}

static void child(struct family *f, struct node *inherited, struct fid_ep *alias, fi_addr_t to)
{
	alarm(TEST_SECS);
	messages_refused(f, inherited->ep, to);
	messages_refused(f, alias, to);
	accesses_refused(f, inherited->ep, to);
	/* Operations under way belong to the parent: here they fail, or are not reported. */
	for (int i = 0; i < 1000; i++)
		node_turn(inherited);
	messages_refused(f, inherited->ep, to);
	NODE_CHECK(f, !fi_close(&alias->fid));
	node_close(inherited);
	child_talks(f);
	exit(0);
}

/* The parent */

static bool parent_turn(struct echo *e, uint64_t *seed)
{
	bool took = echo_took(e, node_turn(e->node));

	NODE_CHECK(e->node->stage, !e->err);
	if (echo_over(e))
		echo_ask(e, seeded_below(seed, ECHO_MAX / 4) >> seeded_below(seed, 20));
	return took;
}

static bool child_is_over(struct family *f, pid_t pid)
{
	int status;
	pid_t ended = waitpid(pid, &status, WNOHANG);

	NODE_CHECK(f, ended >= 0);
	NODE_CHECK(f, !ended || !status);
	return ended;
}

static void parent(void *stage, int rank)
{
	struct family *f = stage;
	struct fid_ep *alias;
	struct node n;
	struct echo e;
	pid_t pid;

	open_node(&n, f, f->parent, GATE_NAMED);
	NODE_CHECK(f, !fi_ep_alias(n.ep, &alias, FI_TRANSMIT | FI_COMPLETION));
	NODE_UNTIL(f, stage_passed(f, GATE_PEER_NAMED), false);
	echo_open(&e, &n, node_knows(&n, f->peer), TAG_PARENT);
	echo_ask(&e, 1);
	for (uint32_t i = 0; i < f->children; i++) {
		uint64_t cnt = e.cnt, steps = seeded_below(&f->seed, 300);

		for (uint64_t k = 0; k < steps || e.cnt == cnt; k++)
			if (!parent_turn(&e, &f->seed))
				node_pause(f);
		fflush(NULL);
		pid = fork();
		NODE_CHECK(f, pid >= 0);
		if (!pid)
			child(f, &n, alias, e.peer);
		NODE_UNTIL(f, child_is_over(f, pid), parent_turn(&e, &f->seed));
	}
	while (!echo_over(&e))
		if (!echo_took(&e, node_turn(&n)))
			node_pause(f);
	printf("%u children; %llu messages of the parent there and back\n", f->children,
	       (unsigned long long)e.cnt);
	stage_pass(f, GATE_OVER);
	NODE_CHECK(f, !fi_close(&alias->fid));
	node_close(&n);
	echo_close(&e);
}

static bool family_run(uint32_t children, uint64_t seed)
{
	struct family *f = stage_open(sizeof(*f));
	pid_t pids[2];
	bool ok;

	f->children = children;
	f->seed = seed;
	pids[0] = stage_start(f, 0, TEST_SECS, peer);
	pids[1] = stage_start(f, 1, TEST_SECS, parent);
	ok = stage_ended(f, pids[1], 0);
	return stage_ended(f, pids[0], 0) && ok;
}

int main(int argc, char **argv)
{
	uint64_t seed, children;
	bool ok = true;

	if (argc < 2)
		return 2;
	provider = argv[1];
	seed = node_seed();
	children = node_setting("SURVIVE_ROUNDS", argc > 2 ? strtoull(argv[2], NULL, 0) : 10);
	for (int i = 0; i < 2 && ok; i++) {
		sleeps = i;
		ok = family_run((uint32_t)children, seed + (uint64_t)i);
	}
	return !ok;
}
