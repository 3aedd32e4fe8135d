/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Slots of messages and of RMA: a call of each, and what it does. See surface.h. */
#include "surface.h"

static struct iovec *pieces(uint8_t *buf, struct iovec *iov)
{
	iov[0] = (struct iovec){ buf, 5 };
	iov[1] = (struct iovec){ buf + 5, SURFACE_LEN - 5 };
	return iov;
}

/* Effects */

static void is_sent(struct subject *u, bool tagged, bool told, bool data)
{
	struct fi_cq_tagged_entry entry;
	uint64_t kind = tagged ? FI_TAGGED : FI_MSG;

	if (tagged)
		assert_int_equal(fi_trecv(u->peer->ep, u->in, SURFACE_LEN, NULL, FI_ADDR_UNSPEC,
					  SURFACE_TAG, 0, &u->peer_context),
				 0);
	else
		assert_int_equal(fi_recv(u->peer->ep, u->in, SURFACE_LEN, NULL, FI_ADDR_UNSPEC,
					 &u->peer_context),
				 0);
	entry = surface_done(u->peer->cq, &u->peer_context);
	assert_int_equal(entry.flags & ~FI_REMOTE_CQ_DATA, kind | FI_RECV);
	assert_int_equal(!!(entry.flags & FI_REMOTE_CQ_DATA), data);
	assert_int_equal(entry.len, SURFACE_LEN);
	if (data)
		assert_int_equal(entry.data, SURFACE_DATA);
	assert_memory_equal(u->in, u->out, SURFACE_LEN);
	if (told)
		assert_int_equal(surface_done(u->cq, &u->context).flags, kind | FI_SEND);
}

static void is_received(struct subject *u, bool tagged)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	END_UNTIL(
		(ret = tagged ? fi_tinject(u->peer->ep, u->out, SURFACE_LEN, u->at, SURFACE_TAG)
			      : fi_inject(u->peer->ep, u->out, SURFACE_LEN, u->at)) !=
			-FI_EAGAIN,
		fi_cq_read(u->peer->cq, NULL, 0));
	assert_int_equal(ret, 0);
	entry = surface_done(u->cq, &u->context);
	assert_int_equal(entry.flags, (tagged ? FI_TAGGED : FI_MSG) | FI_RECV);
	assert_memory_equal(u->in, u->out, SURFACE_LEN);
}

static void sent(struct subject *u, const struct slot *slot)
{
	is_sent(u, false, true, false);
}

static void sent_data(struct subject *u, const struct slot *slot)
{
	is_sent(u, false, true, true);
}

static void injected(struct subject *u, const struct slot *slot)
{
	is_sent(u, false, false, false);
}

static void injected_data(struct subject *u, const struct slot *slot)
{
	is_sent(u, false, false, true);
}

static void received(struct subject *u, const struct slot *slot)
{
	is_received(u, false);
}

static void tsent(struct subject *u, const struct slot *slot)
{
	is_sent(u, true, true, false);
}

static void tsent_data(struct subject *u, const struct slot *slot)
{
	is_sent(u, true, true, true);
}

static void tinjected(struct subject *u, const struct slot *slot)
{
	is_sent(u, true, false, false);
}

static void tinjected_data(struct subject *u, const struct slot *slot)
{
	is_sent(u, true, false, true);
}

static void treceived(struct subject *u, const struct slot *slot)
{
	is_received(u, true);
}

/* Messages */

static ssize_t call_recv(struct subject *u)
{
	return fi_recv(u->ep, u->in, SURFACE_LEN, NULL, FI_ADDR_UNSPEC, &u->context);
}

static ssize_t call_recvv(struct subject *u)
{
	struct iovec iov[2];

	return fi_recvv(u->ep, pieces(u->in, iov), NULL, 2, FI_ADDR_UNSPEC, &u->context);
}

static ssize_t call_recvmsg(struct subject *u)
{
	struct iovec iov[2];
	struct fi_msg msg = { .msg_iov = pieces(u->in, iov),
			      .iov_count = 2,
			      .addr = FI_ADDR_UNSPEC,
			      .context = &u->context };

	return fi_recvmsg(u->ep, &msg, 0);
}

static ssize_t call_send(struct subject *u)
{
	return fi_send(u->ep, u->out, SURFACE_LEN, NULL, u->peer->addr, &u->context);
}

static ssize_t call_sendv(struct subject *u)
{
	struct iovec iov[2];

	return fi_sendv(u->ep, pieces(u->out, iov), NULL, 2, u->peer->addr, &u->context);
}

static ssize_t call_sendmsg(struct subject *u)
{
	struct iovec iov[2];
	struct fi_msg msg = { .msg_iov = pieces(u->out, iov),
			      .iov_count = 2,
			      .addr = u->peer->addr,
			      .context = &u->context };

	return fi_sendmsg(u->ep, &msg, FI_COMPLETION);
}

static ssize_t call_inject(struct subject *u)
{
	return fi_inject(u->ep, u->out, SURFACE_LEN, u->peer->addr);
}

