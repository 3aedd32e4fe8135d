/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine against the reference model: seeded random operations on 2 to 4 endpoints over the
 * fake wires. The model predicts for each receive which message it gets and everything that its
 * completion says; in the end nothing is lost, duplicated or left over, in the engine's own
 * books neither.
 *
 * A second test breaks connections all the time. What is lost with them is free within bounds:
 * each operation still completes once, what arrives arrives in order and whole, directed receives
 * fail with their source and others stay, what was stored whole stays.
 *
 * A third test ends each round by closing the endpoints one after the other, in the middle of
 * everything.
 *
 * A run is a number of rounds, each with endpoints, wires and habits of its own and a seed from
 * which everything follows. A failure names the seed of its round.
 *
 *	MODEL_SEED=n	seed of the first round
 *	MODEL_OPS=n	operations in all
 *	MODEL_TEST=n	only the first, second or third test
 *	MODEL_TRACE=1	print each operation
 */
#include "peer.h"
#include "run.h"
#include "seeded.h"

#define BUDGET_ALL (64u << 20)
#define QUIET_MAX  3000000 /* polls in which everything must have come to its end */

struct run run;
struct run_seen seen;
uint64_t round_seed;
int round_test;
bool run_trace;

uint32_t below(uint32_t n)
{
	return (uint32_t)seeded_below(&run.sequence, n);
}

bool chance(uint32_t of_256)
{
	return below(256) < of_256;
}

static void some_attr(struct fake_end_attr *a, enum fake_family family)
{
	static const size_t tx_sizes[] = { 1, 2, 8, 64, 0 };
	static const size_t budgets[] = { 0, 300, 600, 2000, 9000, 1u << 18, BUDGET_ALL };

	*a = (struct fake_end_attr){
		.family = family,
		.threading = chance(128) ? FI_THREAD_DOMAIN : FI_THREAD_SAFE,
		.format = (enum fi_cq_format)(FI_CQ_FORMAT_CONTEXT + below(4)),
		.bind_flags = chance(100) ? FI_SELECTIVE_COMPLETION : 0,
		.tx_size = tx_sizes[below(5)],
		.budget = budgets[below(7)],
		.one_cq = chance(100),
	};
	a->count = chance(160);
	if (chance(60))
		a->caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_SOURCE;
	if (chance(60))
		a->tx_op_flags |= FI_COMPLETION;
	if (chance(30))
		a->tx_op_flags |= FI_INJECT;
	if (chance(60))
		a->rx_op_flags |= FI_COMPLETION;
}

static void round_ends(void)
{
	enum fake_family family = (enum fake_family)below(FAKE_FAMILIES);

	run.cnt = 2 + (int)below(FAKE_ENDS_MAX - 1);
	for (int i = 0; i < run.cnt; i++) {
		bool shares = i && chance(60);
		int with = shares ? run.owner[below((uint32_t)i)] : i;
		struct fake_end_attr *a = &run.attrs[i];

		some_attr(a, family);
		if (shares) {
			a->threading = run.attrs[with].threading;
			a->format = run.attrs[with].format;
			a->one_cq = run.attrs[with].one_cq;
		}
		run.owner[i] = with;
		fake_host(family == FAKE_FAMILY_AB ? 1 + below(2) : 1);
		fake_end_open(&run.ends[i], a, shares ? &run.ends[with] : NULL);
		TRACE("end %d: family %d, tx_size %zu, budget %zu, with %d\n", i, family,
		      a->tx_size, a->budget, with);
	}
}

/* Put addresses into the vectors, and begin some sequences where they wrap around. */
static void round_addresses(void)
{
	for (int i = 0; i < run.cnt; i++) {
		for (int k = 0; k < run.cnt; k++) {
			struct weft_addr name;

			if (run.owner[i] != i)
				continue;
			run.service[i][k] = run.attrs[i].family != FAKE_FAMILY_A && chance(100);
			run.addr[i][k] = FI_ADDR_NOTAVAIL;
			name = name_for(i, k);
			if (chance(220))
				run.addr[i][k] = fake_end_insert(&run.ends[i], &name);
		}
	}
	for (int i = 0; i < run.cnt; i++) {
		for (int k = 0; k < run.cnt; k++) {
			struct engine_peer *peer;

			if (addr_of(i, k) == FI_ADDR_NOTAVAIL || chance(160))
				continue;
			peer = engine_peer_at(fake_end_engine(&run.ends[i]), addr_of(i, k));
			assert_non_null(peer);
			peer->tx_seq = UINT32_MAX - below(20);
			run.ref.pairs[i][k].first_seq = peer->tx_seq;
		}
	}
}

