/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A fork while another thread is in an event queue or in a wait set, whose locks calls take before that of a
 * domain, or after it: the child can close what has to do with them, or is told that it can't.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "core_double.h"
#include "domain_fid.h"
#include "fabric_fid.h"
#include "forked.h"
#include "guard.h"
#include "timed_fork.h"
#include <cmocka.h>

#define FORKS	    50
#define SOON_NS	    200000000u
#define DEADLINE_NS 30000000000u

static struct fi_provider provider = { .name = "test" };
static const struct engine_family family = { .provider = &provider };

/* A fabric with a domain, which has an event queue, and a completion queue in a wait set. */
struct world {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_wait *set;
	struct fid_cq *cq;
};

static struct world w;

static struct engine_domain *inner(struct fid_domain *domain)
{
	return container_of(domain, struct engine_domain, fid);
}

/* Opens a domain that has the event queue, and a queue of it in the wait set. */
static void open_domain(enum fi_threading threading, struct fid_domain **domain,
			struct fid_cq **cq)
{
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_SET, .wait_set = w.set };
	struct fi_domain_attr attr = { .threading = threading };
	struct fi_info info = { .domain_attr = &attr };

	assert_int_equal(fi_domain(w.fabric, &info, domain, NULL), 0);
	assert_int_equal(fi_domain_bind(*domain, &w.eq->fid, 0), 0);
	assert_int_equal(fi_cq_open(*domain, &cq_attr, cq, NULL), 0);
}

static void open_world(enum fi_threading threading)
{
	struct fi_fabric_attr attr = { .api_version = FI_VERSION(2, 0) };
	struct fi_wait_attr set_attr = { .wait_obj = FI_WAIT_FD };

	assert_int_equal(engine_fabric_open(&family, &attr, &w.fabric, NULL), 0);
	assert_int_equal(fi_eq_open(w.fabric, NULL, &w.eq, NULL), 0);
	assert_int_equal(w.fabric->ops->wait_open(w.fabric, &set_attr, &w.set), 0);
	open_domain(threading, &w.domain, &w.cq);
}

/* Returns 0 if all of it closes. */
static int closes(void)
{
	alarm(600);
	if (fi_close(&w.cq->fid) || fi_close(&w.set->fid))
		return 1;
	if (fi_close(&w.domain->fid))
		return 2;
	return fi_close(&w.eq->fid) || fi_close(&w.fabric->fid) ? 3 : 0;
}

/* As closes(), in the child of a fork that was not in vain. */
static int child_closes(void)
{
	return forked_late() ? LATE : closes();
}

/* A call of another thread that begins when the process is about to be copied. */
struct call {
	struct platform_hold hold;
	pthread_barrier_t begin, end;
	void (*make)(void);
};

static void *call_then(void *arg)
{
	struct call *c = arg;

	pthread_barrier_wait(&c->begin);
	c->make();
	/* ThreadSanitizer's child would call a thread that has ended a leak */
	pthread_barrier_wait(&c->end);
	return NULL;
}

/* The domain is held: the call waits for it, or for what was held before it. */
static void begin_call(struct platform_hold *hold)
{
	uint64_t end = platform_now_ns() + SOON_NS;

	pthread_barrier_wait(&container_of(hold, struct call, hold)->begin);
	while (!engine_guard_wanted(inner(w.domain)) && platform_now_ns() < end)
		platform_yield();
}

static void ignore(struct platform_hold *hold, bool child)
{
}

static bool fork_during(void (*make)(void), enum fi_threading threading)
{
	struct call c = { .make = make };
	pthread_t thread;
	bool in_time;

	open_world(threading);
	c.hold = (struct platform_hold){ .rank = ENGINE_HOLD_DOMAIN + 1,
					 .hold = begin_call,
					 .release = ignore };
	pthread_barrier_init(&c.begin, NULL, 2);
	pthread_barrier_init(&c.end, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, call_then, &c), 0);
	platform_hold_watch(&c.hold);
	in_time = forks_and_waits(child_closes);
	platform_hold_unwatch(&c.hold);
	pthread_barrier_wait(&c.end);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&c.begin);
	pthread_barrier_destroy(&c.end);
	assert_int_equal(closes(), 0);
	alarm(0);
	return in_time;
}

