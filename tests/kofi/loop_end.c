/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What tests of the kernel's providers open and read. The provider's functions are called as kofi calls them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "loop_end.h"

#define WAIT_S 20.0

double loop_now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int query(struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	ret = KOFI(getinfo)(FI_VERSION(1, 18), NULL, NULL, 0, hints, info);
	fi_freeinfo(hints);
	return ret;
}

static int open_objects(struct loop_end *e)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	int ret = query(&e->info);

	if (!ret)
		ret = KOFI(fabric)(e->info->fabric_attr, &e->fabric, NULL);
	if (!ret)
		ret = fi_domain(e->fabric, e->info, &e->domain, NULL);
	if (!ret)
		ret = fi_av_open(e->domain, &av, &e->av, NULL);
	if (!ret)
		ret = fi_cq_open(e->domain, &cq, &e->cq, NULL);
	return ret ? ret : fi_endpoint(e->domain, e->info, &e->ep, NULL);
}

int loop_end_open(struct loop_end *e, void *memory, size_t len)
{
	size_t name_len = sizeof(e->name);
	int ret = open_objects(e);

	if (!ret)
		ret = fi_ep_bind(e->ep, &e->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(e->ep);
	if (!ret)
		ret = fi_mr_reg(e->domain, memory, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1,
				0, &e->mr, NULL);
	return ret ? ret : fi_getname(&e->ep->fid, e->name, &name_len);
}

int loop_end_knows(struct loop_end *e, const struct loop_end *other)
{
	int ret = fi_av_insert(e->av, other->name, 1, &e->other, 0, NULL);

	return ret == 1 ? 0 : ret ? ret : -FI_ENOMEM;
}

static void close_one(struct fid *fid)
{
	if (fid)
		assert_int_equal(fi_close(fid), 0);
}

#define CLOSE(object) close_one((object) ? &(object)->fid : NULL)

void loop_end_close(struct loop_end *e)
{
	CLOSE(e->mr);
	CLOSE(e->ep);
	CLOSE(e->cq);
	CLOSE(e->av);
	if (e->domain)
		assert_int_equal(fi_close(&e->fabric->fid), -FI_EBUSY);
	CLOSE(e->domain);
	CLOSE(e->fabric);
	KOFI(freeinfo)(e->info);
}

int loop_end_completion(struct loop_end *e, struct loop_end *other,
			struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_err_entry error = { .err_data_size = 0 };
	double end = loop_now_s() + WAIT_S;
	ssize_t n;

	do {
		n = fi_cq_read(e->cq, entry, 1);
		if (n == -FI_EAGAIN && other)
			fi_cq_read(other->cq, NULL, 0);
	} while (n == -FI_EAGAIN && loop_now_s() < end);
	if (n == -FI_EAVAIL && fi_cq_readerr(e->cq, &error, 0) == 1)
		return -error.err;
	return n == 1 ? 0 : n == -FI_EAGAIN ? -FI_ETIMEDOUT : (int)n;
}

static bool sends(struct loop_end *from, struct loop_end *to, uint8_t *out, uint8_t *in,
		  size_t len)
{
	struct fi_cq_tagged_entry entry;

	memset(out, 7, len);
	return !loop_end_open(from, out, len) && !loop_end_knows(from, to) &&
	       !fi_trecv(to->ep, in, len, NULL, FI_ADDR_UNSPEC, 1, 0, NULL) &&
	       !fi_tsend(from->ep, out, len, NULL, from->other, 1, NULL) &&
	       !loop_end_completion(to, from, &entry) &&
	       !loop_end_completion(from, to, &entry) && !memcmp(in, out, len);
}

bool loop_end_serves(struct loop_end *e, size_t len)
{
	struct loop_end other = { .info = NULL };
	uint8_t *out = malloc(len), *in = calloc(1, len);
	bool served = out && in && sends(&other, e, out, in, len);

	loop_end_close(&other);
	free(out);
	free(in);
	return served;
}

static uint32_t seed;

void loop_chance_begin(void)
{
	seed = (uint32_t)(loop_now_s() * 1000);
	print_message("seed %u\n", seed);
}

uint32_t loop_chance(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}
