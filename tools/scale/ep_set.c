/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many endpoints; ep_set.h has the contract. Called by 'weft scale' on both sides.
 */
#define _GNU_SOURCE
#include "ep_set.h"
#include "clock.h"
#include "fabric.h"
#include "libfabric.h"

#include <err.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define TAG	   0x77656674 /* "weft" */
#define SPINS_LOOK 1024	      /* between two reads of the clock */

struct fi_info *ep_set_query(const struct plan *plan, const struct channel_options *opt)
{
	struct fi_info *hints = fabric_info_create(), *info = NULL;
	int rc = -FI_ENOMEM;

	if (hints)
		rc = channel_hints(hints, plan, opt);
	if (!rc) {
		/* Messages of 8 bytes are from and to the stack. */
		hints->domain_attr->mr_mode &= ~FI_MR_LOCAL;
		rc = fabric_getinfo(TOOLS_API_VERSION, NULL, NULL, 0, hints, &info);
	}
	fabric_info_destroy(hints);
	if (!rc)
		return info;
	warnx("no provider %s%soffers tagged messages on reliable endpoints: %s",
	      plan->provider, plan->provider[0] ? " " : "", fi_strerror(-rc));
	return NULL;
}

static int open_queue(struct ep_set *set, struct fi_info *info, struct fid_cq **cq)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	int rc;

	attr.size = info->tx_attr->size + info->rx_attr->size;
	rc = fi_cq_open(set->domain, &attr, cq, NULL);
	return rc ? fabric_complain("fi_cq_open", rc) : 0;
}

static int open_end(struct ep_set *set, struct fi_info *info, struct ep_set_member *end)
{
	int rc = 0;

	if (!end->cq)
		rc = open_queue(set, info, &end->cq);
	if (rc)
		return rc;
	rc = fi_endpoint(set->domain, info, &end->ep, NULL);
	if (rc)
		return fabric_complain("fi_endpoint", rc);
	rc = fi_ep_bind(end->ep, &set->av->fid, 0);
	if (!rc)
		rc = fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!rc)
		rc = fi_enable(end->ep);
	return rc ? fabric_complain("fi_ep_bind or fi_enable", rc) : 0;
}

static int open_ends(struct ep_set *set, struct fi_info *info, size_t cnt)
{
	int rc = 0;

	set->end = calloc(cnt, sizeof(*set->end));
	if (!set->end)
		return fabric_complain("endpoints", -FI_ENOMEM);
	for (set->cnt = 0; set->cnt < cnt && !rc; set->cnt++) {
		if (set->cnt && !set->own_queues)
			set->end[set->cnt].cq = set->end[0].cq;
		rc = open_end(set, info, &set->end[set->cnt]);
	}
	if (rc)
		warnx("that was endpoint %zu of %zu", set->cnt, cnt);
	return rc;
}

int ep_set_open(struct ep_set *set, struct fi_info *info, size_t cnt, bool own_queues)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .count = 1 };
	int rc;

	memset(set, 0, sizeof(*set));
	set->own_queues = own_queues;
	if (info->domain_attr->av_type != FI_AV_UNSPEC)
		attr.type = info->domain_attr->av_type;
	rc = fabric_open(info->fabric_attr, &set->fabric);
	if (!rc)
		rc = fi_domain(set->fabric, info, &set->domain, NULL);
	if (!rc)
		rc = fi_av_open(set->domain, &attr, &set->av, NULL);
	if (rc)
		fabric_complain("fi_fabric, fi_domain or fi_av_open", rc);
	else
		rc = open_ends(set, info, cnt);
	if (rc)
		ep_set_close(set);
	return rc;
}

void ep_set_close(struct ep_set *set)
{
	struct ep_set_member *end;
	size_t i;

	for (i = 0; i < set->cnt; i++)
		if (set->end[i].ep)
			fabric_close(&set->end[i].ep->fid, "fi_close of an endpoint");
	for (i = 0; i < set->cnt; i++) {
		end = &set->end[i];
		if (end->cq && (!i || set->own_queues))
			fabric_close(&end->cq->fid, "fi_close of a completion queue");
	}
	if (set->av)
		fabric_close(&set->av->fid, "fi_close of the address vector");
	if (set->domain)
		fabric_close(&set->domain->fid, "fi_close of the domain");
	if (set->fabric)
		fabric_close(&set->fabric->fid, "fi_close of the fabric");
	free(set->end);
	memset(set, 0, sizeof(*set));
}

