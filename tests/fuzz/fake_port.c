/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint whose provider is a fuzz target; fake_port.h has the contract.
 */
#include "fake_port.h"

#include <string.h>

#include "input.h"
#include "port.h"

#define OPS_MAX	    4096u
#define RANGES_MAX  16u
#define MESSAGE_MAX 16384u

enum op_kind { RECEIVE, SEND, READ, WRITE };

struct pending {
	enum op_kind kind;
	void *context;
	uint8_t *mem;
	size_t len;
};

struct range {
	struct fid_mr mr;
	struct iovec iov;
	bool open;
};

/* @receives, @ops: as they were begun; @done: completions that were not read; @said: one message, of those sent */
static struct {
	int (*refuse)(void);
	struct fid_ep ep;
	struct fid_cq cq;
	bool ep_open;
	uint32_t left;
	struct range ranges[RANGES_MAX];
	struct pending receives[OPS_MAX], ops[OPS_MAX];
	uint32_t receive_cnt, op_cnt;
	struct fi_cq_data_entry done[OPS_MAX];
	int errors[OPS_MAX];
	uint32_t done_cnt;
	uint8_t said[MESSAGE_MAX];
	size_t said_len;
} f;

static bool is_registered(const void *mem, size_t len)
{
	uintptr_t at = (uintptr_t)mem;
	uint32_t i;

	for (i = 0; i < RANGES_MAX; i++) {
		uintptr_t base = (uintptr_t)f.ranges[i].iov.iov_base;

		if (f.ranges[i].open && at >= base && len <= f.ranges[i].iov.iov_len &&
		    at - base <= f.ranges[i].iov.iov_len - len)
			return true;
	}
	return false;
}

static void check_range(const void *mem, size_t len)
{
	MUST(is_registered(mem, len));
}

static ssize_t begin(enum op_kind kind, const void *mem, size_t len, void *context)
{
	int err = f.refuse();

	MUST(f.ep_open && f.op_cnt < OPS_MAX);
	check_range(mem, len);
	if (err)
		return err;
	f.ops[f.op_cnt++] = (struct pending){ kind, context, (uint8_t *)mem, len };
	return 0;
}

static ssize_t on_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from,
		       void *context)
{
	MUST(f.ep_open && f.receive_cnt < OPS_MAX);
	check_range(buf, len);
	f.receives[f.receive_cnt++] = (struct pending){ RECEIVE, context, buf, len };
	return 0;
}

static void say(const void *buf, size_t len)
{
	MUST(len <= MESSAGE_MAX);
	memcpy(f.said, buf, len);
	f.said_len = len;
}

static ssize_t on_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to,
		       void *context)
{
	ssize_t ret = begin(SEND, buf, len, context);

	if (!ret)
		say(buf, len);
	return ret;
}

static ssize_t on_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to)
{
	int err = f.refuse();

	MUST(f.ep_open);
	if (!err)
		say(buf, len);
	return err;
}

static ssize_t on_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from,
		       uint64_t addr, uint64_t key, void *context)
{
	return begin(READ, buf, len, context);
}

static ssize_t on_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t to, uint64_t addr, uint64_t key,
			    void *context)
{
	return begin(WRITE, buf, len, context);
}

static ssize_t on_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return begin(WRITE, msg->msg_iov[0].iov_base, msg->msg_iov[0].iov_len, msg->context);
}

static ssize_t on_cq_read(struct fid_cq *cq, void *buf, size_t cnt)
{
	size_t n = 0;

	if (f.done_cnt && f.errors[0])
		return -FI_EAVAIL;
	while (n < cnt && n < f.done_cnt && !f.errors[n])
		n++;
	if (!n)
		return -FI_EAGAIN;
	memcpy(buf, f.done, n * sizeof(f.done[0]));
	f.done_cnt -= n;
	memmove(f.done, f.done + n, f.done_cnt * sizeof(f.done[0]));
	memmove(f.errors, f.errors + n, f.done_cnt * sizeof(f.errors[0]));
	return (ssize_t)n;
}

static ssize_t on_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *e, uint64_t flags)
{
	if (!f.done_cnt || !f.errors[0])
		return -FI_EAGAIN;
	*e = (struct fi_cq_err_entry){ .op_context = f.done[0].op_context, .err = f.errors[0] };
	f.done_cnt--;
	memmove(f.done, f.done + 1, f.done_cnt * sizeof(f.done[0]));
	memmove(f.errors, f.errors + 1, f.done_cnt * sizeof(f.errors[0]));
	return 1;
}

static void done(const struct fi_cq_data_entry *entry, int err)
{
	MUST(f.done_cnt < OPS_MAX);
	f.done[f.done_cnt] = *entry;
	f.errors[f.done_cnt++] = err;
}

/* What had been begun at an endpoint ends without a completion. */
static int on_close(struct fid *fid)
{
	struct range *range = (struct range *)fid;

	f.left--;
	if (fid == &f.ep.fid) {
		f.ep_open = false;
		f.op_cnt = f.receive_cnt = 0;
	} else {
		range->open = false;
	}
	return 0;
}

