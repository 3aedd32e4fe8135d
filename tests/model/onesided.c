/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations of the model test. Each end has memory that its peers access, and a mirror
 * of it: when the model gives a request its turn, the request is executed on the mirror, and its
 * expected result is recorded. Large writes, whose payload arrives at any time, have a piece of
 * memory to themselves until they end; large reads are of memory that is never written. Called by
 * operate.c, observe.c and model_test.c.
 */
#include "copy.h"
#include "run.h"

#define DATA_FACTOR \
	0x9e3779b97f4a7c15ull /* remote CQ data of an operation is its number times this */
#define KEY_NONE 9999u
#define PIECES	 3u

/* REGION_PIECES: whole elements of any type. */
static const size_t piece_at[PIECES] = { 512, 6144, 12304 },
		    piece_len[PIECES] = { 4000, 3200, 2048 };

#define PIECES_LEN (4000 + 3200 + 2048)

static uint64_t key_of(int end, enum region_kind kind)
{
	return (uint64_t)(100 * end) + kind;
}

/* Where in the memory a byte of a region is. */
static size_t place(enum region_kind kind, uint64_t addr)
{
	uint32_t i = 0;

	if (kind != REGION_PIECES)
		return addr;
	while (addr >= piece_len[i])
		addr -= piece_len[i++];
	return piece_at[i] + addr;
}

static uint8_t *slot_at(uint8_t *memory, int slot)
{
	return memory + ORDERED_LEN + (size_t)(1 + slot) * SLOT_LEN;
}

/* Memory */

static void regions_open(int end)
{
	struct memory *m = &run.memory[end];
	struct fid_domain *domain = run.ends[end].domain;
	uint64_t both = FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct iovec iov[PIECES];

	for (uint32_t i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){ m->bytes + piece_at[i], piece_len[i] };
	assert_int_equal(fi_mr_reg(domain, m->bytes, MEMORY_LEN, both, 0,
				   key_of(end, REGION_ALL), 0, &m->mrs[REGION_ALL], NULL),
			 0);
	assert_int_equal(fi_mr_reg(domain, m->bytes, MEMORY_LEN, FI_REMOTE_READ, 0,
				   key_of(end, REGION_READ), 0, &m->mrs[REGION_READ], NULL),
			 0);
	assert_int_equal(fi_mr_regv(domain, iov, PIECES, both, 0, key_of(end, REGION_PIECES), 0,
				    &m->mrs[REGION_PIECES], NULL),
			 0);
}

void memories_open(void)
{
	for (int i = 0; i < FAKE_ENDS_MAX; i++)
		list_init(&run.data_due[i]);
	for (int i = 0; i < run.cnt; i++) {
		struct memory *m = &run.memory[i];
		uint64_t word = round_seed + (uint64_t)i;

		m->bytes = aligned_alloc(64, MEMORY_LEN);
		m->mirror = aligned_alloc(64, MEMORY_LEN);
		if (!m->bytes || !m->mirror)
			abort();
		for (size_t at = 0; at < MEMORY_LEN; at += 8, word += 0xd6e8feb86659fd93ull)
			memcpy(m->bytes + at, &(uint64_t){ word ^ word >> 29 }, 8);
		memcpy(m->mirror, m->bytes, MEMORY_LEN);
		regions_open(i);
	}
}

void memories_close(void)
{
	for (int i = 0; i < run.cnt; i++) {
		for (int k = REGION_ALL; k < REGION_KINDS; k++) {
			int ret = fi_close(&run.memory[i].mrs[k]->fid);

			CHECK(!ret, "region %d of %d: %d", k, i, ret);
		}
	}
}

void memories_check(void)
{
	for (int i = 0; i < run.cnt; i++) {
		const struct memory *m = &run.memory[i];
		size_t len = ORDERED_LEN + SLOT_LEN;

		for (size_t at = 0; memcmp(m->bytes, m->mirror, len) && at < len; at++)
			CHECK(m->bytes[at] == m->mirror[at],
			      "memory of %d: byte %zu is %02x, not %02x", i, at, m->bytes[at],
			      m->mirror[at]);
	}
}

