/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hints of programs that use libfabric, as data, read from their sources: each is answered by every
 * provider whose namesake there answers it, and by link where it names no protocol or address format
 * that link has not. What is answered opens, up to an endpoint.
 *
 * usage: clients_test, or 'clients_test list' to print who of the library at hand answers what, from
 * which the column 'answered' was written
 */
#include <poll.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "ends.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

#define TCP	(1 << 0)
#define RXM	(1 << 1)
#define SOCKETS (1 << 2)
#define SHM	(1 << 3)
#define LINK	(1 << 4)

static const char *const names[] = { "tcp", "tcp;ofi_rxm", "sockets", "shm", "link" };

struct client {
	const char *name;
	int answered; /* by these */
	uint32_t version;
	uint64_t caps, mode, op_flags, order;
	int mr_mode;
	enum fi_threading threading;
	enum fi_progress progress;
	enum fi_av_type av;
	enum fi_resource_mgmt management;
	uint32_t format, protocol;
	size_t inject, size, iov, cq_data, key, msg_size, order_size, ctx_cnt, mr_iov;
};

#define V(minor)     FI_VERSION(1, minor)
#define MR_OLD_BASIC (1 << 0) /* as API versions before 1.5 spell them */
#define MR_SCALABLE_ (1 << 1)
#define BASIC_BITS   (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define CONTEXTS     (FI_CONTEXT | FI_CONTEXT2)
#define BOTH_COMM    (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define ACCESS	     (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define RMA_ORDERS   (FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_SAW | FI_ORDER_SAS)