void fake_port_begin(int (*refuse)(void))
{
	static struct fi_ops fid_ops = { .size = sizeof(fid_ops), .close = on_close };
	static struct fi_ops_msg msg = {
		.size = sizeof(msg), .recv = on_recv, .send = on_send, .inject = on_inject
	};
	static struct fi_ops_rma rma = { .size = sizeof(rma),
					 .read = on_read,
					 .writemsg = on_writemsg,
					 .writedata = on_writedata };
	static struct fi_ops_cq cq = { .size = sizeof(cq),
				       .read = on_cq_read,
				       .readerr = on_cq_readerr };
	uint32_t i;

	f.refuse = refuse;
	f.left = f.receive_cnt = f.op_cnt = f.done_cnt = 0;
	f.said_len = 0;
	f.ep = (struct fid_ep){ .fid.ops = &fid_ops, .msg = &msg, .rma = &rma };
	f.cq = (struct fid_cq){ .ops = &cq };
	for (i = 0; i < RANGES_MAX; i++)
		f.ranges[i] = (struct range){ .mr.fid.ops = &fid_ops, .mr.key = i };
}

bool fake_port_message(const void *bytes, size_t len)
{
	struct pending *r = &f.receives[0];
	struct fi_cq_data_entry entry = { .op_context = r->context, .flags = FI_RECV };
	bool fits = len <= r->len;

	if (!f.ep_open || !f.receive_cnt)
		return false;
	entry.len = fits ? len : r->len;
	memcpy(r->mem, bytes, entry.len);
	memmove(r, r + 1, --f.receive_cnt * sizeof(*r));
	done(&entry, fits ? 0 : FI_ETRUNC);
	return true;
}

void fake_port_written(uint32_t data)
{
	done(&(struct fi_cq_data_entry){ .flags = FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
					 .data = data },
	     0);
}

uint32_t fake_port_under_way(void)
{
	return f.op_cnt;
}

void fake_port_finish(uint32_t which, int err, void (*fill)(void *mem, size_t len))
{
	struct pending op;

	if (!f.op_cnt)
		return;
	which %= f.op_cnt;
	op = f.ops[which];
	memmove(&f.ops[which], &f.ops[which + 1], (--f.op_cnt - which) * sizeof(op));
	if (op.kind == READ && !err)
		fill(op.mem, op.len);
	done(&(struct fi_cq_data_entry){ .op_context = op.context, .len = op.len }, err);
}

size_t fake_port_said(void *bytes, size_t room)
{
	size_t len = f.said_len < room ? f.said_len : room;

	memcpy(bytes, f.said, len);
	f.said_len = 0;
	return len;
}

bool fake_port_reaches(const void *byte)
{
	return is_registered(byte, 1);
}

uint32_t fake_port_left(void)
{
	return f.left;
}

/* In the places of port.c's. */
static void open_port(struct port *port)
{
	static struct fi_tx_attr tx = { .inject_size = 64 };
	static struct fi_info info = { .tx_attr = &tx };

	*port = (struct port){ .info = &info,
			       .cq = &f.cq,
			       .name_len = 16,
			       .mr_mode = FI_MR_LOCAL,
			       .wait_fd = -1,
			       .data_len = 4,
			       .order_max = 4096 };
}

int port_open(const struct port_request *request, struct port *port)
{
	open_port(port);
	return 0;
}

int port_open_alike(const struct port *port, size_t cq_len, struct port *alike)
{
	open_port(alike);
	return 0;
}

void port_close(struct port *port)
{
	*port = (struct port){ .wait_fd = -1 };
}

const char *port_provider(const struct port *port)
{
	return "fuzz";
}

int port_ep_open(struct port *port, struct fid_ep **ep)
{
	MUST(!f.ep_open);
	f.ep_open = true;
	f.left++;
	*ep = &f.ep;
	return 0;
}

int port_ep_name(struct fid_ep *ep, void *name, size_t *len)
{
	*len = 16;
	memset(name, 'n', *len);
	return 0;
}

int port_peer(struct port *port, const void *name, size_t len, fi_addr_t *addr)
{
	if (len != port->name_len)
		return -FI_EINVAL;
	*addr = 0;
	return 0;
}

void port_peer_forget(struct port *port, fi_addr_t addr)
{
}

int port_mr_open(struct port *port, struct fid_ep *ep, const struct iovec *range,
		 uint64_t access, struct fid_mr **mr)
{
	uint32_t i;

	for (i = 0; i < RANGES_MAX && f.ranges[i].open; i++)
		;
	if (i == RANGES_MAX)
		return -FI_ENOMEM;
	f.ranges[i].iov = *range;
	f.ranges[i].open = true;
	f.left++;
	*mr = &f.ranges[i].mr;
	return 0;
}
