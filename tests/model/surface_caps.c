/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What works because of each capability. See surface_offer.h. */
#include <unistd.h>
#include <rdma/fi_trigger.h>
#include "surface_offer.h"

void proof_slot(struct surface *s, const struct slot *slots, size_t cnt, const char *name)
{
	struct subject u;

	surface_subject(&u, s, "near", s->near.ep, 0);
	for (size_t i = 0; i < cnt; i++) {
		if (strcmp(slots[i].name, name))
			continue;
		assert_int_equal(slots[i].call(&u), 0);
		slots[i].effect(&u, &slots[i]);
		return;
	}
	fail_msg("no slot %s", name);
}

static void proof_send(struct surface *s)
{
	proof_slot(s, msg_slots, MSG_SLOTS, "send");
}

static void proof_recv(struct surface *s)
{
	proof_slot(s, msg_slots, MSG_SLOTS, "recv");
}

static void proof_tagged(struct surface *s)
{
	proof_slot(s, tagged_slots, TAGGED_SLOTS, "send");
	proof_slot(s, tagged_slots, TAGGED_SLOTS, "recv");
}

static void proof_read(struct surface *s)
{
	proof_slot(s, rma_slots, RMA_SLOTS, "read");
}

static void proof_write(struct surface *s)
{
	proof_slot(s, rma_slots, RMA_SLOTS, "write");
}

static void proof_atomic(struct surface *s)
{
	proof_slot(s, atomic_slots, ATOMIC_SLOTS, "compwrite");
}

static void proof_collective(struct surface *s)
{
	struct groups groups;
	struct subject u;

	surface_subject(&u, s, "near", s->near.ep, 0);
	surface_groups(s, u.ep, u.root, &groups);
	u.coll = fi_mc_addr(groups.near);
	u.peer_coll = fi_mc_addr(groups.far);
	assert_int_equal(collective_slots[0].call(&u), 0);
	collective_slots[0].effect(&u, &collective_slots[0]);
	surface_groups_close(&groups);
}

static void proof_commit(struct surface *s)
{
	struct fi_context2 context;
	uint64_t word = 0x1234;
	struct iovec iov = { &word, sizeof(word) };
	struct fi_rma_iov target = { 0, sizeof(word), SURFACE_KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = s->far.addr,
				  .rma_iov = &target,
				  .rma_iov_count = 1,
				  .context = &context };

	assert_int_equal(fi_writemsg(s->near.ep, &msg, FI_COMMIT_COMPLETE | FI_COMPLETION), 0);
	surface_done(s->near.cq, &context);
	assert_int_equal(s->words[0], word);
}

/* Far has what near has, and the other way round. */
static void swap(struct surface *s)
{
	struct party near = s->near;

	s->near = s->far;
	s->far = near;
}

static void proof_remote_read(struct surface *s)
{
	swap(s);
	proof_read(s);
}

static void proof_remote_write(struct surface *s)
{
	swap(s);
	proof_write(s);
}

/* Messages */

static struct fi_cq_tagged_entry next(struct fid_cq *cq, fi_addr_t *src)
{
	struct fi_cq_tagged_entry entry;

	END_UNTIL(fi_cq_readfrom(cq, &entry, 1, src) == 1, );
	return entry;
}

static void proof_source(struct surface *s)
{
	struct fi_context2 context;
	fi_addr_t src = FI_ADDR_NOTAVAIL;
	char buf[8];

	assert_int_equal(fi_recv(s->near.ep, buf, 8, NULL, FI_ADDR_UNSPEC, &context), 0);
	END_TAKEN(fi_inject(s->far.ep, "12345678", 8, s->near.addr), );
	next(s->near.cq, &src);
	assert_int_equal(src, s->far.addr);
}

