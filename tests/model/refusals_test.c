/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Refused calls are logged: refusals_test PROVIDER. Each has one line, at the level of warnings,
 * which names the call, the error and what would be accepted; calls that answer a question have
 * none. One thread.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_rma.h>
#include <rdma/providers/fi_log.h>
#include "ends.h"

static struct end_attr attr = { .no_cntr = true };
static struct end e, other;
static int lines;
static char last[1024];

static int hears(const struct fi_provider *prov, enum fi_log_level level,
		 enum fi_log_subsys subsys, uint64_t flags)
{
	return level == FI_LOG_WARN;
}

static int is_ready(const struct fi_provider *prov, enum fi_log_level level,
		    enum fi_log_subsys subsys, uint64_t flags, uint64_t *showtime)
{
	return hears(prov, level, subsys, flags);
}

static void hear(const struct fi_provider *prov, enum fi_log_level level,
		 enum fi_log_subsys subsys, const char *func, int line, const char *msg)
{
	lines++;
	snprintf(last, sizeof(last), "%s", msg);
}

static struct fi_ops_log log_ops = {
	.size = sizeof(struct fi_ops_log), .enabled = hears, .ready = is_ready, .log = hear
};
static struct fid_logging logging = { .fid.fclass = FI_CLASS_LOG, .ops = &log_ops };

