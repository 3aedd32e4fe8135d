/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program whose fork handlers take a lock under which other threads call libfabric.so.1. They were installed
 * before its first call of it.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <weft/mem.h>

#define LEN	   ((size_t)1 << 20)
#define DEADLINE_S 20

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct weft_mem_ops *mem;
static sem_t asked, answered;
static bool watched, in_time;

/* The forking thread waits for what another one does under the program's lock. */
static void prepare(void)
{
	struct timespec end;

	if (!watched)
		return;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += DEADLINE_S;
	sem_post(&asked);
	in_time = !sem_timedwait(&answered, &end);
}

static void nothing(void)
{
}

static int start(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int err;

	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("shm");
	err = fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info) ||
	      fi_fabric(info->fabric_attr, &fabric, NULL) ||
	      fi_domain(fabric, info, &domain, NULL) ||
	      fi_open_ops(&domain->fid, WEFT_MEM_OPS, 0, (void **)&mem, NULL);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return err ? -1 : 0;
}

static int end(void **state)
{
	return fi_close(&domain->fid) || fi_close(&fabric->fid) ? -1 : 0;
}

static void *allocate(void *arg)
{
	bool *good = arg;
	void *addr;

	sem_wait(&asked);
	*good = !mem->alloc(2 * LEN, 0, 0, &addr) && !mem->free(addr);
	sem_post(&answered);
	return NULL;
}

static void a_lock_of_the_program_comes_before_the_librarys(void **state)
{
	bool good = false;
	pthread_t thread;
	int status = -1;
	void *addr;
	pid_t pid;

	assert_int_equal(mem->alloc(LEN, 0, 0, &addr), 0);
	assert_int_equal(sem_init(&asked, 0, 0) | sem_init(&answered, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, allocate, &good), 0);
	watched = true;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(in_time);
	assert_true(good);
	assert_int_equal(mem->free(addr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_of_the_program_comes_before_the_librarys),
	};

	pthread_atfork(prepare, nothing, nothing);
	return cmocka_run_group_tests(tests, start, end);
}