static const struct client clients[] = {
	{ .name = "Open MPI mtl/ofi",
	  .answered = TCP | RXM | SOCKETS | LINK,
	  .version = V(18),
	  .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | BOTH_COMM,
	  .mode = CONTEXTS,
	  .threading = FI_THREAD_DOMAIN,
	  .order = FI_ORDER_SAS,
	  .cq_data = 4,
	  .management = FI_RM_ENABLED },
	{ .name = "Open MPI btl/ofi",
	  .answered = TCP | RXM | SOCKETS | SHM | LINK,
	  .version = V(5),
	  .caps = FI_RMA | FI_ATOMIC | FI_MSG,
	  .mr_mode = BASIC_BITS | FI_MR_ENDPOINT,
	  .op_flags = FI_DELIVERY_COMPLETE,
	  .iov = 1 },
	{ .name = "MPICH",
	  .answered = TCP | RXM | SOCKETS | SHM | LINK,
	  .version = V(17),
	  .caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_RMA | ACCESS |
		  FI_ATOMIC,
	  .mode = CONTEXTS | FI_ASYNC_IOV | FI_RX_CQ_DATA,
	  .op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE,
	  .threading = FI_THREAD_DOMAIN,
	  .cq_data = 4,
	  .av = FI_AV_TABLE,
	  .management = FI_RM_ENABLED },
	{ .name = "MVAPICH2",
	  .answered = TCP | RXM | SOCKETS | LINK,
	  .version = V(0),
	  .caps = FI_TAGGED,
	  .mode = FI_CONTEXT,
	  .progress = FI_PROGRESS_AUTO,
	  .av = FI_AV_MAP },
	{ .name = "Chapel",
	  .answered = TCP | RXM | SOCKETS | LINK,
	  .version = V(9),
	  .caps = FI_MSG | FI_MULTI_RECV | FI_RMA | BOTH_COMM,
	  .mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT,
	  .threading = FI_THREAD_DOMAIN,
	  .av = FI_AV_TABLE },
	{ .name = "Chapel, with orders",
	  .answered = TCP | RXM | SOCKETS | SHM | LINK,
	  .version = V(9),
	  .caps = FI_MSG | FI_MULTI_RECV | FI_RMA,
	  .mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT,
	  .order = RMA_ORDERS,
	  .threading = FI_THREAD_DOMAIN,
	  .av = FI_AV_TABLE },
	{ .name = "GASNet-EX",
	  .answered = TCP | RXM | SOCKETS | SHM | LINK,
	  .version = V(5),
	  .caps = FI_RMA | FI_MSG | FI_MULTI_RECV,
	  .mode = FI_CONTEXT },
	{ .name = "GASNet-EX, for active messages",
	  .answered = TCP | RXM | SOCKETS | SHM | LINK,
	  .version = V(5),
	  .caps = FI_MSG | FI_MULTI_RECV,
	  .mode = FI_CONTEXT,
	  .op_flags = FI_INJECT_COMPLETE },
	{ .name = "NVSHMEM, without HMEM",
	  .answered = SOCKETS | LINK,
	  .version = V(5),
	  .caps = FI_RMA | FI_ATOMIC | FI_FENCE | FI_MSG | FI_SOURCE,
	  .mr_mode = BASIC_BITS | FI_MR_LOCAL,
	  .threading = FI_THREAD_SAFE,
	  .op_flags = FI_DELIVERY_COMPLETE,
	  .inject = 16 },
	{ .name = "LCI",
	  .answered = TCP | RXM | SOCKETS | SHM | LINK,
	  .version = V(6),
	  .caps = FI_RMA | FI_MSG,
	  .mr_mode = BASIC_BITS | FI_MR_LOCAL,
	  .threading = FI_THREAD_SAFE,
	  .progress = FI_PROGRESS_MANUAL,
	  .inject = 64,
	  .cq_data = 4,
	  .av = FI_AV_MAP },
	{ .name = "oneCCL",
	  .answered = TCP | RXM | SOCKETS | SHM | LINK,
	  .version = V(10),
	  .caps = FI_TAGGED,
	  .mode = FI_CONTEXT,
	  .progress = FI_PROGRESS_MANUAL,
	  .ctx_cnt = 1,
	  .av = FI_AV_TABLE },
	{ .name = "oneCCL, a context for each worker",
	  .answered = SOCKETS | LINK,
	  .version = V(10),
	  .caps = FI_TAGGED,
	  .mode = FI_CONTEXT,
	  .progress = FI_PROGRESS_MANUAL,
	  .ctx_cnt = 16,
	  .av = FI_AV_TABLE },
	{ .name = "Charm++",
	  .answered = TCP | RXM | SOCKETS | SHM | LINK,
	  .version = V(0),
	  .caps = FI_TAGGED | FI_RMA | FI_REMOTE_READ,
	  .mode = FI_CONTEXT,
	  .av = FI_AV_TABLE },
	{ .name = "oomph",
	  .answered = TCP | RXM | SOCKETS,
	  .version = V(15),
	  .caps = FI_MSG | FI_TAGGED | FI_RMA,
	  .format = FI_SOCKADDR_IN,
	  .mr_mode = BASIC_BITS | FI_MR_LOCAL },
	{ .name = "aws-ofi-nccl",
	  .answered = TCP | RXM | SOCKETS | LINK,
	  .version = V(6),
	  .caps = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TAGGED | FI_MSG,
	  .mode = CONTEXTS,
	  .mr_mode = BASIC_BITS | FI_MR_LOCAL | FI_MR_ENDPOINT,
	  .order = FI_ORDER_SAS,
	  .threading = FI_THREAD_SAFE,
	  .key = 2 },
	{ .name = "NIXL",
	  .answered = TCP | RXM | SOCKETS | SHM | LINK,
	  .version = V(18),
	  .caps = FI_MSG | FI_RMA | ACCESS | FI_LOCAL_COMM,
	  .mr_mode = ~3 },
	{ .name = "ADIOS2 SST",
	  .answered = TCP | RXM | SOCKETS | LINK,
	  .version = V(5),
	  .caps = FI_MSG | FI_SEND | FI_RECV | FI_REMOTE_READ | FI_READ | FI_RMA,
	  .mode = FI_CONTEXT | FI_RX_CQ_DATA,
	  .mr_mode = MR_OLD_BASIC,
	  .progress = FI_PROGRESS_AUTO },
	{ .name = "OpenFAM",
	  .answered = SOCKETS | SHM | LINK,
	  .version = V(17),
	  .caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_RMA_EVENT,
	  .mr_mode = MR_SCALABLE_,
	  .op_flags = FI_DELIVERY_COMPLETE },
	{ .name = "Sandia OpenSHMEM",
	  .answered = SOCKETS | LINK,
	  .version = V(5),
	  .caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT,
	  .op_flags = FI_DELIVERY_COMPLETE,
	  .progress = FI_PROGRESS_AUTO,
	  .threading = FI_THREAD_DOMAIN,
	  .inject = 64,
	  .key = 1,
	  .management = FI_RM_ENABLED },
	{ .name = "Mercury, tcp",
	  .answered = TCP,
	  .version = V(20),
	  .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV,
	  .protocol = FI_PROTO_XNET,
	  .op_flags = FI_INJECT_COMPLETE,
	  .size = 4096,
	  .mr_mode = BASIC_BITS | FI_MR_LOCAL | FI_MR_ENDPOINT },
	{ .name = "Mercury, tcp;ofi_rxm",
	  .answered = TCP | RXM,
	  .version = V(20),
	  .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV,
	  .protocol = FI_PROTO_RXM,
	  .op_flags = FI_INJECT_COMPLETE,
	  .size = 4096,
	  .mr_mode = BASIC_BITS | FI_MR_LOCAL | FI_MR_ENDPOINT },
	{ .name = "Mercury, sockets",
	  .answered = SOCKETS,
	  .version = V(20),
	  .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV | FI_NAMED_RX_CTX,
	  .protocol = FI_PROTO_SOCK_TCP,
	  .op_flags = FI_INJECT_COMPLETE,
	  .mr_mode = BASIC_BITS | FI_MR_LOCAL | FI_MR_ENDPOINT },
	{ .name = "Mercury, shm",
	  .answered = SHM,
	  .version = V(20),
	  .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV,
	  .protocol = FI_PROTO_SHM,
	  .format = FI_ADDR_STR,
	  .op_flags = FI_INJECT_COMPLETE,
	  .mr_mode = BASIC_BITS | FI_MR_LOCAL | FI_MR_ENDPOINT },
	{ .name = "uccl p2p",
	  .answered = TCP | RXM | LINK,
	  .version = V(15),
	  .caps = FI_MSG | FI_RMA,
	  .mr_mode = BASIC_BITS | FI_MR_LOCAL,
	  .size = 4096 },
	{ .name = "cmfabric",
	  .answered = TCP | RXM | SOCKETS | SHM | LINK,
	  .version = V(2),
	  .caps = FI_MSG | FI_RMA,
	  .mode = FI_CONTEXT },
	{ .name = "who injects 4096",
	  .answered = TCP | RXM | SHM | LINK,
	  .version = V(20),
	  .caps = FI_MSG,
	  .inject = 4096 },
	{ .name = "who sends anything",
	  .answered = TCP | RXM | SHM | LINK,
	  .version = V(20),
	  .caps = FI_MSG,
	  .msg_size = SIZE_MAX },
	{ .name = "who keeps 8192 in order",
	  .answered = TCP | RXM | SOCKETS | SHM | LINK,
	  .version = V(20),
	  .caps = FI_RMA,
	  .order_size = 8192 },
	{ .name = "who has lists of eight",
	  .answered = SOCKETS | LINK,
	  .version = V(20),
	  .caps = FI_MSG | FI_RMA,
	  .iov = 8,
	  .mr_iov = 8 },
	{ .name = "who has persistent memory",
	  .answered = TCP | SOCKETS | LINK,
	  .version = V(20),
	  .caps = FI_RMA | FI_RMA_PMEM,
	  .op_flags = FI_COMMIT_COMPLETE },
	{ .name = "who owns what it lends",
	  .answered = TCP | RXM | SHM | LINK,
	  .version = V(20),
	  .caps = FI_MSG | FI_PEER },
	{ .name = "who posts 65536",
	  .answered = TCP | LINK,
	  .version = V(20),
	  .caps = FI_MSG,
	  .size = 65536 },
};

