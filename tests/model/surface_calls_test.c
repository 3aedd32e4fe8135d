/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whatever a program calls to transfer data: endpoints with all capabilities and with few, before
 * and after they are enabled, aliases, contexts of scalable endpoints, shared contexts. Each slot
 * of each of their tables works, or is refused with -FI_ENOSYS. See surface.h.
 *
 * usage: surface_calls_test PROVIDER
 */
#include <rdma/fi_trigger.h>
#include "surface.h"

static const enum fi_threading threadings[] = { FI_THREAD_SAFE, FI_THREAD_DOMAIN };

#define CLASSES	 (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE)
#define MESSAGES (FI_SEND | FI_RECV)
#define ACCESS	 (FI_READ | FI_WRITE)
#define WHOLE	 (DOES_SETTINGS | DOES_NAME)

/* Questions, of what is valid, are answered at any time. */
static bool asks(const struct slot *slot)
{
	return strstr(slot->name, "valid");
}

static void walk_settings(struct subject *u)
{
	surface_walk(u, "fi_ops_ep", u->ep->ops, ep_slots, EP_SLOTS);
	surface_walk(u, "fi_ops_cm", u->ep->cm, cm_slots, CM_SLOTS);
}

/* All calls of an endpoint that has joined the group of @near. */
static void walk_all(struct subject *u)
{
	struct groups groups;

	surface_groups(u->s, u->whole, u->root, &groups);
	u->coll = fi_mc_addr(groups.near);
	u->peer_coll = fi_mc_addr(groups.far);
	surface_walk_data(u);
	surface_groups_close(&groups);
	walk_settings(u);
}

static void every_call_of_an_endpoint_works(void **state)
{
	struct surface s;
	struct subject u;

	for (size_t t = 0; t < COUNT_OF(threadings); t++) {
		surface_open(&s, surface_all(), threadings[t]);
		surface_subject(&u, &s, "endpoint", s.near.ep,
				CLASSES | MESSAGES | ACCESS | WHOLE | DOES_JOIN | DOES_TRANSMIT);
		walk_all(&u);
		surface_close(&s);
	}
}

static void every_call_of_an_alias_works(void **state)
{
	static const uint64_t directions[] = { FI_TRANSMIT | FI_COMPLETION,
					       FI_RECV | FI_COMPLETION };
	struct fid_ep *alias = NULL;
	struct surface s;
	struct subject u;

	for (size_t t = 0; t < COUNT_OF(threadings); t++) {
		surface_open(&s, surface_all(), threadings[t]);
		for (size_t i = 0; i < COUNT_OF(directions); i++) {
			assert_int_equal(fi_ep_alias(s.near.ep, &alias, directions[i]), 0);
			surface_subject(&u, &s, "alias", alias,
					CLASSES | MESSAGES | ACCESS | WHOLE | DOES_JOIN |
						DOES_TRANSMIT);
			u.whole = s.near.ep;
			walk_all(&u);
			assert_int_equal(fi_close(&s.near.ep->fid), -FI_EBUSY);
			assert_int_equal(fi_close(&alias->fid), 0);
		}
		surface_close(&s);
	}
}

/* With automatic progress, where peers access the memory of a program that makes no calls. */
static void memory_is_reached_while_the_program_rests(void **state)
{
	struct surface s;
	struct subject u;
	bool automatic;

	for (size_t t = 0; t < COUNT_OF(threadings); t++) {
		surface_open(&s, surface_all(), threadings[t]);
		surface_subject(&u, &s, "endpoint that rests", s.near.ep, CLASSES | ACCESS);
		automatic = s.info->domain_attr->data_progress == FI_PROGRESS_AUTO;
		u.rests = true;
		if (automatic) {
			surface_walk(&u, "fi_ops_rma", u.ep->rma, rma_slots, RMA_SLOTS);
			surface_walk(&u, "fi_ops_atomic", u.ep->atomic, atomic_slots,
				     ATOMIC_SLOTS);
		}
		surface_close(&s);
		if (!automatic)
			skip();
	}
}

/* What few capabilities come to, with a queue bound for both directions: messages in any case. */
static uint64_t does_of(uint64_t caps)
{
	uint64_t does = caps | WHOLE | FI_MSG | FI_TAGGED | MESSAGES | DOES_TRANSMIT;

	if (caps & (FI_RMA | FI_ATOMIC))
		does |= FI_RMA | FI_ATOMIC | ACCESS;
	if (caps & FI_COLLECTIVE)
		does |= DOES_JOIN;
	return does;
}