static void round_begin(uint64_t seed, bool breaks)
{
	struct fake_knobs knobs;

	memset(&run, 0, sizeof(run));
	round_seed = seed;
	run.sequence = seed * 0x9e3779b97f4a7c15ull | 1;
	list_init(&run.ops);
	list_init(&run.freed);
	ref_init(&run.ref);
	fake_ends_begin(seed);
	observe_begin();
	for (int i = 0; i < FAKE_KINDS; i++) {
		fake_knobs_random(&knobs);
		fake_knobs_set((enum fake_kind)i, &knobs);
	}
	run.hunger = 64 + below(160);
	run.bigness = chance(128) ? 0 : below(128);
	run.chatter = 40 + below(200);
	run.breaks = breaks ? 1 + below(2000) : 0;
	run.most = 1 + below(chance(128) ? 8 : 300);
	run.reach = chance(200) ? below(200) : 0;
	round_ends();
	round_addresses();
	memories_open();
}

/* Receives that are posted in the domain of an endpoint, as the model has it. */
static size_t posted_in_domain(int at)
{
	size_t posted = 0;

	for (int i = 0; i < run.cnt; i++)
		if (run.owner[i] == run.owner[at])
			posted += run.ref.posted_cnt[i];
	return posted;
}

/* Returns true if everything that was begun has ended. */
static bool quiet(void)
{
	if ((run.credit_due && !run.breaks) || fake_under_way())
		return false;
	for (uint32_t i = 0; i < RECENT; i++)
		if (run.claimed[i])
			return false;
	for (int i = 0; i < run.cnt; i++) {
		struct engine_ep *ep = fake_end_engine(&run.ends[i]);

		if (ep->tx_pool.used || ep->domain->rx_pool.used != posted_in_domain(i) ||
		    ep->ctl_pool.used || run.ref.stored_cnt[i])
			return false;
		for (int k = 0; k < run.cnt; k++)
			if (run.ref.pairs[i][k].turn != run.ref.pairs[i][k].cnt &&
			    (!run.breaks || i == k))
				return false;
		if (ep->reply_pool.used || ep->landing_pool.used ||
		    (!run.breaks && !list_empty(&run.data_due[i])) || !counters_agree(i))
			return false;
	}
	return true;
}

static void complain(void)
{
	print_error("%zu completions are outstanding, %u packets are under way\n",
		    run.credit_due, fake_under_way());
	for (int i = 0; i < run.cnt; i++) {
		struct engine_ep *ep = fake_end_engine(&run.ends[i]);

		print_error(
			"%d: tx %u, rx of the domain %u of %zu posted, ctl %u, held %u, stored %zu\n",
			i, ep->tx_pool.used, ep->domain->rx_pool.used, posted_in_domain(i),
			ep->ctl_pool.used, ep->held_pool.used, run.ref.stored_cnt[i]);
		for (int k = 0; k < run.cnt; k++)
			print_error("   to %d: %zu of %zu arrived\n", k,
				    run.ref.pairs[i][k].turn, run.ref.pairs[i][k].cnt);
	}
	FAIL("it does not come to rest");
}

/* The credit that one side has is what the other side allows, and all of the window is somewhere. */
static void check_credit(int from, int to)
{
	struct engine_peer *p = fake_end_peer(&run.ends[from], &run.ends[to].name);
	struct engine_peer *q = fake_end_peer(&run.ends[to], &run.ends[from].name);

	if (!p || !q || !p->up_cnt || !q->up_cnt)
		return;
	CHECK(p->credit == q->rx_window && q->rx_window + q->credit_due == q->window,
	      "%d to %d: credit %u, receive window %u, credit due %u, window %u", from, to,
	      p->credit, q->rx_window, q->credit_due, q->window);
}

static void round_free(bool complete)
{
	struct list *node;

	/* Nothing holds a region any more, so that it closes at once. */
	if (complete)
		memories_check();
	memories_close();
	for (int i = run.cnt; i-- > 0;)
		fake_end_close(&run.ends[i]);
	while ((node = list_pop(&run.ops))) {
		struct op *op = container_of(node, struct op, link);

		if (complete && op->kind == OP_ACCESS && !op->done &&
		    op->msg.state == REF_CARRIED && !op->exposed && !op->access.refused)
			access_done(op);

		/* Receives without a completion have their bytes all the same. */
		if (complete && op->kind == OP_RECV && !op->done && op->recv.msg && !op->exposed)
			check_bytes(op, op_of_msg(op->recv.msg));
		seen.silent += !op->wants;
		CHECK(!complete || op->done == op->wants, "operation %llu is not done",
		      (unsigned long long)op->id);
		list_add_tail(&run.freed, node);
	}
	while ((node = list_pop(&run.freed))) {
		struct op *op = container_of(node, struct op, link);

		op_iov_free(op);
		access_free(op);
		free(op);
	}
	for (int i = 0; i < run.cnt; i++) {
		free(run.memory[i].bytes);
		free(run.memory[i].mirror);
	}
	ref_fini(&run.ref);
}

/* Until nothing is left to do, and polling again changes nothing: a conn may be in the making. */
static void round_rest(void)
{
	do {
		for (uint32_t i = 0; !quiet(); i++) {
			if (i == QUIET_MAX)
				complain();
			for (int k = 0; k < run.cnt; k++) {
				receive_stored(k);
				poke(k);
			}
			use_claim(i % RECENT);
		}
		/* The wire of an endpoint to itself may still have credits. */
		for (uint32_t i = 0; i < 200; i++)
			poke((int)(i % (uint32_t)run.cnt));
	} while (!quiet());
}

