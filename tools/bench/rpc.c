/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote procedure calls; rpc.h has the contract. Called by 'weft bench' on both sides.
 */
#define _GNU_SOURCE
#include "rpc.h"
#include "clock.h"
#include "traffic.h"

#include <endian.h>
#include <err.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

/* What a request begins with; integers little-endian. */
struct rpc_head {
	/* of the overflow, if there is any */
	uint64_t addr;
	uint64_t key;
};

#define PAYLOAD_MAX (RPC_EAGER - sizeof(struct rpc_head))

/* Bytes of a request behind its header, in the message and beyond it. */
static size_t payload(const struct rpc *rpc)
{
	size_t len = rpc->size < sizeof(struct rpc_head) ? 0
							 : rpc->size - sizeof(struct rpc_head);

	return len < PAYLOAD_MAX ? len : PAYLOAD_MAX;
}

static size_t overflow(const struct rpc *rpc)
{
	return rpc->size > RPC_EAGER ? rpc->size - RPC_EAGER : 0;
}

static int init_message(struct channel *ch, struct channel_buf *buf, size_t len)
{
	void *mem;

	if (posix_memalign(&mem, 64, len))
		return fabric_complain("a message", -FI_ENOMEM);
	memset(mem, 0, len);
	return channel_buf_init(ch, buf, mem, len, 0);
}

static void fini_message(struct channel_buf *buf)
{
	void *mem = buf->addr;

	channel_buf_fini(buf);
	free(mem);
}

int rpc_init(struct rpc *rpc, struct channel *ch, size_t size, bool verify)
{
	bool serves = ch->side->rank == 1;
	int rc = 0;

	memset(rpc, 0, sizeof(*rpc));
	rpc->ch = ch;
	rpc->size = size;
	rpc->verify = verify;
	if (overflow(rpc))
		rc = region_init(ch, &rpc->overflow, overflow(rpc),
				 serves ? FI_READ : FI_REMOTE_READ);
	if (!rc)
		rc = init_message(ch, &rpc->request, RPC_EAGER);
	if (!rc)
		rc = init_message(ch, &rpc->answer, RPC_ANSWER);
	if (rc)
		rpc_fini(rpc);
	return rc;
}

void rpc_fini(struct rpc *rpc)
{
	fini_message(&rpc->request);
	fini_message(&rpc->answer);
	region_fini(&rpc->overflow);
	memset(rpc, 0, sizeof(*rpc));
}

/* The payload in the message has the pattern of an even number, the overflow that of the next one. */
static void fill(struct rpc *rpc)
{
	char *at = rpc->request.addr;

	traffic_fill(at + sizeof(struct rpc_head), payload(rpc), 2 * rpc->number);
	traffic_fill(rpc->overflow.mem, overflow(rpc), 2 * rpc->number + 1);
}

static int check(const struct rpc *rpc)
{
	const char *at = rpc->request.addr;

	if (!rpc->verify)
		return 0;
	if (traffic_check(at + sizeof(struct rpc_head), payload(rpc), 2 * rpc->number) ==
		    payload(rpc) &&
	    traffic_check(rpc->overflow.mem, overflow(rpc), 2 * rpc->number + 1) ==
		    overflow(rpc))
		return 0;
	warnx("request %llu of %zu bytes is wrong", (unsigned long long)rpc->number, rpc->size);
	return -FI_EIO;
}

/* Registers the part that does not fit into the message, and describes it in the message. */
static int expose(struct rpc *rpc)
{
	struct remote_region name = { 0 };
	struct rpc_head head;
	int rc = 0;

	if (overflow(rpc))
		rc = region_expose(rpc->ch, &rpc->overflow, FI_REMOTE_READ, &name);
	head.addr = htole64(name.addr);
	head.key = htole64(name.key);
	memcpy(rpc->request.addr, &head, sizeof(head));
	return rc;
}

static int call(struct rpc *rpc)
{
	int rc;

	if (rpc->verify)
		fill(rpc);
	rc = expose(rpc);
	if (!rc)
		rc = channel_recv(rpc->ch, &rpc->answer, RPC_ANSWER);
	if (!rc)
		rc = channel_send(rpc->ch, &rpc->request,
				  sizeof(struct rpc_head) + payload(rpc));
	if (!rc)
		rc = channel_wait_op(rpc->ch, &rpc->answer.op);
	if (!rc)
		rc = channel_wait_op(rpc->ch, &rpc->request.op);
	rpc->number++;
	region_hide(&rpc->overflow);
	return rc;
}

static int pull(struct rpc *rpc)
{
	struct rpc_head head;
	struct remote_region remote = { 0 };
	const struct region_access access = { .local = &rpc->overflow,
					      .remote = &remote,
					      .len = overflow(rpc) };
	int rc;

	if (!overflow(rpc))
		return 0;
	memcpy(&head, rpc->request.addr, sizeof(head));
	remote.addr = le64toh(head.addr);
	remote.key = le64toh(head.key);
	rc = region_transfer(rpc->ch, REGION_READ, &access, &rpc->read);
	return rc ? rc : channel_wait_op(rpc->ch, &rpc->read);
}

/* The receive of the next request is there before this one is answered. */
static int serve(struct rpc *rpc, bool last)
{
	int rc = channel_wait_op(rpc->ch, &rpc->request.op);

	if (!rc)
		rc = pull(rpc);
	if (!rc)
		rc = check(rpc);
	rpc->number++;
	if (!rc && !last)
		rc = channel_recv(rpc->ch, &rpc->request, RPC_EAGER);
	if (!rc)
		rc = channel_wait_op(rpc->ch, &rpc->answer.op);
	return rc ? rc : channel_send(rpc->ch, &rpc->answer, RPC_ANSWER);
}

int rpc_run(struct rpc *rpc, uint32_t cnt, uint64_t *taken)
{
	bool serves = rpc->ch->side->rank == 1;
	uint64_t start;
	uint32_t i;
	int rc = 0;

	if (serves)
		rc = channel_recv(rpc->ch, &rpc->request, RPC_EAGER);
	if (!rc)
		rc = oob_barrier(&rpc->ch->side->oob, 0);
	start = clock_ns();
	for (i = 0; i < cnt && !rc; i++)
		rc = serves ? serve(rpc, i + 1 == cnt) : call(rpc);
	*taken = clock_ns() - start;
	return rc ? rc : channel_wait_op(rpc->ch, &rpc->answer.op);
}
