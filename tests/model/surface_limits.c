/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What works up to each number that is offered, and no further. Each proof gets the number. See
 * surface_offer.h.
 */
#include "surface_offer.h"

#define BIG_KEY 0xfffffffffffffff0u
#define PIECES	64
#define SHARERS 2000 /* objects that are made for a proof, if there may be more */

static uint8_t buf[2][PIECES];

static fi_addr_t far(const struct surface *s)
{
	return s->far.addr;
}

/* Vectors */

static struct iovec *pieces(struct iovec *iov, uint8_t *at, uint64_t cnt)
{
	assert_true(cnt < PIECES);
	for (uint64_t i = 0; i <= cnt; i++)
		iov[i] = (struct iovec){ at + i, 1 };
	return iov;
}

static void proof_inject_size(struct surface *s, uint64_t max)
{
	struct fi_context2 context;
	uint8_t *whole = calloc(2, max + 1);

	memset(whole, 'x', max);
	END_TAKEN(fi_inject(s->near.ep, whole, max, far(s)), );
	assert_int_equal(fi_recv(s->far.ep, whole + max, max, NULL, FI_ADDR_UNSPEC, &context),
			 0);
	surface_done(s->far.cq, &context);
	assert_memory_equal(whole, whole + max, max);
	assert_true(fi_inject(s->near.ep, whole, max + 1, far(s)) < 0);
	free(whole);
}

static void proof_tx_iov(struct surface *s, uint64_t max)
{
	struct fi_context2 contexts[2];
	struct iovec iov[PIECES];

	memset(buf[0], 'v', PIECES);
	pieces(iov, buf[0], max);
	assert_int_equal(fi_recv(s->far.ep, buf[1], PIECES, NULL, FI_ADDR_UNSPEC, &contexts[0]),
			 0);
	assert_int_equal(fi_sendv(s->near.ep, iov, NULL, max, far(s), &contexts[1]), 0);
	assert_int_equal(surface_done(s->far.cq, &contexts[0]).len, max);
	surface_done(s->near.cq, &contexts[1]);
	assert_memory_equal(buf[0], buf[1], max);
	assert_true(fi_sendv(s->near.ep, iov, NULL, max + 1, far(s), &contexts[1]) < 0);
}

static void proof_rx_iov(struct surface *s, uint64_t max)
{
	struct fi_context2 context;
	struct iovec iov[PIECES];

	memset(buf[0], 'w', PIECES);
	memset(buf[1], 0, PIECES);
	pieces(iov, buf[1], max);
	assert_true(fi_recvv(s->near.ep, iov, NULL, max + 1, FI_ADDR_UNSPEC, &context) < 0);
	assert_int_equal(fi_recvv(s->near.ep, iov, NULL, max, FI_ADDR_UNSPEC, &context), 0);
	END_TAKEN(fi_inject(s->far.ep, buf[0], max, s->near.addr), );
	surface_done(s->near.cq, &context);
	assert_memory_equal(buf[0], buf[1], max);
}

static void proof_rma_iov(struct surface *s, uint64_t max)
{
	struct fi_context2 context;
	struct fi_rma_iov targets[PIECES];
	struct iovec iov = { buf[0], max };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = far(s),
				  .rma_iov = targets,
				  .rma_iov_count = max,
				  .context = &context };

	assert_true(max < sizeof(s->words) / 2);
	memset(buf[0], 'r', PIECES);
	for (uint64_t i = 0; i <= max; i++)
		targets[i] = (struct fi_rma_iov){ 2 * i, 1, SURFACE_KEY };
	assert_int_equal(fi_writemsg(s->near.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION), 0);
	surface_done(s->near.cq, &context);
	assert_int_equal(((uint8_t *)s->words)[2 * (max - 1)], 'r');
	msg.rma_iov_count = iov.iov_len = max + 1;
	assert_true(fi_writemsg(s->near.ep, &msg, FI_COMPLETION) < 0);
}

static void proof_mr_iov(struct surface *s, uint64_t max)
{
	struct fi_context2 context;
	struct iovec iov[PIECES];
	struct fid_mr *mr;

	memset(buf[1], 0, PIECES);
	pieces(iov, buf[1], max);
	assert_int_equal(fi_mr_regv(s->domain, iov, max, FI_REMOTE_WRITE, 0, 99, 0, &mr, NULL),
			 0);
	assert_int_equal(fi_write(s->near.ep, buf[0], max, NULL, far(s), 0, 99, &context), 0);
	surface_done(s->near.cq, &context);
	END_UNTIL(end_holds(buf[1], buf[0], max), fi_cq_read(s->far.cq, NULL, 0));
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_true(fi_mr_regv(s->domain, iov, max + 1, FI_REMOTE_WRITE, 0, 99, 0, &mr, NULL) <
		    0);
}