int ep_pair_connect(struct ep_pair *link)
{
	unsigned char mine[OOB_BLOB_MAX], theirs[OOB_BLOB_MAX];
	size_t mine_len = sizeof(mine), theirs_len = sizeof(theirs);
	int rc;

	rc = fi_getname(&link->set->end[link->idx].ep->fid, mine, &mine_len);
	if (rc)
		return fabric_complain("fi_getname", rc);
	rc = oob_exchange(&link->side->oob, mine, mine_len, theirs, &theirs_len);
	if (rc)
		return rc;
	rc = fi_av_insert(link->set->av, theirs, 1, &link->peer, 0, NULL);
	return rc == 1 ? 0 : fabric_complain("fi_av_insert", rc < 0 ? rc : -FI_EADDRNOTAVAIL);
}

static int take_error(struct fid_cq *cq)
{
	struct fi_cq_err_entry entry = { 0 };

	if (fi_cq_readerr(cq, &entry, 0) < 0 || !entry.err)
		entry.err = FI_EIO;
	return fabric_complain("an operation failed", -entry.err);
}

/* No completion was there. Returns 0, or an error after the timeout. */
static int idle(const struct ep_pair *link, unsigned *spins, uint64_t *give_up_ns)
{
	if (link->side->yields)
		sched_yield();
	if (++*spins % SPINS_LOOK)
		return 0;
	if (!*give_up_ns)
		*give_up_ns = clock_ns() + link->timeout_s * 1000000000ull;
	if (oob_gone(&link->side->oob)) {
		warnx("the other side has ended");
		return -FI_ESHUTDOWN;
	}
	if (clock_ns() < *give_up_ns)
		return 0;
	warnx("nothing completed for %u s", link->timeout_s);
	return -FI_ETIMEDOUT;
}

/* Progress until so many operations have completed, or something is due to. */
static int await(const struct ep_pair *link, unsigned cnt)
{
	struct fid_cq *cq = link->set->end[link->idx].cq;
	struct fi_cq_tagged_entry entry;
	uint64_t give_up_ns = 0;
	unsigned spins = 0;
	ssize_t got;
	int rc;

	while (cnt) {
		got = fi_cq_read(cq, &entry, 1);
		if (got == -FI_EAGAIN) {
			rc = idle(link, &spins, &give_up_ns);
			if (rc)
				return rc;
		} else if (got == -FI_EAVAIL) {
			return take_error(cq);
		} else if (got < 0) {
			return fabric_complain("fi_cq_read", (int)got);
		} else {
			cnt--;
		}
	}
	return 0;
}

static int send_word(struct ep_pair *link)
{
	struct ep_set_member *end = &link->set->end[link->idx];
	uint64_t give_up_ns = 0;
	unsigned spins = 0;
	ssize_t rc;

	link->out = link->side->rank ? ~link->number : link->number;
	while ((rc = fi_tsend(end->ep, &link->out, sizeof(link->out), NULL, link->peer, TAG,
			      &link->send)) == -FI_EAGAIN) {
		/* Progress alone: a completion waits for its turn. */
		fi_cq_read(end->cq, NULL, 0);
		rc = idle(link, &spins, &give_up_ns);
		if (rc)
			return (int)rc;
	}
	return rc ? fabric_complain("fi_tsend", (int)rc) : 0;
}

int ep_pair_exchange(struct ep_pair *link)
{
	bool begins = link->side->rank == 0;
	int rc;

	rc = (int)fi_trecv(link->set->end[link->idx].ep, &link->in, sizeof(link->in), NULL,
			   FI_ADDR_UNSPEC, TAG, 0, &link->receive);
	if (rc)
		return fabric_complain("fi_trecv", rc);
	if (!begins)
		rc = await(link, 1);
	if (!rc)
		rc = send_word(link);
	if (!rc)
		rc = await(link, begins ? 2 : 1);
	if (rc || link->in == ~link->out)
		return rc;
	warnx("pair %llu received %#llx", (unsigned long long)link->number,
	      (unsigned long long)link->in);
	return -FI_EIO;
}

int ep_set_read_idle(const struct ep_set *set, size_t idx, unsigned reads)
{
	struct fid_cq *cq = set->end[idx].cq;
	struct fi_cq_tagged_entry entry;
	ssize_t got;

	while (reads--) {
		got = fi_cq_read(cq, &entry, 1);
		if (got == -FI_EAGAIN)
			continue;
		warnx("an idle queue was not empty (%zd)", got);
		return got < 0 ? (int)got : -FI_EIO;
	}
	return 0;
}
