/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Holding a domain through a fork. On the thread that forks; see forked.h. */
#include <rdma/fi_errno.h>
#include "forked.h"
#include "refuse.h"
#include "registrar.h"

/*
 * A call of another thread is over sooner, or it waits for what the forking thread has: some allocators take
 * their locks before our turn comes.
 */
#define HOLD_NS 1000000000u

static struct engine_domain *domain_of(struct platform_hold *hold)
{
	return container_of(hold, struct engine_domain, hold);
}

static void hold(struct platform_hold *hold)
{
	struct engine_domain *domain = domain_of(hold);
	uint64_t end_ns = platform_now_ns() + HOLD_NS;

	if (domain->left)
		return;
	domain->held = engine_enter_until(domain, end_ns);
	if (!domain->held || engine_registrar_pause(domain, end_ns))
		return;
	engine_leave(domain);
	domain->held = false;
}

static void release(struct platform_hold *hold, bool child)
{
	struct engine_domain *domain = domain_of(hold);

	if (child) {
		domain->left |= !domain->held;
		/* those that waited are gone */
		atomic_store_explicit(&domain->wanted, 0, memory_order_relaxed);
	}
	if (!domain->held)
		return;
	domain->held = false;
	/* In the child the registrar is another thread: gone. */
	if (!child)
		engine_registrar_go_on(domain);
	engine_leave(domain);
}

void engine_forked_open(struct engine_domain *domain)
{
	domain->hold = (struct platform_hold){ .hold = hold, .release = release };
	platform_hold_watch(&domain->hold);
}

void engine_forked_close(struct engine_domain *domain)
{
	platform_hold_unwatch(&domain->hold);
}

int engine_left(const struct engine_domain *domain, enum fi_log_subsys subsys, const char *call)
{
	if (likely(!domain->left))
		return 0;
	return engine_refuse(
		domain->family, subsys, -FI_EOPBADSTATE, call,
		"another thread was in a call of the domain for a second when this process "
		"was forked; the child opens a domain of its own");
}