/* Counters */

enum fake_cntr access_cntr(const struct op *op)
{
	const struct access *a = &op->access;

	if (a->op == PACKET_ATOMIC)
		return a->update.kind == ATOMICS_BASE ? FAKE_CNTR_WRITE : FAKE_CNTR_READ;
	return a->op == PACKET_WRITE ? FAKE_CNTR_WRITE : FAKE_CNTR_READ;
}

static bool counter_agrees(int end, enum fake_cntr which)
{
	const struct memory *m = &run.memory[end];
	uint64_t value = fi_cntr_read(run.ends[end].cntrs[which]);
	uint64_t errors = fi_cntr_readerr(run.ends[end].cntrs[which]);
	bool remote = which == FAKE_CNTR_REMOTE_READ || which == FAKE_CNTR_REMOTE_WRITE;

	CHECK(value <= m->events[which] && (run.breaks || errors <= m->errors[which]),
	      "%d: counter %d says %llu and %llu errors, of %llu and %llu", end, which,
	      (unsigned long long)value, (unsigned long long)errors,
	      (unsigned long long)m->events[which], (unsigned long long)m->errors[which]);
	if (run.breaks)
		return !remote || value + m->unsure >= m->events[which];
	return value == m->events[which] && errors == m->errors[which];
}

bool counters_agree(int end)
{
	for (int i = 0; run.attrs[end].count && i < FAKE_CNTRS; i++)
		if (!counter_agrees(end, (enum fake_cntr)i))
			return false;
	return true;
}

uint64_t access_flags(const struct op *op)
{
	return (op->access.op == PACKET_ATOMIC ? FI_ATOMIC : FI_RMA) |
	       (access_cntr(op) == FAKE_CNTR_READ ? FI_READ : FI_WRITE);
}

/* Carried out on the mirror */

static void carry_bytes(struct op *op, uint8_t *mirror)
{
	struct access *a = &op->access;
	size_t done = 0;

	for (uint32_t i = 0; i < a->cnt; i++) {
		const struct packet_target *t = &a->targets[i];

		for (uint64_t k = 0; k < t->len; k++, done++) {
			uint8_t *at = mirror + place((enum region_kind)t->key, t->addr + k);

			if (a->op == PACKET_WRITE)
				*at = a->operand[done];
			else
				a->expect[done] = *at;
		}
	}
}

static void carry_atomic(struct op *op, uint8_t *mirror)
{
	struct access *a = &op->access;
	size_t size = atomics_size(a->update.datatype), done = 0;

	for (uint32_t i = 0; i < a->cnt; i++) {
		const struct packet_target *t = &a->targets[i];

		for (uint64_t k = 0; k < t->len; k += size, done += size) {
			struct atomics_update u = a->update;

			u.target = mirror + place((enum region_kind)t->key, t->addr + k);
			u.operand = a->operand ? a->operand + done : NULL;
			u.compare = a->compare ? a->compare + done : NULL;
			u.result = a->expect ? a->expect + done : NULL;
			u.cnt = 1;
			CHECK(!atomics_apply(&u), "the model can't do what it asks for");
		}
	}
}

static void carry_refused(struct op *op)
{
	run.memory[op->end].errors[access_cntr(op)]++;
	run.nameless += !op->access.told;
	if (op->access.told && !op->wants) {
		op->wants = true;
		run.credit_due++;
	}
}

void access_carried(struct op *op)
{
	struct access *a = &op->access;
	enum fake_cntr cntr = access_cntr(op);
	struct memory *m = &run.memory[op->msg.to];

	TRACE("%llu is carried out\n", (unsigned long long)op->id);
	if (a->refused) {
		carry_refused(op);
		return;
	}
	run.memory[op->end].events[cntr]++;
	m->events[cntr == FAKE_CNTR_READ ? FAKE_CNTR_REMOTE_READ : FAKE_CNTR_REMOTE_WRITE]++;
	m->unsure += run.breaks && a->large;
	if (op->has_data)
		list_add_tail(&run.data_due[op->msg.to], &op->data_link);
	if (a->op == PACKET_ATOMIC)
		carry_atomic(op, m->mirror);
	else if (a->slot < 0)
		carry_bytes(op, m->mirror);
}