static const uint64_t few[] = {
	FI_MSG,
	FI_MSG | FI_SEND,
	FI_MSG | FI_RECV,
	FI_TAGGED,
	FI_TAGGED | FI_SEND,
	FI_TAGGED | FI_RECV,
	FI_MSG | FI_TAGGED,
	FI_RMA,
	FI_RMA | FI_READ,
	FI_RMA | FI_WRITE,
	FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE,
	FI_ATOMIC,
	FI_ATOMIC | FI_READ,
	FI_ATOMIC | FI_WRITE,
	FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE,
	FI_RMA | FI_ATOMIC | FI_READ,
	FI_COLLECTIVE,
	FI_MSG | FI_COLLECTIVE,
	FI_MSG | FI_RMA | FI_SEND | FI_WRITE,
};

static void messages_and_access_are_had_whole(void **state)
{
	struct groups groups;
	struct surface s;
	struct subject u;
	char name[64];

	for (size_t t = 0; t < COUNT_OF(threadings); t++) {
		for (size_t i = 0; i < COUNT_OF(few); i++) {
			surface_open(&s, few[i], threadings[t]);
			snprintf(name, sizeof(name), "endpoint of caps %#llx",
				 (unsigned long long)few[i]);
			surface_subject(&u, &s, name, s.near.ep, does_of(few[i]));
			assert_int_equal(s.info->caps & CLASSES, few[i] & CLASSES);
			if (few[i] & FI_COLLECTIVE) {
				surface_groups(&s, u.ep, u.root, &groups);
				u.coll = fi_mc_addr(groups.near);
				u.peer_coll = fi_mc_addr(groups.far);
			}
			surface_walk_data(&u);
			if (few[i] & FI_COLLECTIVE)
				surface_groups_close(&groups);
			walk_settings(&u);
			surface_close(&s);
		}
	}
}

/* Deferred work of an endpoint without RMA; one that names a part of it has all. */
static void deferred_work_is_refused_likewise(void **state)
{
	static const uint64_t parts[] = { FI_MSG, FI_RMA | FI_READ, FI_RMA | FI_WRITE };

	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		struct fi_context2 context;
		struct iovec iov;
		struct fi_rma_iov target = { 0, 8, SURFACE_KEY };
		struct fi_op_rma op = { .msg = { .msg_iov = &iov,
						 .iov_count = 1,
						 .rma_iov = &target,
						 .rma_iov_count = 1,
						 .context = &context } };
		struct fi_deferred_work work = { .threshold = 1, .op.rma = &op };
		struct fid_cntr *cntr, *done;
		uint64_t word = 0;
		struct surface s;

		surface_open(&s, FI_TRIGGER | parts[i], FI_THREAD_SAFE);
		assert_int_equal(fi_cntr_open(s.domain, NULL, &cntr, NULL), 0);
		assert_int_equal(fi_cntr_open(s.domain, NULL, &done, NULL), 0);
		iov = (struct iovec){ &word, sizeof(word) };
		op.ep = s.near.ep;
		op.msg.addr = s.far.addr;
		work.triggering_cntr = cntr;
		work.completion_cntr = done;
		for (int read = 0; read < 2; read++) {
			work.op_type = read ? FI_OP_READ : FI_OP_WRITE;
			assert_int_equal(fi_control(&s.domain->fid, FI_QUEUE_WORK, &work),
					 i ? 0 : -FI_ENOSYS);
			if (!i)
				continue;
			assert_int_equal(fi_cntr_add(cntr, 1), 0);
			assert_int_equal(fi_cntr_wait(done, 1, 20000), 0);
			assert_int_equal(fi_cntr_set(cntr, 0), 0);
			assert_int_equal(fi_cntr_set(done, 0), 0);
		}
		assert_int_equal(fi_close(&cntr->fid), 0);
		assert_int_equal(fi_close(&done->fid), 0);
		surface_close(&s);
	}
}

/* Before fi_enable: what the endpoint will have says that it is not yet the time. */
static void no_call_works_before_enable(void **state)
{
	static const struct {
		const struct slot *slots;
		size_t cnt;
	} tables[] = {
		{ msg_slots, MSG_SLOTS },
		{ tagged_slots, TAGGED_SLOTS },
		{ rma_slots, RMA_SLOTS },
		{ atomic_slots, ATOMIC_SLOTS },
		{ collective_slots, COLLECTIVE_SLOTS },
	};
	struct party early = { 0 };
	struct surface s;
	struct subject u;

	surface_open(&s, surface_all(), FI_THREAD_SAFE);
	party_open(&s, &early, s.info);
	surface_subject(&u, &s, "endpoint that is not enabled", early.ep, 0);
	for (size_t i = 0; i < COUNT_OF(tables); i++)
		for (size_t k = 0; k < tables[i].cnt; k++)
			if (tables[i].slots[k].call(&u) !=
			    (asks(&tables[i].slots[k]) ? 0 : -FI_EOPBADSTATE))
				fail_msg("%s of an endpoint that is not enabled",
					 tables[i].slots[k].name);
	assert_int_equal(fi_cancel(&early.ep->fid, &u), 0);
	assert_int_equal(fi_rx_size_left(early.ep), -FI_EOPBADSTATE);
	assert_int_equal(fi_tx_size_left(early.ep), -FI_EOPBADSTATE);
	party_close(&early);
	surface_close(&s);
}

