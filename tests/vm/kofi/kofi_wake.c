/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Consumers of kofi that sleep: threads in fi_cq_sread, and one that is called when its queue has something (struct
 * kofi_wait). Writing a name to the parameter 'run' runs that test; the write fails with its error.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "failing.h"
#include "kofi.h"

#define ROUNDS	300u
#define CALLS	100u
#define WAIT_MS 10000

#define TRY(call)                                                                      \
	do {                                                                           \
		long try_ret = (call);                                                 \
		if (try_ret < 0) {                                                     \
			pr_info("kofi_wake: %d: %s: %ld\n", __LINE__, #call, try_ret); \
			return try_ret;                                                \
		}                                                                      \
	} while (0)

/* An endpoint in a domain of its own. */
struct side {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	fi_addr_t other;
	/* of the queue, and of the counter of what is received */
	struct kofi_wait queue_wait, cntr_wait;
	struct completion queue_called, cntr_called;
	u64 sent, received;
	u64 out, in;
	/* of its thread */
	struct completion ended;
	int result;
};

/* Calls of the threads of domains; those that may wait for memory to be written back */
static atomic_t thread_calls, waiting_calls;

static void called_by(void)
{
	if (strcmp(current->comm, "weft-progress"))
		return;
	atomic_inc(&thread_calls);
	if (!(current->flags & PF_MEMALLOC_NOIO))
		atomic_inc(&waiting_calls);
}

static void queue_wake(struct kofi_wait *wait)
{
	called_by();
	complete(&container_of(wait, struct side, queue_wait)->queue_called);
}

static void cntr_wake(struct kofi_wait *wait)
{
	called_by();
	complete(&container_of(wait, struct side, cntr_wait)->cntr_called);
}

/* @called: its queue and counter call; else they are for threads that sleep */
static int side_open(struct side *s, struct fi_info *info, bool called)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED,
				 .wait_obj = called ? FI_WAIT_SET : FI_WAIT_UNSPEC,
				 .wait_set = &s->queue_wait.fid };
	struct fi_cntr_attr cntr = { .events = FI_CNTR_EVENTS_COMP,
				     .wait_obj = cq.wait_obj,
				     .wait_set = &s->cntr_wait.fid };
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	kofi_wait_init(&s->queue_wait, queue_wake);
	kofi_wait_init(&s->cntr_wait, cntr_wake);
	init_completion(&s->queue_called);
	init_completion(&s->cntr_called);
	init_completion(&s->ended);
	TRY(fi_fabric(info->fabric_attr, &s->fabric, NULL));
	TRY(fi_domain(s->fabric, info, &s->domain, NULL));
	TRY(fi_av_open(s->domain, &av, &s->av, NULL));
	TRY(fi_cq_open(s->domain, &cq, &s->cq, NULL));
	TRY(fi_cntr_open(s->domain, &cntr, &s->cntr, NULL));
	TRY(fi_endpoint(s->domain, info, &s->ep, NULL));
	TRY(fi_ep_bind(s->ep, &s->av->fid, 0));
	TRY(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	TRY(fi_ep_bind(s->ep, &s->cntr->fid, FI_RECV));
	return fi_enable(s->ep);
}

static int side_knows(struct side *s, struct side *other)
{
	char name[64];
	size_t len = sizeof(name);

	TRY(fi_getname(&other->ep->fid, name, &len));
	return fi_av_insert(s->av, name, 1, &s->other, 0, NULL) == 1 ? 0 : -FI_ENOMEM;
}

static void fid_close(struct fid *fid)
{
	if (fid)
		WARN(fi_close(fid), "kofi_wake: an object is not closed\n");
}

#define CLOSE(object) fid_close((object) ? &(object)->fid : NULL)

static void side_close(struct side *s)
{
	CLOSE(s->ep);
	CLOSE(s->cntr);
	CLOSE(s->cq);
	CLOSE(s->av);
	CLOSE(s->domain);
	CLOSE(s->fabric);
}

/* @n: what a read of the queue has returned. Returns 0, or -FI_E* of the read. */
static int side_count(struct side *s, const struct fi_cq_tagged_entry *entry, ssize_t n)
{
	if (n != 1)
		return n < 0 ? n : -FI_EOTHER;
	if (entry->flags & FI_RECV)
		s->received++;
	else
		s->sent++;
	return 0;
}