static void check_slot(const struct op *op)
{
	const uint8_t *at = slot_at(run.memory[op->msg.to].bytes, op->access.slot);

	CHECK(!memcmp(at, op->access.operand, op->len),
	      "write %llu has ended, and other bytes stand there", (unsigned long long)op->id);
}

void access_fenced(struct op *op)
{
	const struct memory *m = &run.memory[op->msg.to];
	const struct ref_pair *p = &run.ref.pairs[op->end][op->msg.to];

	seen.fences++;
	/* A message is complete when it has left, and may be overtaken then. */
	for (size_t i = p->turn; !run.breaks && p->msgs[i] != &op->msg; i++)
		CHECK(!p->msgs[i]->access,
		      "operation %llu has overtaken others, behind its fence",
		      (unsigned long long)op->id);
	for (int i = 0; i < SLOTS; i++) {
		const struct op *before = m->slots[i];

		if (before && before->end == op->end && before->id < op->id &&
		    !before->exposed && !before->done && before->msg.state == REF_CARRIED &&
		    !before->access.refused)
			check_slot(before);
	}
}

void access_done(struct op *op)
{
	struct access *a = &op->access;

	CHECK(op->msg.state == REF_CARRIED && !a->refused,
	      "operation %llu has ended well, and was %s", (unsigned long long)op->id,
	      a->refused ? "to be refused" : "not carried out");
	if (a->slot >= 0)
		check_slot(op);
	if (!a->expect)
		return;
	if (a->op == PACKET_READ)
		copy_from_iov(a->result, op->iov, op->cnt, 0, op->len);
	for (size_t i = 0; i < op->len; i++)
		CHECK(a->result[i] == a->expect[i],
		      "operation %llu: byte %zu of %zu is %02x, not %02x",
		      (unsigned long long)op->id, i, op->len, a->result[i], a->expect[i]);
}

void access_ended(struct op *op)
{
	struct access *a = &op->access;

	if (op->kind != OP_ACCESS)
		return;
	/* With a connection that broke: whoever writes there may still do it. */
	if (a->slot >= 0 && !op->exposed)
		run.memory[op->msg.to].slots[a->slot] = NULL;
	a->slot = -1;
	free(a->result);
	a->result = NULL;
}

void access_free(struct op *op)
{
	struct access *a = &op->access;

	access_ended(op);
	free(a->operand);
	free(a->compare);
	free(a->expect);
}

void remote_data(int owner, const struct fi_cq_tagged_entry *e, enum fi_cq_format format,
		 const fi_addr_t *src)
{
	uint64_t inverse = DATA_FACTOR, id;
	struct op *op;

	for (int i = 0; i < 6; i++)
		inverse *= 2 - DATA_FACTOR * inverse;
	id = e->data * inverse;
	seen.data_events++;
	for (int end = 0; end < run.cnt; end++) {
		list_for_each_entry(op, &run.data_due[end], data_link) {
			if (run.owner[end] != owner ||
			    (format >= FI_CQ_FORMAT_DATA && op->id != id))
				continue;
			list_remove(&op->data_link);
			if (format < FI_CQ_FORMAT_DATA)
				return;
			CHECK(e->flags ==
				      (FI_REMOTE_CQ_DATA | FI_REMOTE_WRITE |
				       (op->access.op == PACKET_ATOMIC ? FI_ATOMIC : FI_RMA)),
			      "data of %llu: flags %llx", (unsigned long long)id,
			      (unsigned long long)e->flags);
			CHECK(e->len == op->len, "data of %llu: %zu bytes, not %zu",
			      (unsigned long long)id, e->len, op->len);
			CHECK(!src || *src == addr_of(end, op->end) ||
				      (*src == FI_ADDR_NOTAVAIL && op->unknown),
			      "data of %llu: source %llu", (unsigned long long)id,
			      (unsigned long long)*src);
			return;
		}
	}
	FAIL("%d: data that nobody has sent, or that came twice: %llx", owner,
	     (unsigned long long)e->data);
}