/* @call is refused with @err, and one line says so and names @name. */
#define REFUSED(name, err, call)                                                             \
	do {                                                                                 \
		lines = 0;                                                                   \
		last[0] = '\0';                                                              \
		assert_int_equal(call, err);                                                 \
		if (lines != 1 || !strstr(last, name) || !strstr(last, fi_strerror(-(err)))) \
			fail_msg("%s: %d lines, the last: %s", #call, lines, last);          \
	} while (0)

/* @call returns @err, which is not logged. */
#define ANSWERED(err, call)                  \
	do {                                 \
		lines = 0;                   \
		assert_int_equal(call, err); \
		assert_int_equal(lines, 0);  \
	} while (0)

static int setup(void **state)
{
	end_open(&e, &attr);
	end_open(&other, &attr);
	return 0;
}

static int teardown(void **state)
{
	end_close(&other);
	end_close(&e);
	return 0;
}

static void binds_say_why_not(void **state)
{
	struct fid_cntr *cntr, *second, *foreign;
	struct fid_ep *ep, *alias = NULL;
	struct fid_eq *eq;
	struct fid_cq *cq;

	assert_int_equal(fi_cntr_open(e.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_cntr_open(e.domain, NULL, &second, NULL), 0);
	assert_int_equal(fi_cntr_open(other.domain, NULL, &foreign, NULL), 0);
	assert_int_equal(fi_cq_open(e.domain, NULL, &cq, NULL), 0);
	assert_int_equal(fi_eq_open(other.fabric, NULL, &eq, NULL), 0);
	assert_int_equal(fi_endpoint(e.domain, e.info, &ep, NULL), 0);
	REFUSED("fi_enable", -FI_ENOAV, fi_enable(ep));
	assert_int_equal(fi_ep_bind(ep, &e.av->fid, 0), 0);
	REFUSED("fi_ep_bind", -FI_EINVAL, fi_ep_bind(ep, NULL, 0));
	REFUSED("fi_ep_bind", -FI_EINVAL, fi_ep_bind(ep, &e.domain->fid, 0));
	REFUSED("fi_ep_bind", -FI_EINVAL, fi_ep_bind(ep, &other.av->fid, 0));
	REFUSED("fi_ep_bind of a completion queue", -FI_EINVAL,
		fi_ep_bind(ep, &other.cq->fid, FI_RECV));
	REFUSED("fi_ep_bind of a completion queue", -FI_EBADFLAGS,
		fi_ep_bind(ep, &cq->fid, FI_READ));
	REFUSED("fi_ep_bind of a counter", -FI_EINVAL, fi_ep_bind(ep, &foreign->fid, FI_SEND));
	REFUSED("fi_ep_bind of a counter", -FI_EBADFLAGS, fi_ep_bind(ep, &cntr->fid, FI_MSG));
	assert_int_equal(fi_ep_bind(ep, &cntr->fid, FI_SEND), 0);
	assert_int_equal(fi_ep_bind(ep, &second->fid, FI_SEND), 0); /* in its place */
	assert_int_equal(fi_ep_bind(ep, &cntr->fid, FI_SEND), 0);
	REFUSED("fi_ep_bind", -FI_EINVAL, fi_ep_bind(ep, &eq->fid, 0));
	REFUSED("fi_ep_alias", -FI_EINVAL, fi_ep_alias(ep, &alias, 0));
	REFUSED("fi_ep_alias", -FI_EBADFLAGS, fi_ep_alias(ep, &alias, FI_TRANSMIT | FI_PEEK));
	REFUSED("fi_domain_bind", -FI_EINVAL, fi_domain_bind(e.domain, &cq->fid, 0));
	REFUSED("fi_domain_bind", -FI_EINVAL, fi_domain_bind(e.domain, &eq->fid, 0));
	REFUSED("fi_av_bind", -FI_EINVAL, fi_av_bind(e.av, &cq->fid, 0));
	assert_int_equal(fi_ep_bind(ep, &e.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	REFUSED("fi_close of a counter", -FI_EBUSY, fi_close(&cntr->fid));
	REFUSED("fi_close of a completion queue", -FI_EBUSY, fi_close(&e.cq->fid));
	REFUSED("fi_close of an address vector", -FI_EBUSY, fi_close(&e.av->fid));
	REFUSED("fi_close of a domain", -FI_EBUSY, fi_close(&e.domain->fid));
	assert_int_equal(fi_ep_alias(ep, &alias, FI_TRANSMIT), 0);
	REFUSED("fi_close of an endpoint", -FI_EBUSY, fi_close(&ep->fid));
	assert_int_equal(fi_close(&alias->fid), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&second->fid), 0);
	assert_int_equal(fi_close(&foreign->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
}

/* It is not refused; a missing queue is logged. */
static void endpoint_without_a_queue_is_told_of_once(void **state)
{
	struct fid_ep *ep[3];

	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_endpoint(e.domain, e.info, &ep[i], NULL), 0);
		assert_int_equal(fi_ep_bind(ep[i], &e.av->fid, 0), 0);
		if (!i)
			assert_int_equal(fi_ep_bind(ep[i], &e.cq->fid, FI_TRANSMIT | FI_RECV),
					 0);
		lines = 0;
		assert_int_equal(fi_enable(ep[i]), 0);
		assert_int_equal(lines, i == 1);
	}
	assert_non_null(strstr(last, "fi_enable"));
	assert_non_null(strstr(last, "sends and receives"));
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_close(&ep[i]->fid), 0);
}

static void opens_say_why_not(void **state)
{
	struct fi_cq_attr cq_attr = { .format = (enum fi_cq_format)99 };
	struct fi_cntr_attr cntr_attr = { .flags = 1 };
	struct fi_av_attr av_attr = { .rx_ctx_bits = 64 };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_poll_attr poll_attr = { .flags = 1 };
	struct fi_av_set_attr set_attr = { .flags = 1ull << 60 };
	struct fi_tx_attr tx_attr = { .iov_limit = 100000 };
	struct fid_av_set *set;
	struct fid_domain *domain;
	struct fid_poll *poll;
	struct fid_wait *wait;
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct fid_stx *stx;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_av *av;

	REFUSED("fi_domain", -FI_EINVAL, fi_domain(e.fabric, NULL, &domain, NULL));
	REFUSED("fi_domain2", -FI_EBADFLAGS, fi_domain2(e.fabric, e.info, &domain, 1, NULL));
	REFUSED("fi_endpoint", -FI_EINVAL, fi_endpoint(e.domain, NULL, &ep, NULL));
	e.info->ep_attr->type = FI_EP_DGRAM;
	REFUSED("fi_endpoint", -FI_EINVAL, fi_endpoint(e.domain, e.info, &ep, NULL));
	e.info->ep_attr->type = FI_EP_RDM;
	REFUSED("fi_scalable_ep", -FI_EINVAL, fi_scalable_ep(e.domain, NULL, &ep, NULL));
	e.info->ep_attr->rx_ctx_cnt = 0xabcd;
	REFUSED("given 0xabcd", -FI_EINVAL, fi_scalable_ep(e.domain, e.info, &ep, NULL));
	e.info->ep_attr->rx_ctx_cnt = 1;
	e.info->ep_attr->type = FI_EP_MSG;
	if (strcmp(attr.provider, "tcp")) /* the others have no such endpoints at all */
		REFUSED("FI_EP_RDM", -FI_EINVAL, fi_scalable_ep(e.domain, e.info, &ep, NULL));
	else
		REFUSED("connected endpoints (FI_EP_MSG) are not scalable", -FI_ENOSYS,
			fi_scalable_ep(e.domain, e.info, &ep, NULL));
	e.info->ep_attr->type = FI_EP_RDM;
	REFUSED("fi_cq_open", -FI_EINVAL, fi_cq_open(e.domain, &cq_attr, &cq, NULL));
	cq_attr = (struct fi_cq_attr){ .wait_obj = FI_WAIT_SET };
	REFUSED("fi_cq_open", -FI_EINVAL, fi_cq_open(e.domain, &cq_attr, &cq, NULL));
	REFUSED("fi_cntr_open", -FI_EBADFLAGS, fi_cntr_open(e.domain, &cntr_attr, &cntr, NULL));
	REFUSED("fi_av_open", -FI_EINVAL, fi_av_open(e.domain, &av_attr, &av, NULL));
	REFUSED("fi_eq_open", -FI_ENOSYS, fi_eq_open(e.fabric, &eq_attr, &eq, NULL));
	REFUSED("fi_wait_open", -FI_EINVAL, fi_wait_open(e.fabric, &wait_attr, &wait));
	REFUSED("fi_poll_open", -FI_EBADFLAGS, fi_poll_open(e.domain, &poll_attr, &poll));
	REFUSED("fi_av_set", -FI_EBADFLAGS, fi_av_set(e.av, &set_attr, &set, NULL));
	REFUSED("fi_stx_context", -FI_EINVAL, fi_stx_context(e.domain, &tx_attr, &stx, NULL));
	REFUSED("fi_trywait", -FI_EINVAL, fi_trywait(e.fabric, &(struct fid *){ NULL }, 1));
}

static void regions_and_vectors_say_why_not(void **state)
{
	struct fi_mr_attr mr_attr = { .iov_count = 0 };
	char junk[256], buf[64];
	uint64_t key;
	struct fid_mr *mr;
	fi_addr_t out;
	int errors[1];

	REFUSED("registration", -FI_EINVAL, fi_mr_regattr(e.domain, &mr_attr, 0, &mr));
	REFUSED("registration", -FI_EINVAL, fi_mr_regattr(e.domain, NULL, 0, &mr));
	REFUSED("registration", -FI_EINVAL,
		fi_mr_reg(e.domain, buf, SIZE_MAX, FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
	REFUSED("registration", -FI_ENOSYS,
		fi_mr_reg(e.domain, buf, 8, FI_REMOTE_READ, 0, 1, FI_MR_DMABUF, &mr, NULL));
	assert_int_equal(fi_mr_reg(e.domain, buf, 8, FI_REMOTE_READ, 0, 1, 0, &mr, NULL), 0);
	REFUSED("fi_mr_bind", -FI_ENOSYS, fi_mr_bind(mr, &e.ep->fid, 0));
	REFUSED("fi_mr_bind", -FI_EINVAL, fi_mr_bind(mr, &e.av->fid, 0));
	REFUSED("fi_mr_bind", -FI_EINVAL, fi_mr_bind(mr, &other.cq->fid, 0));
	assert_int_equal(fi_mr_bind(mr, &e.cq->fid, FI_REMOTE_WRITE), 0); /* nothing is logged */
	REFUSED("fi_mr_refresh", -FI_EINVAL,
		fi_mr_refresh(mr, &(struct iovec){ junk, 8 }, 1, 0));
	REFUSED("fi_mr_raw_attr", -FI_EBADFLAGS,
		fi_mr_raw_attr(mr, &key, (uint8_t *)junk, &(size_t){ 8 }, 1));
	REFUSED("fi_mr_map_raw", -FI_EINVAL,
		fi_mr_map_raw(e.domain, 0, (uint8_t *)junk, 3, &key, 0));
	assert_int_equal(fi_close(&mr->fid), 0);
	memset(junk, 0xa5, sizeof(junk));
	REFUSED("fi_av_insert", -FI_EINVAL, fi_av_insert(e.av, NULL, 1, &out, 0, NULL));
	REFUSED("fi_av_insert", -FI_EBADFLAGS,
		fi_av_insert(e.av, junk, 1, &out, 1ull << 62, NULL));
	REFUSED("fi_av_lookup", -FI_EINVAL,
		fi_av_lookup(e.av, 777, junk, &(size_t){ sizeof(junk) }));
	REFUSED("fi_av_remove", -FI_EINVAL, fi_av_remove(e.av, &(fi_addr_t){ 777 }, 1, 0));
	lines = 0;
	assert_int_equal(fi_av_insert(e.av, junk, 1, &out, FI_SYNC_ERR, errors), 0);
	assert_int_equal(lines, 1); /* why the address is none */
	lines = 0;
	assert_true(fi_av_insertsvc(e.av, "127.0.0.1", "70000", &out, 0, NULL) < 0);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(last, "node 127.0.0.1, service 70000"));
}

static void transfers_say_why_not(void **state)
{
	struct fi_msg_tagged msg = { .addr = 0 };
	char buf[64] = "";
	struct iovec iov = { buf, 8 };
	struct fi_cq_tagged_entry entry;
	struct fid_ep *ep;

	REFUSED("send", -FI_EINVAL, fi_tsend(e.ep, buf, 8, NULL, 4711, 1, NULL));
	REFUSED("NULL buffer", -FI_EINVAL, fi_tsend(e.ep, NULL, 8, NULL, 0, 1, NULL));
	REFUSED("fi_tsendv", -FI_EINVAL, fi_tsendv(e.ep, &iov, NULL, 100000, 0, 1, NULL));
	REFUSED("fi_tsendmsg", -FI_EBADFLAGS, fi_tsendmsg(e.ep, &msg, FI_PEEK));
	REFUSED("fi_tinject", -FI_EINVAL, fi_tinject(e.ep, buf, 1u << 20, 0, 1));
	REFUSED("fi_tinjectdata", -FI_EINVAL, fi_tinjectdata(e.ep, buf, 1u << 20, 0, 0, 1));
	REFUSED("receive", -FI_EINVAL,
		fi_trecvv(e.ep, &iov, NULL, 100000, FI_ADDR_UNSPEC, 1, 0, NULL));
	REFUSED("fi_trecvmsg", -FI_EBADFLAGS, fi_trecvmsg(e.ep, &msg, FI_FENCE));
	REFUSED("transfer", -FI_ENOSYS, fi_read(e.ep, buf, 8, NULL, 0, 0, 0, NULL));
	REFUSED("transfer", -FI_ENOSYS,
		fi_atomic(e.ep, buf, 1, NULL, 0, 0, 0, FI_UINT8, FI_SUM, NULL));
	REFUSED("fi_cq_read", -FI_EINVAL, fi_cq_read(e.cq, NULL, 1));
	REFUSED("fi_cq_readerr", -FI_EINVAL, fi_cq_readerr(e.cq, NULL, 0));
	REFUSED("fi_control", -FI_EINVAL, fi_control(&e.cq->fid, FI_GETWAIT, NULL));
	REFUSED("fi_cq_sread", -FI_ENOSYS, fi_cq_sread(e.cq, &entry, 1, NULL, 0));
	assert_int_equal(fi_endpoint(e.domain, e.info, &ep, NULL), 0);
	REFUSED("transfer", -FI_EOPBADSTATE, fi_tsend(ep, buf, 8, NULL, 0, 1, NULL));
	assert_int_equal(fi_close(&ep->fid), 0);
}

static void answers_to_questions_are_no_refusals(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_atomic_attr atomic;
	bool permitted = true;
	size_t len = 1, cnt;
	char name[1];
	void *ops;
	int fd;

	ANSWERED(-FI_ETOOSMALL, fi_getname(&e.ep->fid, name, &len));
	ANSWERED(-FI_EAGAIN, fi_cq_read(e.cq, &entry, 1));
	ANSWERED(-FI_ENODATA, fi_control(&e.cq->fid, FI_GETWAIT, &fd));
	ANSWERED(-FI_ENOPROTOOPT, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT,
					    FI_OPT_CUDA_API_PERMITTED, &permitted, 1));
	ANSWERED(0, fi_cancel(&e.ep->fid, &entry));
	ANSWERED(-FI_ENOSYS, fi_open_ops(&e.ep->fid, "no such", 0, &ops, NULL));
	ANSWERED(0, fi_atomicvalid(e.ep, FI_UINT64, FI_SUM, &cnt));
	ANSWERED(-FI_EOPNOTSUPP, fi_query_atomic(e.domain, FI_FLOAT, FI_BXOR, &atomic, 0));
}

static void take_one(struct fid_cq *cq, int *complete, int *failed)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = { 0 };
	ssize_t ret = fi_cq_read(cq, &entry, 1);

	*complete += ret == 1;
	if (ret != -FI_EAVAIL)
		return;
	assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
	assert_int_equal(error.err, FI_EKEYREJECTED);
	++*failed;
}

/* Only the first line of a connection is logged. */
static void writes_that_fail_once_they_are_complete_have_one_line(void **state)
{
	struct end_attr rma = { .provider = attr.provider, .caps = FI_RMA };
	int complete = 0, failed = 0;
	struct end from, to;
	char buf[8] = "";
	fi_addr_t dest;

	end_open(&from, &rma);
	end_open(&to, &rma);
	dest = end_knows(&from, &to);
	lines = 0;
	for (int i = 0; i < 20; i++)
		assert_int_equal(fi_write(from.ep, buf, sizeof(buf), NULL, dest, 0, 4711, NULL),
				 0);
	END_UNTIL(complete == 20 && failed == 20, {
		take_one(from.cq, &complete, &failed);
		fi_cq_read(to.cq, NULL, 0);
	});
	assert_int_equal(lines, 1);
	assert_non_null(strstr(last, fi_strerror(FI_EKEYREJECTED)));
	end_close(&to);
	end_close(&from);
}

/*
 * Messages to it wait; the log names the address, in case it is mistyped or its program was not
 * started.
 */
static void nobody_at_an_address_is_told_of_once(void **state)
{
	struct fi_cq_tagged_entry entry;
	char buf[8] = "";
	struct end from;
	fi_addr_t dest[2];

	end_open(&from, &attr);
	assert_int_equal(fi_av_insertsvc(from.av, "127.0.0.1", "1", &dest[0], 0, NULL), 1);
	assert_int_equal(fi_av_insertsvc(from.av, "127.0.0.1", "2", &dest[1], 0, NULL), 1);
	lines = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_tsend(from.ep, buf, sizeof(buf), NULL, dest[i], 1, NULL), 0);
	END_UNTIL(lines, assert_int_equal(fi_cq_read(from.cq, &entry, 1), -FI_EAGAIN));
	assert_non_null(strstr(last, "no endpoint answers at"));
	for (double begin = end_now(); end_now() < begin + 0.1;)
		assert_int_equal(fi_cq_read(from.cq, &entry, 1), -FI_EAGAIN);
	assert_int_equal(lines, 1);
	end_close(&from);
}

