/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of what a program reads and waits for, completion queues in each format and with each
 * way to wait, counters, event queues, wait sets and poll sets: each slot of each of their tables
 * works, or is refused with -FI_ENOSYS. See surface.h.
 *
 * usage: surface_queues_test PROVIDER
 */
#include "surface.h"

#define LONG_MS 20000
#define BLOCKS	DOES_SETTINGS /* of a subject: it was opened with something to wait with */

static const enum fi_threading threadings[] = { FI_THREAD_SAFE, FI_THREAD_DOMAIN };
static const enum fi_wait_obj wait_objs[] = { FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD,
					      FI_WAIT_YIELD };

/* Completion queues: u->cq is that of u->ep */

static enum fi_cq_format format;

/* A message arrives; its completion is not read. */
static void message(struct subject *u)
{
	assert_int_equal(fi_trecv(u->ep, u->in, SURFACE_LEN, NULL, u->peer->addr, SURFACE_TAG,
				  0, &u->context),
			 0);
	END_TAKEN(fi_tinjectdata(u->peer->ep, u->out, SURFACE_LEN, SURFACE_DATA, u->at,
				 SURFACE_TAG),
		  fi_cq_read(u->cq, NULL, 0));
}

/* As far as the format goes. */
static void is_entry(struct subject *u, const struct fi_cq_tagged_entry *entry)
{
	assert_ptr_equal(entry->op_context, &u->context);
	if (format < FI_CQ_FORMAT_MSG)
		return;
	assert_int_equal(entry->flags, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
	assert_int_equal(entry->len, SURFACE_LEN);
	if (format < FI_CQ_FORMAT_DATA)
		return;
	assert_int_equal(entry->data, SURFACE_DATA);
	if (format == FI_CQ_FORMAT_TAGGED)
		assert_int_equal(entry->tag, SURFACE_TAG);
}

static ssize_t told(struct subject *u, ssize_t ret, const struct fi_cq_tagged_entry *entry)
{
	if (ret != 1)
		return ret;
	is_entry(u, entry);
	assert_memory_equal(u->in, u->out, SURFACE_LEN);
	return 0;
}

static ssize_t call_read(struct subject *u)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	message(u);
	END_UNTIL((ret = fi_cq_read(u->cq, &entry, 1)) != -FI_EAGAIN, );
	return told(u, ret, &entry);
}

static ssize_t call_readfrom(struct subject *u)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t src = FI_ADDR_NOTAVAIL;
	ssize_t ret;

	message(u);
	END_UNTIL((ret = fi_cq_readfrom(u->cq, &entry, 1, &src)) != -FI_EAGAIN, );
	assert_int_equal(src, u->peer->addr);
	return told(u, ret, &entry);
}

static ssize_t call_readerr(struct subject *u)
{
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_readerr(u->cq, &err, 0);

	assert_int_equal(ret, -FI_EAGAIN);
	assert_int_equal(
		fi_trecv(u->ep, u->in, SURFACE_LEN, NULL, FI_ADDR_UNSPEC, 0, 0, &u->context), 0);
	assert_int_equal(fi_cancel(&u->ep->fid, &u->context), 0);
	ret = fi_cq_readerr(u->cq, &err, 0);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &u->context);
	return ret == 1 ? 0 : ret;
}

static ssize_t call_sread(struct subject *u)
{
	struct fi_cq_tagged_entry entry;

	if (!(u->does & BLOCKS))
		return fi_cq_sread(u->cq, &entry, 1, NULL, LONG_MS);
	message(u);
	return told(u, fi_cq_sread(u->cq, &entry, 1, NULL, LONG_MS), &entry);
}

static ssize_t call_sreadfrom(struct subject *u)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t src = FI_ADDR_NOTAVAIL;
	ssize_t ret;

	if (!(u->does & BLOCKS))
		return fi_cq_sreadfrom(u->cq, &entry, 1, &src, NULL, LONG_MS);
	message(u);
	ret = fi_cq_sreadfrom(u->cq, &entry, 1, &src, NULL, LONG_MS);
	assert_int_equal(src, u->peer->addr);
	return told(u, ret, &entry);
}

static ssize_t call_signal(struct subject *u)
{
	struct fi_cq_tagged_entry entry;
	double begin = end_now();
	int ret = fi_cq_signal(u->cq);

	if (ret || !(u->does & BLOCKS))
		return ret;
	assert_int_equal(fi_cq_sread(u->cq, &entry, 1, NULL, LONG_MS), -FI_EAGAIN);
	assert_true(end_now() - begin < LONG_MS / 2e3);
	return 0;
}

static ssize_t call_strerror(struct subject *u)
{
	char text[80] = "";

	assert_ptr_equal(fi_cq_strerror(u->cq, FI_ECANCELED, NULL, text, sizeof(text)), text);
	assert_string_equal(text, fi_strerror(FI_ECANCELED));
	return 0;
}