/* Random operations */

static size_t some_access_len(size_t head)
{
	size_t most = WIRE_REQUEST_MAX - head;
	const size_t edges[] = {
		ENGINE_REORDER_LEN, ENGINE_INJECT_MAX, 24, ENGINE_ORDER_MAX, most - 1, 64, 0
	};

	switch (below(16)) {
	case 0:
		return edges[below(7)] + below(2);
	case 1:
		return below(1025);
	case 2:
		return below((uint32_t)most + 1);
	default:
		return below(40);
	}
}

/* Bytes of one target in the memory that is kept in order, in steps of @size. */
static void some_target(struct packet_target *t, size_t len, size_t size, bool read)
{
	enum region_kind kind = read && chance(64) ? REGION_READ : REGION_ALL;
	size_t all = ORDERED_LEN;

	if (chance(60) && len <= PIECES_LEN) {
		kind = REGION_PIECES;
		all = PIECES_LEN;
	}
	*t = (struct packet_target){ .addr = below((uint32_t)((all - len) / size) + 1) * size,
				     .len = len,
				     .key = kind };
}

static void some_targets(struct access *a, size_t len, size_t size)
{
	a->cnt = chance(60) ? 2 + below(2) : 1;
	for (uint32_t i = 0; i < a->cnt; i++) {
		size_t part = i + 1 == a->cnt ? len : below((uint32_t)(len / size) + 1) * size;

		some_target(&a->targets[i], part, size, a->op == PACKET_READ);
		len -= part;
	}
}

/* Make the last target one that is refused. */
static void spoil(struct op *op, size_t size)
{
	struct access *a = &op->access;
	struct packet_target *t = &a->targets[a->cnt - 1];
	bool writes = a->op == PACKET_WRITE ||
		      (a->op == PACKET_ATOMIC && a->update.op != FI_ATOMIC_READ);

	if (!t->len)
		return;
	switch (below(4)) {
	case 0:
		t->key = KEY_NONE;
		a->refused = FI_EKEYREJECTED;
		break;
	case 1:
		t->addr = chance(128) ? MEMORY_LEN - t->len + 1 + below(100)
				      : UINT64_MAX - below(100);
		a->refused = FI_EACCES;
		break;
	case 2:
		if (!writes)
			return;
		t->key = REGION_READ;
		a->refused = FI_EACCES;
		break;
	default:
		if (a->op != PACKET_ATOMIC || size == 1)
			return;
		t->key = REGION_ALL;
		t->addr = 1 + 2 * below(100);
		a->refused = FI_EINVAL;
	}
}

/* A write that has memory for itself, or a read of memory that stays. False: there is none */
static bool some_large(struct op *op)
{
	struct access *a = &op->access;
	struct memory *m = &run.memory[op->msg.to];
	uint64_t at = ORDERED_LEN;
	size_t first;

	op->len = WIRE_REQUEST_MAX + 1 +
		  (chance(128) ? below(200) : below(SLOT_LEN - WIRE_REQUEST_MAX - 1));
	if (a->op == PACKET_WRITE) {
		a->slot = (int)below(SLOTS);
		if (m->slots[a->slot]) {
			a->slot = -1;
			return false;
		}
		m->slots[a->slot] = op;
		at += (uint64_t)(1 + a->slot) * SLOT_LEN;
	}
	a->large = true;
	seen.large++;
	a->cnt = 1 + below(2);
	first = a->cnt == 1 ? op->len : below((uint32_t)op->len);
	a->targets[0] = (struct packet_target){ at, first, REGION_ALL };
	a->targets[1] = (struct packet_target){ at + first, op->len - first, REGION_ALL };
	return true;
}

