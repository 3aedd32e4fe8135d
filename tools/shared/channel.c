/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One endpoint and its peer; channel.h has the contract. Called by the
 * measuring subcommands on both sides.
 */
#define _GNU_SOURCE
#include "channel.h"
#include "connection.h"
#include "fabric.h"
#include "figures.h"
#include "libfabric.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 0x77656674 /* "weft" */

static const struct {
	enum fi_ep_type type;
	const char *name;
	uint64_t order;
} kinds[PLAN_ENDPOINTS] = {
	[PLAN_RDM] = { FI_EP_RDM, "reliable", FI_ORDER_SAS },
	[PLAN_MSG] = { FI_EP_MSG, "connected", FI_ORDER_SAS },
	[PLAN_DGRAM] = { FI_EP_DGRAM, "datagram", FI_ORDER_NONE },
};

int channel_hints(struct fi_info *hints, const struct plan *plan,
		  const struct channel_options *opt)
{
	hints->caps = plan->tagged ? FI_TAGGED : FI_MSG;
	if (plan->tests & FIGURES_RMA)
		hints->caps |= FI_RMA;
	if (plan->tests & FIGURES_ATOMIC)
		hints->caps |= FI_ATOMIC;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = kinds[plan->endpoint].type;
	hints->tx_attr->msg_order = kinds[plan->endpoint].order;
	hints->rx_attr->msg_order = kinds[plan->endpoint].order;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY | FI_MR_RAW | FI_MR_ENDPOINT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = opt->progress;
	hints->domain_attr->data_progress = opt->progress;
	if (plan->provider[0]) {
		hints->fabric_attr->prov_name = strdup(plan->provider);
		if (!hints->fabric_attr->prov_name)
			return -FI_ENOMEM;
	}
	if (opt->domain) {
		hints->domain_attr->name = strdup(opt->domain);
		if (!hints->domain_attr->name)
			return -FI_ENOMEM;
	}
	return 0;
}

static bool speaks_sockaddr(const struct fi_info *info)
{
	return info->addr_format == FI_SOCKADDR || info->addr_format == FI_SOCKADDR_IN ||
	       info->addr_format == FI_SOCKADDR_IN6;
}

/* The address that reached the peer out of band, if the provider can use it. */
static void prefer_route(struct channel *ch, const struct fi_info *hints)
{
	struct fi_info *better;

	if (ch->opt.source || !ch->side->oob.local[0] || !speaks_sockaddr(ch->info))
		return;
	if (fabric_getinfo(TOOLS_API_VERSION, ch->side->oob.local, NULL, FI_SOURCE, hints,
			   &better))
		return;
	fabric_info_destroy(ch->info);
	ch->info = better;
}

/* Prints ' OPTION "VALUE"' into @to, nothing if there is no value. Returns @to. */
static const char *quoted(char *to, size_t room, const char *option, const char *value)
{
	to[0] = '\0';
	if (value && *value)
		snprintf(to, room, " %s \"%s\"", option, value);
	return to;
}

/* The command that prints why nobody answers what channel_hints() asks for */
static void name_reasons(const struct plan *plan, const struct channel_options *opt)
{
	char provider[PLAN_PROVIDER_MAX + 8], domain[128], source[128];

	warnx("'weft info --why%s%s%s -t %s -c \"FI_%s%s%s\"' gives the reason",
	      quoted(provider, sizeof(provider), "-p", plan->provider),
	      quoted(domain, sizeof(domain), "-d", opt->domain),
	      quoted(source, sizeof(source), "-s", opt->source),
	      fi_tostr(&kinds[plan->endpoint].type, FI_TYPE_EP_TYPE),
	      plan->tagged ? "TAGGED" : "MSG", plan->tests & FIGURES_RMA ? "|FI_RMA" : "",
	      plan->tests & FIGURES_ATOMIC ? "|FI_ATOMIC" : "");
}