static ssize_t call_senddata(struct subject *u)
{
	return fi_senddata(u->ep, u->out, SURFACE_LEN, NULL, SURFACE_DATA, u->peer->addr,
			   &u->context);
}

static ssize_t call_injectdata(struct subject *u)
{
	return fi_injectdata(u->ep, u->out, SURFACE_LEN, SURFACE_DATA, u->peer->addr);
}

const struct slot msg_slots[] = {
	SLOT(fi_ops_msg, recv, FI_MSG | FI_RECV, call_recv, received),
	SLOT(fi_ops_msg, recvv, FI_MSG | FI_RECV, call_recvv, received),
	SLOT(fi_ops_msg, recvmsg, FI_MSG | FI_RECV, call_recvmsg, received),
	SLOT(fi_ops_msg, send, FI_MSG | FI_SEND, call_send, sent),
	SLOT(fi_ops_msg, sendv, FI_MSG | FI_SEND, call_sendv, sent),
	SLOT(fi_ops_msg, sendmsg, FI_MSG | FI_SEND, call_sendmsg, sent),
	SLOT(fi_ops_msg, inject, FI_MSG | FI_SEND, call_inject, injected),
	SLOT(fi_ops_msg, senddata, FI_MSG | FI_SEND, call_senddata, sent_data),
	SLOT(fi_ops_msg, injectdata, FI_MSG | FI_SEND, call_injectdata, injected_data),
};
ALL_SLOTS(fi_ops_msg, msg_slots);

/* Tagged messages */

static ssize_t call_trecv(struct subject *u)
{
	return fi_trecv(u->ep, u->in, SURFACE_LEN, NULL, FI_ADDR_UNSPEC, SURFACE_TAG, 0,
			&u->context);
}

static ssize_t call_trecvv(struct subject *u)
{
	struct iovec iov[2];

	return fi_trecvv(u->ep, pieces(u->in, iov), NULL, 2, FI_ADDR_UNSPEC, SURFACE_TAG, 0,
			 &u->context);
}

static ssize_t call_trecvmsg(struct subject *u)
{
	struct iovec iov[2];
	struct fi_msg_tagged msg = { .msg_iov = pieces(u->in, iov),
				     .iov_count = 2,
				     .addr = FI_ADDR_UNSPEC,
				     .tag = SURFACE_TAG,
				     .context = &u->context };

	return fi_trecvmsg(u->ep, &msg, 0);
}

static ssize_t call_tsend(struct subject *u)
{
	return fi_tsend(u->ep, u->out, SURFACE_LEN, NULL, u->peer->addr, SURFACE_TAG,
			&u->context);
}

static ssize_t call_tsendv(struct subject *u)
{
	struct iovec iov[2];

	return fi_tsendv(u->ep, pieces(u->out, iov), NULL, 2, u->peer->addr, SURFACE_TAG,
			 &u->context);
}

static ssize_t call_tsendmsg(struct subject *u)
{
	struct iovec iov[2];
	struct fi_msg_tagged msg = { .msg_iov = pieces(u->out, iov),
				     .iov_count = 2,
				     .addr = u->peer->addr,
				     .tag = SURFACE_TAG,
				     .context = &u->context };

	return fi_tsendmsg(u->ep, &msg, FI_COMPLETION);
}

static ssize_t call_tinject(struct subject *u)
{
	return fi_tinject(u->ep, u->out, SURFACE_LEN, u->peer->addr, SURFACE_TAG);
}

static ssize_t call_tsenddata(struct subject *u)
{
	return fi_tsenddata(u->ep, u->out, SURFACE_LEN, NULL, SURFACE_DATA, u->peer->addr,
			    SURFACE_TAG, &u->context);
}

static ssize_t call_tinjectdata(struct subject *u)
{
	return fi_tinjectdata(u->ep, u->out, SURFACE_LEN, SURFACE_DATA, u->peer->addr,
			      SURFACE_TAG);
}

const struct slot tagged_slots[] = {
	SLOT(fi_ops_tagged, recv, FI_TAGGED | FI_RECV, call_trecv, treceived),
	SLOT(fi_ops_tagged, recvv, FI_TAGGED | FI_RECV, call_trecvv, treceived),
	SLOT(fi_ops_tagged, recvmsg, FI_TAGGED | FI_RECV, call_trecvmsg, treceived),
	SLOT(fi_ops_tagged, send, FI_TAGGED | FI_SEND, call_tsend, tsent),
	SLOT(fi_ops_tagged, sendv, FI_TAGGED | FI_SEND, call_tsendv, tsent),
	SLOT(fi_ops_tagged, sendmsg, FI_TAGGED | FI_SEND, call_tsendmsg, tsent),
	SLOT(fi_ops_tagged, inject, FI_TAGGED | FI_SEND, call_tinject, tinjected),
	SLOT(fi_ops_tagged, senddata, FI_TAGGED | FI_SEND, call_tsenddata, tsent_data),
	SLOT(fi_ops_tagged, injectdata, FI_TAGGED | FI_SEND, call_tinjectdata, tinjected_data),
};
ALL_SLOTS(fi_ops_tagged, tagged_slots);

/* RMA */