static struct fi_info *hints_of(const struct client *c, const char *provider)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = c->caps;
	hints->mode = c->mode;
	hints->addr_format = c->format;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->protocol = c->protocol;
	hints->ep_attr->max_msg_size = c->msg_size;
	hints->ep_attr->max_order_raw_size = hints->ep_attr->max_order_waw_size = c->order_size;
	hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = c->ctx_cnt;
	hints->domain_attr->mr_mode = c->mr_mode;
	hints->domain_attr->mr_key_size = c->key;
	hints->domain_attr->mr_iov_limit = c->mr_iov;
	hints->domain_attr->cq_data_size = c->cq_data;
	hints->domain_attr->threading = c->threading;
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = c->progress;
	hints->domain_attr->av_type = c->av;
	hints->domain_attr->resource_mgmt = c->management;
	hints->tx_attr->op_flags = c->op_flags;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = c->order;
	hints->tx_attr->inject_size = c->inject;
	hints->tx_attr->size = hints->rx_attr->size = c->size;
	hints->tx_attr->iov_limit = hints->rx_attr->iov_limit = c->iov;
	hints->tx_attr->rma_iov_limit = c->caps & FI_RMA ? c->iov : 0;
	return hints;
}

static struct fi_info *answer_to(const struct client *c, const char *provider)
{
	struct fi_info *hints = hints_of(c, provider), *info = NULL;
	int ret = fi_getinfo(c->version, NULL, NULL, 0, hints, &info);

	fi_freeinfo(hints);
	return ret ? NULL : info;
}

/* What is answered has what was asked for. */
static void answer_holds(const struct client *c, const struct fi_info *info)
{
	assert_int_equal(info->caps & c->caps, c->caps);
	if (c->protocol)
		assert_int_equal(info->ep_attr->protocol, c->protocol);
	if (c->threading)
		assert_int_equal(info->domain_attr->threading, c->threading);
	if (c->progress)
		assert_int_equal(info->domain_attr->data_progress, c->progress);
	if (c->inject)
		assert_int_equal(info->tx_attr->inject_size, c->inject);
	if (c->size)
		assert_int_equal(info->tx_attr->size, c->size);
	if (c->version < V(5) && !c->mr_mode)
		assert_int_equal(info->domain_attr->mr_mode, MR_OLD_BASIC);
	assert_int_equal(info->tx_attr->op_flags, c->op_flags);
	assert_true(info->ep_attr->max_msg_size >= c->msg_size);
	assert_true(info->domain_attr->cq_data_size >= c->cq_data);
	assert_true(info->domain_attr->max_ep_tx_ctx >= c->ctx_cnt);
	assert_true(info->domain_attr->ep_cnt && info->domain_attr->cq_cnt &&
		    info->domain_attr->cntr_cnt && info->domain_attr->mr_cnt);
}

