/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What exchange.c takes of the place it runs in: a module of the kernel, or a process. */
#ifndef KOFI_PLACE_H
#define KOFI_PLACE_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/* Whose ends are opened; a parameter of the module, an argument of the program */
extern char *place_provider;

#ifdef __KERNEL__

#include <linux/delay.h>
#include <linux/in6.h>
#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>

/* Linux marks what is in an iovec as an address of user space. */
#define PLACE_BASE(at) ((void __force __user *)(at))

#define place_say(...) pr_warn("kofi_talk: " __VA_ARGS__)

static inline void *place_alloc(size_t len)
{
	return kvzalloc(len, GFP_KERNEL);
}

static inline void place_free(void *ptr)
{
	kvfree(ptr);
}

static inline uint64_t place_now_ms(void)
{
	return ktime_to_ms(ktime_get());
}

static inline void place_yield(void)
{
	cond_resched();
}

/* Stays as it is until the process, or the machine that the module is in, ends without a word. */
static inline int place_die(void)
{
	place_say("is to die\n");
	while (!msleep_interruptible(1000))
		;
	return -FI_EINTR;
}

#else

#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLACE_BASE(at) (at)

#define place_say(...) printf(__VA_ARGS__)

static inline void *place_alloc(size_t len)
{
	return calloc(1, len);
}

static inline void place_free(void *ptr)
{
	free(ptr);
}

static inline uint64_t place_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline void place_yield(void)
{
	sched_yield();
}

static inline int place_die(void)
{
	return raise(SIGKILL);
}

#endif

#endif