static void write_injected(struct subject *u, const struct slot *slot)
{
	surface_wait_words(u, u->out, SURFACE_LEN);
}

static void written(struct subject *u, const struct slot *slot)
{
	surface_wait_words(u, u->out, SURFACE_LEN);
	assert_int_equal(surface_done(u->cq, &u->context).flags, FI_RMA | FI_WRITE);
}

static void data_came(struct subject *u)
{
	struct fi_cq_tagged_entry entry;

	END_UNTIL(fi_cq_read(u->peer->cq, &entry, 1) == 1, );
	assert_int_equal(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	assert_int_equal(entry.data, SURFACE_DATA);
}

static void written_data(struct subject *u, const struct slot *slot)
{
	data_came(u);
	written(u, slot);
}

static void write_injected_data(struct subject *u, const struct slot *slot)
{
	data_came(u);
	write_injected(u, slot);
}

static void was_read(struct subject *u, const struct slot *slot)
{
	static const uint8_t zeros[SURFACE_LEN];

	assert_int_equal(surface_done(u->cq, &u->context).flags, FI_RMA | FI_READ);
	assert_memory_equal(u->in, u->out, SURFACE_LEN);
	end_put(u->s->words, zeros, SURFACE_LEN);
}

static ssize_t call_read(struct subject *u)
{
	end_put(u->s->words, u->out, SURFACE_LEN);
	return fi_read(u->ep, u->in, SURFACE_LEN, NULL, u->peer->addr, 0, SURFACE_KEY,
		       &u->context);
}

static ssize_t call_readv(struct subject *u)
{
	struct iovec iov[2];

	end_put(u->s->words, u->out, SURFACE_LEN);
	return fi_readv(u->ep, pieces(u->in, iov), NULL, 2, u->peer->addr, 0, SURFACE_KEY,
			&u->context);
}

static struct fi_msg_rma rma_msg(struct subject *u, struct iovec *iov, struct fi_rma_iov *target)
{
	*target = (struct fi_rma_iov){ 0, SURFACE_LEN, SURFACE_KEY };
	return (struct fi_msg_rma){ .msg_iov = iov,
				    .iov_count = 2,
				    .addr = u->peer->addr,
				    .rma_iov = target,
				    .rma_iov_count = 1,
				    .context = &u->context };
}

static ssize_t call_readmsg(struct subject *u)
{
	struct iovec iov[2];
	struct fi_rma_iov target;
	struct fi_msg_rma msg = rma_msg(u, pieces(u->in, iov), &target);

	end_put(u->s->words, u->out, SURFACE_LEN);
	return fi_readmsg(u->ep, &msg, FI_COMPLETION);
}

static ssize_t call_write(struct subject *u)
{
	return fi_write(u->ep, u->out, SURFACE_LEN, NULL, u->peer->addr, 0, SURFACE_KEY,
			&u->context);
}

static ssize_t call_writev(struct subject *u)
{
	struct iovec iov[2];

	return fi_writev(u->ep, pieces(u->out, iov), NULL, 2, u->peer->addr, 0, SURFACE_KEY,
			 &u->context);
}

static ssize_t call_writemsg(struct subject *u)
{
	struct iovec iov[2];
	struct fi_rma_iov target;
	struct fi_msg_rma msg = rma_msg(u, pieces(u->out, iov), &target);

	return fi_writemsg(u->ep, &msg, FI_COMPLETION);
}

static ssize_t call_inject_write(struct subject *u)
{
	return fi_inject_write(u->ep, u->out, SURFACE_LEN, u->peer->addr, 0, SURFACE_KEY);
}

static ssize_t call_writedata(struct subject *u)
{
	return fi_writedata(u->ep, u->out, SURFACE_LEN, NULL, SURFACE_DATA, u->peer->addr, 0,
			    SURFACE_KEY, &u->context);
}

static ssize_t call_inject_writedata(struct subject *u)
{
	return fi_inject_writedata(u->ep, u->out, SURFACE_LEN, SURFACE_DATA, u->peer->addr, 0,
				   SURFACE_KEY);
}

const struct slot rma_slots[] = {
	SLOT(fi_ops_rma, read, FI_RMA | FI_READ, call_read, was_read),
	SLOT(fi_ops_rma, readv, FI_RMA | FI_READ, call_readv, was_read),
	SLOT(fi_ops_rma, readmsg, FI_RMA | FI_READ, call_readmsg, was_read),
	SLOT(fi_ops_rma, write, FI_RMA | FI_WRITE, call_write, written),
	SLOT(fi_ops_rma, writev, FI_RMA | FI_WRITE, call_writev, written),
	SLOT(fi_ops_rma, writemsg, FI_RMA | FI_WRITE, call_writemsg, written),
	SLOT(fi_ops_rma, inject, FI_RMA | FI_WRITE, call_inject_write, write_injected),
	SLOT(fi_ops_rma, writedata, FI_RMA | FI_WRITE, call_writedata, written_data),
	SLOT(fi_ops_rma, injectdata, FI_RMA | FI_WRITE, call_inject_writedata,
	     write_injected_data),
};
ALL_SLOTS(fi_ops_rma, rma_slots);
