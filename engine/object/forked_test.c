/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A fork while another thread is in a call of a domain: the child can close what it has inherited, or is told
 * that it can't. The call is a registration, with a device that takes as long as the test wants.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "core_double.h"
#include "fault.h"
#include "forks.h"
#include "mr_fid.h"
#include "registrar.h"
#include "timed_fork.h"
#include <cmocka.h>

#define RMA	    (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define SOON_NS	    200000000u
#define DEADLINE_NS 30000000000u
#define FORKS	    20

/* What the device does with a registration: waits until the fork has begun, or until it has ended. */
enum delay { NONE, BEGUN, ENDED };

static _Atomic enum delay delay;
/* a thread is in the device; the process is about to fork; it has forked */
static _Atomic bool inside, forking, forked;
/* Another one was in the device at the same time: it had the regions too. */
static _Atomic bool two_inside;

static int open_device(struct mr_device **device)
{
	static char any;

	*device = (struct mr_device *)&any;
	return 0;
}

static void close_device(struct mr_device *device)
{
}

static void wait_for(_Atomic bool *what)
{
	uint64_t end = platform_now_ns() + DEADLINE_NS;

	while (!*what && platform_now_ns() < end)
		platform_yield();
}

static int reg(struct mr_device *device, const void *addr, size_t len, uint64_t access,
	       struct mr_pin *pin)
{
	uint64_t end;

	if (inside)
		two_inside = true;
	if (delay == NONE)
		return 0;
	inside = true;
	wait_for(&forking);
	if (delay == ENDED)
		wait_for(&forked);
	/* a fork that does not wait is over by now */
	for (end = platform_now_ns() + SOON_NS; platform_now_ns() < end;)
		platform_yield();
	inside = false;
	return 0;
}

static void dereg(struct mr_device *device, struct mr_pin *pin)
{
}

static const struct mr_ops device_mr = {
	.open = open_device, .close = close_device, .reg = reg, .dereg = dereg
};
static const struct wire_ops ops = { .size = sizeof(ops), .name = "slow", .mr = &device_mr };
static const struct wire_provider wire = { sizeof(wire), 1, WIRE_LAYOUT, &ops };
static struct fi_provider provider = { .name = "test" };
static const struct engine_family family = { .provider = &provider, .wires = { "slow" } };
static struct fid_fabric *fabric;
static struct fid_domain *domain;

static void open_domain(enum fi_threading threading)
{
	struct fi_fabric_attr fabric_attr = { .api_version = FI_VERSION(2, 0) };
	struct fi_domain_attr attr = { .threading = threading, .mr_mode = FI_MR_PROV_KEY };
	struct fi_info info = { .domain_attr = &attr };

	delay = NONE;
	forking = forked = false;
	assert_int_equal(wire_register(&wire), 0);
	assert_int_equal(engine_fabric_open(&family, &fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, &info, &domain, NULL), 0);
}

static void close_domain(void)
{
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
}

static int use_a_region(void)
{
	static char buf[64];
	struct fid_mr *mr;
	int ret = fi_mr_reg(domain, buf, sizeof(buf), RMA, 0, 0, 0, &mr, NULL);

	return ret ? ret : fi_close(&mr->fid);
}

/* As the registrar: the first registration makes the key table, with the domain held. */
static void *register_slowly(void *arg)
{
	assert_int_equal(use_a_region(), 0);
	delay = *(const enum delay *)arg;
	assert_int_equal(use_a_region(), 0);
	/* ThreadSanitizer's child would call a thread that has ended a leak */
	wait_for(&forked);
	return NULL;
}

/* In the child: the region that the other thread has made may still be open. */
static int closes(void)
{
	int ret;

	if (forked_late())
		return LATE;
	alarm(600);
	ret = fi_close(&domain->fid);
	return ret && ret != -FI_EBUSY ? 1 : 0;
}

