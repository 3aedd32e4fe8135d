/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Members of collectives; see coll_members.h. Called by the tests, and in their children. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "coll_members.h"

const char *provider;
const int everyone[MEMBERS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void member_meet(struct member *m)
{
	_Atomic int *arrived = &m->shared->arrived[m->met++];
	struct fi_cq_tagged_entry entry;

	atomic_fetch_add(arrived, 1);
	while (atomic_load(arrived) < m->cnt - atomic_load(&m->shared->dead)) {
		if (m->ep)
			CHECK(m, fi_cq_read(m->cq, &entry, 1) == -FI_EAGAIN);
		sched_yield();
	}
}

static struct fi_info *info_of(enum fi_threading threading)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_COLLECTIVE;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = threading;
	if (fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

static void member_open(struct member *m)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	size_t len = NAME;

	m->info = info_of(m->threading);
	CHECK(m, m->info);
	CHECK(m, !fi_fabric(m->info->fabric_attr, &m->fabric, NULL));
	CHECK(m, !fi_eq_open(m->fabric, &eq_attr, &m->eq, NULL));
	CHECK(m, !fi_domain(m->fabric, m->info, &m->domain, NULL));
	CHECK(m, !fi_cq_open(m->domain, &cq_attr, &m->cq, NULL));
	CHECK(m, !fi_cntr_open(m->domain, NULL, &m->cntr, NULL));
	CHECK(m, !fi_av_open(m->domain, &av_attr, &m->av, NULL));
	CHECK(m, !fi_endpoint(m->domain, m->info, &m->ep, NULL));
	CHECK(m, !fi_ep_bind(m->ep, &m->eq->fid, 0));
	/* A selective queue reports collectives all the same. */
	CHECK(m, !fi_ep_bind(m->ep, &m->cq->fid,
			     FI_TRANSMIT | (m->rank % 2 ? FI_SELECTIVE_COMPLETION : 0)));
	CHECK(m, !fi_ep_bind(m->ep, &m->cq->fid, FI_RECV));
	CHECK(m, !fi_ep_bind(m->ep, &m->cntr->fid, FI_WRITE));
	CHECK(m, !fi_ep_bind(m->ep, &m->av->fid, 0));
	CHECK(m, !fi_enable(m->ep));
	CHECK(m, !fi_getname(&m->ep->fid, m->shared->names[m->rank], &len));
	member_meet(m);
	for (int i = 0; i < m->cnt; i++)
		CHECK(m,
		      fi_av_insert(m->av, m->shared->names[i], 1, &m->addrs[i], 0, NULL) == 1);
}

static void member_close(struct member *m)
{
	CHECK(m, !fi_close(&m->ep->fid));
	m->ep = NULL;
	CHECK(m, !fi_close(&m->av->fid));
	CHECK(m, !fi_close(&m->cntr->fid));
	CHECK(m, !fi_close(&m->cq->fid));
	CHECK(m, !fi_close(&m->eq->fid));
	CHECK(m, !fi_close(&m->domain->fid));
	CHECK(m, !fi_close(&m->fabric->fid));
	fi_freeinfo(m->info);
}

void *member_next(struct member *m)
{
	struct fi_cq_tagged_entry entry;
	double end = now() + 40;
	ssize_t ret;

	while ((ret = fi_cq_read(m->cq, &entry, 1)) == -FI_EAGAIN) {
		CHECK(m, now() < end);
		sched_yield();
	}
	if (ret == 1) {
		CHECK(m, entry.flags == FI_COLLECTIVE);
		return entry.op_context;
	}
	CHECK(m, ret == -FI_EAVAIL);
	m->error = (struct fi_cq_err_entry){ 0 };
	CHECK(m, fi_cq_readerr(m->cq, &m->error, 0) == 1);
	CHECK(m, m->error.flags == FI_COLLECTIVE);
	return NULL;
}

int member_joined(struct member *m, struct fid_mc *mc, void *context)
{
	struct fi_cq_tagged_entry entry;
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry event;
	double end = now() + 40;
	uint32_t what;
	ssize_t ret;

	while ((ret = fi_eq_read(m->eq, &what, &event, sizeof(event), 0)) == -FI_EAGAIN) {
		if (m->rank) /* reading events drives the domain of the first one, which has no lock */
			CHECK(m, fi_cq_read(m->cq, &entry, 1) == -FI_EAGAIN);
		CHECK(m, now() < end);
		sched_yield();
	}
	if (ret == -FI_EAVAIL) {
		CHECK(m, fi_eq_readerr(m->eq, &err, 0) == sizeof(err));
		CHECK(m, err.fid == &mc->fid && err.context == context);
		return err.err;
	}
	CHECK(m, ret == sizeof(event) && what == FI_JOIN_COMPLETE);
	CHECK(m, event.fid == &mc->fid && event.context == context);
	return 0;
}

struct fid_mc *member_join_begin(struct member *m, const int *ranks, int cnt, void *context)
{
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL,
				       .end_addr = FI_ADDR_NOTAVAIL };
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t addr;

	CHECK(m, !fi_av_set(m->av, &attr, &set, NULL));
	for (int i = 0; i < cnt; i++)
		CHECK(m, !fi_av_set_insert(set, m->addrs[ranks[i]]));
	CHECK(m, !fi_av_set_addr(set, &addr));
	CHECK(m, !fi_join_collective(m->ep, addr, set, 0, &mc, context));
	CHECK(m, !fi_close(&set->fid));
	return mc;
}