static void round_end(void)
{
	round_rest();
	for (int i = 0; i < run.cnt; i++) {
		CHECK(!fake_end_engine(&run.ends[i])->held_pool.used, "messages are left over");
		for (int k = 0; k < run.cnt; k++)
			check_credit(i, k);
	}
	cancel_posted();
	for (uint32_t i = 0; run.credit_due; i++) {
		if (i == QUIET_MAX)
			complain();
		poke((int)(i % (uint32_t)run.cnt));
	}
	/* Errors of operations that were to be silent. */
	for (uint32_t i = 0; run.breaks && i < run.next_id; i++)
		poke((int)(i % (uint32_t)run.cnt));
	round_free(true);
}

/* Close the endpoints in any order; those that are left go on. */
static void round_abort(void)
{
	run.closing = true;
	for (int left = run.cnt; left; left--) {
		uint32_t nth = below((uint32_t)left);
		int i = 0;

		while (!run.ends[i].ep || nth--)
			i++;
		fake_end_stop(&run.ends[i]);
		for (uint32_t k = below(300); k; k--)
			poke((int)below((uint32_t)run.cnt));
	}
	for (uint32_t i = 0; i < run.next_id; i++)
		poke((int)(i % (uint32_t)run.cnt));
	round_free(false);
}

static uint64_t from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void report(void)
{
	if (seen.breaks)
		printf("%llu connections broke: %llu sends, %llu one-sided operations and %llu receives failed, %llu stored messages were lost\n",
		       (unsigned long long)seen.breaks, (unsigned long long)seen.failed_sends,
		       (unsigned long long)seen.failed_accesses,
		       (unsigned long long)seen.failed_receives, (unsigned long long)seen.lost);
	printf("%llu operations in %llu rounds: %llu sends (%llu times no room), %llu receives (%llu truncated)\n",
	       (unsigned long long)seen.ops, (unsigned long long)seen.rounds,
	       (unsigned long long)seen.sends, (unsigned long long)seen.full,
	       (unsigned long long)seen.receives, (unsigned long long)seen.truncated);
	printf("%llu peeks (%llu found), %llu claims, %llu cancelled, %llu without completion\n",
	       (unsigned long long)seen.peeks, (unsigned long long)seen.found,
	       (unsigned long long)seen.claims, (unsigned long long)seen.cancels,
	       (unsigned long long)seen.silent);
	printf("%llu writes, %llu reads, %llu atomics (%llu large, %llu refused, %llu fences), %llu told with data\n",
	       (unsigned long long)seen.writes, (unsigned long long)seen.reads,
	       (unsigned long long)seen.atomics, (unsigned long long)seen.large,
	       (unsigned long long)seen.refused, (unsigned long long)seen.fences,
	       (unsigned long long)seen.data_events);
	printf("%llu messages arrived (%llu rendezvous, %llu before their turn, %llu that waited for it), %llu bytes\n",
	       (unsigned long long)seen.packets, (unsigned long long)seen.rendezvous,
	       (unsigned long long)seen.early, (unsigned long long)seen.waits,
	       (unsigned long long)seen.bytes);
}

enum model_test {
	TEST_MATCHES = 1,
	TEST_BREAKS,
	TEST_CLOSES,
};

static void run_rounds(enum model_test test)
{
	uint64_t seed = from_env("MODEL_SEED", 1);
	uint64_t ops = from_env("MODEL_OPS", 20000);

	if (from_env("MODEL_TEST", test) != test)
		skip();
	memset(&seen, 0, sizeof(seen));
	round_test = test;
	printf("MODEL_SEED=%llu MODEL_OPS=%llu\n", (unsigned long long)seed,
	       (unsigned long long)ops);
	while (seen.ops < ops) {
		round_begin(seed, test != TEST_MATCHES);
		for (uint32_t left = 200 + below(test == TEST_CLOSES ? 600 : 6000); left; left--)
			step();
		if (test == TEST_CLOSES)
			round_abort();
		else
			round_end();
		seen.rounds++;
		seed = seed * 0xd6e8feb86659fd93ull + 0x9e3779b97f4a7c15ull;
	}
	report();
}

static void every_receive_gets_what_the_model_says(void **state)
{
	run_rounds(TEST_MATCHES);
}

static void what_a_broken_connection_takes_along_is_told(void **state)
{
	run_rounds(TEST_BREAKS);
}

static void endpoints_close_in_the_middle_of_everything(void **state)
{
	run_rounds(TEST_CLOSES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_receive_gets_what_the_model_says),
		cmocka_unit_test(what_a_broken_connection_takes_along_is_told),
		cmocka_unit_test(endpoints_close_in_the_middle_of_everything),
	};

	run_trace = getenv("MODEL_TRACE") != NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
