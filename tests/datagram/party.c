/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parties of datagram tests. */
#include <malloc.h>
#include <poll.h>
#include <time.h>
#include "party.h"

#define OK(call) assert_int_equal(call, 0)

uint64_t party_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

size_t party_allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

struct fi_info *party_fi_info(const struct party_choice *choice)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	const char *node;
	int ret;

	assert_non_null(hints);
	hints->caps = FI_MSG | FI_SOURCE | choice->caps;
	hints->addr_format = choice->six ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->fabric_attr->prov_name = strdup("udp");
	hints->domain_attr->name = strdup(choice->iface ? choice->iface : "lo");
	hints->rx_attr->size = choice->rx_size;
	node = choice->node ? choice->node : choice->six ? "::1" : "127.0.0.1";
	ret = fi_getinfo(PARTY_VERSION, node, choice->port, FI_SOURCE, hints, &info);
	fi_freeinfo(hints);
	return ret ? NULL : info;
}

static void open_domain(struct party *p, const struct party_choice *choice)
{
	p->guest = choice->domain_of != NULL;
	if (p->guest) {
		p->fabric = choice->domain_of->fabric;
		p->domain = choice->domain_of->domain;
		return;
	}
	OK(fi_fabric(p->info->fabric_attr, &p->fabric, NULL));
	OK(fi_domain(p->fabric, p->info, &p->domain, NULL));
}

void party_open(struct party *p, const struct party_choice *choice)
{
	struct fi_cntr_attr cntr_attr = { .wait_obj = choice->wait };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = choice->wait };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	memset(p, 0, sizeof(*p));
	p->info = party_fi_info(choice);
	assert_non_null(p->info);
	open_domain(p, choice);
	OK(fi_eq_open(p->fabric, &eq_attr, &p->eq, NULL));
	OK(fi_av_open(p->domain, &av_attr, &p->av, NULL));
	OK(fi_endpoint(p->domain, p->info, &p->ep, p));
	OK(fi_ep_bind(p->ep, &p->eq->fid, 0));
	OK(fi_ep_bind(p->ep, &p->av->fid, 0));
	if (choice->counts) {
		OK(fi_cntr_open(p->domain, &cntr_attr, &p->tx_cntr, NULL));
		OK(fi_cntr_open(p->domain, &cntr_attr, &p->rx_cntr, NULL));
		OK(fi_ep_bind(p->ep, &p->tx_cntr->fid, FI_SEND));
		OK(fi_ep_bind(p->ep, &p->rx_cntr->fid, FI_RECV));
	} else {
		OK(fi_cq_open(p->domain, &cq_attr, &p->cq, NULL));
		OK(fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV | choice->bind));
	}
	if (choice->idle)
		return;
	OK(fi_enable(p->ep));
	p->name_len = sizeof(p->name);
	OK(fi_getname(&p->ep->fid, &p->name, &p->name_len));
}

void party_close(struct party *p)
{
	OK(fi_close(&p->ep->fid));
	if (p->cq)
		OK(fi_close(&p->cq->fid));
	if (p->tx_cntr)
		OK(fi_close(&p->tx_cntr->fid));
	if (p->rx_cntr)
		OK(fi_close(&p->rx_cntr->fid));
	OK(fi_close(&p->av->fid));
	OK(fi_close(&p->eq->fid));
	if (!p->guest) {
		OK(fi_close(&p->domain->fid));
		OK(fi_close(&p->fabric->fid));
	}
	fi_freeinfo(p->info);
}

fi_addr_t party_meet(struct party *p, const struct party *peer)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	assert_int_equal(fi_av_insert(p->av, &peer->name, 1, &addr, 0, NULL), 1);
	return addr;
}

struct fi_cq_tagged_entry party_completion(struct party *p, fi_addr_t *src)
{
	uint64_t end = party_now_ms() + PARTY_WAIT_MS;
	struct fi_cq_tagged_entry entry;
	fi_addr_t from;
	ssize_t ret;

	do
		ret = fi_cq_readfrom(p->cq, &entry, 1, &from);
	while (ret == -FI_EAGAIN && party_now_ms() < end);
	assert_int_equal(ret, 1);
	if (src)
		*src = from;
	return entry;
}

struct fi_cq_err_entry party_error(struct party *p)
{
	uint64_t end = party_now_ms() + PARTY_WAIT_MS;
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	do
		ret = fi_cq_read(p->cq, &entry, 1);
	while (ret == -FI_EAGAIN && party_now_ms() < end);
	assert_int_equal(ret, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(p->cq, &err, 0), 1);
	return err;
}

void party_quiet(struct party *p)
{
	struct fi_cq_tagged_entry entry;

	assert_int_equal(fi_cq_read(p->cq, &entry, 1), -FI_EAGAIN);
}

void party_rests(struct party *p, int descriptor)
{
	struct pollfd ready = { .fd = descriptor, .events = POLLIN };
	uint64_t end = party_now_ms() + PARTY_WAIT_MS;
	struct fid *fids[1] = { &p->cq->fid };
	int cnt;

	do {
		assert_int_equal(fi_trywait(p->fabric, fids, 1), 0);
		cnt = poll(&ready, 1, 0);
	} while (cnt && party_now_ms() < end);
	assert_int_equal(cnt, 0);
}
