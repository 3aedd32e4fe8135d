/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What remains of the platform: time, chance, barriers, and what there is none of in the kernel. Any context. */
#include <linux/bug.h>
#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include <rdma/fi_errno.h>

#include "platform.h"

void platform_bug(const char *what, const char *file, int line)
{
	pr_emerg("kofi: %s:%d: '%s' does not hold\n", file, line, what);
}

u64 platform_now_ns(void)
{
	return ktime_get_ns();
}

int platform_random(void *buf, size_t len)
{
	get_random_bytes(buf, len);
	return 0;
}

void platform_yield(void)
{
	yield();
}

void platform_relax(void)
{
	cpu_relax();
}

static void barrier_here(void *arg)
{
	/* Pairs with accesses of this core that the compiler alone keeps in order; see platform_membarrier(). */
	smp_mb();
}

int platform_membarrier_open(void)
{
	return 0;
}

int platform_membarrier(void)
{
	/* Every core runs it in an interrupt, this one too. */
	on_each_cpu(barrier_here, NULL, 1);
	return 0;
}

/* Nothing forks here. */

u32 platform_forks(void)
{
	return 0;
}

void platform_hold_watch(struct platform_hold *hold)
{
}

void platform_hold_unwatch(struct platform_hold *hold)
{
}

void platform_copy_watch(struct platform_copy *copy)
{
}

void platform_copy_unwatch(struct platform_copy *copy)
{
}

/* There are no descriptors here. */

int platform_poll_set_open(const struct platform_bell *bell, int *poll_set)
{
	return -FI_ENOSYS;
}

int platform_poll_set_add(int poll_set, int fd)
{
	return -FI_ENOSYS;
}

void platform_poll_set_remove(int poll_set, int fd)
{
}

void platform_poll_set_ring(int poll_set, const struct platform_bell *bell)
{
}

void platform_poll_set_clear(int poll_set, const struct platform_bell *bell)
{
}

void platform_poll_set_close(int poll_set)
{
}

int platform_timer_open(int *timer)
{
	return -FI_ENOSYS;
}

void platform_timer_set(int timer, u64 ns)
{
}

void platform_timer_close(int timer)
{
}

int platform_descriptor_renew(int old, int fresh)
{
	return -FI_ENOSYS;
}
