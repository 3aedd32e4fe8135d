/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The thread that serves peers. Started and stopped by btl/transport.c. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "ctx.h"
#include "service.h"

/* A peer's operation takes some of these, since it has to be noticed and its answers too. */
#define PERIOD_NS 200000

struct btl_service {
	struct weft_btl *btl;
	pthread_t thread;
	_Atomic bool stop;
};

static void serve(struct weft_btl *btl)
{
	for (uint32_t i = 0; i < btl->device_cnt; i++)
		if (!btl->devices[i].serves)
			fi_cq_read(btl->home->lanes[i].cq, NULL, 0);
}

static void *service_run(void *arg)
{
	const struct timespec period = { .tv_nsec = PERIOD_NS };
	struct btl_service *service = arg;
	struct weft_btl *btl = service->btl;
	uint32_t seen = 0;

	while (!atomic_load_explicit(&service->stop, memory_order_relaxed)) {
		uint32_t rounds = atomic_load_explicit(&btl->home->rounds, memory_order_relaxed);

		/* the program makes progress itself */
		if (rounds == seen)
			serve(btl);
		seen = rounds;
		nanosleep(&period, NULL);
	}
	return NULL;
}

static bool is_needed(const struct weft_btl *btl)
{
	for (uint32_t i = 0; i < btl->device_cnt; i++)
		if (!btl->devices[i].serves)
			return true;
	return false;
}

int btl_service_start(struct weft_btl *btl)
{
	struct btl_service *service;
	sigset_t all, before;
	int err;

	if (!is_needed(btl))
		return 0;
	service = calloc(1, sizeof(*service));
	if (!service)
		return -FI_ENOMEM;
	service->btl = btl;
	/* signals are the program's threads' */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&service->thread, NULL, service_run, service);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		free(service);
		return -FI_EAGAIN;
	}
	btl->service = service;
	return 0;
}

void btl_service_stop(struct weft_btl *btl)
{
	struct btl_service *service = btl->service;

	if (!service)
		return;
	atomic_store_explicit(&service->stop, true, memory_order_relaxed);
	pthread_join(service->thread, NULL);
	free(service);
	btl->service = NULL;
}
