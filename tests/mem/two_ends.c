/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See two_ends.h. */
#include <string.h>
#include "two_ends.h"

static int open_endpoint(struct two_ends *e, struct fi_info *info, struct fid_ep **out)
{
	if (fi_endpoint(e->domain, info, out, NULL) || fi_ep_bind(*out, &e->av->fid, 0) ||
	    fi_ep_bind(*out, &e->cq->fid, FI_TRANSMIT | FI_RECV))
		return -1;
	return fi_enable(*out);
}

static int open_all(struct two_ends *e, struct fi_info *info)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	char name[128];
	size_t len = sizeof(name);

	if (fi_fabric(info->fabric_attr, &e->fabric, NULL) ||
	    fi_domain(e->fabric, info, &e->domain, NULL) ||
	    fi_cq_open(e->domain, &cq_attr, &e->cq, NULL) ||
	    fi_av_open(e->domain, &av_attr, &e->av, NULL) || open_endpoint(e, info, &e->ep) ||
	    open_endpoint(e, info, &e->peer) || fi_getname(&e->peer->fid, name, &len) ||
	    fi_av_insert(e->av, name, 1, &e->to, 0, NULL) != 1)
		return -1;
	return fi_open_ops(&e->domain->fid, WEFT_MEM_OPS, 0, (void **)&e->mem, NULL) ? -1 : 0;
}

int two_ends_open(struct two_ends *e, int mr_mode)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int err;

	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = mr_mode;
	hints->fabric_attr->prov_name = strdup("shm");
	err = fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info) || open_all(e, info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return err ? -1 : 0;
}

int two_ends_close(struct two_ends *e)
{
	struct fid *objects[] = { &e->ep->fid, &e->peer->fid,	&e->av->fid,
				  &e->cq->fid, &e->domain->fid, &e->fabric->fid };
	int err = 0;

	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		err |= fi_close(objects[i]);
	return err;
}
