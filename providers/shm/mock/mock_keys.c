/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints that show regions, and accesses to these. Called by tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "conn.h"
#include "fault.h"
#include "mock_keys.h"

void mock_keys_open(struct mock_keys *k, uint64_t remote_events)
{
	static _Atomic uint32_t regions;
	struct mr_memory slabs;
	struct wire_conn *conn;

	k->memory = malloc(MOCK_KEYS_LEN);
	k->buf = malloc(MOCK_KEYS_LEN);
	assert_true(k->memory && k->buf);
	assert_int_equal(pshm_wire_ops.share_open(&k->share, &slabs, &regions), 0);
	mr_init(&k->table, MR_KEYS_GIVEN, &slabs);
	mock_open(&k->a);
	mock_open_sharing(&k->b, k->share, remote_events);
	assert_int_equal(mock_connect(&k->a, &k->b.addr, &conn), 0);
	mock_until(&k->a, &k->b, k->a.conn && k->b.conn);
}

void mock_keys_close(struct mock_keys *k)
{
	sys_fault_clear();
	mock_close(&k->a);
	mock_close(&k->b);
	mr_fini(&k->table);
	pshm_wire_ops.share_close(k->share);
	free(k->memory);
	free(k->buf);
}

int mock_keys_expose(struct mock_keys *k, uint64_t key, uint64_t access, size_t iov_cnt,
		     bool notify, uint32_t *index)
{
	const size_t half = MOCK_KEYS_LEN / 2;
	struct iovec iov[] = { { k->memory, half }, { k->memory + half, MOCK_KEYS_LEN - half } };
	struct mr_spec spec = { .iov = iov,
				.iov_cnt = iov_cnt,
				.access = access,
				.key = key,
				.object = &k->b,
				.live = true,
				.notify = notify };

	if (iov_cnt == 1)
		iov[0].iov_len = MOCK_KEYS_LEN;
	return mr_insert(&k->table, &spec, index);
}

_Atomic uint32_t *mock_keys_mark(struct mock_keys *k)
{
	struct pshm_conn *conn = pshm_conn_of(k->a.conn);

	return &conn->pair->inside[conn->side].line;
}

int mock_access_begin(struct mock_keys *k, bool write, uint64_t key, uint64_t addr, size_t len,
		      struct mock_op *op)
{
	struct packet_target target = { .addr = addr, .len = len, .key = key };
	struct iovec iov = { k->buf, len };
	struct wire_access access = {
		.write = write, .targets = &target, .target_cnt = 1, .iov = &iov, .iov_cnt = 1
	};

	mock_op_init(op);
	return pshm_wire_ops.direct(k->a.conn, &access, &op->op);
}

int mock_access_end(struct mock_keys *k, int ret, struct mock_op *op)
{
	if (ret)
		return ret < 0 ? ret : 0;
	mock_until(&k->a, NULL, op->done);
	return op->status;
}

int mock_access_all(struct mock_keys *k, bool write, uint64_t key, uint64_t addr, size_t len)
{
	struct mock_op op;

	return mock_access_end(k, mock_access_begin(k, write, key, addr, len, &op), &op);
}
