/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pairs of endpoints of a real provider; see pair_run.h. Called by table_test.c and
 * access_test.c; each side on a thread of its own.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "pair_run.h"
#include <cmocka.h>

#define API	    FI_VERSION(1, 9)
#define RUN_SECS    90
#define WAIT_SECS   30
#define NONE_ROUNDS 3000

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct fi_info *hints_for(const char *provider)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	/* what has not moved yet is part of what is tested */
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = 0;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(provider);
	return hints;
}

bool pair_exists(const char *provider)
{
	struct fi_info *hints = hints_for(provider), *info = NULL;
	int ret = fi_getinfo(API, NULL, NULL, 0, hints, &info);

	fi_freeinfo(hints);
	if (!ret)
		fi_freeinfo(info);
	return !ret;
}

void pair_open(struct pair_side *s, const struct pair_attr *attr)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = hints_for(attr->provider);

	hints->tx_attr->size = attr->tx_size;
	hints->caps |= attr->caps;
	hints->domain_attr->mr_mode = attr->mr_mode;
	hints->tx_attr->msg_order |= attr->msg_order;
	hints->rx_attr->msg_order |= attr->msg_order;
	PAIR_CHECK(s, !fi_getinfo(API, NULL, NULL, 0, hints, &s->info));
	fi_freeinfo(hints);
	PAIR_CHECK(s, !fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	PAIR_CHECK(s, !fi_domain(s->fabric, s->info, &s->domain, NULL));
	PAIR_CHECK(s, !fi_av_open(s->domain, &av_attr, &s->av, NULL));
	PAIR_CHECK(s, !fi_cq_open(s->domain, &cq_attr, &s->cq, NULL));
	PAIR_CHECK(s, !fi_endpoint(s->domain, s->info, &s->ep, NULL));
	PAIR_CHECK(s, !fi_ep_bind(s->ep, &s->av->fid, 0));
	PAIR_CHECK(s, !fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	PAIR_CHECK(s, !fi_enable(s->ep));
	PAIR_CHECK(s, !fi_ep_alias(s->ep, &s->rma, FI_TRANSMIT | FI_DELIVERY_COMPLETE));
}

void pair_stop(struct pair_side *s)
{
	if (!s->ep)
		return;
	PAIR_CHECK(s, !fi_close(&s->rma->fid));
	PAIR_CHECK(s, !fi_close(&s->ep->fid));
	s->rma = s->ep = NULL;
}

void pair_close(struct pair_side *s)
{
	pair_stop(s);
	PAIR_CHECK(s, !fi_close(&s->cq->fid));
	PAIR_CHECK(s, !fi_close(&s->av->fid));
	PAIR_CHECK(s, !fi_close(&s->domain->fid));
	PAIR_CHECK(s, !fi_close(&s->fabric->fid));
	fi_freeinfo(s->info);
}

/* Give the other one our address, and take its own. */
static void meet(struct pair_side *s)
{
	char mine[128], theirs[128];
	size_t len = sizeof(mine);

	PAIR_CHECK(s, !fi_getname(&s->ep->fid, mine, &len));
	PAIR_CHECK(s, write(s->channel, mine, sizeof(mine)) == sizeof(mine));
	PAIR_CHECK(s, recv(s->channel, theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
	PAIR_CHECK(s, fi_av_insert(s->av, theirs, 1, &s->peer, 0, NULL) == 1);
}

void pair_say(struct pair_side *s, char what)
{
	PAIR_CHECK(s, write(s->channel, &what, 1) == 1);
}

void pair_hear(struct pair_side *s, char what, bool progress)
{
	struct pollfd p = { .fd = s->channel, .events = POLLIN };
	double end = now() + WAIT_SECS;
	char heard;

	while (!poll(&p, 1, progress ? 0 : 100)) {
		if (progress)
			fi_cq_read(s->cq, NULL, 0);
		PAIR_CHECK(s, now() < end);
	}
	PAIR_CHECK(s, read(s->channel, &heard, 1) == 1);
	PAIR_CHECK(s, heard == what);
}

static ssize_t take(struct pair_side *s)
{
	ssize_t ret = fi_cq_readfrom(s->cq, &s->entry, 1, &s->source);

	if (ret == -FI_EAVAIL) {
		memset(&s->error, 0, sizeof(s->error));
		PAIR_CHECK(s, fi_cq_readerr(s->cq, &s->error, 0) == 1);
	}
	PAIR_CHECK(s, ret == 1 || ret == -FI_EAGAIN || ret == -FI_EAVAIL);
	return ret;
}

ssize_t pair_next(struct pair_side *s)
{
	double end = now() + WAIT_SECS;
	ssize_t ret;

	for (uint32_t i = 1; (ret = take(s)) == -FI_EAGAIN; i++) {
		if (i % 1024)
			continue;
		PAIR_CHECK(s, now() < end);
		sched_yield();
	}
	return ret;
}

bool pair_none(struct pair_side *s)
{
	for (int i = 0; i < NONE_ROUNDS; i++) {
		if (take(s) != -FI_EAGAIN)
			return false;
		if (!(i % 16))
			sched_yield();
	}
	return true;
}

void pair_done(struct pair_side *s, void *context)
{
	PAIR_CHECK(s, pair_next(s) == 1);
	PAIR_CHECK(s, s->entry.op_context == context);
}

void pair_failed(struct pair_side *s, void *context, int err)
{
	PAIR_CHECK(s, pair_next(s) == -FI_EAVAIL);
	PAIR_CHECK(s, s->error.op_context == context);
	PAIR_CHECK(s, s->error.err == err);
}

/* Running */

struct task {
	struct pair_side side;
	const struct pair_attr *attr;
	pair_role role;
};

static void *task_run(void *arg)
{
	struct task *t = arg;

	pair_open(&t->side, t->attr);
	meet(&t->side);
	t->role(&t->side);
	/* Neither side ends before the other is done. */
	pair_say(&t->side, '.');
	pair_hear(&t->side, '.', true);
	pair_close(&t->side);
	return NULL;
}

static void set_budget(const struct pair_attr *attr)
{
	char name[64];
	int n = snprintf(name, sizeof(name), "FI_%s_RX_BUDGET", attr->provider);

	for (int i = 0; i < n; i++)
		name[i] = (char)toupper(name[i]);
	if (attr->rx_budget)
		setenv(name, attr->rx_budget, 1);
}

static pid_t start(struct task *tasks, int cnt)
{
	pthread_t thread;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	set_budget(tasks[0].attr);
	alarm(RUN_SECS); /* whatever happens to the test itself */
	if (cnt == 2 && pthread_create(&thread, NULL, task_run, &tasks[1]))
		exit(1);
	task_run(&tasks[0]);
	if (cnt == 2)
		pthread_join(thread, NULL);
	exit(0);
}

void pair_run(const struct pair_attr *attr, pair_role first, pair_role second)
{
	struct task tasks[2] = {
		{ .side = { .name = "first" }, .attr = attr, .role = first },
		{ .side = { .name = "second" }, .attr = attr, .role = second },
	};
	pid_t pids[2] = { 0 };
	int ends[2], status, failed = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	tasks[0].side.channel = ends[0];
	tasks[1].side.channel = ends[1];
	pids[0] = start(tasks, attr->mode == PAIR_THREADS ? 2 : 1);
	if (attr->mode == PAIR_PROCESSES)
		pids[1] = start(tasks + 1, 1);
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < 2 && pids[i]; i++) {
		assert_true(pids[i] > 0);
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		if (WIFSIGNALED(status))
			print_error("%s ended by signal %d\n", i ? "second" : "first",
				    WTERMSIG(status));
		failed |= status;
		/* The other one would wait in vain. */
		if (status && !i && pids[1])
			kill(pids[1], SIGKILL);
	}
	assert_int_equal(failed, 0);
}