static ssize_t call_cq_export(struct subject *u)
{
	return fi_cq_export_xpu(u->cq, 0, NULL);
}

static const struct slot cq_slots[] = {
	SLOT(fi_ops_cq, read, 0, call_read, NULL),
	SLOT(fi_ops_cq, readfrom, 0, call_readfrom, NULL),
	SLOT(fi_ops_cq, readerr, 0, call_readerr, NULL),
	SLOT(fi_ops_cq, sread, BLOCKS, call_sread, NULL),
	SLOT(fi_ops_cq, sreadfrom, BLOCKS, call_sreadfrom, NULL),
	SLOT(fi_ops_cq, signal, 0, call_signal, NULL),
	SLOT(fi_ops_cq, strerror, 0, call_strerror, NULL),
	SLOT(fi_ops_cq, export_xpu, DOES_NOT, call_cq_export, NULL),
};
ALL_SLOTS(fi_ops_cq, cq_slots);

static void walk_cq(struct surface *s, const struct fi_cq_attr *attr)
{
	struct fi_cq_attr given = *attr;
	struct party p = { 0 };
	struct subject u;
	char name[64];

	snprintf(name, sizeof(name), "queue of format %d, to wait with %d", attr->format,
		 attr->wait_obj);
	assert_int_equal(fi_cq_open(s->domain, &given, &p.cq, NULL), 0);
	assert_int_equal(fi_endpoint(s->domain, s->info, &p.ep, NULL), 0);
	assert_int_equal(fi_ep_bind(p.ep, &s->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(p.ep, &p.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	party_enable(s, &p);
	surface_subject(&u, s, name, p.ep, attr->wait_obj != FI_WAIT_NONE ? BLOCKS : 0);
	u.cq = p.cq;
	u.at = p.addr;
	format = attr->format;
	surface_walk(&u, "fi_ops_cq", p.cq->ops, cq_slots, COUNT_OF(cq_slots));
	assert_int_equal(fi_close(&p.cq->fid), -FI_EBUSY);
	party_close(&p);
}

static void completions_are_told_in_each_format(void **state)
{
	struct surface s;

	for (size_t t = 0; t < COUNT_OF(threadings); t++) {
		surface_open(&s, surface_all(), threadings[t]);
		for (int f = FI_CQ_FORMAT_CONTEXT; f <= FI_CQ_FORMAT_TAGGED; f++)
			for (size_t w = 0; w < COUNT_OF(wait_objs); w++)
				walk_cq(&s, &(struct fi_cq_attr){ .format = (enum fi_cq_format)f,
								  .wait_obj = wait_objs[w] });
		surface_close(&s);
	}
}

/* Counters: u->arg */

static ssize_t call_cntr_read(struct subject *u)
{
	return fi_cntr_read(u->arg) == 0 ? 0 : -FI_EOTHER;
}

static ssize_t call_cntr_readerr(struct subject *u)
{
	return fi_cntr_readerr(u->arg) == 0 ? 0 : -FI_EOTHER;
}

static ssize_t call_add(struct subject *u)
{
	int ret = fi_cntr_add(u->arg, 3);

	END_UNTIL(fi_cntr_read(u->arg) == 3, );
	return ret;
}

static ssize_t call_set(struct subject *u)
{
	int ret = fi_cntr_set(u->arg, 10);

	END_UNTIL(fi_cntr_read(u->arg) == 10, );
	return ret;
}

static ssize_t call_cntr_wait(struct subject *u)
{
	assert_int_equal(fi_cntr_wait(u->arg, 11, 1), -FI_ETIMEDOUT);
	return fi_cntr_wait(u->arg, 10, LONG_MS);
}

static ssize_t call_adderr(struct subject *u)
{
	int ret = fi_cntr_adderr(u->arg, 2);

	END_UNTIL(fi_cntr_readerr(u->arg) == 2, );
	return ret;
}

static ssize_t call_seterr(struct subject *u)
{
	int ret = fi_cntr_seterr(u->arg, 5);

	END_UNTIL(fi_cntr_readerr(u->arg) == 5, );
	return ret;
}

static ssize_t call_cntr_export(struct subject *u)
{
	return fi_cntr_export_xpu(u->arg, 0, NULL);
}

static const struct slot cntr_slots[] = {
	SLOT(fi_ops_cntr, read, 0, call_cntr_read, NULL),
	SLOT(fi_ops_cntr, readerr, 0, call_cntr_readerr, NULL),
	SLOT(fi_ops_cntr, add, 0, call_add, NULL),
	SLOT(fi_ops_cntr, set, 0, call_set, NULL),
	SLOT(fi_ops_cntr, wait, 0, call_cntr_wait, NULL),
	SLOT(fi_ops_cntr, adderr, 0, call_adderr, NULL),
	SLOT(fi_ops_cntr, seterr, 0, call_seterr, NULL),
	SLOT(fi_ops_cntr, export_xpu, DOES_NOT, call_cntr_export, NULL),
};
ALL_SLOTS(fi_ops_cntr, cntr_slots);

static void counters_count(void **state)
{
	struct fid_cntr *cntr;
	struct surface s;
	struct subject u;

	for (size_t t = 0; t < COUNT_OF(threadings); t++) {
		surface_open(&s, surface_all(), threadings[t]);
		for (size_t w = 0; w < COUNT_OF(wait_objs); w++) {
			struct fi_cntr_attr attr = { .wait_obj = wait_objs[w] };

			assert_int_equal(fi_cntr_open(s.domain, &attr, &cntr, NULL), 0);
			surface_subject(&u, &s, "counter", NULL, 0);
			u.arg = cntr;
			surface_walk(&u, "fi_ops_cntr", cntr->ops, cntr_slots,
				     COUNT_OF(cntr_slots));
			assert_int_equal(fi_close(&cntr->fid), 0);
		}
		surface_close(&s);
	}
}

/* Event queues: u->arg. Events that are written are read, in order; a vector reports errors. */

static ssize_t call_eq_read(struct subject *u)
{
	uint32_t event = 0;
	ssize_t ret;

	assert_int_equal(fi_eq_read(u->arg, &event, u->in, sizeof(u->in), 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_write(u->arg, FI_NOTIFY, u->out, 8, 0), 8);
	ret = fi_eq_read(u->arg, &event, u->in, sizeof(u->in), 0);
	assert_int_equal(event, FI_NOTIFY);
	assert_memory_equal(u->in, u->out, 8);
	return ret == 8 ? 0 : ret;
}

static ssize_t call_eq_readerr(struct subject *u)
{
	struct fi_av_attr attr = { .flags = FI_EVENT };
	struct fi_eq_err_entry err = { 0 };
	char none[128] = { 0 };
	struct fi_eq_entry entry;
	struct fid_av *av;
	uint32_t event;
	ssize_t ret;

	assert_int_equal(fi_av_open(u->s->domain, &attr, &av, NULL), 0);
	assert_int_equal(fi_av_bind(av, &((struct fid_eq *)u->arg)->fid, 0), 0);
	assert_int_equal(fi_av_insert(av, none, 1, NULL, 0, &u->context), 0);
	assert_int_equal(fi_eq_read(u->arg, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	ret = fi_eq_readerr(u->arg, &err, 0);
	assert_ptr_equal(err.fid, &av->fid);
	assert_ptr_equal(err.context, &u->context);
	assert_int_equal(err.err, FI_EINVAL);
	assert_int_equal(fi_eq_read(u->arg, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fi_close(&av->fid), 0);
	return ret == sizeof(err) ? 0 : ret;
}

static ssize_t call_eq_write(struct subject *u)
{
	return call_eq_read(u);
}

static ssize_t call_eq_sread(struct subject *u)
{
	uint32_t event = 0;
	ssize_t ret;

	if (!(u->does & BLOCKS))
		return fi_eq_sread(u->arg, &event, u->in, sizeof(u->in), LONG_MS, 0);
	assert_int_equal(fi_eq_sread(u->arg, &event, u->in, sizeof(u->in), 1, 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_write(u->arg, FI_NOTIFY, u->out, 8, 0), 8);
	ret = fi_eq_sread(u->arg, &event, u->in, sizeof(u->in), LONG_MS, 0);
	return ret == 8 ? 0 : ret;
}

static ssize_t call_eq_strerror(struct subject *u)
{
	char text[80] = "";

	assert_ptr_equal(fi_eq_strerror(u->arg, FI_EINVAL, NULL, text, sizeof(text)), text);
	assert_string_equal(text, fi_strerror(FI_EINVAL));
	return 0;
}

static const struct slot eq_slots[] = {
	SLOT(fi_ops_eq, read, 0, call_eq_read, NULL),
	SLOT(fi_ops_eq, readerr, 0, call_eq_readerr, NULL),
	SLOT(fi_ops_eq, write, 0, call_eq_write, NULL),
	SLOT(fi_ops_eq, sread, BLOCKS, call_eq_sread, NULL),
	SLOT(fi_ops_eq, strerror, 0, call_eq_strerror, NULL),
};
ALL_SLOTS(fi_ops_eq, eq_slots);

static void events_are_written_and_read(void **state)
{
	struct surface s;
	struct subject u;
	struct fid_eq *eq;

	surface_open(&s, surface_all(), FI_THREAD_SAFE);
	for (size_t w = 0; w < COUNT_OF(wait_objs); w++) {
		struct fi_eq_attr attr = { .wait_obj = wait_objs[w], .flags = FI_WRITE };

		assert_int_equal(fi_eq_open(s.fabric, &attr, &eq, NULL), 0);
		surface_subject(&u, &s, "event queue", NULL,
				wait_objs[w] != FI_WAIT_NONE ? BLOCKS : 0);
		u.arg = eq;
		surface_walk(&u, "fi_ops_eq", eq->ops, eq_slots, COUNT_OF(eq_slots));
		assert_int_equal(fi_close(&eq->fid), 0);
	}
	surface_close(&s);
}

/* Wait sets and poll sets: u->opened is a counter to wait for */

static struct fid_cntr *counter(struct subject *u)
{
	return (struct fid_cntr *)u->opened;
}

static ssize_t call_wait(struct subject *u)
{
	assert_int_equal(fi_wait(u->arg, 1), -FI_ETIMEDOUT);
	assert_int_equal(fi_cntr_add(counter(u), 1), 0);
	return fi_wait(u->arg, LONG_MS);
}

static const struct slot wait_slots[] = { SLOT(fi_ops_wait, wait, 0, call_wait, NULL) };
ALL_SLOTS(fi_ops_wait, wait_slots);

static ssize_t call_poll(struct subject *u)
{
	struct fi_cq_tagged_entry entry;
	void *context = NULL;
	int ret;

	assert_int_equal(fi_poll_add(u->arg, &u->cq->fid, 0), 0);
	assert_int_equal(fi_poll(u->arg, &context, 1), 0);
	message(u);
	END_UNTIL((ret = fi_poll(u->arg, &context, 1)), );
	assert_ptr_equal(context, u->cq->fid.context);
	assert_int_equal(fi_cq_read(u->cq, &entry, 1), 1);
	assert_int_equal(fi_poll_del(u->arg, &u->cq->fid, 0), 0);
	return ret == 1 ? 0 : ret;
}

static ssize_t call_poll_add(struct subject *u)
{
	return fi_poll_add(u->arg, u->opened, 0);
}

static ssize_t call_poll_del(struct subject *u)
{
	int ret = fi_poll_del(u->arg, u->opened, 0);

	assert_int_equal(fi_poll_del(u->arg, u->opened, 0), 0); /* it is not there */
	return ret;
}

static const struct slot poll_slots[] = {
	SLOT(fi_ops_poll, poll, 0, call_poll, NULL),
	SLOT(fi_ops_poll, poll_add, 0, call_poll_add, NULL),
	SLOT(fi_ops_poll, poll_del, 0, call_poll_del, NULL),
};
ALL_SLOTS(fi_ops_poll, poll_slots);

static void sets_tell_who_has_something(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_UNSPEC, FI_WAIT_YIELD, FI_WAIT_FD };
	struct fid_cntr *cntr;
	struct fid_wait *wait;
	struct fid_poll *poll;
	struct surface s;
	struct subject u;

	surface_open(&s, surface_all(), FI_THREAD_SAFE);
	for (size_t w = 0; w < COUNT_OF(objs); w++) {
		struct fi_wait_attr attr = { .wait_obj = objs[w] };
		struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_SET };

		assert_int_equal(fi_wait_open(s.fabric, &attr, &wait), 0);
		cntr_attr.wait_set = wait;
		assert_int_equal(fi_cntr_open(s.domain, &cntr_attr, &cntr, NULL), 0);
		surface_subject(&u, &s, "wait set", NULL, 0);
		u.arg = wait;
		u.opened = &cntr->fid;
		surface_walk(&u, "fi_ops_wait", wait->ops, wait_slots, COUNT_OF(wait_slots));
		/* What is in a set may be waited for alone. */
		assert_int_equal(fi_cntr_wait(cntr, 1000, 1), -FI_ETIMEDOUT);
		assert_int_equal(fi_close(w ? &wait->fid : &cntr->fid), 0);
		assert_int_equal(fi_close(w ? &cntr->fid : &wait->fid), 0);
	}
	assert_int_equal(fi_poll_open(s.domain, NULL, &poll), 0);
	assert_int_equal(fi_cntr_open(s.domain, NULL, &cntr, NULL), 0);
	surface_subject(&u, &s, "poll set", s.near.ep, 0);
	u.arg = poll;
	u.opened = &cntr->fid;
	format = FI_CQ_FORMAT_TAGGED;
	surface_walk(&u, "fi_ops_poll", poll->ops, poll_slots, COUNT_OF(poll_slots));
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&poll->fid), 0);
	surface_close(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completions_are_told_in_each_format),
		cmocka_unit_test(counters_count),
		cmocka_unit_test(events_are_written_and_read),
		cmocka_unit_test(sets_tell_who_has_something),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	surface_provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