static int query(struct channel *ch, const struct plan *plan)
{
	const char *source = ch->opt.source;
	struct fi_info *hints;
	int rc;

	hints = fabric_info_create();
	if (!hints)
		return fabric_complain("fi_allocinfo", -FI_ENOMEM);
	rc = channel_hints(hints, plan, &ch->opt);
	if (!rc)
		rc = fabric_getinfo(TOOLS_API_VERSION, source, NULL, source ? FI_SOURCE : 0,
				    hints, &ch->info);
	if (rc && !(ch->side->local && ch->side->rank)) {
		warnx("no provider %s%soffers %s messages%s%s on %s endpoints: %s",
		      plan->provider, plan->provider[0] ? " " : "",
		      plan->tagged ? "tagged" : "plain",
		      plan->tests & FIGURES_RMA ? " with RMA" : "",
		      plan->tests & FIGURES_ATOMIC ? " with atomics" : "",
		      kinds[plan->endpoint].name, fi_strerror(-rc));
		name_reasons(plan, &ch->opt);
	} else if (!rc) {
		prefer_route(ch, hints);
	}
	fabric_info_destroy(hints);
	return rc;
}

static int meet(struct channel *ch)
{
	unsigned char mine[OOB_BLOB_MAX], theirs[OOB_BLOB_MAX];
	size_t mine_len = sizeof(mine), theirs_len = sizeof(theirs);
	int rc;

	rc = fi_getname(&ch->end.ep->fid, mine, &mine_len);
	if (rc)
		return fabric_complain("fi_getname", rc);
	rc = oob_exchange(&ch->side->oob, mine, mine_len, theirs, &theirs_len);
	if (rc)
		return rc;
	/*
	 * Both sides run one program with the same options, so addresses of different lengths are
	 * of different providers, which can't read each other's. Strings have the length of the
	 * numbers in them.
	 */
	if (theirs_len != mine_len && ch->info->addr_format != FI_ADDR_STR) {
		warnx("the other side has another kind of address (%zu bytes, ours has %zu)",
		      theirs_len, mine_len);
		return -FI_EADDRNOTAVAIL;
	}
	rc = fi_av_insert(ch->end.av, theirs, 1, &ch->peer, 0, NULL);
	if (rc != 1)
		return fabric_complain("fi_av_insert", rc < 0 ? rc : -FI_EADDRNOTAVAIL);
	return 0;
}

static int open_end(struct channel *ch, const struct plan *plan)
{
	static const enum fi_wait_obj objects[PLAN_WAITS] = {
		[PLAN_WAIT_POLL] = FI_WAIT_NONE,
		[PLAN_WAIT_FD] = FI_WAIT_FD,
		[PLAN_WAIT_SREAD] = FI_WAIT_UNSPEC,
	};
	enum fi_wait_obj wait = objects[plan->wait];
	int rc;

	if (plan->endpoint == PLAN_MSG) {
		ch->peer = FI_ADDR_UNSPEC;
		return connection_open(&ch->end, ch->info, wait, ch->side, ch->opt.timeout_s);
	}
	rc = endpoint_open(&ch->end, ch->info, wait);
	return rc ? rc : meet(ch);
}

int channel_open(struct channel *ch, const struct plan *plan, const struct channel_options *opt,
		 struct side *side)
{
	int rc;

	memset(ch, 0, sizeof(*ch));
	ch->opt = *opt;
	ch->tagged = plan->tagged;
	ch->wait = plan->wait;
	ch->side = side;
	rc = query(ch, plan);
	if (!rc)
		rc = open_end(ch, plan);
	if (!rc && ch->wait == PLAN_WAIT_FD) {
		rc = fi_control(&ch->end.cq->fid, FI_GETWAIT, &ch->wait_fd);
		if (rc)
			fabric_complain("FI_GETWAIT", rc);
	}
	if (rc) {
		channel_close(ch);
		return rc;
	}
	ch->mem = opt->mem;
	ch->inject_size = opt->no_inject ? 0 : ch->info->tx_attr->inject_size;
	ch->limits = (struct channel_limits){
		.provider = ch->info->fabric_attr->prov_name,
		.max_message = ch->info->ep_attr->max_msg_size,
		.tx_size = ch->info->tx_attr->size,
		.rx_size = ch->info->rx_attr->size,
	};
	return 0;
}

void channel_close(struct channel *ch)
{
	endpoint_close(&ch->end);
	fabric_info_destroy(ch->info);
	memset(ch, 0, sizeof(*ch));
}

void channel_describe(const struct channel *ch, struct results_config *config)
{
	uint32_t version = ch->info->fabric_attr->prov_version;

	*config = (struct results_config){ .api = fi_version() };
	snprintf(config->provider, sizeof(config->provider), "%s", ch->limits.provider);
	snprintf(config->prov_version, sizeof(config->prov_version), "%u.%u", FI_MAJOR(version),
		 FI_MINOR(version));
	snprintf(config->build, sizeof(config->build), "%s", fi_tostr("1", FI_TYPE_VERSION));
	snprintf(config->library, sizeof(config->library), "%s", fabric_library_path());
}

