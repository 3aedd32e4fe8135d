/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The processes of a storm; storm.h has the contract. With hosts, the second half of them lives
 * in namespaces of its own (pids, mounts, IPC, host name): none can be found through /proc by
 * the first half, so that messages between the halves go over the network, while those within
 * a half go through shared memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "storm.h"
#include <cmocka.h>

#define API FI_VERSION(1, 20)

double storm_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One endpoint */

static struct fi_info *info_of(const struct storm_attr *attr)
{
	const uint64_t order = FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW;
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	bool own = attr->progress == FI_PROGRESS_AUTO;

	hints->caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_SOURCE | FI_RMA_EVENT;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = own ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = attr->progress;
	hints->domain_attr->control_progress = attr->progress;
	hints->domain_attr->mr_mode = 0;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = order;
	hints->fabric_attr->prov_name = strdup(attr->provider);
	if (fi_getinfo(API, NULL, NULL, 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

static struct fid_cntr *open_cntr(struct member *m)
{
	struct fid_cntr *cntr;

	CHECK(m, !fi_cntr_open(m->domain, NULL, &cntr, NULL));
	return cntr;
}

static void open_region(struct member *m)
{
	m->region = aligned_alloc(4096, m->attr->region);
	CHECK(m, m->region);
	memset(m->region, 0, m->attr->region);
	m->written = open_cntr(m);
	m->was_read = open_cntr(m);
	CHECK(m, !fi_mr_reg(m->domain, m->region, m->attr->region,
			    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, STORM_KEY, FI_RMA_EVENT,
			    &m->mr, NULL));
	CHECK(m, !fi_mr_bind(m->mr, &m->written->fid, FI_REMOTE_WRITE));
	CHECK(m, !fi_mr_bind(m->mr, &m->was_read->fid, FI_REMOTE_READ));
}

static void open_endpoint(struct member *m)
{
	CHECK(m, !fi_endpoint(m->domain, m->info, &m->ep, NULL));
	m->wrote = open_cntr(m);
	m->read = open_cntr(m);
	m->ep_written = open_cntr(m);
	m->ep_read = open_cntr(m);
	CHECK(m, !fi_ep_bind(m->ep, &m->av->fid, 0));
	CHECK(m, !fi_ep_bind(m->ep, &m->cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(m, !fi_ep_bind(m->ep, &m->wrote->fid, FI_WRITE));
	CHECK(m, !fi_ep_bind(m->ep, &m->read->fid, FI_READ));
	CHECK(m, !fi_ep_bind(m->ep, &m->ep_written->fid, FI_REMOTE_WRITE));
	CHECK(m, !fi_ep_bind(m->ep, &m->ep_read->fid, FI_REMOTE_READ));
	CHECK(m, !fi_enable(m->ep));
	CHECK(m, !fi_ep_alias(m->ep, &m->rma, FI_TRANSMIT | FI_DELIVERY_COMPLETE));
}

static void member_open(struct member *m)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = STORM_MEMBERS };
	size_t len = sizeof(m->shared->names[0]);

	m->info = info_of(m->attr);
	CHECK(m, m->info);
	CHECK(m, !fi_fabric(m->info->fabric_attr, &m->fabric, NULL));
	CHECK(m, !fi_domain(m->fabric, m->info, &m->domain, NULL));
	CHECK(m, !fi_av_open(m->domain, &av_attr, &m->av, NULL));
	CHECK(m, !fi_cq_open(m->domain, &cq_attr, &m->cq, NULL));
	open_region(m);
	open_endpoint(m);
	CHECK(m, !fi_getname(&m->ep->fid, m->shared->names[m->rank], &len));
	storm_meet(m);
	for (int i = 0; i < STORM_MEMBERS; i++)
		CHECK(m,
		      fi_av_insert(m->av, m->shared->names[i], 1, &m->addrs[i], 0, NULL) == 1);
}

static void member_close(struct member *m)
{
	struct fid_cntr *cntrs[] = { m->wrote,	  m->read,	 m->written,
				     m->was_read, m->ep_written, m->ep_read };

	CHECK(m, !fi_close(&m->rma->fid));
	CHECK(m, !fi_close(&m->ep->fid));
	CHECK(m, !fi_close(&m->mr->fid));
	for (size_t i = 0; i < sizeof(cntrs) / sizeof(cntrs[0]); i++)
		CHECK(m, !fi_close(&cntrs[i]->fid));
	CHECK(m, !fi_close(&m->cq->fid));
	CHECK(m, !fi_close(&m->av->fid));
	CHECK(m, !fi_close(&m->domain->fid));
	CHECK(m, !fi_close(&m->fabric->fid));
	fi_freeinfo(m->info);
	free(m->region);
}

static void tell_routes(struct member *m)
{
	struct weft_routes_ops *ops;
	size_t cnt = WEFT_ROUTES_MAX;

	CHECK(m, !fi_open_ops(&m->ep->fid, WEFT_ROUTES_OPS, 0, (void **)&ops, NULL));
	CHECK(m, !ops->list(&m->ep->fid, m->shared->routes[m->rank], &cnt));
	m->shared->route_cnt[m->rank] = cnt;
}

/* Completions */

static void completed(struct member *m, struct storm_op *op, int err)
{
	CHECK(m, op && !op->done);
	CHECK(m, m->under_way);
	op->done = true;
	op->err = err;
	m->under_way--;
}

/* Only operations to the killed member may fail; injected ones have no context. */
static void failed(struct member *m, const struct fi_cq_err_entry *err)
{
	struct storm_op *op = err->op_context;

	if (!atomic_load(&m->shared->dead) || (op && op->to != m->attr->victim))
		fprintf(stderr, "member %d: an operation to %d failed: %s\n", m->rank,
			op ? op->to : -1, fi_strerror(err->err));
	CHECK(m, err->err && atomic_load(&m->shared->dead));
	CHECK(m, !op || op->to == m->attr->victim);
	m->failed++;
	if (op)
		completed(m, op, err->err);
}

static void heard(struct member *m, const struct fi_cq_data_entry *e, fi_addr_t source)
{
	int from = 0;

	while (from < STORM_MEMBERS && m->addrs[from] != source)
		from++;
	CHECK(m, from < STORM_MEMBERS);
	CHECK(m, e->flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
	m->heard[from]++;
	m->last_data[from] = e->data;
}

bool storm_turn(struct member *m)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry e;
	fi_addr_t source;
	ssize_t ret;

	ret = fi_cq_readfrom(m->cq, &e, 1, &source);
	if (ret == -FI_EAGAIN) {
		if (atomic_load_explicit(&m->shared->failed, memory_order_relaxed))
			exit(1);
		CHECK(m, !m->deadline || storm_now() < m->deadline);
		sched_yield();
		return false;
	}
	if (ret == 1) {
		if (e.flags & FI_REMOTE_CQ_DATA) {
			heard(m, &e, source);
			return true;
		}
		completed(m, e.op_context, 0);
		CHECK(m, e.flags == ((struct storm_op *)e.op_context)->kind);
		return true;
	}
	CHECK(m, ret == -FI_EAVAIL);
	CHECK(m, fi_cq_readerr(m->cq, &err, 0) == 1);
	failed(m, &err);
	return true;
}

void storm_begin(struct member *m, struct storm_op *op, int to, uint64_t kind)
{
	op->to = to;
	op->kind = kind;
	op->err = 0;
	op->done = false;
	m->under_way++;
	if (kind & FI_READ)
		m->reads++;
	else
		m->writes++;
}

void storm_finish(struct member *m)
{
	while (m->under_way || fi_cntr_read(m->wrote) + fi_cntr_readerr(m->wrote) < m->writes ||
	       fi_cntr_read(m->read) + fi_cntr_readerr(m->read) < m->reads)
		storm_turn(m);
	CHECK(m, fi_cntr_read(m->wrote) + fi_cntr_readerr(m->wrote) == m->writes);
	CHECK(m, fi_cntr_read(m->read) + fi_cntr_readerr(m->read) == m->reads);
}

void storm_counted(struct member *m, uint64_t written, uint64_t was_read, uint64_t fetched)
{
	CHECK(m, fi_cntr_read(m->written) == written + fetched);
	CHECK(m, fi_cntr_read(m->was_read) == was_read - fetched);
	CHECK(m, fi_cntr_read(m->ep_written) == written);
	CHECK(m, fi_cntr_read(m->ep_read) == was_read);
	CHECK(m, !fi_cntr_readerr(m->wrote) && !fi_cntr_readerr(m->read));
}

void storm_meet(struct member *m)
{
	_Atomic int *arrived = &m->shared->arrived[m->met++];
	bool by_itself = m->ep && m->attr->progress == FI_PROGRESS_AUTO;

	CHECK(m, m->met < STORM_MEETINGS);
	/*
	 * The other members order the accesses of this thread and of the endpoint's thread to the
	 * region. One call on each side shows that order to a tool that watches this process alone.
	 */
	if (by_itself)
		storm_turn(m);
	atomic_fetch_add(arrived, 1);
	while (atomic_load(arrived) < STORM_MEMBERS - atomic_load(&m->shared->dead)) {
		if (m->ep && !by_itself)
			storm_turn(m);
		else if (atomic_load(&m->shared->failed))
			exit(1);
		else
			sched_yield();
	}
	if (by_itself)
		storm_turn(m);
}

void storm_die(struct member *m)
{
	atomic_fetch_add(&m->shared->dead, 1);
	CHECK(m, write(m->kill_fd, "", 1) == 1);
}

/* Processes */

struct crowd {
	const struct storm_attr *attr;
	struct storm_shared *shared;
	storm_role role;
	int kill_fds[2]; /* the victim writes, the member that started it reads */
};

static void member_run(const struct crowd *c, int rank)
{
	struct member m = { .attr = c->attr, .shared = c->shared, .rank = rank };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(STORM_SECS);
	close(c->kill_fds[0]);
	m.kill_fd = c->kill_fds[1];
	if (rank != c->attr->victim)
		close(c->kill_fds[1]);
	member_open(&m);
	storm_meet(&m);
	c->role(&m);
	storm_meet(&m);
	tell_routes(&m);
	storm_meet(&m);
	member_close(&m);
	exit(0);
}

/* Waits for one of them; returns whether it ended as it should. */
static bool reap(const struct crowd *c, int rank, pid_t pid)
{
	bool victim = rank == c->attr->victim;
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (victim && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	if (!status && !victim)
		return true;
	if (WIFSIGNALED(status))
		fprintf(stderr, "member %d ended by signal %d\n", rank, WTERMSIG(status));
	atomic_store(&c->shared->failed, 1);
	return false;
}

/* Members from @first on; returns how many ended otherwise than they should have. */
static int run_some(const struct crowd *c, int first, int cnt)
{
	int victim = c->attr->victim, bad = 0;
	pid_t pids[STORM_MEMBERS];
	char asked;

	fflush(NULL);
	for (int i = 0; i < cnt; i++) {
		pids[i] = fork();
		if (!pids[i])
			member_run(c, first + i);
	}
	close(c->kill_fds[1]);
	if (victim >= first && victim < first + cnt && read(c->kill_fds[0], &asked, 1) == 1)
		kill(pids[victim - first], SIGKILL);
	for (int i = 0; i < cnt; i++)
		bad += !reap(c, first + i, pids[i]);
	return bad;
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text);
}

/* This process's next child is the first one of another host. NULL, or what was refused. */
static const char *leave_host(void)
{
	int spaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (!uid)
		return unshare(spaces) ? "namespaces" : NULL;
	if (unshare(spaces | CLONE_NEWUSER))
		return "namespaces of an ordinary user";
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (!write_file("/proc/self/setgroups", "deny") ||
	    !write_file("/proc/self/uid_map", map))
		return "a map of users";
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return write_file("/proc/self/gid_map", map) ? NULL : "a map of groups";
}

/*
 * The first process there. NULL, or what was refused. Processes of one network namespace find each
 * other's shared memory by sockets too: hosts do not.
 */
static const char *enter_host(void)
{
	if (setenv("WEFT_FAULT", "bind:EACCES,connect:ECONNREFUSED", 1))
		return "an environment";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return "private mounts";
	if (mount("proc", "/proc", "proc", 0, NULL))
		return "a /proc of its own";
	return NULL;
}

/* Runs the second half as another host; the caller is a process made for it. */
static int run_host(const struct crowd *c)
{
	const char *refused = leave_host();
	int status, half = STORM_MEMBERS / 2;
	pid_t pid;

	if (!refused) {
		pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(STORM_SECS + 10);
			refused = enter_host();
			_exit(refused || run_some(c, half, STORM_MEMBERS - half));
		}
		close(c->kill_fds[1]);
		if (pid > 0 && waitpid(pid, &status, 0) == pid && !status)
			return 0;
	}
	atomic_store(&c->shared->failed, 1);
	return 1;
}

bool storm_hosts_refused(char *why, size_t len)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		const char *refused = leave_host();

		if (refused)
			_exit(1);
		pid = fork();
		if (!pid)
			_exit(enter_host() ? 1 : 0);
		_exit(pid < 0 || waitpid(pid, &status, 0) != pid || status);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && !status)
		return false;
	snprintf(why, len, "namespaces of processes and mounts can't be made here");
	return true;
}

int storm_run(const struct storm_attr *attr, storm_role role,
	      void (*check)(const struct storm_attr *attr, const struct storm_shared *shared))
{
	size_t len = sizeof(struct storm_shared) + attr->shared;
	struct crowd c = { .attr = attr, .role = role };
	int bad, status = 0;
	pid_t host = -1;

	c.shared = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(c.shared, MAP_FAILED);
	assert_int_equal(pipe2(c.kill_fds, O_CLOEXEC), 0);
	fflush(NULL);
	if (attr->hosts) {
		host = fork();
		if (!host) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(STORM_SECS + 20);
			_exit(run_host(&c)); /* no process may be made any more: no exit() */
		}
	}
	bad = run_some(&c, 0, attr->hosts ? STORM_MEMBERS / 2 : STORM_MEMBERS);
	if (attr->hosts && (host < 0 || waitpid(host, &status, 0) != host || status))
		bad++;
	close(c.kill_fds[0]);
	if (!bad && check)
		check(attr, c.shared);
	munmap(c.shared, len);
	return bad;
}