static uint8_t *bytes_new(size_t len)
{
	uint8_t *bytes = malloc(len ? len : 1);

	if (!bytes)
		abort();
	return bytes;
}

/* What the packet has before what it carries. */
static size_t head_of(const struct op *op)
{
	return op->access.cnt == 1 && !op->has_data ? 0 : packet_targets_len(op->access.cnt);
}

static bool some_rma(struct op *op)
{
	struct access *a = &op->access;
	bool write = a->op == PACKET_WRITE;

	op->has_data = write && chance(50);
	if (chance(run.bigness / 2)) {
		if (!some_large(op))
			return false;
	} else {
		op->len = some_access_len(packet_targets_len(3));
		some_targets(a, op->len, 1);
		/* At the very edge: what fits only without a list. */
		if (a->cnt == 1 && !op->has_data && chance(30)) {
			op->len = WIRE_REQUEST_MAX - below(3);
			some_target(&a->targets[0], op->len, 1, !write);
		}
		CHECK(head_of(op) + op->len <= WIRE_REQUEST_MAX, "the model is wrong");
	}
	if (chance(16))
		spoil(op, 1);
	op_iov_alloc(op, 1 + below(ENGINE_IOV_MAX));
	if (write) {
		pattern_into(op);
		a->operand = bytes_new(op->len);
		copy_from_iov(a->operand, op->iov, op->cnt, 0, op->len);
		seen.writes++;
		return true;
	}
	for (uint32_t i = 0; i < op->cnt; i++)
		if (op->iov[i].iov_base)
			memset(op->iov[i].iov_base, UNTOUCHED, op->iov[i].iov_len);
	a->result = bytes_new(op->len);
	a->expect = bytes_new(op->len);
	seen.reads++;
	return true;
}

static void some_atomic(struct op *op)
{
	static const enum fi_datatype types[] = { FI_UINT64,  FI_INT32,		FI_UINT8,
						  FI_INT16,   FI_DOUBLE,	FI_FLOAT,
						  FI_UINT128, FI_DOUBLE_COMPLEX };
	struct access *a = &op->access;
	struct atomics_update *u = &a->update;
	size_t size, cnt;

	do {
		u->kind = (enum atomics_kind)below(3);
		u->datatype = types[below(sizeof(types) / sizeof(types[0]))];
		u->op = (enum fi_op)below(FI_DIFF + 1);
	} while (!atomics_valid(u->kind, u->datatype, u->op));
	size = atomics_size(u->datatype);
	cnt = chance(200) ? 1 + below(4) : 1 + below((uint32_t)(ENGINE_ATOMIC_MAX / size));
	op->len = cnt * size;
	op->has_data = chance(30);
	some_targets(a, op->len, size);
	if (chance(16))
		spoil(op, size);
	if (u->op != FI_ATOMIC_READ) {
		op_iov_alloc(op, 1);
		pattern_into(op);
		a->operand = bytes_new(op->len);
		memcpy(a->operand, op->iov[0].iov_base, op->len);
	}
	if (u->kind == ATOMICS_COMPARE) {
		const struct packet_target *t = &a->targets[0];

		/* Often the present value, so that the operand is stored. */
		a->compare = bytes_new(op->len);
		memset(a->compare, 0, op->len);
		if (chance(128) && t->len && !a->refused && t->key != REGION_PIECES)
			memcpy(a->compare, run.memory[op->msg.to].mirror + t->addr, t->len);
	}
	if (u->kind != ATOMICS_BASE) {
		a->result = bytes_new(op->len);
		memset(a->result, UNTOUCHED, op->len);
		a->expect = bytes_new(op->len);
	}
	seen.atomics++;
}

/* The calls */

