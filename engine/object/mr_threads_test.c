/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of registration by threads: the registrar of a domain (engine/domain/registrar.h), and
 * what others do to the regions meanwhile. A domain without endpoints, whose data calls are the
 * test's. Deadlines are those of the test runner.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include "core_double.h"
#include "fault.h"
#include "mr_fid.h"
#include "registrar.h"
#include "resolve.h"
#include <cmocka.h>

#define RMA    (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define LEN    64u
#define ROUNDS 20000u

static struct fi_provider provider = { .name = "test" };
static const struct engine_family family = { .provider = &provider };
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct engine_domain *inner;
/* The key that the accesses are to, and how many hit a region. */
static _Atomic uint64_t key;
static _Atomic uint64_t hits, wrong;
static _Atomic bool over;

static void open_domain(enum fi_threading threading)
{
	struct fi_fabric_attr fabric_attr = { .api_version = FI_VERSION(2, 0) };
	struct fi_domain_attr attr = { .threading = threading, .mr_mode = FI_MR_PROV_KEY };
	struct fi_info info = { .domain_attr = &attr };

	assert_int_equal(engine_fabric_open(&family, &fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, &info, &domain, NULL), 0);
	inner = container_of(domain, struct engine_domain, fid);
	key = hits = wrong = 0;
	over = false;
}

static void close_domain(void)
{
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
}

static struct fid_mr *reg(char *buf)
{
	struct fid_mr *mr = NULL;

	if (fi_mr_reg(domain, buf, LEN, RMA, 0, 0, 0, &mr, NULL))
		abort();
	return mr;
}

static void reg_and_close(void)
{
	static _Thread_local char buf[LEN];

	if (fi_close(&reg(buf)->fid))
		abort();
}

static void *wait_until_over(void *arg)
{
	while (!over)
		platform_yield();
	return NULL;
}

/* Every control call that holds the domain would need a barrier, and give the domain a lock without. */
static void a_thread_that_registers_makes_no_system_call(void **state)
{
	pthread_t other;

	if (platform_membarrier_open()) {
		print_message("skip: membarrier(2) is refused\n");
		skip();
	}
	open_domain(FI_THREAD_DOMAIN);
	assert_int_equal(pthread_create(&other, NULL, wait_until_over, NULL), 0);
	reg_and_close();
	sys_fault_set(SYS_CALL_MEMBARRIER, EPERM, 0, 0);
	for (int i = 0; i < 1000; i++)
		reg_and_close();
	assert_false(engine_has_lock(inner));
	assert_int_equal(inner->mr->registrar.turns, 1);
	sys_fault_clear();
	over = true;
	pthread_join(other, NULL);
	close_domain();
}

/* Accesses of a peer to the region of @key, in data calls. */
static void *access_by_key(void *arg)
{
	struct iovec iov[MR_IOV_MAX];
	struct engine_mr *mr;
	size_t cnt;

	while (!over) {
		engine_use(inner);
		if (!engine_mr_acquire(inner, NULL, key, 0, LEN, FI_REMOTE_WRITE, iov, &cnt,
				       &mr)) {
			char *byte = iov[0].iov_base;

			/* The region is open until it is released: its owner sees it changed. */
			wrong += cnt != 1 || *byte != 1;
			*byte = 2;
			*byte = 1;
			engine_mr_release(mr);
			hits++;
		}
		engine_unuse(inner);
	}
	return NULL;
}

static void closes_while_others_access(enum fi_threading threading)
{
	static char buf[LEN];
	pthread_t other;

	open_domain(threading);
	assert_int_equal(pthread_create(&other, NULL, access_by_key, NULL), 0);
	for (uint32_t i = 0; i < ROUNDS || !hits; i++) {
		struct fid_mr *mr;

		buf[0] = 1;
		mr = reg(buf);
		key = mr->key;
		if (i % 16 == 0)
			platform_yield();
		assert_int_equal(fi_close(&mr->fid), 0);
		/* No access of it is under way now, and none will come. */
		buf[0] = 3;
		wrong += buf[0] != 3;
	}
	over = true;
	pthread_join(other, NULL);
	print_message("%llu accesses, %u registrars\n", (unsigned long long)hits,
		      inner->mr->registrar.turns);
	assert_true(wrong == 0);
	close_domain();
}

static void nothing_is_accessed_once_it_is_closed(void **state)
{
	closes_while_others_access(FI_THREAD_DOMAIN);
	closes_while_others_access(FI_THREAD_SAFE);
}

static void *register_often(void *arg)
{
	for (uint32_t i = 0; i < ROUNDS; i++)
		reg_and_close();
	return NULL;
}

static void threads_register_at_the_same_time(void **state)
{
	pthread_t threads[3];

	open_domain(FI_THREAD_SAFE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, register_often, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(inner->mr->pool.used, 0);
	assert_true(inner->mr->registrar.turns <= ENGINE_REGISTRARS);
	close_domain();
}

/* The thread that opened a domain registers first, and another one ever after. */
static void the_thread_that_registers_most_becomes_the_registrar(void **state)
{
	pthread_t other;

	if (platform_membarrier_open()) {
		print_message("skip: membarrier(2) is refused\n");
		skip();
	}
	open_domain(FI_THREAD_SAFE);
	reg_and_close();
	assert_int_equal(pthread_create(&other, NULL, register_often, NULL), 0);
	pthread_join(other, NULL);
	assert_int_equal(inner->mr->registrar.turns, 2);
	assert_true(inner->mr->registrar.who != UINTPTR_MAX);
	close_domain();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_registers_makes_no_system_call),
		cmocka_unit_test(nothing_is_accessed_once_it_is_closed),
		cmocka_unit_test(threads_register_at_the_same_time),
		cmocka_unit_test(the_thread_that_registers_most_becomes_the_registrar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
