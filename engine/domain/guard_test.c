/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the guard of a domain, and of the calls that hold a domain by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include "core_double.h"
#include "engine.h"
#include "fault.h"
#include "guard.h"
#include <cmocka.h>

/* The guard alone, on one thread */

static void open_domain(struct engine_domain *domain, bool safe)
{
	memset(domain, 0, sizeof(*domain));
	assert_int_equal(platform_membarrier_open(), 0);
	platform_lock_init(&domain->lock);
	atomic_store(&domain->safe, safe);
}

static bool is_locked(struct engine_domain *domain)
{
	if (!platform_trylock(&domain->lock))
		return true;
	platform_unlock(&domain->lock);
	return false;
}

static void a_data_call_takes_no_lock_where_there_is_none(void **state)
{
	struct engine_domain domain;

	open_domain(&domain, false);
	engine_guard_enter(&domain);
	assert_false(is_locked(&domain));
	engine_guard_leave(&domain);
	engine_use(&domain);
	assert_false(is_locked(&domain));
	engine_unuse(&domain);
	platform_lock_fini(&domain.lock);
}

static void a_control_call_excludes_others(void **state)
{
	struct engine_domain domain;

	for (int safe = 0; safe < 2; safe++) {
		open_domain(&domain, safe);
		engine_enter(&domain);
		assert_true(is_locked(&domain));
		engine_leave(&domain);
		assert_false(is_locked(&domain));
		platform_lock_fini(&domain.lock);
	}
}

/* Makes a domain safe as auto.c does. */
static void gets_a_lock(struct engine_domain *domain)
{
	engine_enter(domain);
	atomic_store(&domain->safe, true);
	engine_leave(domain);
}

static void a_call_that_came_before_the_lock_takes_it(void **state)
{
	struct engine_domain domain;

	open_domain(&domain, false);
	gets_a_lock(&domain);
	for (int i = 0; i < 2; i++) {
		engine_guard_enter(&domain);
		assert_true(is_locked(&domain));
		engine_guard_leave(&domain);
		assert_false(is_locked(&domain));
	}
	/* engine_use() entered without the lock, and the domain has become safe since. */
	engine_guard_enter(&domain);
	engine_unuse(&domain);
	assert_false(is_locked(&domain));
	platform_lock_fini(&domain.lock);
}

static void a_call_that_has_the_lock_may_enter(void **state)
{
	struct engine_domain domain;

	for (int late = 0; late < 2; late++) {
		open_domain(&domain, !late);
		if (late)
			gets_a_lock(&domain);
		engine_use(&domain);
		engine_guard_enter(&domain);
		engine_guard_leave(&domain);
		assert_true(is_locked(&domain));
		engine_unuse(&domain);
		assert_false(is_locked(&domain));
		engine_enter(&domain);
		engine_leave(&domain);
		assert_false(is_locked(&domain));
		platform_lock_fini(&domain.lock);
	}
}

static void the_thread_never_waits_for_the_domain(void **state)
{
	struct engine_domain domain;

	for (int safe = 0; safe < 2; safe++) {
		open_domain(&domain, safe);
		assert_true(engine_enter_idle(&domain));
		assert_true(is_locked(&domain));
		engine_leave(&domain);
		engine_use(&domain);
		assert_false(engine_enter_idle(&domain));
		engine_unuse(&domain);
		engine_enter(&domain);
		assert_false(engine_enter_idle(&domain));
		engine_leave(&domain);
		assert_true(engine_enter_idle(&domain));
		engine_leave(&domain);
		assert_false(is_locked(&domain));
		/* A data call that waits for the lock has precedence. */
		atomic_store(&domain.wanted, 1);
		assert_int_equal(engine_enter_idle(&domain), safe);
		if (safe)
			engine_leave(&domain);
		assert_false(is_locked(&domain));
		platform_lock_fini(&domain.lock);
	}
}

static void *data_call_main(void *arg)
{
	struct engine_domain *domain = arg;

	engine_use(domain);
	engine_unuse(domain);
	return NULL;
}

static void waits_and_says_so(bool safe)
{
	uint64_t end = platform_now_ns() + 60000000000u;
	struct engine_domain domain;
	pthread_t thread;

	open_domain(&domain, safe);
	for (int i = 0; i < 100; i++) {
		assert_true(engine_enter_idle(&domain));
		assert_false(engine_guard_wanted(&domain));
		assert_int_equal(pthread_create(&thread, NULL, data_call_main, &domain), 0);
		while (!engine_guard_wanted(&domain))
			assert_true(platform_now_ns() < end);
		engine_leave(&domain);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_false(atomic_load(&domain.claimed));
		assert_false(atomic_load(&domain.inside));
		assert_false(engine_guard_wanted(&domain));
	}
	platform_lock_fini(&domain.lock);
}