struct fid_mc *member_join(struct member *m, const int *ranks, int cnt)
{
	struct fid_mc *mc = member_join_begin(m, ranks, cnt, m);
	int err = member_joined(m, mc, m);

	if (err)
		fprintf(stderr, "member %d of %d: join of %d: %s\n", m->rank, m->cnt, cnt,
			fi_strerror(err));
	CHECK(m, err == 0);
	return mc;
}

struct task {
	struct member member;
	role role;
};

static void *task_run(void *arg)
{
	struct task *t = arg;

	member_open(&t->member);
	member_meet(&t->member);
	t->role(&t->member);
	member_meet(&t->member);
	member_close(&t->member);
	return NULL;
}

static void run_threads(struct shared *shared, int cnt, role r)
{
	struct task tasks[MEMBERS];
	pthread_t threads[MEMBERS];

	for (int i = 0; i < cnt; i++) {
		tasks[i] = (struct task){ { .shared = shared,
					    .rank = i,
					    .cnt = cnt,
					    .threading = i % 2 ? FI_THREAD_SAFE
							       : FI_THREAD_DOMAIN },
					  r };
		if (pthread_create(&threads[i], NULL, task_run, &tasks[i]))
			exit(1);
	}
	for (int i = 0; i < cnt; i++)
		pthread_join(threads[i], NULL);
}

void members_run(int cnt, role r, bool threads)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int children = threads ? 1 : cnt, status, bad = 0;
	pid_t pids[MEMBERS];

	assert_ptr_not_equal(shared, MAP_FAILED);
	fflush(NULL);
	for (int i = 0; i < children; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(600);
		if (threads) {
			run_threads(shared, cnt, r);
		} else {
			struct task t = { { .shared = shared, .rank = i, .cnt = cnt }, r };

			task_run(&t);
		}
		exit(0);
	}
	for (int i = 0; i < children; i++) {
		waitpid(pids[i], &status, 0);
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
		    atomic_load(&shared->dead))
			continue;
		if (status && !bad) {
			fprintf(stderr, "member %d ended with status %x\n", i, status);
			bad = 1;
			for (int j = i + 1; j < children; j++)
				kill(pids[j], SIGTERM);
		}
	}
	munmap(shared, sizeof(*shared));
	assert_int_equal(bad, 0);
}