static int is_told(void)
{
	alarm(600);
	if (fi_close(&domain->fid) != -FI_EOPBADSTATE || use_a_region() != -FI_EOPBADSTATE)
		return 1;
	return 0;
}

/* Forks while another thread is in the device. Returns how the child has ended. */
static int fork_while(enum delay until, int (*body)(void))
{
	int status = -1;
	pthread_t thread;
	pid_t pid;

	assert_int_equal(pthread_create(&thread, NULL, register_slowly, &until), 0);
	wait_for(&inside);
	forking = true;
	pid = timed_fork();
	if (!pid)
		_exit(body());
	forked = true;
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(pthread_join(thread, NULL), 0);
	delay = NONE;
	return status;
}

static bool fork_waits(enum fi_threading threading)
{
	bool in_time;

	open_domain(threading);
	in_time = ended_in_time(fork_while(BEGUN, closes));
	assert_int_equal(use_a_region(), 0);
	close_domain();
	return in_time;
}

static void a_fork_waits_for_the_call_of_another_thread(void **state)
{
	IN_TIME(fork_waits(FI_THREAD_SAFE));
	IN_TIME(fork_waits(FI_THREAD_DOMAIN));
}

static void a_child_is_told_of_a_call_that_did_not_end(void **state)
{
	open_domain(FI_THREAD_DOMAIN);
	assert_int_equal(fork_while(ENDED, is_told), 0);
	assert_int_equal(use_a_region(), 0);
	close_domain();
}

static struct engine_registrar *registrar(void)
{
	return &container_of(domain, struct engine_domain, fid)->mr->registrar;
}

/* Without membarrier(2), a fork that does not wait for the registrar changes nothing for it. */
static void a_fork_in_vain_leaves_the_registrar_what_it_is(void **state)
{
	enum delay until = ENDED;
	pthread_t thread;
	uintptr_t who;
	int status;
	pid_t pid;

	if (platform_membarrier_open()) {
		print_message("skip: membarrier(2) is refused\n");
		skip();
	}
	open_domain(FI_THREAD_SAFE);
	two_inside = false;
	assert_int_equal(pthread_create(&thread, NULL, register_slowly, &until), 0);
	wait_for(&inside);
	who = registrar()->who;
	assert_true(who != UINTPTR_MAX);
	sys_fault_set(SYS_CALL_MEMBARRIER, EPERM, 0, 0);
	forking = true;
	pid = fork();
	if (!pid)
		_exit(is_told());
	assert_true(pid > 0);
	assert_true(registrar()->who == who);
	assert_int_equal(registrar()->turns, 1);
	delay = NONE;
	forked = true;
	/* who registers too waits for it */
	assert_int_equal(use_a_region(), 0);
	assert_false(two_inside);
	assert_int_equal(pthread_join(thread, NULL), 0);
	sys_fault_clear();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close_domain();
}

/* A thread that registers once in each turn, and what has it begin a turn while the process is copied. */
struct registering {
	struct platform_hold hold;
	pthread_barrier_t turn;
	bool over;
};

static void *register_in_turn(void *arg)
{
	struct registering *r = arg;

	for (;;) {
		pthread_barrier_wait(&r->turn);
		if (r->over)
			return NULL;
		assert_int_equal(use_a_region(), 0);
		pthread_barrier_wait(&r->turn);
	}
}

static void in_turn(struct registering *r)
{
	pthread_barrier_wait(&r->turn);
	pthread_barrier_wait(&r->turn);
}

/* The domain is held: the thread finds itself registrar no more, and waits. */
static void begin_turn(struct platform_hold *hold)
{
	const struct engine_domain *held = container_of(domain, struct engine_domain, fid);
	uint64_t end = platform_now_ns() + DEADLINE_NS;

	pthread_barrier_wait(&container_of(hold, struct registering, hold)->turn);
	while (!engine_guard_wanted(held) && platform_now_ns() < end)
		platform_yield();
}

static void ignore(struct platform_hold *hold, bool child)
{
}

