/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft-cost: messages from one endpoint to another one of the same process, one at a time and each
 * answered, for strace and callgrind to count what they take: what two runs of different length
 * differ by.
 *
 *	strace -fc weft-cost PROVIDER BYTES COUNT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define CHECK(cond)                                                              \
	do {                                                                     \
		if (!(cond)) {                                                   \
			fprintf(stderr, "weft-cost: %d: %s\n", __LINE__, #cond); \
			exit(1);                                                 \
		}                                                                \
	} while (0)

struct end {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
	char *in, *out;
};

static void end_open(struct end *e, const char *provider, size_t len)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo(), *info;

	CHECK(hints);
	hints->caps = FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup(provider);
	CHECK(!fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	CHECK(!fi_fabric(info->fabric_attr, &e->fabric, NULL));
	CHECK(!fi_domain(e->fabric, info, &e->domain, NULL));
	CHECK(!fi_av_open(e->domain, &av_attr, &e->av, NULL));
	CHECK(!fi_cq_open(e->domain, &cq_attr, &e->cq, NULL));
	CHECK(!fi_endpoint(e->domain, info, &e->ep, NULL));
	CHECK(!fi_ep_bind(e->ep, &e->av->fid, 0));
	CHECK(!fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(!fi_enable(e->ep));
	fi_freeinfo(info);
	e->in = calloc(1, len);
	e->out = calloc(1, len);
	CHECK(e->in && e->out);
}

static void end_close(struct end *e)
{
	CHECK(!fi_close(&e->ep->fid));
	CHECK(!fi_close(&e->cq->fid));
	CHECK(!fi_close(&e->av->fid));
	CHECK(!fi_close(&e->domain->fid));
	CHECK(!fi_close(&e->fabric->fid));
	free(e->in);
	free(e->out);
}

static void knows(struct end *e, struct end *other)
{
	char name[128];
	size_t len = sizeof(name);

	CHECK(!fi_getname(&other->ep->fid, name, &len));
	CHECK(fi_av_insert(e->av, name, 1, &e->peer, 0, NULL) == 1);
}

static int turn(struct end *e)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret = fi_cq_read(e->cq, &entry, 1);

	CHECK(ret == 1 || ret == -FI_EAGAIN);
	return ret == 1;
}

/* One message, until both ends have completed it. */
static void pass(struct end *from, struct end *to, size_t len)
{
	int done = 0;
	ssize_t ret;

	CHECK(!fi_trecv(to->ep, to->in, len, NULL, to->peer, 1, 0, NULL));
	while ((ret = fi_tsend(from->ep, from->out, len, NULL, from->peer, 1, NULL)) ==
	       -FI_EAGAIN)
		done += turn(from);
	CHECK(!ret);
	while (done < 2) {
		done += turn(to);
		if (done < 2)
			done += turn(from);
	}
}

int main(int argc, char **argv)
{
	struct end a = { 0 }, b = { 0 };
	unsigned long len, cnt;

	if (argc != 4) {
		fprintf(stderr, "usage: weft-cost PROVIDER BYTES COUNT\n");
		return 2;
	}
	len = strtoul(argv[2], NULL, 0);
	cnt = strtoul(argv[3], NULL, 0);
	/* One call, which two runs don't differ by; callgrind takes less than 10 ms for a message. */
	alarm(60 + (unsigned int)(cnt / 100));
	end_open(&a, argv[1], len);
	end_open(&b, argv[1], len);
	knows(&a, &b);
	knows(&b, &a);
	for (unsigned long i = 0; i < cnt; i++) {
		pass(&a, &b, len);
		pass(&b, &a, len);
	}
	end_close(&a);
	end_close(&b);
	return 0;
}
