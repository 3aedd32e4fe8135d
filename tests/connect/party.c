/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ends of connections (party.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include "party.h"
#include <cmocka.h>

#define DEADLINE_S   60
#define QUIET_ROUNDS 2000

struct wishes wishes;

/* All parties that are open. */
static struct party *parties;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void ok(long ret, const char *what)
{
	if (ret < 0)
		fail_msg("%s: %s", what, fi_strerror((int)-ret));
}

#define OK(call) ok(call, #call)

static void party_enter(struct party *p)
{
	p->next = parties;
	parties = p;
}

static struct fi_info *offer(uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	assert_non_null(hints);
	hints->fabric_attr->prov_name = strdup("tcp");
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG | wishes.caps;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	hints->domain_attr->data_progress = wishes.automatic ? FI_PROGRESS_AUTO
							     : FI_PROGRESS_MANUAL;
	OK(fi_getinfo(FI_VERSION(1, 18), "127.0.0.1", NULL, flags, hints, &info));
	fi_freeinfo(hints);
	return info;
}

void party_silent(struct party *p)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	*p = (struct party){ .info = offer(FI_SOURCE) };
	OK(fi_fabric(p->info->fabric_attr, &p->fabric, NULL));
	OK(fi_eq_open(p->fabric, &attr, &p->eq, NULL));
	OK(fi_passive_ep(p->fabric, p->info, &p->pep, p));
	OK(fi_pep_bind(p->pep, &p->eq->fid, 0));
	party_enter(p);
}

void party_listen(struct party *p)
{
	party_silent(p);
	OK(fi_listen(p->pep));
	p->name_len = sizeof(p->name);
	OK(fi_getname(&p->pep->fid, p->name, &p->name_len));
}

static void party_fill(struct party *p)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };

	if (!p->borrows_eq)
		OK(fi_eq_open(p->fabric, &eq_attr, &p->eq, NULL));
	OK(fi_domain(p->fabric, p->info, &p->domain, NULL));
	OK(fi_cq_open(p->domain, &cq_attr, &p->cq, NULL));
	OK(fi_endpoint(p->domain, p->info, &p->ep, p));
	OK(fi_ep_bind(p->ep, &p->eq->fid, 0));
	OK(fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(p->ep));
	party_enter(p);
}

void party_open(struct party *p, struct fi_info *info)
{
	*p = (struct party){ .info = info ? info : offer(0) };
	OK(fi_fabric(p->info->fabric_attr, &p->fabric, NULL));
	party_fill(p);
}

void party_open_in(struct party *p, struct party *listener, struct fi_info *info)
{
	*p = (struct party){ .info = info, .fabric = listener->fabric };
	party_fill(p);
	p->fabric = NULL; /* the listener's */
}

void party_open_beside(struct party *p, struct party *listener, struct fi_info *info)
{
	*p = (struct party){
		.info = info, .fabric = listener->fabric, .eq = listener->eq, .borrows_eq = true
	};
	party_fill(p);
	p->fabric = NULL;
}

static void shut(struct fid *fid)
{
	OK(fi_close(fid));
}

void party_close(struct party *p)
{
	struct party **at = &parties;

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
	if (p->pep)
		shut(&p->pep->fid);
	if (p->ep)
		shut(&p->ep->fid);
	if (p->cq)
		shut(&p->cq->fid);
	if (p->domain)
		shut(&p->domain->fid);
	if (p->eq && !p->borrows_eq)
		shut(&p->eq->fid);
	if (p->fabric)
		shut(&p->fabric->fid);
	fi_freeinfo(p->info);
	*p = (struct party){ 0 };
}

void party_close_all(void)
{
	while (parties)
		party_close(parties);
}

/* Makes progress at every party but @but, and takes nothing. */
static void drive(const struct party *but)
{
	struct fi_eq_cm_entry cm;
	struct party *p;
	uint32_t event;

	for (p = parties; p; p = p->next)
		if (p != but)
			fi_eq_read(p->eq, &event, &cm, sizeof(cm), FI_PEEK);
}

static uint32_t party_error(struct party *p, struct heard *heard)
{
	struct fi_eq_err_entry err = { .err_data = heard->data,
				       .err_data_size = sizeof(heard->data) };

	OK(fi_eq_readerr(p->eq, &err, 0));
	heard->cm.fid = err.fid;
	heard->err = err.err;
	heard->data_len = err.err_data_size;
	if (p->ep)
		assert_ptr_equal(err.context, p);
	return PARTY_ERROR;
}

void party_expect(struct party *p, uint32_t want, struct heard *heard)
{
	union {
		struct fi_eq_cm_entry cm;
		unsigned char bytes[sizeof(struct fi_eq_cm_entry) + PARTY_DATA_MAX];
	} got;
	double end = now() + DEADLINE_S;
	uint32_t event = 0;
	ssize_t ret;

	memset(heard, 0, sizeof(*heard));
	while ((ret = fi_eq_read(p->eq, &event, &got, sizeof(got), 0)) == -FI_EAGAIN) {
		drive(p);
		if (now() > end)
			fail_msg("event %u never comes", want);
	}
	if (ret == -FI_EAVAIL)
		event = party_error(p, heard);
	else
		OK(ret);
	if (event != want)
		fail_msg("event %u, not %u (error %d)", event, want, heard->err);
	if (event == PARTY_ERROR)
		return;
	heard->cm.fid = got.cm.fid;
	heard->cm.info = got.cm.info;
	heard->data_len = (size_t)ret - sizeof(got.cm);
	memcpy(heard->data, got.bytes + sizeof(got.cm), heard->data_len);
	assert_ptr_equal(heard->cm.fid, p->pep ? &p->pep->fid : &p->ep->fid);
}

int party_ends(struct party *p, void **context)
{
	double end = now() + DEADLINE_S;
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(p->cq, &entry, 1)) == -FI_EAGAIN) {
		drive(NULL);
		if (now() > end)
			fail_msg("no operation ends");
	}
	if (ret == -FI_EAVAIL) {
		OK(fi_cq_readerr(p->cq, &err, 0));
		*context = err.op_context;
		return err.err;
	}
	OK(ret);
	*context = entry.op_context;
	return 0;
}

bool party_quiet(struct party *p)
{
	struct fi_eq_cm_entry cm;
	uint32_t event;
	int i;

	for (i = 0; i < QUIET_ROUNDS; i++) {
		drive(p);
		if (fi_eq_read(p->eq, &event, &cm, sizeof(cm), FI_PEEK) != -FI_EAGAIN)
			return false;
	}
	return true;
}

void party_pair(struct party *listener, struct party *caller, struct party *callee)
{
	struct heard heard;

	party_open(caller, NULL);
	OK(fi_connect(caller->ep, listener->name, NULL, 0));
	party_expect(listener, FI_CONNREQ, &heard);
	party_open_in(callee, listener, heard.cm.info);
	OK(fi_accept(callee->ep, NULL, 0));
	party_expect(callee, FI_CONNECTED, &heard);
	party_expect(caller, FI_CONNECTED, &heard);
}
