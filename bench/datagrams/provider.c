/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagrams of the provider udp of whichever libfabric is loaded. Receives are posted ahead, and
 * the source is asked for, as a program that answers has to.
 */
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <string.h>
#include "way.h"

#define POSTED 256

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static fi_addr_t peer_addr;
static char in[POSTED][LEN], out[LEN];
static struct fi_context contexts[POSTED + 1];
/* sends that have not completed */
static int sending, received;

static struct fi_info *find(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->caps = FI_MSG | FI_SOURCE;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup("udp");
	must(!fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), "udp");
	fi_freeinfo(hints);
	return info;
}

static void post(int i)
{
	must(!fi_recv(ep, in[i], LEN, NULL, FI_ADDR_UNSPEC, &contexts[i]), "fi_recv");
}

static void provider_open(struct sockaddr_in *name)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG, .size = 2 * POSTED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *info = find();
	size_t len = sizeof(*name);

	must(!fi_fabric(info->fabric_attr, &fabric, NULL) &&
		     !fi_domain(fabric, info, &domain, NULL) &&
		     !fi_cq_open(domain, &cq_attr, &cq, NULL) &&
		     !fi_av_open(domain, &av_attr, &av, NULL) &&
		     !fi_endpoint(domain, info, &ep, NULL) && !fi_ep_bind(ep, &av->fid, 0) &&
		     !fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) && !fi_enable(ep) &&
		     !fi_getname(&ep->fid, name, &len),
	     "an endpoint");
	fi_freeinfo(info);
	for (int i = 0; i < POSTED; i++)
		post(i);
}

static void provider_meet(const struct sockaddr_in *peer)
{
	must(fi_av_insert(av, peer, 1, &peer_addr, 0, NULL) == 1, "fi_av_insert");
}

/* Takes completions: of sends, and of receives, which are posted again. */
static void progress(int cnt)
{
	struct fi_cq_msg_entry entries[BURST];
	ssize_t got = fi_cq_read(cq, entries, (size_t)cnt);

	must(got > 0 || got == -FI_EAGAIN, "fi_cq_read");
	for (ssize_t i = 0; i < got; i++) {
		if (entries[i].flags & FI_SEND) {
			sending--;
			continue;
		}
		received++;
		post((int)((struct fi_context *)entries[i].op_context - contexts));
	}
}

static void provider_send(int cnt)
{
	struct iovec iov = { out, LEN };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = peer_addr, .context = &contexts[POSTED]
	};
	ssize_t ret;

	for (int i = 0; i < cnt; i++) {
		while ((ret = cnt == 1 ? fi_send(ep, out, LEN, NULL, peer_addr, msg.context)
				       : fi_sendmsg(ep, &msg, i < cnt - 1 ? FI_MORE : 0)) ==
		       -FI_EAGAIN)
			progress(BURST);
		must(!ret, "a send");
		sending++;
	}
}

static int provider_receive(int cnt)
{
	int got;

	if (!received)
		progress(cnt + sending < BURST ? cnt + sending : BURST);
	got = received < cnt ? received : cnt;
	received -= got;
	return got;
}

const struct way way_udp = { provider_open, provider_meet, provider_send, provider_receive };