static int registers_and_closes(void)
{
	if (forked_late())
		return LATE;
	alarm(600);
	return use_a_region() ? 1 : fi_close(&domain->fid) ? 2 : 0;
}

/* A region that is in use, and that another thread closes. */
static struct fid_mr *region;

static void use_region(uint32_t uses)
{
	struct engine_domain *held = container_of(domain, struct engine_domain, fid);

	engine_regions_hold(held);
	container_of(region, struct engine_mr, fid)->refs = uses;
	engine_leave(held);
}

static bool region_is_closing(void)
{
	struct engine_domain *held = container_of(domain, struct engine_domain, fid);
	bool closing;

	engine_regions_hold(held);
	closing = container_of(region, struct engine_mr, fid)->closing;
	engine_leave(held);
	return closing;
}

static void *close_region(void *arg)
{
	int ret;

	do {
		ret = fi_close(&region->fid);
	} while (ret == -FI_EBUSY);
	assert_int_equal(ret, 0);
	wait_for(&forked);
	return NULL;
}

static int closes_the_region_too(void)
{
	if (forked_late())
		return LATE;
	alarm(600);
	use_region(0);
	return fi_close(&region->fid) ? 1 : fi_close(&domain->fid) ? 2 : 0;
}

static bool fork_while_closing(void)
{
	uint64_t end = platform_now_ns() + DEADLINE_NS;
	static char buf[64];
	pthread_t thread;
	bool in_time;

	open_domain(FI_THREAD_DOMAIN);
	assert_int_equal(fi_mr_reg(domain, buf, sizeof(buf), RMA, 0, 0, 0, &region, NULL), 0);
	use_region(1);
	assert_int_equal(pthread_create(&thread, NULL, close_region, NULL), 0);
	while (!region_is_closing() && platform_now_ns() < end)
		platform_yield();
	in_time = forks_and_waits(closes_the_region_too);
	use_region(0);
	forked = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	close_domain();
	return in_time;
}

static void a_region_that_another_thread_waits_to_close_is_closed_by_the_child(void **state)
{
	IN_TIME(fork_while_closing());
}

/*
 * Whoever registers without holding the domain does so after any number of forks of another thread, also if
 * it registers meanwhile.
 */
static void the_registrar_outlives_forks(void **state)
{
	struct registering r = { .hold = { .rank = ENGINE_HOLD_DOMAIN + 1,
					   .hold = begin_turn,
					   .release = ignore } };
	pthread_t thread;
	uintptr_t who;

	pthread_barrier_init(&r.turn, NULL, 2);
	for (int meanwhile = 0; meanwhile < 2; meanwhile++) {
		int in_time = 0;

		if (meanwhile)
			platform_hold_watch(&r.hold);
		open_domain(FI_THREAD_DOMAIN);
		r.over = false;
		assert_int_equal(pthread_create(&thread, NULL, register_in_turn, &r), 0);
		in_turn(&r);
		who = registrar()->who;
		for (int i = 0; i < FORKS; i++) {
			in_time += forks_and_waits(registers_and_closes);
			if (meanwhile)
				pthread_barrier_wait(&r.turn);
			else
				in_turn(&r);
		}
		assert_in_range(in_time, FORKS / 2, FORKS);
		assert_true(registrar()->who == who);
		assert_true(registrar()->turns == 1 || who == UINTPTR_MAX);
		r.over = true;
		pthread_barrier_wait(&r.turn);
		assert_int_equal(pthread_join(thread, NULL), 0);
		platform_hold_unwatch(&r.hold);
		close_domain();
	}
	pthread_barrier_destroy(&r.turn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fork_waits_for_the_call_of_another_thread),
		cmocka_unit_test(a_child_is_told_of_a_call_that_did_not_end),
		cmocka_unit_test(a_fork_in_vain_leaves_the_registrar_what_it_is),
		cmocka_unit_test(the_registrar_outlives_forks),
		cmocka_unit_test(
			a_region_that_another_thread_waits_to_close_is_closed_by_the_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