/* Sizes */

static void proof_tx_size(struct surface *s, uint64_t max)
{
	struct fi_context2 *contexts = calloc(max, sizeof(*contexts));
	struct fi_cq_tagged_entry entry;
	static uint8_t in[8];

	assert_int_equal(fi_tx_size_left(s->near.ep), max);
	for (uint64_t i = 0; i < max; i++)
		assert_int_equal(fi_send(s->near.ep, "12345678", 8, NULL, far(s), &contexts[i]),
				 0);
	for (uint64_t i = 0; i < max; i++) {
		assert_int_equal(fi_recv(s->far.ep, in, 8, NULL, FI_ADDR_UNSPEC, contexts), 0);
		surface_done(s->far.cq, contexts);
	}
	for (uint64_t i = 0; i < max; i++)
		END_UNTIL(fi_cq_read(s->near.cq, &entry, 1) == 1, );
	free(contexts);
}

static void proof_rx_size(struct surface *s, uint64_t max)
{
	struct fi_context2 *contexts = calloc(max, sizeof(*contexts));
	static uint8_t in[8];

	for (uint64_t i = 0; i < max; i++)
		assert_int_equal(fi_recv(s->near.ep, in, 8, NULL, FI_ADDR_UNSPEC, &contexts[i]),
				 0);
	for (uint64_t i = 0; i < max; i++) {
		END_UNTIL(fi_inject(s->far.ep, "12345678", 8, s->near.addr) == 0,
			  fi_cq_read(s->far.cq, NULL, 0));
		surface_done(s->near.cq, &contexts[i]);
	}
	free(contexts);
}

static void proof_msg_size(struct surface *s, uint64_t max)
{
	struct fi_context2 contexts[2];
	uint64_t len = max < 1u << 20 ? max : 1u << 20;
	uint8_t *whole = calloc(2, len);
	size_t value = 0, value_len = sizeof(value);

	assert_int_equal(fi_getopt(&s->near.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MAX_MSG_SIZE,
				   &value, &value_len),
			 0);
	assert_int_equal(value, max);
	memset(whole, 'm', len);
	assert_int_equal(
		fi_recv(s->far.ep, whole + len, len, NULL, FI_ADDR_UNSPEC, &contexts[0]), 0);
	assert_int_equal(fi_send(s->near.ep, whole, len, NULL, far(s), &contexts[1]), 0);
	assert_int_equal(surface_done(s->far.cq, &contexts[0]).len, len);
	surface_done(s->near.cq, &contexts[1]);
	assert_memory_equal(whole, whole + len, len);
	free(whole);
}

static void proof_tag(struct surface *s, uint64_t format)
{
	struct fi_context2 context;
	uint8_t in[8];

	assert_int_equal(fi_trecv(s->far.ep, in, 8, NULL, FI_ADDR_UNSPEC, format, 0, &context),
			 0);
	END_TAKEN(fi_tinject(s->near.ep, "nothing.", 8, far(s), format >> 1), );
	END_TAKEN(fi_tinject(s->near.ep, "12345678", 8, far(s), format), );
	assert_int_equal(surface_done(s->far.cq, &context).tag, format);
	assert_memory_equal(in, "12345678", 8);
}

static void proof_raw(struct surface *s, uint64_t max)
{
	proof_order(s, FI_ORDER_RAW, max);
}

static void proof_war(struct surface *s, uint64_t max)
{
	proof_order(s, FI_ORDER_WAR, max);
}

static void proof_waw(struct surface *s, uint64_t max)
{
	proof_order(s, FI_ORDER_WAW, max);
}

static void proof_data(struct surface *s, uint64_t len)
{
	uint64_t data = len < 8 ? (1ull << 8 * len) - 1 : UINT64_MAX;
	struct fi_context2 contexts[2];

	assert_int_equal(fi_recv(s->far.ep, buf[1], 8, NULL, FI_ADDR_UNSPEC, &contexts[0]), 0);
	assert_int_equal(
		fi_senddata(s->near.ep, "12345678", 8, NULL, data, far(s), &contexts[1]), 0);
	assert_true(surface_done(s->far.cq, &contexts[0]).data == data);
	surface_done(s->near.cq, &contexts[1]);
}

