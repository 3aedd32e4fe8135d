/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What programs do wrong, against libfabric.so.1 and each provider: a clear negative error, and
 * an endpoint that works afterwards. One process, its main thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define ADDR_MAX 64

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t self;
};

static const char *provider;

static struct fi_info *offer(uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = caps;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	return info;
}

/* Everything up to the endpoint, not enabled. */
static void side_make_for(struct side *s, uint64_t caps)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };

	s->info = offer(caps);
	assert_int_equal(fi_fabric(s->info->fabric_attr, &s->fabric, NULL), 0);
	assert_int_equal(fi_domain(s->fabric, s->info, &s->domain, NULL), 0);
	assert_int_equal(fi_av_open(s->domain, &av_attr, &s->av, NULL), 0);
	assert_int_equal(fi_cq_open(s->domain, &cq_attr, &s->cq, NULL), 0);
	assert_int_equal(fi_endpoint(s->domain, s->info, &s->ep, NULL), 0);
}

static void side_make(struct side *s)
{
	side_make_for(s, FI_MSG | FI_TAGGED);
}

static void side_enable(struct side *s)
{
	char name[ADDR_MAX];
	size_t len = sizeof(name);

	assert_int_equal(fi_ep_bind(s->ep, &s->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(s->ep), 0);
	assert_int_equal(fi_getname(&s->ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(s->av, name, 1, &s->self, 0, NULL), 1);
}

static void side_end(struct side *s)
{
	assert_int_equal(fi_close(&s->ep->fid), 0);
	assert_int_equal(fi_close(&s->cq->fid), 0);
	assert_int_equal(fi_close(&s->av->fid), 0);
	assert_int_equal(fi_close(&s->domain->fid), 0);
	assert_int_equal(fi_close(&s->fabric->fid), 0);
	fi_freeinfo(s->info);
}

static void next(struct side *s, struct fi_cq_tagged_entry *entry)
{
	ssize_t ret;

	do {
		ret = fi_cq_read(s->cq, entry, 1);
	} while (ret == -FI_EAGAIN);
	assert_int_equal(ret, 1);
}

/* Whatever went before: a message to oneself arrives. */
static void still_works(struct side *s)
{
	struct fi_cq_tagged_entry entry;
	uint64_t out = 0x5eed, in = 0;

	assert_int_equal(fi_trecv(s->ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 99, 0, &in), 0);
	assert_int_equal(fi_tsend(s->ep, &out, sizeof(out), NULL, s->self, 99, &out), 0);
	next(s, &entry);
	next(s, &entry);
	assert_int_equal(in, out);
}

static void forged_addresses_are_refused(void **state)
{
	unsigned char junk[4 * ADDR_MAX];
	int errors[4] = { 0 };
	struct side s = { 0 };
	fi_addr_t out[4];

	side_make(&s);
	side_enable(&s);
	memset(junk, 0xa5, sizeof(junk));
	assert_int_equal(fi_av_insert(s.av, junk, 4, out, FI_SYNC_ERR, errors), 0);
	for (int i = 0; i < 4; i++) {
		assert_true(out[i] == FI_ADDR_NOTAVAIL);
		assert_int_not_equal(errors[i], 0);
	}
	memset(junk, 0, sizeof(junk));
	assert_int_equal(fi_av_insert(s.av, junk, 1, out, 0, NULL), 0);
	assert_int_equal(fi_av_insert(s.av, NULL, 1, out, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insert(s.av, junk, 1, out, 1ull << 62, NULL), -FI_EBADFLAGS);
	assert_true(fi_av_insertsvc(s.av, "127.0.0.1", "70000", out, 0, NULL) < 0);
	assert_true(fi_av_insertsvc(s.av, "127.0.0.1", "0", out, 0, NULL) < 0);
	assert_true(fi_av_insertsvc(s.av, NULL, "7", out, 0, NULL) < 0);
	assert_true(fi_av_remove(s.av, &(fi_addr_t){ 12345 }, 1, 0) < 0);
	assert_true(fi_av_lookup(s.av, 12345, junk, &(size_t){ sizeof(junk) }) < 0);
	still_works(&s);
	side_end(&s);
}

static void bad_sends_and_receives_are_refused(void **state)
{
	struct iovec iov[9] = { { 0 } };
	struct fi_msg_tagged msg = { .msg_iov = iov, .iov_count = 9 };
	struct side s = { 0 };
	static char buf[8192]; /* more than can be injected */

	side_make(&s);
	side_enable(&s);
	msg.addr = s.self;
	assert_int_equal(fi_send(s.ep, buf, 8, NULL, 12345, NULL), -FI_EINVAL);
	assert_int_equal(fi_tsend(s.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_tsend(s.ep, NULL, 8, NULL, s.self, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_trecv(s.ep, NULL, 8, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_tsendmsg(s.ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_trecvmsg(s.ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_tsendmsg(s.ep, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_trecvmsg(s.ep, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_tsendv(s.ep, NULL, NULL, 2, s.self, 0, NULL), -FI_EINVAL);
	assert_true(fi_tinject(s.ep, buf, sizeof(buf), s.self, 0) < 0);
	msg.iov_count = 2;
	iov[0] = (struct iovec){ buf, SIZE_MAX };
	iov[1] = (struct iovec){ buf, SIZE_MAX };
	assert_true(fi_tsendmsg(s.ep, &msg, 0) < 0);
	assert_true(fi_trecvmsg(s.ep, &msg, 0) < 0);
	iov[0].iov_len = 4;
	iov[1] = (struct iovec){ NULL, 4 };
	assert_int_equal(fi_tsendmsg(s.ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_trecvmsg(s.ep, &msg, 0), -FI_EINVAL);
	msg.iov_count = 0;
	assert_int_equal(fi_tsendmsg(s.ep, &msg, 1ull << 61), -FI_EBADFLAGS);
	assert_int_equal(fi_trecvmsg(s.ep, &msg, FI_CLAIM), -FI_EINVAL);
	assert_int_equal(fi_cancel(&s.ep->fid, buf), 0);
	still_works(&s);
	side_end(&s);
}

/* Without a descriptor left, and with them again. */
static void descriptors_that_run_out_are_named(void **state)
{
	struct side s = { 0 };
	struct rlimit was, none;

	side_make(&s);
	assert_int_equal(fi_ep_bind(s.ep, &s.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(s.ep, &s.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){ 0, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(fi_enable(s.ep), -FI_EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(fi_enable(s.ep), 0);
	side_end(&s);
}

/* A message that was claimed can be received still, when a call for it was refused. */
static void bad_claims_leave_the_message(void **state)
{
	struct iovec iov[2] = { { NULL, 8 } };
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = 7, .context = &msg };
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;
	uint64_t out = 0xc1a1, in = 0;
	struct side s = { 0 };
	ssize_t ret;

	side_make(&s);
	side_enable(&s);
	assert_int_equal(fi_tinject(s.ep, &out, sizeof(out), s.self, 7), 0);
	do {
		assert_int_equal(fi_trecvmsg(s.ep, &msg, FI_PEEK | FI_CLAIM), 0);
		ret = fi_cq_read(s.cq, &entry, 1);
		if (ret == -FI_EAVAIL)
			assert_int_equal(fi_cq_readerr(s.cq, &error, 0), 1);
	} while (ret != 1);
	msg.msg_iov = iov;
	msg.iov_count = 1;
	assert_int_equal(fi_trecvmsg(s.ep, &msg, FI_CLAIM), -FI_EINVAL);
	iov[0] = iov[1] = (struct iovec){ &in, SIZE_MAX };
	msg.iov_count = 2;
	assert_int_equal(fi_trecvmsg(s.ep, &msg, FI_CLAIM), -FI_EINVAL);
	iov[0].iov_len = sizeof(in);
	msg.iov_count = 1;
	assert_int_equal(fi_trecvmsg(s.ep, &msg, FI_CLAIM), 0);
	next(&s, &entry);
	assert_int_equal(in, out);
	still_works(&s);
	side_end(&s);
}

/* Of whatever length: small ones take another way, once there is a connection. */
static void writes_from_nowhere_are_refused(void **state)
{
	struct iovec iov = { NULL, 0 };
	struct fi_rma_iov target = { 0 };
	struct fi_msg_rma msg = { .iov_count = 1, .rma_iov = &target, .rma_iov_count = 1 };
	struct side s = { 0 };

	side_make_for(&s, FI_MSG | FI_TAGGED | FI_RMA);
	side_enable(&s);
	still_works(&s);
	msg.addr = s.self;
	for (size_t len = 1; len < 1000; len += 100) {
		iov.iov_len = target.len = len;
		msg.msg_iov = &iov;
		assert_int_equal(fi_writemsg(s.ep, &msg, 0), -FI_EINVAL);
		assert_int_equal(fi_write(s.ep, NULL, len, NULL, s.self, 0, 0, NULL),
				 -FI_EINVAL);
		msg.msg_iov = NULL;
		assert_int_equal(fi_writemsg(s.ep, &msg, 0), -FI_EINVAL);
	}
	still_works(&s);
	side_end(&s);
}

static void what_is_not_there_says_so(void **state)
{
	struct side s = { 0 };
	char buf[8];

	side_make(&s);
	side_enable(&s);
	assert_int_equal(fi_read(s.ep, buf, 8, NULL, s.self, 0, 0, NULL), -FI_ENOSYS);
	still_works(&s);
	side_end(&s);
}

static void calls_in_the_wrong_order_are_refused(void **state)
{
	struct side s = { 0 }, other = { 0 };
	char buf[ADDR_MAX];
	size_t len = sizeof(buf);

	side_make(&s);
	side_make(&other);
	assert_int_equal(fi_tsend(s.ep, buf, 8, NULL, 0, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_recv(s.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_getname(&s.ep->fid, NULL, &len), -FI_ETOOSMALL);
	assert_int_equal(fi_enable(s.ep), -FI_ENOAV);
	assert_int_equal(fi_ep_bind(s.ep, &s.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(s.ep, &other.av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(s.ep, &other.cq->fid, FI_RECV), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(s.ep, &s.cq->fid, 1ull << 60 | FI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(s.ep, &s.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(s.ep), 0);
	assert_int_equal(fi_ep_bind(s.ep, &s.domain->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(s.ep, NULL, 0), -FI_EINVAL);
	side_end(&other);
	len = 3;
	assert_int_equal(fi_getname(&s.ep->fid, buf, &len), -FI_ETOOSMALL);
	assert_int_equal(fi_close(&s.cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&s.av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&s.domain->fid), -FI_EBUSY);
	side_end(&s);
}

static void endpoints_of_one_direction_refuse_the_other(void **state)
{
	struct fi_msg_tagged msg = { .iov_count = 0 };
	struct side s = { 0 };
	char buf[8];

	side_make(&s);
	fi_close(&s.ep->fid);
	s.info->caps = FI_SEND | FI_TAGGED;
	s.info->rx_attr->op_flags = FI_COMPLETION;
	assert_int_equal(fi_endpoint(s.domain, s.info, &s.ep, NULL), 0);
	assert_int_equal(fi_ep_bind(s.ep, &s.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(s.ep, &s.cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_enable(s.ep), 0);
	assert_int_equal(fi_trecv(s.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fi_trecvmsg(s.ep, &msg, FI_PEEK), -FI_ENOSYS);
	assert_int_equal(fi_trecvmsg(s.ep, &msg, FI_CLAIM), -FI_ENOSYS);
	/* until there is a queue that reports them */
	assert_int_equal(fi_ep_bind(s.ep, &s.cq->fid, FI_RECV), 0);
	assert_int_equal(fi_trecv(s.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), 0);
	assert_int_equal(fi_recv(s.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	side_end(&s);
}

/* Not enabled without the network either, where there are other wires. */
static void place_that_another_endpoint_has_is_refused(void **state)
{
	char name[ADDR_MAX];
	size_t len = sizeof(name);
	struct side a, b;

	side_make(&a);
	side_enable(&a);
	assert_int_equal(fi_getname(&a.ep->fid, name, &len), 0);
	side_make(&b);
	if (!strcmp(provider, "shm")) { /* its place is a service, which this one has not */
		assert_int_equal(fi_setname(&b.ep->fid, name, len), -FI_EINVAL);
	} else {
		assert_int_equal(fi_setname(&b.ep->fid, name, len), 0);
		assert_int_equal(fi_ep_bind(b.ep, &b.av->fid, 0), 0);
		assert_int_equal(fi_ep_bind(b.ep, &b.cq->fid, FI_TRANSMIT | FI_RECV), 0);
		assert_int_equal(fi_enable(b.ep), -FI_EADDRINUSE);
	}
	side_end(&b);
	still_works(&a);
	side_end(&a);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forged_addresses_are_refused),
		cmocka_unit_test(bad_sends_and_receives_are_refused),
		cmocka_unit_test(descriptors_that_run_out_are_named),
		cmocka_unit_test(bad_claims_leave_the_message),
		cmocka_unit_test(writes_from_nowhere_are_refused),
		cmocka_unit_test(what_is_not_there_says_so),
		cmocka_unit_test(calls_in_the_wrong_order_are_refused),
		cmocka_unit_test(endpoints_of_one_direction_refuse_the_other),
		cmocka_unit_test(place_that_another_endpoint_has_is_refused),
	};

	provider = argc > 1 ? argv[1] : "link";
	return cmocka_run_group_tests_name(provider, tests, NULL, NULL);
}