static void read_events(void)
{
	struct fi_eq_entry entry;
	uint32_t event;

	assert_int_equal(fi_eq_read(w.eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
}

static void a_child_closes_what_has_an_event_queue_that_is_read(void **state)
{
	IN_TIME(fork_during(read_events, FI_THREAD_DOMAIN));
	IN_TIME(fork_during(read_events, FI_THREAD_SAFE));
}

static void wait_for_members(void)
{
	assert_int_equal(w.set->ops->wait(w.set, 0), -FI_ETIMEDOUT);
}

static void a_child_closes_members_of_a_wait_set_that_is_waited_for(void **state)
{
	IN_TIME(fork_during(wait_for_members, FI_THREAD_DOMAIN));
	IN_TIME(fork_during(wait_for_members, FI_THREAD_SAFE));
}

/* Threads that stay where they are until the process has forked. */
static _Atomic bool inside, forking, forked;

static void wait_for(_Atomic bool *what)
{
	uint64_t end = platform_now_ns() + DEADLINE_NS;

	while (!*what && platform_now_ns() < end)
		platform_yield();
}

/* As a call that writes an event. */
static void *write_slowly(void *arg)
{
	struct engine_eq *eq = container_of(w.eq, struct engine_eq, fid);
	uint64_t end;

	platform_lock(&eq->lock);
	inside = true;
	wait_for(&forking);
	/* a fork that does not wait is over by now */
	for (end = platform_now_ns() + SOON_NS; platform_now_ns() < end;)
		platform_yield();
	platform_unlock(&eq->lock);
	wait_for(&forked);
	return NULL;
}

static bool fork_while_writing(void)
{
	pthread_t thread;
	bool in_time;

	open_world(FI_THREAD_SAFE);
	inside = forking = forked = false;
	assert_int_equal(pthread_create(&thread, NULL, write_slowly, NULL), 0);
	wait_for(&inside);
	forking = true;
	in_time = forks_and_waits(child_closes);
	forked = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(closes(), 0);
	alarm(0);
	return in_time;
}

static void an_event_that_is_being_written_is_waited_for(void **state)
{
	IN_TIME(fork_while_writing());
}

static void *hold_a_domain(void *arg)
{
	engine_enter(inner(w.domain));
	inside = true;
	wait_for(&forked);
	engine_leave(inner(w.domain));
	return NULL;
}

static void *read_meanwhile(void *arg)
{
	read_events();
	return NULL;
}

static void *poll_until_forked(void *arg)
{
	while (!forked) {
		read_events();
		wait_for_members();
	}
	return NULL;
}

/* It yields its core while it has a lock: on that core a fork would never see it free. */
static void a_thread_that_polls_all_the_time_keeps_no_child_from_closing(void **state)
{
	pthread_t thread;
	int in_time = 0;

	open_world(FI_THREAD_SAFE);
	forked = false;
	assert_int_equal(pthread_create(&thread, NULL, poll_until_forked, NULL), 0);
	for (int i = 0; i < FORKS; i++)
		in_time += forks_and_waits(child_closes);
	assert_in_range(in_time, FORKS / 2, FORKS);
	forked = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(closes(), 0);
	alarm(0);
}

/* What the child of the next test has: of the same fabric, but of a domain that nobody is in; and others. */
static struct {
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_poll *poll;
	struct fid_ep *srx;
	struct fid_stx *stx;
	struct fid_fabric *far_fabric;
	struct fid_domain *far;
} second;

static int is_told(void)
{
	struct fid *fids[] = { &w.eq->fid,	 &w.set->fid,	    &second.domain->fid,
			       &second.cq->fid,	 &second.poll->fid, &second.srx->fid,
			       &second.stx->fid, &w.domain->fid,    &w.cq->fid };

	alarm(600);
	for (uint32_t i = 0; i < sizeof(fids) / sizeof(fids[0]); i++)
		if (fi_close(fids[i]) != -FI_EOPBADSTATE)
			return 1 + (int)i;
	return fi_close(&second.far->fid) || fi_close(&second.far_fabric->fid) ? 99 : 0;
}

static void open_second(void)
{
	struct fi_fabric_attr attr = { .api_version = FI_VERSION(2, 0) };
	struct fi_domain_attr domain_attr = { .threading = FI_THREAD_SAFE };
	struct fi_info info = { .domain_attr = &domain_attr };

	open_domain(FI_THREAD_SAFE, &second.domain, &second.cq);
	assert_int_equal(second.domain->ops->poll_open(second.domain, NULL, &second.poll), 0);
	assert_int_equal(fi_srx_context(second.domain, NULL, &second.srx, NULL), 0);
	assert_int_equal(fi_stx_context(second.domain, NULL, &second.stx, NULL), 0);
	assert_int_equal(engine_fabric_open(&family, &attr, &second.far_fabric, NULL), 0);
	assert_int_equal(fi_domain(second.far_fabric, &info, &second.far, NULL), 0);
}

/* One reads the event queue and waits for a domain that another thread has, for longer than a fork waits. */
static void a_child_is_told_of_an_event_queue_that_was_read_all_the_time(void **state)
{
	pthread_t threads[2];
	uint64_t end = platform_now_ns() + DEADLINE_NS;

	open_world(FI_THREAD_SAFE);
	open_second();
	inside = forked = false;
	assert_int_equal(pthread_create(&threads[0], NULL, hold_a_domain, NULL), 0);
	wait_for(&inside);
	assert_int_equal(pthread_create(&threads[1], NULL, read_meanwhile, NULL), 0);
	while (!engine_guard_wanted(inner(w.domain)) && platform_now_ns() < end)
		platform_yield();
	assert_true(forks_and_waits(is_told));
	forked = true;
	assert_int_equal(pthread_join(threads[0], NULL), 0);
	assert_int_equal(pthread_join(threads[1], NULL), 0);
	assert_int_equal(fi_close(&second.poll->fid), 0);
	assert_int_equal(fi_close(&second.srx->fid), 0);
	assert_int_equal(fi_close(&second.stx->fid), 0);
	assert_int_equal(fi_close(&second.cq->fid), 0);
	assert_int_equal(fi_close(&second.domain->fid), 0);
	assert_int_equal(fi_close(&second.far->fid), 0);
	assert_int_equal(fi_close(&second.far_fabric->fid), 0);
	assert_int_equal(closes(), 0);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_closes_what_has_an_event_queue_that_is_read),
		cmocka_unit_test(a_child_closes_members_of_a_wait_set_that_is_waited_for),
		cmocka_unit_test(an_event_that_is_being_written_is_waited_for),
		cmocka_unit_test(a_thread_that_polls_all_the_time_keeps_no_child_from_closing),
		cmocka_unit_test(a_child_is_told_of_an_event_queue_that_was_read_all_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
