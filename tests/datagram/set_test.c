/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait sets: a completion queue, a counter and an event queue are slept on together. One thread, or
 * one that sends beside it.
 */
#include <poll.h>
#include <pthread.h>
#include "party.h"

/* Wait sets are deprecated, and in use. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static struct party a, b;
static struct fid_wait *set;
static struct fid_cq *cq;
static struct fid_cntr *cntr;
static struct fid_eq *eq;
static struct fid_ep *ep;
static struct fid *set_fids[1];
static fi_addr_t to;

/* The queue and counter of an endpoint of @a's domain, which @b sends to. */
static void open_all(enum fi_wait_obj wait)
{
	struct fi_wait_attr attr = { .wait_obj = wait };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_SET };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_SET };
	struct sockaddr_in6 name;
	size_t len = sizeof(name);

	party_open(&a, &(struct party_choice){ 0 });
	party_open(&b, &(struct party_choice){ 0 });
	assert_int_equal(fi_wait_open(a.fabric, &attr, &set), 0);
	set_fids[0] = &set->fid;
	cq_attr.wait_set = cntr_attr.wait_set = eq_attr.wait_set = set;
	assert_int_equal(fi_cq_open(a.domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_cntr_open(a.domain, &cntr_attr, &cntr, NULL), 0);
	assert_int_equal(fi_eq_open(a.fabric, &eq_attr, &eq, NULL), 0);
	assert_int_equal(fi_endpoint(a.domain, a.info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &a.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(ep, &cntr->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_getname(&ep->fid, &name, &len), 0);
	assert_int_equal(fi_av_insert(b.av, &name, 1, &to, 0, NULL), 1);
}

static void close_all(void)
{
	assert_int_equal(fi_close(&set->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_wait(set, 0), -FI_ETIMEDOUT);
	assert_int_equal(fi_close(&set->fid), 0);
	party_close(&a);
	party_close(&b);
}

static void *send_one(void *arg)
{
	return (void *)(intptr_t)fi_inject(b.ep, "x", 1, to);
}

static void assert_received(const char *in)
{
	struct fi_cq_tagged_entry entry;

	assert_int_equal(fi_cq_read(cq, &entry, 1), 1);
	assert_ptr_equal(entry.op_context, in);
	/* Read, so that it has nothing new. */
	fi_cntr_read(cntr);
}

static void a_message_ends_a_wait_on_the_set(void **state)
{
	pthread_t thread;
	void *ret;
	char in;

	for (int w = 0; w < 3; w++) {
		open_all(w == 0 ? FI_WAIT_UNSPEC : w == 1 ? FI_WAIT_FD : FI_WAIT_YIELD);
		assert_int_equal(fi_wait(set, 10), -FI_ETIMEDOUT);
		for (int i = 0; i < 10; i++) {
			assert_int_equal(fi_recv(ep, &in, 1, NULL, 0, &in), 0);
			assert_int_equal(pthread_create(&thread, NULL, send_one, NULL), 0);
			assert_int_equal(fi_wait(set, PARTY_WAIT_MS), 0);
			assert_int_equal(fi_trywait(a.fabric, set_fids, 1), -FI_EAGAIN);
			assert_received(&in);
			assert_int_equal(pthread_join(thread, &ret), 0);
			assert_null(ret);
			assert_int_equal(fi_wait(set, 0), -FI_ETIMEDOUT);
		}
		close_all();
	}
}

static void each_member_ends_a_wait(void **state)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event;

	open_all(FI_WAIT_UNSPEC);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	assert_int_equal(fi_wait(set, PARTY_WAIT_MS), 0);
	assert_int_equal(fi_cntr_read(cntr), 1);
	assert_int_equal(fi_wait(set, 0), -FI_ETIMEDOUT);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fi_wait(set, PARTY_WAIT_MS), 0);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fi_wait(set, 0), -FI_ETIMEDOUT);
	assert_int_equal(fi_cq_signal(cq), 0);
	assert_int_equal(fi_wait(set, PARTY_WAIT_MS), 0);
	assert_int_equal(fi_wait(set, 0), -FI_ETIMEDOUT);
	close_all();
}

static void the_descriptor_of_a_set_says_when_to_read(void **state)
{
	struct pollfd p = { .events = POLLIN };
	enum fi_wait_obj type;
	char in;

	open_all(FI_WAIT_FD);
	assert_int_equal(fi_control(&set->fid, FI_GETWAITOBJ, &type), 0);
	assert_int_equal(type, FI_WAIT_FD);
	assert_int_equal(fi_control(&cq->fid, FI_GETWAITOBJ, &type), 0);
	assert_int_equal(type, FI_WAIT_SET);
	assert_int_equal(fi_control(&set->fid, FI_GETWAIT, &p.fd), 0);
	assert_int_equal(fi_trywait(a.fabric, set_fids, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(fi_recv(ep, &in, 1, NULL, 0, &in), 0);
	assert_int_equal(fi_inject(b.ep, "x", 1, to), 0);
	assert_int_equal(poll(&p, 1, PARTY_WAIT_MS), 1);
	assert_int_equal(fi_trywait(a.fabric, set_fids, 1), -FI_EAGAIN);
	assert_received(&in);
	assert_int_equal(fi_trywait(a.fabric, set_fids, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	close_all();
}

static void what_a_set_is_not_for_is_refused(void **state)
{
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_SET };
	struct fi_cq_tagged_entry entry;
	struct fid_wait *other;
	struct fid_cq *none;

	open_all(FI_WAIT_UNSPEC);
	assert_int_equal(fi_cq_sread(cq, &entry, 1, NULL, 0), -FI_ENOSYS);
	assert_int_equal(fi_cntr_wait(cntr, 1, 0), -FI_ENOSYS);
	assert_int_equal(fi_cq_open(a.domain, &cq_attr, &none, NULL), -FI_EINVAL);
	cq_attr.wait_set = set;
	assert_int_equal(fi_cq_open(b.domain, &cq_attr, &none, NULL), -FI_EINVAL);
	assert_int_equal(fi_wait_open(a.fabric, &attr, &other), -FI_ENOSYS);
	attr = (struct fi_wait_attr){ .wait_obj = FI_WAIT_FD, .flags = 1 };
	assert_int_equal(fi_wait_open(a.fabric, &attr, &other), -FI_EBADFLAGS);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_ends_a_wait_on_the_set),
		cmocka_unit_test(each_member_ends_a_wait),
		cmocka_unit_test(the_descriptor_of_a_set_says_when_to_read),
		cmocka_unit_test(what_a_set_is_not_for_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
