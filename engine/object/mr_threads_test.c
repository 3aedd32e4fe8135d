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
static const struct engine_family plain = { .provider = &provider };
/* One whose key table a wire shows to peers. */
static const struct engine_family showing = { .provider = &provider, .wires = { "showing" } };
static const struct engine_family *family = &plain;
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

	assert_int_equal(engine_fabric_open(family, &fabric_attr, &fabric, NULL), 0);
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

/* What the wire shows, and the marks of peers on it. */
static struct {
	_Atomic bool marked, used;
	/* conns are being changed, with the domain held; not atomic */
	bool changing;
	_Atomic uint32_t looks, asked;
} shown;

static void *slab_alloc(void *arg, uint32_t slab)
{
	return platform_alloc(mr_slab_len(slab));
}

static void slab_free(void *arg, uint32_t slab, void *memory)
{
	platform_free(memory);
}

static int share_open(struct wire_share **share, struct mr_memory *memory,
		      const _Atomic uint32_t *regions)
{
	*share = (struct wire_share *)&shown;
	*memory = (struct mr_memory){ .alloc = slab_alloc, .free = slab_free };
	return 0;
}

static void share_close(struct wire_share *share)
{
}

static bool share_marked(const struct wire_share *share, uint32_t index)
{
	shown.looks++;
	/* Time for a thread that does not wait for this one. */
	if (shown.looks % 16 == 0)
		platform_yield();
	wrong += shown.changing;
	return shown.marked;
}

static bool share_used(struct wire_share *share, uint32_t index)
{
	shown.asked++;
	wrong += shown.changing;
	return shown.used;
}

static void open_showing(void)
{
	static const struct wire_ops ops = { .size = sizeof(ops),
					     .name = "showing",
					     .share_open = share_open,
					     .share_close = share_close,
					     .share_marked = share_marked,
					     .share_used = share_used };
	static const struct wire_provider wire = { sizeof(wire), 1, WIRE_LAYOUT, &ops };

	memset(&shown, 0, sizeof(shown));
	assert_int_equal(wire_register(&wire), 0);
	family = &showing;
	open_domain(FI_THREAD_DOMAIN);
	family = &plain;
}

/* Conns come and go in data calls, as in a poll. */
static void *change_conns(void *arg)
{
	while (!over) {
		engine_use(inner);
		engine_registrar_out(inner);
		shown.changing = true;
		platform_yield();
		shown.changing = false;
		engine_unuse(inner);
		hits++;
	}
	return NULL;
}

static void conns_do_not_change_while_a_region_is_closed(void **state)
{
	pthread_t other;

	open_showing();
	assert_int_equal(pthread_create(&other, NULL, change_conns, NULL), 0);
	for (uint32_t i = 0; i < ROUNDS / 10 || hits < 50; i++)
		reg_and_close();
	over = true;
	pthread_join(other, NULL);
	print_message("%llu changes, %u looks, %u registrars\n", (unsigned long long)hits,
		      shown.looks, inner->mr->registrar.turns);
	assert_true(wrong == 0);
	close_domain();
}

/* A short look that does not tell is followed by a question that does, with the domain held. */
static void a_region_that_a_peer_has_marked_is_closed_with_the_domain_held(void **state)
{
	static char buf[LEN];
	struct fid_mr *mr;
	uint32_t asked;

	open_showing();
	reg_and_close();
	mr = reg(buf);
	asked = shown.asked;
	shown.marked = true;
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_true(shown.asked > asked);
	mr = reg(buf);
	shown.used = true;
	assert_int_equal(fi_close(&mr->fid), -FI_EBUSY);
	/* its key resolves still */
	assert_non_null(mr_find(&inner->mr->table, mr->key));
	shown.marked = shown.used = false;
	assert_int_equal(fi_close(&mr->fid), 0);
	close_domain();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conns_do_not_change_while_a_region_is_closed),
		cmocka_unit_test(a_region_that_a_peer_has_marked_is_closed_with_the_domain_held),
		cmocka_unit_test(a_thread_that_registers_makes_no_system_call),
		cmocka_unit_test(nothing_is_accessed_once_it_is_closed),
		cmocka_unit_test(threads_register_at_the_same_time),
		cmocka_unit_test(the_thread_that_registers_most_becomes_the_registrar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
