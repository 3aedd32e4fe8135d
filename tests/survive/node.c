/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processes with endpoints; node.h has the contract. */
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "node.h"

#define API FI_VERSION(1, 20)

unsigned int node_secs = 60;

/* Stage */

void *stage_open(size_t len)
{
	void *stage = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	NODE_CHECK(NULL, stage != MAP_FAILED);
	return stage;
}

pid_t stage_start(void *stage, int rank, unsigned int secs, void (*role)(void *, int))
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	NODE_CHECK(stage, pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	alarm(secs);
	role(stage, rank);
	exit(0);
}

bool stage_ended(void *stage, pid_t pid, int killed)
{
	struct stage *s = stage;
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true; /* killed when it had just ended */
	if (killed && WIFSIGNALED(status) && WTERMSIG(status) == killed)
		return true;
	if (WIFSIGNALED(status))
		fprintf(stderr, "process %d ended by signal %d\n", (int)pid, WTERMSIG(status));
	atomic_store(&s->failed, 1);
	return false;
}

void stage_pass(void *stage, int gate)
{
	atomic_fetch_add(&((struct stage *)stage)->gates[gate], 1);
}

uint32_t stage_passed(void *stage, int gate)
{
	return atomic_load(&((struct stage *)stage)->gates[gate]);
}

void node_fail(void *stage, const char *file, int line, const char *what)
{
	fprintf(stderr, "process %d: %s:%d: %s\n", (int)getpid(), file, line, what);
	if (stage)
		atomic_store(&((struct stage *)stage)->failed, 1);
	exit(1);
}

/* Endpoints */

static struct fi_info *info_of(const struct node_attr *attr, int *err)
{
	const uint64_t order = FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAW;
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	if (!hints) {
		*err = -FI_ENOMEM;
		return NULL;
	}
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SOURCE | FI_DIRECTED_RECV;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = 0;
	hints->domain_attr->data_progress = attr->automatic ? FI_PROGRESS_AUTO
							    : FI_PROGRESS_MANUAL;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = order;
	hints->fabric_attr->prov_name = strdup(attr->provider);
	*err = fi_getinfo(API, NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	return *err ? NULL : info;
}

static int open_endpoint(struct node *node)
{
	int err;

	node->refused = "fi_endpoint";
	err = fi_endpoint(node->domain, node->info, &node->ep, NULL);
	if (err) {
		node->ep = NULL;
		return err;
	}
	node->refused = "fi_ep_bind";
	err = fi_ep_bind(node->ep, &node->av->fid, 0);
	if (!err)
		err = fi_ep_bind(node->ep, &node->cq->fid, FI_TRANSMIT | FI_RECV);
	if (err)
		return err;
	node->refused = "fi_enable";
	err = fi_enable(node->ep);
	if (err)
		return err;
	node->refused = "fi_ep_alias";
	return fi_ep_alias(node->ep, &node->rma, FI_TRANSMIT | FI_DELIVERY_COMPLETE);
}

static int open_all(struct node *node, const struct node_attr *attr)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED,
				      .size = attr->cq_size,
				      .wait_obj = attr->sleeps ? FI_WAIT_UNSPEC : FI_WAIT_NONE };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	int err;

	node->refused = "fi_getinfo";
	node->info = info_of(attr, &err);
	if (err)
		return err;
	node->refused = "fi_fabric";
	err = fi_fabric(node->info->fabric_attr, &node->fabric, NULL);
	if (err)
		return err;
	node->refused = "fi_domain";
	err = fi_domain(node->fabric, node->info, &node->domain, NULL);
	if (err)
		return err;
	node->refused = "fi_av_open";
	err = fi_av_open(node->domain, &av_attr, &node->av, NULL);
	if (err)
		return err;
	node->refused = "fi_cq_open";
	err = fi_cq_open(node->domain, &cq_attr, &node->cq, NULL);
	return err ? err : open_endpoint(node);
}

int node_open(struct node *node, void *stage, const struct node_attr *attr)
{
	int err;

	*node = (struct node){ .stage = stage };
	err = open_all(node, attr);
	if (err)
		node_close(node);
	return err;
}

int node_open_in(struct node *node, const struct node *first)
{
	int err;

	*node = (struct node){ .stage = first->stage,
			       .info = first->info,
			       .domain = first->domain,
			       .av = first->av,
			       .cq = first->cq };
	err = open_endpoint(node);
	if (err && node->ep)
		NODE_CHECK(node->stage, !fi_close(&node->ep->fid));
	return err;
}