static ssize_t call_rma(struct op *op, fi_addr_t dest, uint64_t flags)
{
	struct access *a = &op->access;
	struct fi_rma_iov targets[3];
	struct fi_msg_rma msg = { .msg_iov = op->iov,
				  .iov_count = op->cnt,
				  .addr = dest,
				  .rma_iov = targets,
				  .rma_iov_count = a->cnt,
				  .context = op,
				  .data = op->data };

	for (uint32_t i = 0; i < a->cnt; i++)
		targets[i] = (struct fi_rma_iov){
			a->targets[i].addr, a->targets[i].len,
			a->targets[i].key == KEY_NONE
				? KEY_NONE
				: key_of(op->msg.to, (enum region_kind)a->targets[i].key)
		};
	return a->op == PACKET_WRITE ? fi_writemsg(run.ends[op->end].ep, &msg, flags)
				     : fi_readmsg(run.ends[op->end].ep, &msg, flags);
}

static ssize_t call_atomic(struct op *op, fi_addr_t dest, uint64_t flags)
{
	struct access *a = &op->access;
	const struct atomics_update *u = &a->update;
	size_t size = atomics_size(u->datatype), cnt = op->len / size;
	struct fid_ep *ep = run.ends[op->end].ep;
	struct fi_ioc operand = { op->iov[0].iov_base, cnt }, compare = { a->compare, cnt },
		      result = { a->result, cnt };
	struct fi_rma_ioc targets[3];
	struct fi_msg_atomic msg = { .msg_iov = &operand,
				     .iov_count = 1,
				     .addr = dest,
				     .rma_iov = targets,
				     .rma_iov_count = a->cnt,
				     .datatype = u->datatype,
				     .op = u->op,
				     .context = op,
				     .data = op->data };

	for (uint32_t i = 0; i < a->cnt; i++)
		targets[i] = (struct fi_rma_ioc){
			a->targets[i].addr, a->targets[i].len / size,
			a->targets[i].key == KEY_NONE
				? KEY_NONE
				: key_of(op->msg.to, (enum region_kind)a->targets[i].key)
		};
	if (u->kind == ATOMICS_BASE)
		return fi_atomicmsg(ep, &msg, flags);
	if (u->kind == ATOMICS_FETCH)
		return fi_fetch_atomicmsg(ep, &msg, &result, NULL, 1, flags);
	return fi_compare_atomicmsg(ep, &msg, &compare, NULL, 1, &result, NULL, 1, flags);
}

/* The forms without flags, where one fits. False: none does */
static bool call_plain(struct op *op, fi_addr_t dest, bool inject, ssize_t *ret)
{
	struct access *a = &op->access;
	const struct packet_target *t = &a->targets[0];
	uint64_t key = t->key == KEY_NONE ? KEY_NONE
					  : key_of(op->msg.to, (enum region_kind)t->key);
	struct fid_ep *ep = run.ends[op->end].rma;
	void *buf = op->iov[0].iov_base;

	if (a->cnt != 1 || a->fenced)
		return false;
	if (a->op == PACKET_ATOMIC) {
		const struct atomics_update *u = &a->update;
		size_t cnt = op->len / atomics_size(u->datatype);

		if (op->has_data)
			return false;
		if (u->kind == ATOMICS_BASE)
			*ret = inject ? fi_inject_atomic(ep, buf, cnt, dest, t->addr, key,
							 u->datatype, u->op)
				      : fi_atomic(ep, buf, cnt, NULL, dest, t->addr, key,
						  u->datatype, u->op, op);
		else if (u->kind == ATOMICS_FETCH)
			*ret = fi_fetch_atomic(ep, buf, cnt, NULL, a->result, NULL, dest,
					       t->addr, key, u->datatype, u->op, op);
		else
			*ret = fi_compare_atomic(ep, buf, cnt, NULL, a->compare, NULL,
						 a->result, NULL, dest, t->addr, key,
						 u->datatype, u->op, op);
		return true;
	}
	if (a->op == PACKET_READ) {
		*ret = op->cnt == 1
			       ? fi_read(ep, buf, op->len, NULL, dest, t->addr, key, op)
			       : fi_readv(ep, op->iov, NULL, op->cnt, dest, t->addr, key, op);
		return true;
	}
	if (op->cnt != 1 && (inject || op->has_data))
		return false;
	if (inject)
		*ret = op->has_data ? fi_inject_writedata(ep, buf, op->len, op->data, dest,
							  t->addr, key)
				    : fi_inject_write(ep, buf, op->len, dest, t->addr, key);
	else if (op->has_data)
		*ret = fi_writedata(ep, buf, op->len, NULL, op->data, dest, t->addr, key, op);
	else
		*ret = fi_writev(ep, op->iov, NULL, op->cnt, dest, t->addr, key, op);
	return true;
}

