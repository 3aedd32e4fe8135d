/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A side of the tests of address vectors; see av_side.h. Called by the tests, on one thread. */
#include "av_side.h"

static const char *provider;
bool ports;

static struct fi_info *offer(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int ret;

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_SOURCE;
	ret = fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	return ret ? NULL : info;
}

void side_open(struct side *s)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE };

	*s = (struct side){ .info = offer() };
	assert_non_null(s->info);
	assert_int_equal(fi_fabric(s->info->fabric_attr, &s->fabric, NULL), 0);
	assert_int_equal(fi_domain(s->fabric, s->info, &s->domain, NULL), 0);
	assert_int_equal(fi_eq_open(s->fabric, &eq_attr, &s->eq, NULL), 0);
}

void side_close(struct side *s)
{
	if (s->ep)
		assert_int_equal(fi_close(&s->ep->fid), 0);
	if (s->cq)
		assert_int_equal(fi_close(&s->cq->fid), 0);
	assert_int_equal(fi_close(&s->eq->fid), 0);
	assert_int_equal(fi_close(&s->domain->fid), 0);
	assert_int_equal(fi_close(&s->fabric->fid), 0);
	fi_freeinfo(s->info);
}

struct fid_av *av_open(struct side *s, const char *name, uint64_t flags)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .name = name, .flags = flags };
	struct fid_av *av = NULL;

	assert_int_equal(fi_av_open(s->domain, &attr, &av, NULL), 0);
	return av;
}

struct fid_ep *ep_open(struct side *s, struct fid_av *av, struct fid_cq **cq, char *name,
		       size_t *len)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_ep *ep;

	assert_int_equal(fi_cq_open(s->domain, &cq_attr, cq, NULL), 0);
	assert_int_equal(fi_endpoint(s->domain, s->info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &(*cq)->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	*len = ADDR_MAX;
	assert_int_equal(fi_getname(&ep->fid, name, len), 0);
	return ep;
}

void side_enable(struct side *s, struct fid_av *av)
{
	s->ep = ep_open(s, av, &s->cq, s->name, &s->len);
}

fi_addr_t completion(struct fid_cq *cq, struct fid_cq *other, void *context)
{
	time_t end = time(NULL) + WAIT_SECS;
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;
	ssize_t ret;

	while ((ret = fi_cq_readfrom(cq, &entry, 1, &src)) == -FI_EAGAIN) {
		if (other)
			fi_cq_read(other, NULL, 0);
		assert_true(time(NULL) < end);
	}
	assert_int_equal(ret, 1);
	assert_ptr_equal(entry.op_context, context);
	return src;
}

bool side_choose(const char *name)
{
	struct fi_info *info;

	provider = name;
	ports = strcmp(provider, "shm");
	info = offer();
	if (!info)
		printf("skipped: there is no provider %s that can do this\n", provider);
	fi_freeinfo(info);
	return info;
}

int opened(struct side *s, struct fi_av_attr attr)
{
	struct fid_av *av = NULL;
	int ret = fi_av_open(s->domain, &attr, &av, NULL);

	if (!ret)
		assert_int_equal(fi_close(&av->fid), 0);
	else
		assert_null(av);
	return ret;
}