static void proof_user_id(struct surface *s)
{
	fi_addr_t id = 0x9999, src = FI_ADDR_NOTAVAIL;
	struct fi_context2 context;
	char name[128], buf[8];
	size_t len = sizeof(name);

	assert_int_equal(fi_getname(&s->far.ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(s->av, name, 1, &id, FI_AV_USER_ID, NULL), 1);
	assert_int_equal(id, s->far.addr);
	assert_int_equal(fi_recv(s->near.ep, buf, 8, NULL, FI_ADDR_UNSPEC, &context), 0);
	END_TAKEN(fi_inject(s->far.ep, "12345678", 8, s->near.addr), );
	next(s->near.cq, &src);
	assert_int_equal(src, 0x9999);
}

static void proof_directed(struct surface *s)
{
	struct fi_context2 own, others;
	char buf[2][8];

	assert_int_equal(fi_recv(s->near.ep, buf[0], 8, NULL, s->near.addr, &own), 0);
	assert_int_equal(fi_recv(s->near.ep, buf[1], 8, NULL, s->far.addr, &others), 0);
	END_TAKEN(fi_inject(s->far.ep, "12345678", 8, s->near.addr), );
	surface_done(s->near.cq, &others);
	END_TAKEN(fi_inject(s->near.ep, "12345678", 8, s->near.addr), );
	surface_done(s->near.cq, &own);
}

static void several_in_one(struct surface *s, bool tagged)
{
	static char buf[3 * 4096];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_context2 context;
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &context
	};
	struct fi_msg_tagged tmsg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &context
	};
	struct fi_cq_tagged_entry entry;

	assert_int_equal(tagged ? fi_trecvmsg(s->near.ep, &tmsg, FI_MULTI_RECV)
				: fi_recvmsg(s->near.ep, &msg, FI_MULTI_RECV),
			 0);
	for (size_t i = 0; i < 2; i++) {
		const char *text = i ? "second.." : "first...";

		END_TAKEN(tagged ? fi_tinject(s->far.ep, text, 8, s->near.addr, 0)
				 : fi_inject(s->far.ep, text, 8, s->near.addr), );
		entry = surface_done(s->near.cq, &context);
		assert_int_equal(entry.flags & FI_MULTI_RECV, 0); /* there is room */
		assert_ptr_equal(entry.buf, buf + 8 * i);
	}
	assert_memory_equal(buf, "first...second..", 16);
}

static void proof_multi(struct surface *s)
{
	several_in_one(s, false);
}

static void proof_tagged_multi(struct surface *s)
{
	several_in_one(s, true);
}

static void proof_fence(struct surface *s)
{
	struct fi_context2 contexts[2];
	struct iovec iov = { s->words, 8 };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = s->far.addr, .context = &contexts[1]
	};
	uint64_t in = 0;

	s->words[0] = 7;
	assert_int_equal(
		fi_read(s->near.ep, &in, 8, NULL, s->far.addr, 0, SURFACE_KEY, &contexts[0]), 0);
	assert_int_equal(fi_sendmsg(s->near.ep, &msg, FI_FENCE | FI_COMPLETION), 0);
	surface_done(s->near.cq, &contexts[0]); /* first the operation before the fence */
	assert_int_equal(in, 7);
	surface_done(s->near.cq, &contexts[1]);
}

static void proof_trigger(struct surface *s)
{
	struct fi_triggered_context2 when = { .event_type = FI_TRIGGER_THRESHOLD };
	struct iovec iov = { s->words, 8 };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = s->far.addr, .context = &when
	};
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(s->domain, NULL, &cntr, NULL), 0);
	when.trigger.threshold.cntr = cntr;
	when.trigger.threshold.threshold = 1;
	assert_int_equal(fi_sendmsg(s->near.ep, &msg, FI_TRIGGER | FI_COMPLETION), 0);
	assert_int_equal(fi_cq_read(s->near.cq, NULL, 0), -FI_EAGAIN);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	surface_done(s->near.cq, &when);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* Contexts, events, vectors */

static void proof_named(struct surface *s)
{
	struct fi_info *info = fi_dupinfo(s->info);
	struct fid_ep *sep, *rx[2];
	struct fi_context2 context;
	char name[128], buf[8];
	size_t len = sizeof(name);
	fi_addr_t addr;

	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 2;
	assert_int_equal(fi_scalable_ep(s->domain, info, &sep, NULL), 0);
	fi_freeinfo(info);
	assert_int_equal(fi_scalable_ep_bind(sep, &s->av->fid, 0), 0);
	assert_int_equal(fi_enable(sep), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_rx_context(sep, i, NULL, &rx[i], NULL), 0);
		assert_int_equal(fi_ep_bind(rx[i], &s->near.cq->fid, FI_RECV), 0);
		assert_int_equal(fi_enable(rx[i]), 0);
	}
	assert_int_equal(fi_getname(&sep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(s->av, name, 1, &addr, 0, NULL), 1);
	assert_int_equal(fi_recv(rx[0], name, 8, NULL, FI_ADDR_UNSPEC, name), 0);
	assert_int_equal(fi_recv(rx[1], buf, 8, NULL, FI_ADDR_UNSPEC, &context), 0);
	END_TAKEN(fi_inject(s->far.ep, "12345678", 8, fi_rx_addr(addr, 1, SURFACE_BITS)), );
	surface_done(s->near.cq, &context);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_close(&rx[i]->fid), 0);
	assert_int_equal(fi_close(&sep->fid), 0);
}