int channel_mr_reg(struct channel *ch, void *mem, size_t len, uint64_t access,
		   struct fid_mr **mr)
{
	struct fid_mr *got;
	int rc;

	rc = fi_mr_reg(ch->end.domain, mem, len, access, 0, ++ch->next_key, 0, &got, NULL);
	if (rc)
		return fabric_complain("fi_mr_reg", rc);
	if (ch->info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		rc = fi_mr_bind(got, &ch->end.ep->fid, 0);
		if (!rc)
			rc = fi_mr_enable(got);
	}
	if (rc) {
		fabric_close(&got->fid, "fi_close of a memory region");
		return fabric_complain("fi_mr_bind or fi_mr_enable", rc);
	}
	*mr = got;
	return 0;
}

int channel_buf_init(struct channel *ch, struct channel_buf *buf, void *addr, size_t len,
		     uint32_t slot)
{
	memset(buf, 0, sizeof(*buf));
	buf->addr = addr;
	buf->op.slot = slot;
	if (!(ch->info->domain_attr->mr_mode & FI_MR_LOCAL) || !len)
		return 0;
	return channel_mr_reg(ch, addr, len, FI_SEND | FI_RECV, &buf->mr);
}

void channel_buf_fini(struct channel_buf *buf)
{
	if (buf->mr)
		fabric_close(&buf->mr->fid, "fi_close of a memory region");
	buf->mr = NULL;
}

static void *desc_of(const struct channel_buf *buf)
{
	return buf->mr ? fi_mr_desc(buf->mr) : NULL;
}

/* What a provider says of an error, behind its name: nothing where that is the name again. */
static void complain_of_entry(struct channel *ch, const struct fi_cq_err_entry *entry)
{
	const char *name = fi_strerror(entry->err), *text;
	char room[128];

	text = fi_cq_strerror(ch->end.cq, entry->prov_errno, entry->err_data, room,
			      sizeof(room));
	if (text && *text && strcmp(text, name))
		warnx("an operation failed: %s (%s)", name, text);
	else
		warnx("an operation failed: %s", name);
}

/* Returns 1 for the end of a receive that was cancelled, 0 if there was nothing, or an error. */
static int take_error(struct channel *ch)
{
	struct fi_cq_err_entry entry = { 0 };
	struct channel_op *op;
	ssize_t rc;

	rc = fi_cq_readerr(ch->end.cq, &entry, 0);
	if (rc == -FI_EAGAIN)
		return 0;
	if (rc < 0)
		return fabric_complain("fi_cq_readerr", (int)rc);
	op = entry.op_context;
	if (entry.err == FI_ECANCELED && op && op->cancelled) {
		op->busy = false;
		return 1;
	}
	complain_of_entry(ch, &entry);
	return entry.err ? -entry.err : -FI_EIO;
}

/* What a read of the queue returned. Returns 1, 0 if there was nothing, or an error. */
static inline int take(struct channel *ch, ssize_t rc, const struct fi_cq_tagged_entry *entry)
{
	struct channel_message *msg;
	struct channel_op *op;

	if (rc == -FI_EAGAIN)
		return 0;
	if (rc == -FI_EAVAIL)
		return take_error(ch);
	if (rc < 0)
		return fabric_complain("fi_cq_read", (int)rc);
	op = entry->op_context;
	op->busy = false;
	if (op->is_recv) {
		msg = &ch->rx_log[ch->rx_done++ % CHANNEL_RX_LOG];
		msg->len = entry->len;
		msg->slot = op->slot;
	} else {
		ch->tx_done++;
	}
	return 1;
}

/* Reads at most one completion. Returns as take(). */
static inline int read_one(struct channel *ch)
{
	struct fi_cq_tagged_entry entry;

	return take(ch, fi_cq_read(ch->end.cq, &entry, 1), &entry);
}

static int complain_of_wait(struct channel *ch, int rc)
{
	if (rc)
		return fabric_complain("a wait for the completion queue", rc);
	warnx("nothing completed for %u s", ch->opt.timeout_s);
	return -FI_ETIMEDOUT;
}

