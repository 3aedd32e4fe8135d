/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The channel of a completion queue (engine/object/wait_obj.c, cq_fid.c, engine/domain/channel.c)
 * in all executions that C11 allows: fi_cq_signal on any thread rings it, also while it is opened,
 * and who is told by fi_trywait that he may sleep is woken. Descriptors and their bells are the
 * kernel's; here they are an atomic word.
 */
#include "weak.h"
#include "mutex.h"

#include <rdma/fi_errno.h>
#include "arm.h"
#include "auto.h"
#include "cq_fid.h"
#include "progress.h"
#include "wait_obj.h"
#include "waiting.h"

#define DESCRIPTOR 7

static struct engine_domain domain;
static const struct engine_family family = { 0 };
static _Alignas(64) unsigned char arena[1 << 16];
static size_t used;
static struct fid_cq *cq;
static _Atomic int readable; /* the descriptor */
static bool is_bell;	     /* it is one, or a poll set */
static uint32_t program;     /* written before the signal */
static int slept;

static struct engine_cq *cq_of(struct fid_cq *fid)
{
	return container_of(fid, struct engine_cq, fid);
}

/* The system */

uint32_t platform_forks(void)
{
	return 0;
}

void *platform_alloc(size_t len)
{
	void *at = arena + used;

	used += (len + 63) & ~(size_t)63;
	weak_require(used <= sizeof(arena));
	return at;
}

void platform_free(void *ptr)
{
}

int platform_bell_open(struct platform_bell *out)
{
	out->descriptor = DESCRIPTOR;
	return 0;
}

void platform_bell_ring(const struct platform_bell *bell)
{
	weak_require(is_bell && bell->descriptor == DESCRIPTOR);
	atomic_exchange_explicit(&readable, 1, memory_order_acq_rel);
}

void platform_bell_clear(const struct platform_bell *bell)
{
	weak_require(is_bell && bell->descriptor == DESCRIPTOR);
	atomic_exchange_explicit(&readable, 0, memory_order_acq_rel);
}

void platform_poll_set_ring(int poll_set, const struct platform_bell *bell)
{
	weak_require(!is_bell && poll_set == DESCRIPTOR);
	atomic_exchange_explicit(&readable, 1, memory_order_acq_rel);
}

void platform_poll_set_clear(int poll_set, const struct platform_bell *bell)
{
	weak_require(!is_bell && poll_set == DESCRIPTOR);
	atomic_exchange_explicit(&readable, 0, memory_order_acq_rel);
}

void weak_relax(void)
{
	weak_assume(false);
}

int platform_poll_set_open(const struct platform_bell *bell, int *poll_set)
{
	*poll_set = DESCRIPTOR;
	return 0;
}

int platform_poll_set_add(int poll_set, int fd)
{
	return 0;
}

/* Other files of the engine: nothing comes over wires, and no thread sleeps in a call. */

int engine_domain_channel(struct engine_domain *d)
{
	return 0;
}

int engine_wait_arm(struct engine_wait *wait, bool (*look)(struct engine_wait *wait))
{
	return look(wait) ? -FI_EAGAIN : 0;
}

int engine_auto_rings(struct engine_domain *d)
{
	return 0;
}

int engine_auto_wake(struct engine_domain *d)
{
	return 0;
}

bool engine_domain_round(struct engine_domain *d)
{
	return true;
}

void engine_domain_clock(struct engine_domain *d)
{
}

void engine_wait_init(struct engine_wait *wait, struct engine_domain *d,
		      struct engine_channel *channel,
		      void (*watch)(struct engine_wait *wait, bool on))
{
	wait->domain = d;
	wait->channel = channel;
}

/* A queue that gets its descriptor from a call of FI_GETWAIT. */
static void set_up(bool has_thread)
{
	struct fi_cq_attr attr = { .size = 4,
				   .format = FI_CQ_FORMAT_CONTEXT,
				   .wait_obj = FI_WAIT_UNSPEC };

	memset(&domain, 0, sizeof(domain));
	memset(arena, 0, sizeof(arena));
	used = 0;
	program = slept = 0;
	is_bell = has_thread;
	atomic_init(&readable, 0);
	mutex_init();
	domain.family = &family;
	domain.unified = true;
	domain.yield_after = UINT32_MAX;
	atomic_init(&domain.progress.rings, has_thread);
	weak_require(!engine_cq_open(&domain.fid, &attr, &cq, NULL));
	weak_name("engine_channel.opened", (const void *)&cq_of(cq)->wait.own.opened,
		  sizeof(uint32_t));
	weak_name("engine_signals.cnt", (const void *)&cq_of(cq)->signals.cnt, sizeof(uint32_t));
}

static void set_up_poll_set(void)
{
	set_up(false);
}

static void set_up_bell(void)
{
	set_up(true);
}

/* Opens the descriptor and goes to sleep on it, if it may. */
static void sleeper(void)
{
	int descriptor = -1;

	weak_require(!fi_control(&cq->fid, FI_GETWAIT, &descriptor) && descriptor == DESCRIPTOR);
	slept = !engine_wait_obj_trywait(&cq_of(cq)->wait);
	if (!slept)
		weak_require(program == 1);
}

static void signaller(void)
{
	program = 1;
	weak_require(!fi_cq_signal(cq));
}

static void is_woken(void)
{
	weak_require(!slept || atomic_load_explicit(&readable, memory_order_relaxed));
}

static const struct weak_test poll_set = { "a poll set that is opened beside a signal",
					   set_up_poll_set,
					   { sleeper, signaller },
					   is_woken };

static const struct weak_test bell = {
	"a bell that is opened beside a signal", set_up_bell, { sleeper, signaller }, is_woken
};

int main(void)
{
	static const struct weak_test *const tests[] = { &poll_set, &bell, NULL };
	static const struct weak_ordering orderings[] = {
		{ "R:engine_channel.opened", &poll_set },
		{ "A:engine_channel.opened", &poll_set },
		{ "F:engine_channel.opened", &poll_set },
		{ "R:engine_channel.opened", &bell },
		{ "A:engine_channel.opened", &bell },
		{ "R:engine_signals.cnt", &bell },
		{ "A:engine_signals.cnt", &bell },
		{ "F:engine_signals.cnt", &bell },
		{ NULL, NULL },
	};

	return weak_main(tests, orderings);
}