/* Scalable endpoints */

struct scalable {
	struct fid_ep *sep, *tx, *rx;
	fi_addr_t addr;
};

static void scalable_open(struct scalable *sc, struct surface *s)
{
	struct fi_info *info = fi_dupinfo(s->info);
	char name[128];
	size_t len = sizeof(name);

	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 2;
	assert_int_equal(fi_scalable_ep(s->domain, info, &sc->sep, NULL), 0);
	fi_freeinfo(info);
	assert_int_equal(fi_scalable_ep_bind(sc->sep, &s->av->fid, 0), 0);
	assert_int_equal(fi_scalable_ep_bind(sc->sep, &s->eq->fid, 0), 0);
	assert_int_equal(fi_tx_context(sc->sep, 0, NULL, &sc->tx, NULL), 0);
	assert_int_equal(fi_rx_context(sc->sep, 0, NULL, &sc->rx, NULL), 0);
	assert_int_equal(fi_ep_bind(sc->tx, &s->near.cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(sc->rx, &s->near.cq->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(sc->sep), 0);
	assert_int_equal(fi_enable(sc->tx), 0);
	assert_int_equal(fi_enable(sc->rx), 0);
	assert_int_equal(fi_getname(&sc->sep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(s->av, name, 1, &sc->addr, 0, NULL), 1);
}

static void each_context_has_its_own_half(void **state)
{
	struct scalable sc;
	struct surface s;
	struct subject u;

	for (size_t t = 0; t < COUNT_OF(threadings); t++) {
		surface_open(&s, surface_all(), threadings[t]);
		scalable_open(&sc, &s);
		surface_subject(&u, &s, "scalable endpoint", sc.sep,
				WHOLE | DOES_CONTEXTS | DOES_JOIN);
		u.root = sc.addr;
		surface_walk_data(&u);
		walk_settings(&u);
		surface_subject(&u, &s, "transmit context", sc.tx,
				CLASSES | FI_SEND | ACCESS | WHOLE | DOES_JOIN | DOES_TRANSMIT);
		u.whole = sc.sep;
		u.root = sc.addr;
		walk_all(&u);
		surface_subject(&u, &s, "receive context", sc.rx,
				FI_MSG | FI_TAGGED | FI_RECV | WHOLE);
		u.root = sc.addr;
		u.at = fi_rx_addr(sc.addr, 0, SURFACE_BITS);
		surface_walk_data(&u);
		walk_settings(&u);
		assert_int_equal(fi_close(&sc.sep->fid), -FI_EBUSY);
		assert_int_equal(fi_close(&sc.tx->fid), 0);
		assert_int_equal(fi_close(&sc.rx->fid), 0);
		assert_int_equal(fi_close(&sc.sep->fid), 0);
		surface_close(&s);
	}
}

/* Shared contexts */

static void shared_contexts_receive_for_their_endpoints(void **state)
{
	struct party sharer = { 0 };
	struct fid_ep *srx;
	struct fid_stx *stx;
	struct surface s;
	struct subject u;

	for (size_t t = 0; t < COUNT_OF(threadings); t++) {
		surface_open(&s, surface_all(), threadings[t]);
		assert_int_equal(fi_srx_context(s.domain, s.info->rx_attr, &srx, NULL), 0);
		assert_int_equal(fi_stx_context(s.domain, s.info->tx_attr, &stx, NULL), 0);
		party_open(&s, &sharer, s.info);
		assert_int_equal(fi_ep_bind(sharer.ep, &srx->fid, 0), 0);
		assert_int_equal(fi_ep_bind(sharer.ep, &stx->fid, 0), 0);
		party_enable(&s, &sharer);
		surface_subject(&u, &s, "shared receive context", srx,
				FI_MSG | FI_TAGGED | FI_RECV | DOES_SETTINGS);
		u.at = u.root = sharer.addr;
		u.cq = sharer.cq;
		surface_walk_data(&u);
		walk_settings(&u);
		surface_subject(&u, &s, "endpoint that shares", sharer.ep,
				CLASSES | FI_SEND | ACCESS | WHOLE | DOES_JOIN | DOES_TRANSMIT);
		u.at = u.root = sharer.addr;
		u.cq = sharer.cq;
		walk_all(&u);
		/* Its endpoints send: there is nothing to call but what refers to it. */
		surface_subject(&u, &s, "shared transmit context", (struct fid_ep *)stx, 0);
		surface_walk(&u, "fi_ops_ep", stx->ops, ep_slots, EP_SLOTS);
		/* They are closed before their users, too. */
		assert_int_equal(fi_close(&stx->fid), 0);
		assert_int_equal(fi_close(&srx->fid), 0);
		party_close(&sharer);
		surface_close(&s);
	}
}

/* With FI_TRIGGER */

/*
 * Each call waits for its counter; but those with flags of their own, and queries, do not, and
 * those without a context can't name one and are refused.
 */
static void walk_triggered(struct subject *u, const struct slot *slots, size_t cnt,
			   struct fid_cntr *cntr)
{
	struct fi_triggered_context2 when = { .event_type = FI_TRIGGER_THRESHOLD };
	struct fi_cq_tagged_entry entry;

	for (const struct slot *slot = slots; slot < slots + cnt; slot++) {
		bool refused = strstr(slot->name, "inject");
		bool waits = !refused && !strstr(slot->name, "msg") && !asks(slot);
		ssize_t ret;

		when.trigger.threshold.cntr = cntr;
		when.trigger.threshold.threshold = fi_cntr_read(cntr) + 1;
		memcpy(&u->context, &when, sizeof(when));
		ret = slot->call(u);
		if (ret != (refused ? -FI_ENOSYS : 0))
			fail_msg("%s with FI_TRIGGER answers %zd", slot->name, ret);
		if (waits) {
			assert_int_equal(fi_cq_read(u->cq, &entry, 1), -FI_EAGAIN);
			assert_int_equal(fi_cntr_add(cntr, 1), 0);
		}
		if (!refused)
			slot->effect(u, slot);
	}
}

static void every_call_can_wait_for_a_counter(void **state)
{
	struct fid_cntr *cntr;
	struct fid_ep *alias = NULL;
	struct surface s;
	struct subject u;

	for (size_t t = 0; t < COUNT_OF(threadings); t++) {
		surface_open(&s, surface_all(), threadings[t]);
		assert_int_equal(fi_cntr_open(s.domain, NULL, &cntr, NULL), 0);
		assert_int_equal(fi_ep_alias(s.near.ep, &alias,
					     FI_TRANSMIT | FI_TRIGGER | FI_COMPLETION),
				 0);
		surface_subject(&u, &s, "alias that waits", alias, 0);
		surface_table("fi_ops_msg", alias->msg, sizeof(struct fi_ops_msg));
		surface_table("fi_ops_tagged", alias->tagged, sizeof(struct fi_ops_tagged));
		surface_table("fi_ops_rma", alias->rma, sizeof(struct fi_ops_rma));
		surface_table("fi_ops_atomic", alias->atomic, sizeof(struct fi_ops_atomic));
		surface_table("fi_ops_collective", alias->collective,
			      sizeof(struct fi_ops_collective));
		/* Receives come first in these tables, then what is sent. */
		walk_triggered(&u, msg_slots + 3, MSG_SLOTS - 3, cntr);
		walk_triggered(&u, tagged_slots + 3, TAGGED_SLOTS - 3, cntr);
		walk_triggered(&u, rma_slots, RMA_SLOTS, cntr);
		walk_triggered(&u, atomic_slots, ATOMIC_SLOTS, cntr);
		assert_int_equal(fi_close(&alias->fid), 0);
		assert_int_equal(
			fi_ep_alias(s.near.ep, &alias, FI_RECV | FI_TRIGGER | FI_COMPLETION), 0);
		u.ep = alias;
		walk_triggered(&u, msg_slots, 3, cntr);
		walk_triggered(&u, tagged_slots, 3, cntr);
		assert_int_equal(fi_close(&alias->fid), 0);
		assert_int_equal(fi_close(&cntr->fid), 0);
		surface_close(&s);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_of_an_endpoint_works),
		cmocka_unit_test(every_call_of_an_alias_works),
		cmocka_unit_test(memory_is_reached_while_the_program_rests),
		cmocka_unit_test(messages_and_access_are_had_whole),
		cmocka_unit_test(deferred_work_is_refused_likewise),
		cmocka_unit_test(no_call_works_before_enable),
		cmocka_unit_test(each_context_has_its_own_half),
		cmocka_unit_test(shared_contexts_receive_for_their_endpoints),
		cmocka_unit_test(every_call_can_wait_for_a_counter),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	surface_provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
