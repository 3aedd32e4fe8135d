/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connecting two endpoints by fi_listen, fi_connect and fi_accept; connection.h has the contract.
 * Called by channel.c for measurements.
 */
#include "connection.h"
#include "fabric.h"

#include <err.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#define SLICE_MS 100

/* What one side has while it connects. */
struct meeting {
	struct endpoint *end;
	struct fi_info *info;
	struct side *side;
	struct fid_pep *pep;
	unsigned timeout_s;
};

static int complain_of_event(struct fid_eq *eq)
{
	struct fi_eq_err_entry entry = { 0 };
	ssize_t rc = fi_eq_readerr(eq, &entry, 0);

	if (rc < 0)
		return fabric_complain("fi_eq_readerr", (int)rc);
	return fabric_complain("connecting", entry.err ? -entry.err : -FI_EIO);
}

/* Waits for one event, which has to be @wanted. */
static int await(const struct meeting *m, uint32_t wanted, struct fi_eq_cm_entry *entry)
{
	unsigned slices = m->timeout_s * (1000 / SLICE_MS);
	uint32_t event;
	ssize_t rc;

	do {
		rc = fi_eq_sread(m->end->eq, &event, entry, sizeof(*entry), SLICE_MS, 0);
		if (rc == -FI_EAVAIL)
			return complain_of_event(m->end->eq);
		if (rc >= 0 && event == wanted)
			return 0;
		if (rc >= 0)
			return fabric_complain("an event of connecting", -FI_EPROTO);
		if (rc != -FI_EAGAIN && rc != -FI_EINTR && rc != -FI_ETIMEDOUT)
			return fabric_complain("fi_eq_sread", (int)rc);
	} while (--slices && !oob_gone(&m->side->oob));
	warnx("the other side did not connect");
	return -FI_ETIMEDOUT;
}

static int listen_for_it(struct meeting *m, void *name, size_t *len)
{
	int rc = fi_passive_ep(m->end->fabric, m->info, &m->pep, NULL);

	if (rc)
		return fabric_complain("fi_passive_ep", rc);
	rc = fi_pep_bind(m->pep, &m->end->eq->fid, 0);
	if (!rc)
		rc = fi_listen(m->pep);
	if (!rc)
		rc = fi_getname(&m->pep->fid, name, len);
	return rc ? fabric_complain("fi_listen or fi_getname", rc) : 0;
}

static int open_ep(struct meeting *m, struct fi_info *info)
{
	struct endpoint *end = m->end;
	int rc = fi_endpoint(end->domain, info, &end->ep, NULL);

	if (rc)
		return fabric_complain("fi_endpoint", rc);
	rc = fi_ep_bind(end->ep, &end->eq->fid, 0);
	if (!rc)
		rc = fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!rc)
		rc = fi_enable(end->ep);
	return rc ? fabric_complain("fi_ep_bind or fi_enable", rc) : 0;
}

static int accept_it(struct meeting *m)
{
	struct fi_eq_cm_entry entry = { 0 };
	int rc = await(m, FI_CONNREQ, &entry);

	if (rc)
		return rc;
	rc = open_ep(m, entry.info);
	fabric_info_destroy(entry.info);
	if (!rc) {
		rc = fi_accept(m->end->ep, NULL, 0);
		if (rc)
			fabric_complain("fi_accept", rc);
	}
	return rc ? rc : await(m, FI_CONNECTED, &entry);
}

static int connect_it(struct meeting *m, const void *name)
{
	struct fi_eq_cm_entry entry = { 0 };
	int rc = open_ep(m, m->info);

	if (rc)
		return rc;
	rc = fi_connect(m->end->ep, name, NULL, 0);
	return rc ? fabric_complain("fi_connect", rc) : await(m, FI_CONNECTED, &entry);
}

static int meet(struct meeting *m)
{
	unsigned char mine[OOB_BLOB_MAX] = { 0 }, theirs[OOB_BLOB_MAX];
	size_t mine_len = sizeof(mine), theirs_len = sizeof(theirs);
	bool listens = m->side->rank;
	int rc = 0;

	if (listens)
		rc = listen_for_it(m, mine, &mine_len);
	else
		mine_len = 0;
	if (!rc)
		rc = oob_exchange(&m->side->oob, mine, mine_len, theirs, &theirs_len);
	if (!rc)
		rc = listens ? accept_it(m) : connect_it(m, theirs);
	if (m->pep)
		fabric_close(&m->pep->fid, "fi_close of the passive endpoint");
	return rc;
}

int connection_open(struct endpoint *end, struct fi_info *info, enum fi_wait_obj wait,
		    struct side *side, unsigned timeout_s)
{
	struct meeting m = { .end = end, .info = info, .side = side, .timeout_s = timeout_s };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	int rc;

	memset(end, 0, sizeof(*end));
	rc = endpoint_open_queue(end, info, wait);
	if (!rc) {
		rc = fi_eq_open(end->fabric, &eq_attr, &end->eq, NULL);
		rc = rc ? fabric_complain("fi_eq_open", rc) : meet(&m);
	}
	if (rc)
		endpoint_close(end);
	return rc;
}