static void a_data_call_waits_for_the_thread_and_says_so(void **state)
{
	waits_and_says_so(false);
	waits_and_says_so(true);
}

/* Control calls on another thread */

static struct fi_provider provider = { .name = "test" };

static int bind_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		     size_t why_len)
{
	*out = (struct weft_addr){ 0 };
	return 0;
}

static const struct engine_family family = { .provider = &provider,
					     .addr_len = 8,
					     .bind_read = bind_read };

struct world {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep, *alias;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_eq *eq;
	struct fid_av *av;
};

static struct engine_domain *domain_of(struct world *w)
{
	return container_of(w->domain, struct engine_domain, fid);
}

static void open_world_of(struct world *w, enum fi_progress control)
{
	struct fi_fabric_attr fabric_attr = { .api_version = FI_VERSION(2, 0) };
	struct fi_domain_attr attr = { .threading = FI_THREAD_DOMAIN,
				       .control_progress = control };
	struct fi_av_attr av_attr = { .flags = FI_EVENT };
	struct fi_info info = { .domain_attr = &attr };

	assert_int_equal(engine_fabric_open(&family, &fabric_attr, &w->fabric, NULL), 0);
	assert_int_equal(fi_domain(w->fabric, &info, &w->domain, NULL), 0);
	assert_int_equal(fi_endpoint(w->domain, &info, &w->ep, NULL), 0);
	assert_int_equal(fi_cq_open(w->domain, NULL, &w->cq, NULL), 0);
	assert_int_equal(fi_cntr_open(w->domain, NULL, &w->cntr, NULL), 0);
	assert_int_equal(fi_eq_open(w->fabric, NULL, &w->eq, NULL), 0);
	assert_int_equal(fi_av_open(w->domain, &av_attr, &w->av, NULL), 0);
}

static void open_world(struct world *w)
{
	open_world_of(w, FI_PROGRESS_MANUAL);
}

static void close_world(struct world *w)
{
	assert_int_equal(fi_close(&w->av->fid), 0);
	assert_int_equal(fi_close(&w->domain->fid), 0);
	assert_int_equal(fi_close(&w->eq->fid), 0);
	assert_int_equal(fi_close(&w->fabric->fid), 0);
}

static void flags_get(struct world *w)
{
	uint64_t flags = FI_TRANSMIT;

	fi_control(&w->ep->fid, FI_GETOPSFLAG, &flags);
}

static void alias_open(struct world *w)
{
	fi_ep_alias(w->ep, &w->alias, FI_TRANSMIT);
}

static void alias_close(struct world *w)
{
	fi_close(&w->alias->fid);
}

static void cntr_close(struct world *w)
{
	fi_close(&w->cntr->fid);
}

static void cq_close(struct world *w)
{
	fi_close(&w->cq->fid);
}

static void ep_close(struct world *w)
{
	fi_close(&w->ep->fid);
}

static void name_set(struct world *w)
{
	fi_setname(&w->ep->fid, "12345678", 8);
}

static void name_get(struct world *w)
{
	char name[8];

	fi_getname(&w->ep->fid, name, &(size_t){ sizeof(name) });
}

static void option_set(struct world *w)
{
	fi_setopt(&w->ep->fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, &(size_t){ 8 }, sizeof(size_t));
}

static void domain_bind(struct world *w)
{
	w->domain->fid.ops->bind(&w->domain->fid, &w->eq->fid, 0);
}

static void av_bind(struct world *w)
{
	w->av->fid.ops->bind(&w->av->fid, &w->eq->fid, 0);
}

static void ep_enable(struct world *w)
{
	fi_enable(w->ep);
}

struct call {
	void (*make)(struct world *w);
	struct world *world;
	_Atomic bool made;
};

static void *call_main(void *arg)
{
	struct call *call = arg;

	call->make(call->world);
	atomic_store(&call->made, true);
	return NULL;
}

/* Checks that @make, a control call, waits while a data call is under way. */
static void waits_for_the_data_call(struct world *w, void (*make)(struct world *w))
{
	struct engine_domain *domain = domain_of(w);
	uint64_t end = platform_now_ns() + 60000000000u;
	struct call call = { .make = make, .world = w };
	pthread_t thread;

	engine_guard_enter(domain);
	assert_int_equal(pthread_create(&thread, NULL, call_main, &call), 0);
	while (!atomic_load(&domain->claimed) && !atomic_load(&call.made)) {
		assert_true(platform_now_ns() < end);
		platform_yield();
	}
	assert_false(atomic_load(&call.made));
	assert_true(atomic_load(&domain->inside));
	engine_guard_leave(domain);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(atomic_load(&domain->claimed));
}

static void control_calls_wait_for_the_data_call(void **state)
{
	static void (*const calls[])(struct world * w) = {
		flags_get, alias_open,	alias_close, name_set,	 name_get, option_set,
		av_bind,   domain_bind, ep_enable,   cntr_close, cq_close, ep_close,
	};
	struct world w;

	open_world(&w);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		waits_for_the_data_call(&w, calls[i]);
	close_world(&w);
}