static int with_sides(bool called, int (*test)(struct side *a, struct side *b))
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	struct side *sides = kcalloc(2, sizeof(*sides), GFP_KERNEL);
	int ret = -ENOMEM;

	if (!hints || !sides)
		goto out;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL;
	ret = fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &info);
	if (!ret)
		ret = side_open(&sides[0], info, called);
	if (!ret)
		ret = side_open(&sides[1], info, called);
	if (!ret)
		ret = side_knows(&sides[0], &sides[1]);
	if (!ret)
		ret = side_knows(&sides[1], &sides[0]);
	if (!ret)
		ret = test(&sides[0], &sides[1]);
	side_close(&sides[0]);
	side_close(&sides[1]);
out:
	fi_freeinfo(info);
	fi_freeinfo(hints);
	kfree(sides);
	return ret;
}

/* Two threads, each of which sleeps until the other one has answered. */

/* Sleeps until @cnt of @what, which the queue's completions count, are there. */
static int sleep_until(struct side *s, const u64 *what, u64 cnt)
{
	struct fi_cq_tagged_entry entry;

	while (*what < cnt)
		TRY(side_count(s, &entry, fi_cq_sread(s->cq, &entry, 1, NULL, WAIT_MS)));
	return 0;
}

static int side_send(struct side *s, u64 value)
{
	unsigned long end = jiffies + msecs_to_jiffies(WAIT_MS);
	struct fi_cq_tagged_entry entry;
	ssize_t ret, n;

	s->out = value;
	while ((ret = fi_send(s->ep, &s->out, sizeof(s->out), NULL, s->other, NULL)) ==
		       -FI_EAGAIN &&
	       time_before(jiffies, end)) {
		n = fi_cq_read(s->cq, &entry, 1);
		if (n != -FI_EAGAIN)
			TRY(side_count(s, &entry, n));
		cond_resched();
	}
	return ret;
}

static int answers(struct side *s, bool first)
{
	u64 i;

	TRY(fi_recv(s->ep, &s->in, sizeof(s->in), NULL, FI_ADDR_UNSPEC, NULL));
	for (i = 0; i < ROUNDS; i++) {
		if (first)
			TRY(side_send(s, i));
		TRY(sleep_until(s, &s->received, i + 1));
		if (s->in != i)
			return -FI_EIO;
		if (i + 1 < ROUNDS)
			TRY(fi_recv(s->ep, &s->in, sizeof(s->in), NULL, FI_ADDR_UNSPEC, NULL));
		if (!first)
			TRY(side_send(s, i));
		TRY(sleep_until(s, &s->sent, i + 1));
	}
	return fi_cntr_read(s->cntr) == ROUNDS ? 0 : -FI_EOTHER;
}

static int answers_thread(void *arg)
{
	struct side *s = arg;

	s->result = answers(s, false);
	complete(&s->ended);
	return 0;
}

static int two_sleep(struct side *a, struct side *b)
{
	struct task_struct *thread = kthread_run(answers_thread, b, "kofi_wake");
	int ret;

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	ret = answers(a, true);
	/* Its waits have an end. */
	wait_for_completion(&b->ended);
	return ret ? ret : b->result;
}

/* Nobody makes progress but the threads of the domains, until the queue calls. */

/* Returns 0 once both call when they have something, or -FI_EAGAIN if one has, or may have. */
static int arm(struct side *s)
{
	struct fid *fids[] = { &s->cq->fid, &s->cntr->fid };

	return fi_trywait(s->fabric, fids, ARRAY_SIZE(fids));
}

/* Until @cnt of @what are there; what is called without need is armed again. */
static int called_until(struct side *s, const u64 *what, u64 cnt)
{
	struct fi_cq_tagged_entry entry;
	ssize_t n;

	while (*what < cnt) {
		n = fi_cq_read(s->cq, &entry, 1);
		if (n != -FI_EAGAIN) {
			TRY(side_count(s, &entry, n));
		} else if (!fi_trywait(s->fabric, (struct fid *[]){ &s->cq->fid }, 1) &&
			   !wait_for_completion_timeout(&s->queue_called,
							msecs_to_jiffies(WAIT_MS))) {
			pr_info("kofi_wake: no call for completion %llu\n", cnt);
			return -FI_ETIMEDOUT;
		}
	}
	return 0;
}

