/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What borrowers ask to use a lease: windows, queue pairs, memory of a device, admin commands; and segments by their
 * addresses. request.h has the contract.
 */
#define _GNU_SOURCE
#include "request.h"
#include "exports.h"
#include "file.h"

#include <errno.h>
#include <weft/nvme.h>

int request_window(struct session *s)
{
	struct lent_lease lease;
	struct lent *lent;
	uint64_t addr;
	int err = request_lease(s, &lent, &lease);

	if (!err)
		err = lent_window(lent, &lease, s->msg.flags, s->msg.offset, s->msg.len, s->fds,
				  s->fd_cnt, &addr);
	if (err)
		return err;
	uses_add(&s->uses, &(struct use){ .of = { .lent = lent, .lease = lease },
					  .kind = USE_WINDOW,
					  .at = addr,
					  .len = s->msg.len });
	s->msg.addr = addr;
	return 0;
}

int request_unwindow(struct session *s)
{
	struct lent_lease lease;
	struct lent *lent;
	int err = request_lease(s, &lent, &lease);

	if (!err)
		err = lent_unwindow(lent, &lease, s->msg.addr, s->msg.len, request_wait_ms(s));
	/* An earlier request had -EINPROGRESS, and it has gone since: it is in @uses still. */
	if ((!err || err == -ENOENT) &&
	    uses_remove(&s->uses, &(struct use){ .of = { .lent = lent, .lease = lease },
						 .kind = USE_WINDOW,
						 .at = s->msg.addr }))
		err = 0;
	return err;
}

static int remote_queues(struct session *s)
{
	uint32_t len = 0;
	struct lent_lease lease;
	struct lent *lent;
	uint16_t qid;
	int err = request_lease(s, &lent, &lease);

	if (!err)
		err = lent_remote_pair(lent, &lease, s->msg.count, &qid, s->data, &len);
	if (err)
		return err;
	s->msg.index = qid;
	s->msg.data_len = len;
	return 0;
}

int request_queues(struct session *s)
{
	bool blocking = s->msg.flags & WEFT_NVME_BLOCKING;
	struct lent_queues pair = {
		.sq = s->msg.addr,
		.cq = s->msg.offset,
		.entries = s->msg.count,
		.vector = blocking && s->fd_cnt ? s->fds[0] : -1,
		.uid = s->by.uid,
		.pidfd = s->process,
	};
	struct lent_lease lease;
	struct lent *lent;
	uint16_t qid;
	struct lent_bells bells;
	int err;

	if (s->remote)
		return remote_queues(s);
	err = request_lease(s, &lent, &lease);
	if (!err && s->fd_cnt != blocking)
		err = -EINVAL;
	if (!err)
		err = lent_queue_pair(lent, &lease, &pair, &qid, &bells);
	if (err)
		return err;
	uses_add(&s->uses, &(struct use){ .of = { .lent = lent, .lease = lease },
					  .kind = USE_PAIR,
					  .at = qid });
	request_drop_fds(s);
	s->fds[s->fd_cnt++] = bells.fd;
	if (bells.kick >= 0)
		s->fds[s->fd_cnt++] = bells.kick;
	s->msg.index = qid;
	s->msg.addr = bells.offset;
	s->msg.len = bells.len;
	s->msg.offset = bells.sq | (uint64_t)bells.cq << 32;
	return 0;
}

int request_unqueues(struct session *s)
{
	struct lent_lease lease;
	struct lent *lent;
	int err = request_lease(s, &lent, &lease);

	if (!err && s->msg.index > UINT16_MAX)
		err = -ENOENT;
	if (!err)
		err = lent_unqueue_pair(lent, &lease, (uint16_t)s->msg.index,
					request_wait_ms(s));
	if (!err)
		uses_remove(&s->uses, &(struct use){ .of = { .lent = lent, .lease = lease },
						     .kind = USE_PAIR,
						     .at = s->msg.index });
	return err;
}

int request_memory(struct session *s)
{
	struct lent_lease lease;
	struct lent *lent;
	uint32_t first, cnt;
	uint64_t granule;
	int err = request_lease(s, &lent, &lease);

	request_drop_fds(s);
	if (!err)
		err = lent_memory(lent, &lease, s->msg.len, &first, &cnt, &granule, s->fds);
	if (err)
		return err;
	s->fd_cnt = cnt;
	s->msg.index = first;
	s->msg.count = cnt;
	s->msg.len = granule;
	return 0;
}

int request_unmemory(struct session *s)
{
	struct lent_lease lease;
	struct lent *lent;
	int err = request_lease(s, &lent, &lease);

	return err ? err : lent_unmemory(lent, &lease, s->msg.index, s->msg.count);
}

int request_admin(struct session *s)
{
	struct nvme_sqe sqe = {
		.opcode = (uint8_t)s->msg.offset,
		.nsid = (uint32_t)(s->msg.offset >> 32),
		.cdw10 = (uint32_t)s->msg.addr,
		.cdw11 = (uint32_t)(s->msg.addr >> 32),
		.cdw12 = (uint32_t)s->msg.len,
		.cdw13 = (uint32_t)(s->msg.len >> 32),
	};
	struct lent *lent = request_device(s, s->msg.device);
	struct nvme_cqe cqe;
	int err = lent ? lent_admin(lent, &sqe, s->data, &cqe) : -ENODEV;

	if (err)
		return err;
	s->msg.data_len = NVME_PAGE;
	s->msg.offset = cqe.result | (uint64_t)NVME_CQE_STATUS(cqe.status) << 32;
	return 0;
}

int request_export(struct session *s)
{
	struct exported segment = {
		.len = s->msg.len,
		.flags = s->msg.flags,
		.uid = s->by.uid,
		.by = s,
		.fds = s->fds,
		.fd_cnt = s->fd_cnt,
	};
	uint32_t i;
	int err;

	if (!s->fd_cnt || !s->msg.len || s->msg.flags & ~WEFT_EXPORT_ALL)
		return -EINVAL;
	for (i = 0; i < s->fd_cnt; i++)
		if (slot_file_check(s->fds[i], s->msg.len))
			return -EBADF;
	s->fd_cnt = 0;
	err = exports_add(s->lender->exports, &segment, &s->msg.index, &s->msg.generation);
	s->msg.device = s->lender->node;
	return err;
}

int request_unexport(struct session *s)
{
	return exports_remove(s->lender->exports, s->msg.index, s->msg.generation, s);
}

/* Another node's segments are not here. */
int request_import(struct session *s)
{
	if (s->msg.device != s->lender->node)
		return -EHOSTUNREACH;
	return exports_get(s->lender->exports, s->msg.index, s->msg.generation, s->by.uid,
			   &s->msg.len, s->fds, &s->fd_cnt);
}