static void close_one(struct node *node, struct fid *fid)
{
	NODE_CHECK(node->stage, !fi_close(fid));
}

void node_close(struct node *node)
{
	if (node->rma)
		close_one(node, &node->rma->fid);
	if (node->ep)
		close_one(node, &node->ep->fid);
	if (node->mr)
		close_one(node, &node->mr->fid);
	node->ep = node->rma = NULL;
	node->mr = NULL;
	if (!node->fabric && node->domain)
		return; /* the rest is another's */
	if (node->cq)
		close_one(node, &node->cq->fid);
	if (node->av)
		close_one(node, &node->av->fid);
	if (node->domain)
		close_one(node, &node->domain->fid);
	if (node->fabric)
		close_one(node, &node->fabric->fid);
	if (node->info)
		fi_freeinfo(node->info);
	node->cq = NULL;
	node->av = NULL;
	node->domain = NULL;
	node->fabric = NULL;
	node->info = NULL;
}

void node_expose(struct node *node, void *region, size_t len, uint64_t key)
{
	NODE_CHECK(node->stage,
		   !fi_mr_reg(node->domain, region, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			      key, 0, &node->mr, NULL));
}

void node_name(struct node *node, char name[NODE_NAME])
{
	size_t len = NODE_NAME;

	NODE_CHECK(node->stage, !fi_getname(&node->ep->fid, name, &len));
}

fi_addr_t node_knows(struct node *node, const char name[NODE_NAME])
{
	fi_addr_t addr;

	NODE_CHECK(node->stage, fi_av_insert(node->av, name, 1, &addr, 0, NULL) == 1);
	return addr;
}

ssize_t node_turn(struct node *node)
{
	ssize_t ret = fi_cq_readfrom(node->cq, &node->entry, 1, &node->source);

	if (ret == -FI_EAVAIL) {
		node->error = (struct fi_cq_err_entry){ .src_addr = FI_ADDR_NOTAVAIL };
		NODE_CHECK(node->stage, fi_cq_readerr(node->cq, &node->error, 0) == 1);
	}
	NODE_CHECK(node->stage, ret == 1 || ret == -FI_EAVAIL || ret == -FI_EAGAIN);
	return ret;
}

bool node_ended(struct node *node, int *err)
{
	ssize_t turn = node_turn(node);

	if (turn == -FI_EAGAIN)
		return false;
	*err = turn == 1 ? 0 : node->error.err;
	return true;
}

fi_addr_t node_meet(struct node *node, char names[2][NODE_NAME], int rank, int gate)
{
	node_name(node, names[rank]);
	stage_pass(node->stage, gate + rank);
	NODE_UNTIL(node->stage, stage_passed(node->stage, gate + !rank), false);
	return node_knows(node, names[!rank]);
}

/* What all tests need */

void node_pause(void *stage)
{
	if (stage &&
	    atomic_load_explicit(&((struct stage *)stage)->failed, memory_order_relaxed))
		exit(1);
	sched_yield();
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t node_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t node_worked_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void node_pattern(void *buf, size_t len, uint64_t id)
{
	uint64_t word = id * 0x9e3779b97f4a7c15u;
	uint8_t *to = buf;

	for (; len >= sizeof(word); len -= sizeof(word), to += sizeof(word)) {
		memcpy(to, &word, sizeof(word));
		word += 0x0101010101010101u;
	}
	memcpy(to, &word, len);
}

bool node_is_pattern(const void *buf, size_t len, uint64_t id)
{
	uint64_t word = id * 0x9e3779b97f4a7c15u, seen;
	const uint8_t *from = buf;

	for (; len >= sizeof(word); len -= sizeof(word), from += sizeof(word)) {
		memcpy(&seen, from, sizeof(seen));
		if (seen != word)
			return false;
		word += 0x0101010101010101u;
	}
	return !memcmp(from, &word, len);
}

int node_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int cnt = -3; /* itself, and two names that are none */

	NODE_CHECK(NULL, dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

size_t node_heap(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

uint64_t node_setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

uint64_t node_seed(void)
{
	uint64_t seed = node_setting("SURVIVE_SEED", node_now_ns() ^ (uint64_t)getpid() << 40);

	printf("SURVIVE_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}