/* As a program does that polls the descriptor with others. */
static int wait_fd(struct channel *ch, int timeout_ms)
{
	struct pollfd fd = { .fd = ch->wait_fd, .events = POLLIN };
	struct fid *queue = &ch->end.cq->fid;
	int rc = read_one(ch);

	if (rc)
		return rc;
	rc = fi_trywait(ch->end.fabric, &queue, 1);
	if (rc)
		return rc == -FI_EAGAIN ? 0 : complain_of_wait(ch, rc);
	rc = poll(&fd, 1, timeout_ms);
	if (rc < 0 && errno != EINTR)
		return complain_of_wait(ch, -errno);
	return rc ? read_one(ch) : complain_of_wait(ch, 0);
}

static int wait_sread(struct channel *ch, int timeout_ms)
{
	struct fi_cq_tagged_entry entry;
	ssize_t rc = fi_cq_sread(ch->end.cq, &entry, 1, NULL, timeout_ms);

	return rc == -FI_EAGAIN ? complain_of_wait(ch, 0) : take(ch, rc, &entry);
}

/* Takes at most one completion, and sleeps for one if the plan says so. Returns as take(). */
static inline int channel_progress(struct channel *ch)
{
	if (ch->wait == PLAN_WAIT_POLL)
		return read_one(ch);
	return ch->wait == PLAN_WAIT_FD ? wait_fd(ch, (int)ch->opt.timeout_s * 1000)
					: wait_sread(ch, (int)ch->opt.timeout_s * 1000);
}

#include "channel_wait.h"

/* A turn that does not sleep: what it waits for is room, which need not come with a completion. */
static int turn_awake(struct channel *ch, struct channel_deadline *deadline)
{
	int rc = read_one(ch);

	return rc ? rc : channel_idle(ch, deadline);
}

static ssize_t post_send(struct channel *ch, struct channel_buf *buf, size_t len)
{
	void *desc;

	if (len <= ch->inject_size)
		return ch->tagged ? fi_tinject(ch->end.ep, buf->addr, len, ch->peer, TAG)
				  : fi_inject(ch->end.ep, buf->addr, len, ch->peer);
	desc = desc_of(buf);
	return ch->tagged
		       ? fi_tsend(ch->end.ep, buf->addr, len, desc, ch->peer, TAG,
				  &buf->op.context)
		       : fi_send(ch->end.ep, buf->addr, len, desc, ch->peer, &buf->op.context);
}

int channel_send(struct channel *ch, struct channel_buf *buf, size_t len)
{
	struct channel_deadline deadline = { 0 };
	ssize_t rc;
	int ran;

	buf->op.is_recv = false;
	while ((rc = post_send(ch, buf, len)) == -FI_EAGAIN) {
		ran = turn_awake(ch, &deadline);
		if (ran < 0)
			return ran;
	}
	if (rc)
		return fabric_complain("send", (int)rc);
	/* An injected message brings no completion. */
	if (len <= ch->inject_size)
		ch->tx_done++;
	else
		buf->op.busy = true;
	return 0;
}

static ssize_t post_recv(struct channel *ch, struct channel_buf *buf, size_t len)
{
	void *desc = desc_of(buf);

	return ch->tagged ? fi_trecv(ch->end.ep, buf->addr, len, desc, FI_ADDR_UNSPEC, TAG, 0,
				     &buf->op.context)
			  : fi_recv(ch->end.ep, buf->addr, len, desc, FI_ADDR_UNSPEC,
				    &buf->op.context);
}

int channel_recv(struct channel *ch, struct channel_buf *buf, size_t len)
{
	struct channel_deadline deadline = { 0 };
	ssize_t rc;
	int ran;

	buf->op.is_recv = true;
	while ((rc = post_recv(ch, buf, len)) == -FI_EAGAIN) {
		ran = turn_awake(ch, &deadline);
		if (ran < 0)
			return ran;
	}
	if (rc)
		return fabric_complain("receive", (int)rc);
	buf->op.busy = true;
	return 0;
}

int channel_cancel(struct channel *ch, struct channel_buf *buf)
{
	ssize_t rc;

	if (!buf->op.busy)
		return 0;
	buf->op.cancelled = true;
	rc = fi_cancel(&ch->end.ep->fid, &buf->op.context);
	/* It has ended meanwhile, and its completion is in the queue. */
	if (rc && rc != -FI_ENOENT)
		return fabric_complain("fi_cancel", (int)rc);
	return channel_wait_op(ch, &buf->op);
}