static void proof_rma_event(struct surface *s)
{
	struct fi_context2 context;
	struct party p = { 0 };
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(s->domain, NULL, &cntr, NULL), 0);
	party_open(s, &p, s->info);
	assert_int_equal(fi_ep_bind(p.ep, &cntr->fid, FI_REMOTE_WRITE), 0);
	party_enable(s, &p);
	assert_int_equal(
		fi_write(s->far.ep, "12345678", 8, NULL, p.addr, 0, SURFACE_KEY, &context), 0);
	assert_int_equal(fi_cntr_wait(cntr, 1, 20000), 0);
	surface_done(s->far.cq, &context);
	party_close(&p);
	assert_int_equal(fi_close(&cntr->fid), 0);
}

/* An endpoint on another host can be addressed. */
static void proof_remote_comm(struct surface *s)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	assert_int_equal(fi_av_insertsvc(s->av, "192.0.2.1", "4711", &addr, 0, NULL), 1);
	assert_int_not_equal(addr, FI_ADDR_NOTAVAIL);
}

static void proof_shared_av(struct surface *s)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	char name[64], bytes[128], there[128];
	size_t len = sizeof(bytes), there_len = sizeof(there);
	struct fid_av *writer, *reader;
	fi_addr_t addr;

	snprintf(name, sizeof(name), "surface-%d", (int)getpid());
	attr.name = name;
	assert_int_equal(fi_av_open(s->domain, &attr, &writer, NULL), 0);
	attr.flags = FI_READ;
	assert_int_equal(fi_av_open(s->domain, &attr, &reader, NULL), 0);
	assert_int_equal(fi_getname(&s->far.ep->fid, bytes, &len), 0);
	assert_int_equal(fi_av_insert(writer, bytes, 1, &addr, 0, NULL), 1);
	assert_int_equal(fi_av_lookup(reader, addr, there, &there_len), 0);
	assert_int_equal(there_len, len);
	assert_memory_equal(there, bytes, len);
	assert_int_equal(fi_close(&reader->fid), 0);
	assert_int_equal(fi_close(&writer->fid), 0);
}

const struct offered caps_offered[] = {
	OFFERED(FI_MSG, proof_send),
	OFFERED(FI_RMA, proof_write),
	OFFERED(FI_TAGGED, proof_tagged),
	OFFERED(FI_ATOMIC, proof_atomic),
	OFFERED(FI_COLLECTIVE, proof_collective),
	OFFERED(FI_READ, proof_read),
	OFFERED(FI_WRITE, proof_write),
	OFFERED(FI_RECV, proof_recv),
	OFFERED(FI_SEND, proof_send),
	OFFERED(FI_REMOTE_READ, proof_remote_read),
	OFFERED(FI_REMOTE_WRITE, proof_remote_write),
	OFFERED(FI_MULTI_RECV, proof_multi),
	OFFERED(FI_TRIGGER, proof_trigger),
	OFFERED(FI_FENCE, proof_fence),
	OFFERED(FI_AV_USER_ID, proof_user_id),
	OFFERED(FI_TAGGED_MULTI_RECV, proof_tagged_multi),
	OFFERED(FI_LOCAL_COMM, proof_send),
	OFFERED(FI_REMOTE_COMM, proof_remote_comm),
	OFFERED(FI_SHARED_AV, proof_shared_av),
	OFFERED(FI_RMA_EVENT, proof_rma_event),
	OFFERED(FI_SOURCE, proof_source),
	OFFERED(FI_NAMED_RX_CTX, proof_named),
	OFFERED(FI_DIRECTED_RECV, proof_directed),
	OFFERED(FI_RMA_PMEM, proof_commit),
	OFFERED(FI_PEER, proof_send),
};