static void answer_opens(struct fi_info *info)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;

	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	if (info->ep_attr->tx_ctx_cnt > 1)
		assert_int_equal(fi_scalable_ep(domain, info, &ep, NULL), 0);
	else
		assert_int_equal(fi_endpoint(domain, info, &ep, NULL), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
}

static void each_program_is_answered_as_by_libfabric(void **state)
{
	for (const struct client *c = clients; c < clients + COUNT_OF(clients); c++) {
		for (size_t i = 0; i < COUNT_OF(names); i++) {
			struct fi_info *info = answer_to(c, names[i]);

			if (!info && c->answered & 1 << i)
				fail_msg("%s is not answered by %s", c->name, names[i]);
			if (!info)
				continue;
			print_message("%s: %s\n", names[i], c->name);
			answer_holds(c, info);
			answer_opens(info);
			fi_freeinfo(info);
		}
	}
}

/* Charm++ again: it names one of the four directions, and needs three. */
static void who_names_one_direction_reads_and_writes(void **state)
{
	static const char *const of[] = { "tcp", "tcp;ofi_rxm", "sockets", "shm", "link" };

	for (size_t i = 0; i < COUNT_OF(of); i++) {
		struct end_attr attr = { .provider = of[i],
					 .caps = FI_RMA | FI_REMOTE_READ,
					 .no_cntr = true };
		uint64_t word = 1, out = 0x5eed, in = 0;
		struct fi_cq_tagged_entry entry;
		struct fid_mr *mr;
		struct end end;
		fi_addr_t self;

		end_open(&end, &attr);
		self = end_knows(&end, &end);
		assert_int_equal(fi_mr_reg(end.domain, &word, 8,
					   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL),
				 0);
		assert_int_equal(fi_write(end.ep, &out, 8, NULL, self, 0, 7, NULL), 0);
		END_UNTIL(fi_cq_read(end.cq, &entry, 1) == 1, );
		END_UNTIL(word == out, fi_cq_read(end.cq, NULL, 0));
		assert_int_equal(fi_read(end.ep, &in, 8, NULL, self, 0, 7, NULL), 0);
		END_UNTIL(fi_cq_read(end.cq, &entry, 1) == 1, );
		assert_int_equal(in, out);
		assert_int_equal(fi_close(&mr->fid), 0);
		end_close(&end);
	}
}

/*
 * HPNL reads an event queue only after it slept on it, and sleeps only where fi_trywait permits it:
 * over libfabric's sockets it always does.
 */
static void who_sleeps_before_each_event_sees_all_over_sockets(void **state)
{
	struct end_attr attr = { .provider = "sockets" };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE };
	struct fi_eq_entry in = { .data = 0 }, got;
	struct pollfd p = { .events = POLLIN };
	struct fid_eq *eq;
	struct fid *fids[1];
	uint32_t event;
	struct end e;

	end_open(&e, &attr);
	assert_int_equal(fi_eq_open(e.fabric, &eq_attr, &eq, NULL), 0);
	assert_int_equal(fi_control(&eq->fid, FI_GETWAIT, &p.fd), 0);
	fids[0] = &eq->fid;
	for (uint64_t data = 1; data <= 3; data++) {
		in.data = data;
		assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
	}
	for (uint64_t data = 1; data <= 3; data++) {
		END_UNTIL(!fi_trywait(e.fabric, fids, 1), );
		assert_int_equal(poll(&p, 1, 20000), 1);
		assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
		assert_int_equal(got.data, data);
	}
	END_UNTIL(!fi_trywait(e.fabric, fids, 1), );
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	end_close(&e);
}

static int list(void)
{
	for (const struct client *c = clients; c < clients + COUNT_OF(clients); c++) {
		printf("%-34s", c->name);
		for (size_t i = 0; i < COUNT_OF(names); i++) {
			struct fi_info *info = answer_to(c, names[i]);

			if (info)
				printf(" %s", names[i]);
			fi_freeinfo(info);
		}
		printf("\n");
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_program_is_answered_as_by_libfabric),
		cmocka_unit_test(who_names_one_direction_reads_and_writes),
		cmocka_unit_test(who_sleeps_before_each_event_sees_all_over_sockets),
	};

	if (argc > 1 && !strcmp(argv[1], "list"))
		return list();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