/* Without the barrier */

static void a_domain_has_a_lock_where_the_barrier_is_forbidden(void **state)
{
	struct world w;

	for (uint32_t allowed = 0; allowed < 2; allowed++) { /* 0: registration fails too */
		sys_fault_set(SYS_CALL_MEMBARRIER, EPERM, allowed, 0);
		open_world(&w);
		assert_true(engine_has_lock(domain_of(&w)));
		sys_fault_clear();
		ep_close(&w);
		cntr_close(&w);
		cq_close(&w);
		close_world(&w);
	}
}

static void a_domain_gets_its_lock_when_the_barrier_is_forbidden(void **state)
{
	struct fi_cq_entry entry;
	struct world w;

	open_world(&w);
	flags_get(&w);
	assert_false(engine_has_lock(domain_of(&w)));
	sys_fault_set(SYS_CALL_MEMBARRIER, EPERM, 0, 0);
	core_warnings = 0;
	flags_get(&w);
	assert_int_equal(core_warnings, 1);
	flags_get(&w);
	assert_int_equal(core_warnings, 1);
	assert_true(engine_has_lock(domain_of(&w)));
	assert_false(is_locked(domain_of(&w)));
	engine_guard_enter(domain_of(&w));
	assert_true(is_locked(domain_of(&w)));
	engine_guard_leave(domain_of(&w));
	/* A data call by the op table without a lock, and control calls. */
	assert_int_equal(fi_cq_read(w.cq, &entry, 1), -FI_EAGAIN);
	ep_close(&w);
	cntr_close(&w);
	cq_close(&w);
	close_world(&w);
	sys_fault_clear();
}

static void a_program_that_serializes_calls_needs_no_barrier(void **state)
{
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_FD };
	struct fid_cq *cqs[9];
	struct world w;

	sys_fault_set(SYS_CALL_MEMBARRIER, EPERM, 0, 0);
	core_warnings = 0;
	open_world_of(&w, FI_PROGRESS_CONTROL_UNIFIED);
	assert_false(engine_has_lock(domain_of(&w)));
	for (int i = 0; i < 9; i++) {
		assert_false(engine_has_lock(domain_of(&w)));
		assert_int_equal(fi_cq_open(w.domain, &cq_attr, &cqs[i], NULL), 0);
	}
	assert_true(engine_has_lock(domain_of(&w))); /* it has a thread for that many queues */
	engine_guard_enter(domain_of(&w));
	assert_true(is_locked(domain_of(&w)));
	engine_guard_leave(domain_of(&w));
	assert_int_equal(core_warnings, 0);
	for (int i = 0; i < 9; i++)
		assert_int_equal(fi_close(&cqs[i]->fid), 0);
	ep_close(&w);
	cntr_close(&w);
	cq_close(&w);
	close_world(&w);
	sys_fault_clear();
}

/* Event queues make progress in domains whose program reads nothing else */

static uint32_t eq_rounds(struct world *w, int reads)
{
	uint32_t before = atomic_load(&domain_of(w)->rounds), event;

	for (int i = 0; i < reads; i++)
		assert_int_equal(fi_eq_read(w->eq, &event, NULL, 0, 0), -FI_EAGAIN);
	return atomic_load(&domain_of(w)->rounds) - before;
}

static void an_event_queue_leaves_a_domain_to_reads_of_its_queues(void **state)
{
	struct fi_cq_entry entry;
	struct world w;

	open_world(&w);
	domain_bind(&w);
	assert_int_equal(eq_rounds(&w, 3), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_cq_read(w.cq, &entry, 1), -FI_EAGAIN);
		assert_int_equal(eq_rounds(&w, 1), 0);
	}
	assert_int_equal(eq_rounds(&w, 3), 3);
	assert_int_equal(fi_close(&w.ep->fid), 0);
	cntr_close(&w);
	cq_close(&w);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_data_call_takes_no_lock_where_there_is_none),
		cmocka_unit_test(a_control_call_excludes_others),
		cmocka_unit_test(a_call_that_came_before_the_lock_takes_it),
		cmocka_unit_test(a_call_that_has_the_lock_may_enter),
		cmocka_unit_test(the_thread_never_waits_for_the_domain),
		cmocka_unit_test(a_data_call_waits_for_the_thread_and_says_so),
		cmocka_unit_test(control_calls_wait_for_the_data_call),
		cmocka_unit_test(a_domain_has_a_lock_where_the_barrier_is_forbidden),
		cmocka_unit_test(a_domain_gets_its_lock_when_the_barrier_is_forbidden),
		cmocka_unit_test(a_program_that_serializes_calls_needs_no_barrier),
		cmocka_unit_test(an_event_queue_leaves_a_domain_to_reads_of_its_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