/* An endpoint at a port that a socket of somebody else has; the reason is the error, too. */
static void taken_port_is_said_to_be_in_use(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY) };
	struct fi_info *hints = fi_dupinfo(e.info), *info;
	socklen_t len = sizeof(at);
	struct fid_ep *ep;
	char port[8];
	int taken;

	if (!strcmp(attr.provider, "shm")) { /* it has no ports */
		fi_freeinfo(hints);
		skip();
	}
	taken = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(taken, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(taken, 1), 0);
	assert_int_equal(getsockname(taken, (struct sockaddr *)&at, &len), 0);
	snprintf(port, sizeof(port), "%u", ntohs(at.sin_port));
	free(hints->src_addr);
	hints->src_addr = NULL;
	hints->src_addrlen = 0;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 18), NULL, port, FI_SOURCE, hints, &info), 0);
	assert_int_equal(fi_endpoint(e.domain, info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &e.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &e.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	for (int i = 0; i < 2; i++) {
		lines = 0;
		assert_int_equal(fi_enable(ep), -FI_EADDRINUSE);
		assert_int_equal(lines, 1);
		assert_non_null(strstr(last, port));
	}
	close(taken);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(binds_say_why_not),
		cmocka_unit_test(endpoint_without_a_queue_is_told_of_once),
		cmocka_unit_test(opens_say_why_not),
		cmocka_unit_test(regions_and_vectors_say_why_not),
		cmocka_unit_test(transfers_say_why_not),
		cmocka_unit_test(answers_to_questions_are_no_refusals),
		cmocka_unit_test(writes_that_fail_once_they_are_complete_have_one_line),
		cmocka_unit_test(nobody_at_an_address_is_told_of_once),
		cmocka_unit_test(taken_port_is_said_to_be_in_use),
	};

	if (argc != 2)
		return 2;
	attr.provider = argv[1];
	if (fi_import_log(FI_VERSION(1, 13), 0, &logging))
		return 2;
	return cmocka_run_group_tests(tests, setup, teardown);
}
