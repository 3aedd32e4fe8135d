/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Blocking calls that sleep and whose thread runs a signal handler: they return -FI_EINTR, as those
 * of libfabric's tcp and udp do, but for objects opened with FI_WAIT_YIELD. Argument: a provider.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include "party.h"
#include <cmocka.h>

/* Wait sets are deprecated, and in use. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define WAIT_MS	 20000
#define PATIENCE 3 /* handlers that a wait with FI_WAIT_YIELD outlasts */

static const char *provider;
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;

static _Atomic int handled;

static void handle(int sig)
{
	atomic_fetch_add(&handled, 1);
}

/* Signals a thread again and again: the first ones may come before it sleeps. */
struct nagger {
	pthread_t thread, target;
	_Atomic bool done;
	/* Called once the target has handled PATIENCE signals, or NULL */
	void (*then)(void *arg);
	void *arg;
};

static void *nag(void *arg)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	struct nagger *n = arg;

	while (!atomic_load(&n->done)) {
		if (n->then && atomic_load(&handled) >= PATIENCE) {
			n->then(n->arg);
			break;
		}
		pthread_kill(n->target, SIGUSR1);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void nag_begin(struct nagger *n)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };

	n->target = pthread_self();
	atomic_store(&handled, 0);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(pthread_create(&n->thread, NULL, nag, n), 0);
}

static void nag_end(struct nagger *n)
{
	atomic_store(&n->done, true);
	assert_int_equal(pthread_join(n->thread, NULL), 0);
}

static int setup(void **state)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	assert_non_null(hints);
	hints->fabric_attr->prov_name = strdup(provider);
	hints->mode = ~0ull;
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	ret = fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (ret || fi_fabric(info->fabric_attr, &fabric, NULL))
		return -1;
	return fi_domain(fabric, info, &domain, NULL);
}

static int teardown(void **state)
{
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	return 0;
}

static void event_queue(void **state)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct nagger n = { .then = NULL };
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	uint32_t event;

	assert_int_equal(fi_eq_open(fabric, &attr, &eq, NULL), 0);
	nag_begin(&n);
	assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), WAIT_MS, 0), -FI_EINTR);
	assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0), -FI_EINTR);
	/* what is there comes before it */
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), WAIT_MS, 0),
			 sizeof(entry));
	nag_end(&n);
	assert_int_equal(fi_close(&eq->fid), 0);
}

static void completion_queue(void **state)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct nagger n = { .then = NULL };
	struct fi_cq_tagged_entry entry;
	struct fid_cq *cq;

	assert_int_equal(fi_cq_open(domain, &attr, &cq, NULL), 0);
	nag_begin(&n);
	assert_int_equal(fi_cq_sread(cq, &entry, 1, NULL, WAIT_MS), -FI_EINTR);
	assert_int_equal(fi_cq_sread(cq, &entry, 1, NULL, -1), -FI_EINTR);
	nag_end(&n);
	assert_int_equal(fi_close(&cq->fid), 0);
}

static void counter(void **state)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct nagger n = { .then = NULL };
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(domain, &attr, &cntr, NULL), 0);
	nag_begin(&n);
	assert_int_equal(fi_cntr_wait(cntr, 1, WAIT_MS), -FI_EINTR);
	assert_int_equal(fi_cntr_wait(cntr, 1, -1), -FI_EINTR);
	nag_end(&n);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

static void wait_set(void **state)
{
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_SET };
	struct nagger n = { .then = NULL };
	struct fid_wait *set;
	struct fid_eq *eq;

	assert_int_equal(fi_wait_open(fabric, &attr, &set), 0);
	eq_attr.wait_set = set;
	assert_int_equal(fi_eq_open(fabric, &eq_attr, &eq, NULL), 0);
	nag_begin(&n);
	assert_int_equal(fi_wait(set, WAIT_MS), -FI_EINTR);
	assert_int_equal(fi_wait(set, -1), -FI_EINTR);
	nag_end(&n);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&set->fid), 0);
}

static void count(void *arg)
{
	fi_cntr_add(arg, 1);
}

static void a_wait_that_yields_goes_on(void **state)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_YIELD };
	struct nagger n = { .then = count };
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(domain, &attr, &cntr, NULL), 0);
	n.arg = cntr;
	nag_begin(&n);
	assert_int_equal(fi_cntr_wait(cntr, 1, WAIT_MS), 0);
	nag_end(&n);
	assert_true(atomic_load(&handled) >= PATIENCE);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_queue),
		cmocka_unit_test(completion_queue),
		cmocka_unit_test(counter),
		cmocka_unit_test(wait_set),
		cmocka_unit_test(a_wait_that_yields_goes_on),
	};

	provider = argc > 1 ? argv[1] : "tcp";
	return cmocka_run_group_tests(tests, setup, teardown);
}