static int one_call(struct side *a, struct side *b, u64 i)
{
	unsigned long end = jiffies + msecs_to_jiffies(WAIT_MS);
	int ret;

	TRY(fi_recv(b->ep, &b->in, sizeof(b->in), NULL, FI_ADDR_UNSPEC, NULL));
	while ((ret = arm(b)) == -FI_EAGAIN && time_before(jiffies, end))
		cond_resched();
	TRY(ret);
	TRY(side_send(a, i));
	if (!wait_for_completion_timeout(&b->cntr_called, msecs_to_jiffies(WAIT_MS)))
		return -FI_ETIMEDOUT;
	TRY(called_until(b, &b->received, i + 1));
	if (b->in != i || fi_cntr_read(b->cntr) != i + 1)
		return -FI_EIO;
	return called_until(a, &a->sent, i + 1);
}

static int queues_call(struct side *a, struct side *b)
{
	int descriptor;
	u64 i;

	for (i = 0; i < CALLS; i++)
		TRY(one_call(a, b, i));
	/* A signal calls as well. */
	reinit_completion(&b->queue_called);
	while (arm(b) == -FI_EAGAIN)
		cond_resched();
	TRY(fi_cq_signal(b->cq));
	if (!wait_for_completion_timeout(&b->queue_called, msecs_to_jiffies(WAIT_MS)))
		return -FI_ETIMEDOUT;
	return fi_control(&b->cq->fid, FI_GETWAIT, &descriptor) == -FI_ENODATA ? 0 : -FI_EOTHER;
}

/* What there is not: a descriptor, and what is not of kofi_wait_init(). */
static int others_are_refused(struct side *a, struct side *b)
{
	struct fid_wait wait = { .fid = { .fclass = FI_CLASS_CQ } };
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fid_cq *cq;
	struct fid *fids[] = { &a->ep->fid };

	if (fi_cq_open(a->domain, &attr, &cq, NULL) != -FI_ENOSYS)
		return -FI_EOTHER;
	attr.wait_obj = FI_WAIT_SET;
	if (fi_cq_open(a->domain, &attr, &cq, NULL) != -FI_EINVAL)
		return -FI_EOTHER;
	attr.wait_set = &wait;
	if (fi_cq_open(a->domain, &attr, &cq, NULL) != -FI_EINVAL)
		return -FI_EOTHER;
	return fi_trywait(a->fabric, fids, 1) == -FI_EINVAL ? 0 : -FI_EOTHER;
}

static int run_called(void)
{
	TRY(with_sides(true, queues_call));
	if (!atomic_read(&thread_calls) || atomic_read(&waiting_calls)) {
		pr_info("kofi_wake: of %d calls by threads of domains %d may wait for memory to be written back\n",
			atomic_read(&thread_calls), atomic_read(&waiting_calls));
		return -FI_EOTHER;
	}
	return with_sides(false, others_are_refused);
}

/* Each allocation of opening them fails in its turn. */
#ifdef CONFIG_FAULT_INJECTION

static int nothing(struct side *a, struct side *b)
{
	return 0;
}

static int open_both(void)
{
	return with_sides(true, nothing);
}

static int run_failing(void)
{
	return failing(open_both);
}

#else

static int run_failing(void)
{
	return -EOPNOTSUPP;
}

#endif

static int run_set(const char *value, const struct kernel_param *param)
{
	if (sysfs_streq(value, "sleep"))
		return with_sides(false, two_sleep);
	if (sysfs_streq(value, "failing"))
		return run_failing();
	return sysfs_streq(value, "called") ? run_called() : -EINVAL;
}

static const struct kernel_param_ops run_ops = {
	.set = run_set,
};

module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "sleep, called or failing: runs that test");
MODULE_DESCRIPTION("Weft: a consumer of kofi that sleeps, for the tests of virtual machines");
MODULE_LICENSE("Dual BSD/GPL");
