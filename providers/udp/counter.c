/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counter object: to read a counter takes what has arrived for its endpoints. Called by
 * programs, on any thread. Source: fi_cntr(3).
 */
#include "absent.h"
#include "report.h"
#include "wait_set.h"

static struct udp_cntr *cntr_of(struct fid_cntr *fid)
{
	return container_of(fid, struct udp_cntr, fid);
}

bool udp_cntr_moved(const struct udp_cntr *cntr)
{
	return cntr->value != cntr->seen_value || cntr->errors != cntr->seen_errors;
}

/* Makes progress, and returns a value of the counter. */
static uint64_t cntr_look(struct udp_cntr *cntr, const uint64_t *which)
{
	uint64_t value;

	if (!udp_enter(cntr->wait.domain))
		return *which;
	udp_wait_progress(&cntr->wait);
	value = *which;
	cntr->seen_value = cntr->value;
	cntr->seen_errors = cntr->errors;
	udp_leave(cntr->wait.domain);
	return value;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	return cntr_look(cntr_of(fid), &cntr_of(fid)->value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	return cntr_look(cntr_of(fid), &cntr_of(fid)->errors);
}

void udp_cntr_polled(struct udp_cntr *cntr)
{
	cntr->polled_value = cntr->value;
	cntr->polled_errors = cntr->errors;
}

/* Changes a value: adds to what is there, or to 0. Of successes, fi_poll reports what comes later. */
static int cntr_change(struct udp_cntr *cntr, uint64_t *which, bool add, uint64_t value)
{
	if (!udp_enter(cntr->wait.domain))
		return -FI_EOPBADSTATE;
	*which = (add ? *which : 0) + value;
	if (which == &cntr->value)
		udp_cntr_polled(cntr);
	udp_wait_notify(&cntr->wait);
	udp_leave(cntr->wait.domain);
	return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(cntr_of(fid), &cntr_of(fid)->value, true, value);
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(cntr_of(fid), &cntr_of(fid)->value, false, value);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(cntr_of(fid), &cntr_of(fid)->errors, true, value);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(cntr_of(fid), &cntr_of(fid)->errors, false, value);
}

/* What fi_cntr_wait waits for. */
struct cntr_want {
	uint64_t threshold, end;
	/* errors when it began */
	uint64_t errors;
	struct udp_sleeper sleeper;
};

/* Returns what fi_cntr_wait returns, or arms the counter for a sleep and returns -FI_EAGAIN. */
static int cntr_look_or_arm(struct udp_cntr *cntr, struct cntr_want *want)
{
	int ret = -FI_EAGAIN;

	if (!udp_enter(cntr->wait.domain))
		return -FI_EOPBADSTATE;
	udp_wait_look(&cntr->wait, &want->sleeper);
	udp_wait_progress(&cntr->wait);
	/* That there is room ends no wait for a value; it is not to end the next one either. */
	udp_wait_room(&cntr->wait);
	if (cntr->value >= want->threshold)
		ret = 0;
	else if (cntr->errors != want->errors)
		ret = -FI_EAVAIL;
	else if (want->end != UINT64_MAX && platform_now_ns() >= want->end)
		ret = -FI_ETIMEDOUT;
	else
		udp_wait_doze(&cntr->wait, &want->sleeper);
	cntr->seen_value = cntr->value;
	cntr->seen_errors = cntr->errors;
	udp_leave(cntr->wait.domain);
	return ret;
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct udp_cntr *cntr = cntr_of(fid);
	struct cntr_want want = { .threshold = threshold, .end = udp_wait_end(timeout) };
	int ret, interrupted = 0;

	if (cntr->wait.type == FI_WAIT_NONE || cntr->wait.type == FI_WAIT_SET)
		return udp_refuse(
			FI_LOG_CNTR, -FI_ENOSYS, "fi_cntr_wait",
			"the counter has no wait object of its own; open it with wait_obj "
			"FI_WAIT_UNSPEC or FI_WAIT_FD");
	if (!udp_enter(cntr->wait.domain))
		return -FI_EOPBADSTATE;
	want.errors = cntr->errors;
	udp_leave(cntr->wait.domain);
	while ((ret = cntr_look_or_arm(cntr, &want)) == -FI_EAGAIN) {
		interrupted = udp_wait_rest(&cntr->wait, &want.sleeper, want.end);
		if (interrupted)
			want.end = 0;
	}
	return ret == -FI_ETIMEDOUT && interrupted ? interrupted : ret;
}

static int cntr_no_export(struct fid_cntr *fid, uint64_t flags, struct fid_xpu_cntr *xpu)
{
	return -FI_ENOSYS;
}

static int cntr_close(struct fid *fid)
{
	struct udp_cntr *cntr = container_of(fid, struct udp_cntr, fid.fid);

	if (udp_in_use(&cntr->refs))
		return udp_refuse(FI_LOG_CNTR, -FI_EBUSY, "fi_close of a counter",
				  "an endpoint has it; close that first");
	udp_poll_forget(&cntr->wait);
	udp_set_leave(&cntr->wait.member, cntr->wait.epoll);
	udp_wait_close(&cntr->wait);
	udp_unref(&cntr->wait.domain->refs);
	platform_free(cntr);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	return udp_wait_control(&container_of(fid, struct udp_cntr, fid.fid)->wait, command,
				arg);
}

static struct fi_ops cntr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = udp_no_bind,
	.control = cntr_control,
	.ops_open = udp_no_ops_open,
	.tostr = udp_no_tostr,
	.ops_set = udp_no_ops_set,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
	.export_xpu = cntr_no_export,
};

int udp_cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
		  void *context)
{
	struct udp_domain *domain = container_of(fid, struct udp_domain, fid);
	struct udp_cntr *cntr;
	int ret;

	if (!out)
		return udp_refuse(FI_LOG_CNTR, -FI_EINVAL, "fi_cntr_open",
				  "NULL where the counter is to go");
	if (attr && (attr->flags || attr->events != FI_CNTR_EVENTS_COMP))
		return udp_refuse(FI_LOG_CNTR, attr->flags ? -FI_EBADFLAGS : -FI_ENOSYS,
				  "fi_cntr_open", "no flags, and events are completions");
	ret = attr ? udp_wait_type(attr->wait_obj) : 0;
	cntr = ret ? NULL : platform_alloc(sizeof(*cntr));
	if (!cntr)
		return ret ? ret : -FI_ENOMEM;
	ret = udp_wait_open(&cntr->wait, domain, attr ? attr->wait_obj : FI_WAIT_UNSPEC);
	if (ret) {
		platform_free(cntr);
		return ret;
	}
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &cntr_fi_ops;
	cntr->fid.ops = &cntr_ops;
	if (attr && attr->wait_obj == FI_WAIT_SET)
		ret = udp_set_join(&cntr->wait.member, &cntr->fid.fid, attr->wait_set,
				   domain->fabric, cntr->wait.epoll);
	if (ret) {
		udp_wait_close(&cntr->wait);
		platform_free(cntr);
		return ret;
	}
	udp_ref(&domain->refs);
	*out = &cntr->fid;
	return 0;
}