static void proof_key(struct surface *s, uint64_t len)
{
	struct fi_context2 context;
	struct fid_mr *mr;

	assert_int_equal(len, sizeof(uint64_t));
	memset(buf[1], 0, 8);
	assert_int_equal(
		fi_mr_reg(s->domain, buf[1], 8, FI_REMOTE_WRITE, 0, BIG_KEY, 0, &mr, NULL), 0);
	assert_true(fi_mr_key(mr) == BIG_KEY);
	assert_int_equal(
		fi_write(s->near.ep, "12345678", 8, NULL, far(s), 0, BIG_KEY, &context), 0);
	surface_done(s->near.cq, &context);
	END_UNTIL(end_holds(buf[1], "12345678", 8), fi_cq_read(s->far.cq, NULL, 0));
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* Numbers of objects */

static void close_all(struct fid **fids, uint64_t cnt)
{
	while (cnt--)
		assert_int_equal(fi_close(fids[cnt]), 0);
	free(fids);
}

static void contexts_of(struct surface *s, uint64_t tx, uint64_t rx)
{
	struct fi_info *info = fi_dupinfo(s->info);
	struct fid_ep *sep, *first, *last;

	info->ep_attr->tx_ctx_cnt = tx;
	info->ep_attr->rx_ctx_cnt = rx;
	assert_int_equal(fi_scalable_ep(s->domain, info, &sep, NULL), 0);
	fi_freeinfo(info);
	assert_int_equal(fi_tx_context(sep, (int)tx - 1, NULL, &first, NULL), 0);
	assert_int_equal(fi_rx_context(sep, (int)rx - 1, NULL, &last, NULL), 0);
	assert_int_equal(fi_close(&first->fid), 0);
	assert_int_equal(fi_close(&last->fid), 0);
	assert_int_equal(fi_tx_context(sep, (int)tx, NULL, &first, NULL), -FI_EINVAL);
	assert_int_equal(fi_rx_context(sep, (int)rx, NULL, &last, NULL), -FI_EINVAL);
	assert_int_equal(fi_close(&sep->fid), 0);
}

static void proof_ep_tx(struct surface *s, uint64_t max)
{
	contexts_of(s, max, 1);
}

static void proof_ep_rx(struct surface *s, uint64_t max)
{
	contexts_of(s, 1, max);
}

/* So many endpoints, each of which has @shared, if there is one. */
static void endpoints(struct surface *s, uint64_t cnt, struct fid *shared)
{
	struct fid **fids = calloc(SHARERS, sizeof(*fids));
	struct fid_ep *ep;

	cnt = cnt < SHARERS ? cnt : SHARERS;
	for (uint64_t i = 0; i < cnt; i++) {
		assert_int_equal(fi_endpoint(s->domain, s->info, &ep, NULL), 0);
		fids[i] = &ep->fid;
		if (shared)
			assert_int_equal(fi_ep_bind(ep, shared, 0), 0);
	}
	close_all(fids, cnt);
}

static void proof_stx(struct surface *s, uint64_t max)
{
	struct fid_stx *stx;

	assert_int_equal(fi_stx_context(s->domain, s->info->tx_attr, &stx, NULL), 0);
	endpoints(s, max, &stx->fid);
	assert_int_equal(fi_close(&stx->fid), 0);
}

static void proof_srx(struct surface *s, uint64_t max)
{
	struct fid_ep *srx;

	assert_int_equal(fi_srx_context(s->domain, s->info->rx_attr, &srx, NULL), 0);
	endpoints(s, max, &srx->fid);
	assert_int_equal(fi_close(&srx->fid), 0);
}

static void proof_eps(struct surface *s, uint64_t max)
{
	endpoints(s, max, NULL);
}

static void proof_cqs(struct surface *s, uint64_t max)
{
	struct fid **fids = calloc(SHARERS, sizeof(*fids));
	struct fid_cq *cq;

	max = max < SHARERS ? max : SHARERS;
	for (uint64_t i = 0; i < max; i++) {
		assert_int_equal(fi_cq_open(s->domain, NULL, &cq, NULL), 0);
		fids[i] = &cq->fid;
	}
	close_all(fids, max);
}

static void proof_cntrs(struct surface *s, uint64_t max)
{
	struct fid **fids = calloc(max, sizeof(*fids));
	struct fid_cntr *cntr;

	for (uint64_t i = 0; i < max; i++) {
		assert_int_equal(fi_cntr_open(s->domain, NULL, &cntr, NULL), 0);
		fids[i] = &cntr->fid;
	}
	close_all(fids, max);
}

static void proof_regions(struct surface *s, uint64_t max)
{
	struct fid **fids = calloc(SHARERS, sizeof(*fids));
	struct fid_mr *mr;

	max = max < SHARERS ? max : SHARERS;
	for (uint64_t i = 0; i < max; i++) {
		assert_int_equal(fi_mr_reg(s->domain, buf[1], 8, FI_REMOTE_WRITE, 0, 100 + i, 0,
					   &mr, NULL),
				 0);
		fids[i] = &mr->fid;
	}
	close_all(fids, max);
}

static void proof_cntr_value(struct surface *s, uint64_t max)
{
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(s->domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_cntr_set(cntr, max), 0);
	assert_true(fi_cntr_read(cntr) == max);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	assert_true(fi_cntr_read(cntr) == 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

static void proof_cntr_error(struct surface *s, uint64_t max)
{
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(s->domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_cntr_seterr(cntr, max), 0);
	assert_true(fi_cntr_readerr(cntr) == max);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* Two endpoints of one version of a protocol talk to each other. */
static void proof_talk(struct surface *s, uint64_t max)
{
	proof_slot(s, msg_slots, MSG_SLOTS, "send");
}

#define AT(attr, type, field)                                              \
	.name = #attr "->" #field, .part = offsetof(struct fi_info, attr), \
	.at = offsetof(struct type, field), .len = sizeof(((struct type *)0)->field)
#define TX(field)     AT(tx_attr, fi_tx_attr, field)
#define RX(field)     AT(rx_attr, fi_rx_attr, field)
#define EP(field)     AT(ep_attr, fi_ep_attr, field)
#define DOMAIN(field) AT(domain_attr, fi_domain_attr, field)

/* Without a proof: offered is none of it. */
const struct limit limits_offered[] = {
	{ TX(inject_size), proof_inject_size },
	{ TX(size), proof_tx_size, .open = true, .more = 5000 },
	{ TX(iov_limit), proof_tx_iov },
	{ TX(rma_iov_limit), proof_rma_iov },
	{ RX(size), proof_rx_size, .open = true, .more = 5000 },
	{ RX(iov_limit), proof_rx_iov },
	{ EP(protocol_version), proof_talk },
	{ EP(max_msg_size), proof_msg_size },
	{ EP(max_order_raw_size), proof_raw, .open = true, .more = 70000 },
	{ EP(max_order_war_size), proof_war, .open = true, .more = 70000 },
	{ EP(max_order_waw_size), proof_waw, .open = true, .more = 70000 },
	{ DOMAIN(mr_key_size), proof_key, .open = true },
	{ DOMAIN(cq_data_size), proof_data },
	{ DOMAIN(cq_cnt), proof_cqs, .open = true, .more = 1u << 17 },
	{ DOMAIN(ep_cnt), proof_eps, .open = true, .more = 1u << 17 },
	{ DOMAIN(tx_ctx_cnt), proof_eps, .open = true, .more = 1u << 17 },
	{ DOMAIN(rx_ctx_cnt), proof_eps, .open = true, .more = 1u << 17 },
	{ DOMAIN(max_ep_tx_ctx), proof_ep_tx, .open = true, .more = 256 },
	{ DOMAIN(max_ep_rx_ctx), proof_ep_rx, .open = true, .more = 256 },
	{ DOMAIN(max_ep_stx_ctx), proof_stx, .open = true, .more = 1500 },
	{ DOMAIN(max_ep_srx_ctx), proof_srx, .open = true, .more = 1500 },
	{ DOMAIN(cntr_cnt), proof_cntrs, .open = true, .more = 1u << 17 },
	{ DOMAIN(mr_iov_limit), proof_mr_iov },
	{ DOMAIN(max_err_data), NULL, .open = true },
	{ DOMAIN(mr_cnt), proof_regions, .open = true, .more = 1u << 17 },
	{ DOMAIN(max_ep_auth_key), NULL },
	{ DOMAIN(max_group_id), NULL },
	{ DOMAIN(max_cntr_value), proof_cntr_value },
	{ DOMAIN(max_err_cntr_value), proof_cntr_error },
	{ DOMAIN(max_xpu_ctx_cnt), NULL },
};
_Static_assert(COUNT_OF(limits_offered) == LIMITS_CNT, "surface_offer.h counts the limits");

/* A new attribute is one that these tests have to know. */
_Static_assert(sizeof(struct fi_tx_attr) == 80, "struct fi_tx_attr has a new field");
_Static_assert(sizeof(struct fi_rx_attr) == 64, "struct fi_rx_attr has a new field");
_Static_assert(sizeof(struct fi_ep_attr) == 104, "struct fi_ep_attr has a new field");
_Static_assert(sizeof(struct fi_domain_attr) == 232, "struct fi_domain_attr has a new field");

/* What is a pattern, and what is no hint but an answer. */
void proof_patterns(struct surface *s)
{
	proof_tag(s, s->info->ep_attr->mem_tag_format);
	assert_int_equal(s->info->ep_attr->msg_prefix_size, 0);
	assert_int_equal(s->info->rx_attr->total_buffered_recv, 0);
	assert_int_equal(s->info->mode | s->info->tx_attr->mode | s->info->rx_attr->mode |
				 s->info->domain_attr->mode,
			 0);
	assert_int_equal(s->info->tx_attr->comp_order | s->info->rx_attr->comp_order, 0);
}