/* Begin it. @injected: out: its buffers are our own again. Returns what the call returned */
static ssize_t begin_access(struct op *op, bool *injected)
{
	const struct fake_end_attr *attr = &run.attrs[op->end];
	struct access *a = &op->access;
	fi_addr_t dest = addr_of(op->end, op->msg.to);
	bool write = a->op == PACKET_WRITE ||
		     (a->op == PACKET_ATOMIC && a->update.kind == ATOMICS_BASE);
	bool inject = write && op->len <= ENGINE_INJECT_MAX && chance(80);
	uint64_t flags = FI_DELIVERY_COMPLETE;
	ssize_t ret;

	a->fenced = chance(8);
	if (chance(170)) {
		op->wants = !inject && wants_by_default(op->end, attr->tx_op_flags);
		*injected = inject || (a->op != PACKET_READ && attr->tx_op_flags & FI_INJECT);
		a->told = !*injected || op->wants;
		if (call_plain(op, dest, inject, &ret))
			return ret;
	}
	if (chance(128))
		flags |= FI_COMPLETION;
	if (inject)
		flags |= FI_INJECT;
	if (op->has_data)
		flags |= FI_REMOTE_CQ_DATA;
	if (chance(64))
		flags |= FI_MORE;
	if (a->fenced)
		flags |= FI_FENCE;
	op->wants = !(attr->bind_flags & FI_SELECTIVE_COMPLETION) || flags & FI_COMPLETION;
	*injected = inject;
	a->told = !inject || op->wants;
	return a->op == PACKET_ATOMIC ? call_atomic(op, dest, flags) : call_rma(op, dest, flags);
}

void try_access(int end)
{
	static const uint8_t kinds[] = { PACKET_WRITE, PACKET_READ, PACKET_ATOMIC };
	int dest = some_dest(end);
	bool injected;
	struct op *op;
	ssize_t ret;

	if (dest < 0 || (run.attrs[end].caps && !(run.attrs[end].caps & FI_RMA)))
		return;
	op = op_new(OP_ACCESS, end);
	op->msg = (struct ref_msg){ .from = end, .to = dest, .access = true };
	op->access.op = kinds[below(3)];
	op->access.slot = -1;
	op->data = op->id * DATA_FACTOR;
	if (op->access.op == PACKET_ATOMIC) {
		some_atomic(op);
	} else if (!some_rma(op)) {
		op_drop(op);
		return;
	}
	ret = begin_access(op, &injected);
	TRACE("%d: access %llu to %d, kind %d, %zu bytes, refused %d: %zd\n", end,
	      (unsigned long long)op->id, dest, op->access.op, op->len, op->access.refused, ret);
	if (ret == -FI_EAGAIN ||
	    (ret == -FI_EMSGSIZE && injected && op->len > ENGINE_INJECT_MAX)) {
		op_drop(op);
		seen.full++;
		return;
	}
	seen.ops++;
	CHECK(!ret, "access %llu: %zd", (unsigned long long)op->id, ret);
	ref_send(&run.ref, &op->msg);
	run.credit_due += op->wants;
	if (injected && op->access.op != PACKET_READ)
		op_iov_free(op);
	run.recent[below(RECENT)] = op;
}
