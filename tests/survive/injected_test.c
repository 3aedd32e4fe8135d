/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program injects to a process that is killed: it is told so by an error in its queue, within a
 * bound, whatever it injects: messages, writes and atomics by packet, and over shared memory stores
 * to memory that it maps.
 *
 *	injected_test PROVIDER
 */
#include <signal.h>
#include <weft/mem.h>
#include "node.h"

#define KEY	     5u
#define KEY_ARENA    6u
#define LEN	     4096u
#define BOUND_NS     10000000000u
#define INJECTED_MIN 100u /* before the victim is killed */

enum member { VICTIM, INJECTOR, MEMBERS };
enum gate { GATE_NAMED, GATE_WORKING = MEMBERS };
enum call {
	CALL_MESSAGE,
	CALL_TAGGED,
	CALL_WRITE,
	CALL_ATOMIC,
	CALL_STORE,
	CALLS,
};
static const char *const names[CALLS] = { "fi_inject", "fi_tinject", "fi_inject_write",
					  "fi_inject_atomic", "fi_inject_write by a store" };

struct scene {
	struct stage stage;
	char names[MEMBERS][NODE_NAME];
	_Atomic bool arena; /* the victim has memory that peers map */
	_Atomic uint64_t killed_ns;
	enum call call;
};

static const char *provider;

static void meet(struct node *n, struct scene *s, int rank)
{
	struct node_attr attr = { .provider = provider };

	NODE_CHECK(s, !node_open(n, s, &attr));
	node_name(n, s->names[rank]);
}

static void victim(void *stage, int rank)
{
	struct weft_mem_ops *mem;
	struct scene *s = stage;
	struct fid_mr *mr;
	void *addr = NULL;
	struct node n;

	meet(&n, s, rank);
	node_expose(&n, calloc(1, LEN), LEN, KEY);
	if (!fi_open_ops(&n.domain->fid, WEFT_MEM_OPS, 0, (void **)&mem, NULL) &&
	    !mem->alloc(LEN, 0, WEFT_MEM_REMOTE_WRITE, &addr)) {
		NODE_CHECK(s, !fi_mr_reg(n.domain, addr, LEN, FI_REMOTE_WRITE, 0, KEY_ARENA, 0,
					 &mr, NULL));
		atomic_store(&s->arena, true);
	}
	stage_pass(s, GATE_NAMED + rank);
	for (;;)
		node_turn(&n);
}

static ssize_t inject(struct node *n, fi_addr_t to, enum call call)
{
	uint64_t one = 1;

	switch (call) {
	case CALL_MESSAGE:
		return fi_inject(n->ep, &one, sizeof(one), to);
	case CALL_TAGGED:
		return fi_tinject(n->ep, &one, sizeof(one), to, 3);
	case CALL_ATOMIC:
		return fi_inject_atomic(n->ep, &one, 1, to, 0, KEY, FI_UINT64, FI_SUM);
	default:
		return fi_inject_write(n->ep, &one, sizeof(one), to, 0,
				       call == CALL_STORE ? KEY_ARENA : KEY);
	}
}

static void injector(void *stage, int rank)
{
	struct scene *s = stage;
	uint64_t taken = 0;
	ssize_t turn = -FI_EAGAIN;
	struct node n;
	fi_addr_t to;

	NODE_UNTIL(s, stage_passed(s, GATE_NAMED + VICTIM), false);
	if (s->call == CALL_STORE && !atomic_load(&s->arena)) {
		printf("%s: there is no such memory\n", names[s->call]);
		stage_pass(s, GATE_WORKING);
		return;
	}
	meet(&n, s, rank);
	to = node_knows(&n, s->names[VICTIM]);
	while (turn == -FI_EAGAIN) {
		ssize_t ret = inject(&n, to, s->call);
		uint64_t killed = atomic_load(&s->killed_ns);

		NODE_CHECK(s, !ret || ret == -FI_EAGAIN);
		taken += !ret;
		if (taken == INJECTED_MIN && !ret)
			stage_pass(s, GATE_WORKING);
		NODE_CHECK(s, !killed || node_now_ns() < killed + BOUND_NS);
		turn = node_turn(&n);
		node_pause(s);
	}
	NODE_CHECK(s, turn == -FI_EAVAIL && n.error.err && !n.error.op_context);
	NODE_CHECK(s, atomic_load(&s->killed_ns));
	printf("%s: error %d after %.1f ms\n", names[s->call], n.error.err,
	       (double)(node_now_ns() - atomic_load(&s->killed_ns)) / 1e6);
	node_close(&n);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	provider = argv[1];
	for (int call = 0; call < CALLS; call++) {
		struct scene *s = stage_open(sizeof(*s));
		pid_t pids[MEMBERS];

		s->call = (enum call)call;
		pids[VICTIM] = stage_start(s, VICTIM, 60, victim);
		pids[INJECTOR] = stage_start(s, INJECTOR, 60, injector);
		NODE_UNTIL(s, stage_passed(s, GATE_WORKING), false);
		atomic_store(&s->killed_ns, node_now_ns());
		NODE_CHECK(s, !kill(pids[VICTIM], SIGKILL));
		NODE_CHECK(s, stage_ended(s, pids[VICTIM], SIGKILL));
		NODE_CHECK(s, stage_ended(s, pids[INJECTOR], 0));
	}
	return 0;
}
