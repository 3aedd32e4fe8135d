/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A transport over a real provider, the program's argument: a child process has memory and makes no
 * calls while this process puts, gets and updates there. What is put is seen by the child's own
 * loads.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include <weft/btl.h>

#define LEN	   ((size_t)4 << 20)
#define DEADLINE_S 30
#define OPS	   1000
#define RW	   (FI_REMOTE_READ | FI_REMOTE_WRITE)

static const char *provider;

/*
 * What the child tells of itself. Both see this memory, which no device writes.
 */
struct told {
	unsigned char name[WEFT_BTL_NAME_MAX];
	size_t name_len;
	unsigned char handle[WEFT_BTL_HANDLE_MAX], read_only[WEFT_BTL_HANDLE_MAX];
	uint64_t addr;
};

static struct told *told;
static int go[2], ready[2];
static pid_t child;
static struct weft_btl *btl;
static struct weft_btl_ctx *ctx;
static struct weft_btl_peer *peer;
static struct weft_btl_target to;

static struct weft_btl *open_btl(void)
{
	struct weft_btl_attr attr = { .size = sizeof(attr), .provider = provider };
	struct weft_btl *opened = NULL;

	return weft_btl_open(&attr, &opened) ? NULL : opened;
}

/* The child: it has memory, sleeps until told, and adds its bytes up. */
static int serve(void)
{
	unsigned char *memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct weft_btl_mem *mem, *read_only;
	struct weft_btl *own = open_btl();
	char byte;

	alarm(600);
	close(go[1]);
	if (!own || memory == MAP_FAILED)
		return 1;
	if (weft_btl_mem_open(own, memory, LEN, RW, &mem) ||
	    weft_btl_mem_open(own, memory, LEN, FI_REMOTE_READ, &read_only))
		return 2;
	told->name_len = sizeof(told->name);
	if (weft_btl_name(own, told->name, &told->name_len))
		return 3;
	weft_btl_mem_handle(mem, told->handle);
	weft_btl_mem_handle(read_only, told->read_only);
	told->addr = (uintptr_t)memory;
	if (write(ready[1], "r", 1) != 1 || read(go[0], &byte, 1) != 1)
		return 4; /* or the parent has ended */
	if (weft_btl_close(own) != -FI_EBUSY)
		return 5;
	if (weft_btl_mem_close(mem) || weft_btl_mem_close(read_only) || weft_btl_close(own))
		return 6;
	return 0;
}

/* Starts a process that serves, and tells at @told. Returns it when it is ready, or -1. */
static pid_t spawn(void)
{
	char byte;
	pid_t pid;

	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	if (told == MAP_FAILED || pipe(ready))
		return -1;
	pid = fork();
	if (!pid)
		_exit(serve());
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		pid = -1;
	close(ready[0]);
	return pid;
}

static int start(void **state)
{
	if (pipe(go))
		return -1;
	child = spawn();
	if (child < 0)
		return -1;
	btl = open_btl();
	if (!btl || weft_btl_ctx_open(btl, &ctx) ||
	    weft_btl_peer_open(btl, told->name, told->name_len, &peer))
		return -1;
	to = (struct weft_btl_target){ peer, told->handle, told->addr };
	return 0;
}

static int end(void **state)
{
	int status = -1;

	weft_btl_peer_close(peer);
	if (write(go[1], "g", 1) != 1 || waitpid(child, &status, 0) != child)
		return -1;
	return status || weft_btl_ctx_close(ctx) || weft_btl_close(btl) ? -1 : 0;
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void count_end(struct weft_btl_op *op)
{
	++*(size_t *)op->arg;
}

/* Waits until @cnt operations that count by @ended have ended. */
static void wait_for(const size_t *ended, size_t cnt)
{
	time_t until = now() + DEADLINE_S;

	while (*ended < cnt && now() < until)
		weft_btl_progress(ctx);
	assert_int_equal(*ended, cnt);
}

static struct weft_btl_target at(uint64_t offset)
{
	struct weft_btl_target target = to;

	target.addr += offset;
	return target;
}

/*
 * Begins an operation, again where the device says that it can't yet: a connection is being made,
 * say.
 */
#define BEGIN(call)                                                     \
	({                                                              \
		time_t until_ = now() + DEADLINE_S;                     \
		int ret_;                                               \
		while ((ret_ = (call)) == -FI_EAGAIN && now() < until_) \
			weft_btl_progress(ctx);                         \
		ret_;                                                   \
	})

static int put_now(uint64_t offset, const void *buf, size_t len)
{
	struct weft_btl_target target = at(offset);
	size_t ended = 0;
	struct weft_btl_op op = { .done = count_end, .arg = &ended };
	int ret = BEGIN(weft_btl_put(ctx, &target, buf, len, NULL, &op));

	if (ret)
		return ret;
	wait_for(&ended, 1);
	return op.status;
}

static int get_now(uint64_t offset, void *buf, size_t len)
{
	struct weft_btl_target target = at(offset);
	struct weft_btl_op op = { .done = NULL }, *got = NULL;
	time_t until = now() + DEADLINE_S;
	int ret = BEGIN(weft_btl_get(ctx, &target, buf, len, NULL, &op));

	if (ret)
		return ret;
	while (!weft_btl_poll(ctx, &got, 1) && now() < until)
		;
	assert_ptr_equal(got, &op);
	return op.status;
}

static void what_is_put_is_got(void **state)
{
	const size_t lens[] = { 1, 8, 24, 100, 4096, 65536, 65537, 1 << 20, LEN };
	unsigned char *out = malloc(LEN), *in = malloc(LEN);

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t len = lens[i], offset = LEN - len;

		for (size_t n = 0; n < len; n++)
			out[n] = (unsigned char)(n * 7 + i);
		memset(in, 0, len);
		assert_int_equal(put_now(offset, out, len), 0);
		assert_int_equal(get_now(offset, in, len), 0);
		assert_memory_equal(in, out, len);
	}
	free(out);
	free(in);
}

static void nothing_is_put_and_got_of_no_bytes(void **state)
{
	assert_int_equal(put_now(LEN, NULL, 0), 0);
	assert_int_equal(get_now(LEN, NULL, 0), 0);
}

/* The same thousand operations by callbacks, and by a flush. */
static void a_flush_waits_for_all(void **state)
{
	struct weft_btl_op *ops = calloc(OPS, sizeof(*ops));
	uint64_t *values = calloc(OPS, sizeof(*values)), *read = calloc(OPS, sizeof(*values));
	size_t ended = 0;

	for (size_t i = 0; i < OPS; i++) {
		struct weft_btl_target target = at(i * sizeof(*values));

		values[i] = ~i;
		ops[i] = (struct weft_btl_op){ .done = count_end, .arg = &ended };
		assert_int_equal(BEGIN(weft_btl_put(ctx, &target, &values[i], sizeof(*values),
						    NULL, &ops[i])),
				 0);
	}
	weft_btl_flush(ctx, peer);
	assert_int_equal(ended, OPS);
	assert_int_equal(get_now(0, read, OPS * sizeof(*values)), 0);
	assert_memory_equal(read, values, OPS * sizeof(*values));
	for (size_t i = 0; i < OPS; i++)
		assert_int_equal(ops[i].status, 0);
	free(ops);
	free(values);
	free(read);
}

/* The bytes may be changed as soon as the call has returned. */
static void what_is_injected_has_arrived_after_a_flush(void **state)
{
	unsigned char bytes[WEFT_BTL_INJECT_MAX + 1], got[WEFT_BTL_INJECT_MAX];
	struct weft_btl_target target;

	for (size_t i = 0; i < OPS; i++) {
		memset(bytes, (int)i, sizeof(bytes));
		target = at(i * WEFT_BTL_INJECT_MAX);
		assert_int_equal(
			BEGIN(weft_btl_put_inject(ctx, &target, bytes, WEFT_BTL_INJECT_MAX)), 0);
	}
	assert_int_equal(weft_btl_flush(ctx, peer), 0);
	for (size_t i = 0; i < OPS; i++) {
		memset(bytes, (int)i, sizeof(bytes));
		assert_int_equal(get_now(i * WEFT_BTL_INJECT_MAX, got, sizeof(got)), 0);
		assert_memory_equal(got, bytes, sizeof(got));
	}
	assert_int_equal(weft_btl_put_inject(ctx, &target, bytes, sizeof(bytes)), -FI_EMSGSIZE);
}

static void a_batch_begins_together(void **state)
{
	static uint64_t values[64], got[64];
	struct weft_btl_op ops[64];
	struct weft_btl_transfer transfers[64];
	ssize_t n;

	for (size_t kind = 0; kind < 2; kind++) {
		for (size_t i = 0; i < 64; i++) {
			values[i] = 1000 + i;
			ops[i] = (struct weft_btl_op){ .done = weft_btl_flushed };
			transfers[i] = (struct weft_btl_transfer){
				.target = at(i * 16),
				.buf = kind ? &got[i] : &values[i],
				.len = 8,
				.op = &ops[i],
			};
		}
		for (size_t begun = 0; begun < 64; begun += (size_t)n) {
			n = BEGIN((int)(kind ? weft_btl_get_batch : weft_btl_put_batch)(
				ctx, &transfers[begun], 64 - begun));
			assert_true(n > 0);
		}
		assert_int_equal(weft_btl_flush(ctx, peer), 0);
		for (size_t i = 0; i < 64; i++)
			assert_int_equal(ops[i].status, 0);
	}
	assert_memory_equal(got, values, sizeof(got));
	transfers[1].target.handle =
		"this is no handle, whatever it may look like to who reads it, "
		"and as long as the largest one is, so that it may be read; "
		"nothing of this is a checksum of anything, and more of that";
	n = weft_btl_put_batch(ctx, transfers, 2);
	assert_int_equal(n, 1);
	weft_btl_flush(ctx, peer);
}

static void put_value(uint64_t offset, uint64_t value)
{
	assert_int_equal(put_now(offset, &value, sizeof(value)), 0);
}

static uint64_t get_value(uint64_t offset)
{
	uint64_t value = 0;

	assert_int_equal(get_now(offset, &value, sizeof(value)), 0);
	return value;
}

static uint64_t fetch(enum fi_op fi_op, enum fi_datatype type, uint64_t operand)
{
	struct weft_btl_target target = at(64);
	size_t ended = 0;
	struct weft_btl_op op = { .done = count_end, .arg = &ended };
	uint64_t old = 0;

	assert_int_equal(weft_btl_fetch_atomic(ctx, &target, fi_op, type, &operand, &old, &op),
			 0);
	wait_for(&ended, 1);
	assert_int_equal(op.status, 0);
	return old;
}

static void atomics_update_and_fetch(void **state)
{
	static const struct {
		enum fi_op op;
		uint64_t before, operand, after;
	} cases[] = {
		{ FI_SUM, 40, 2, 42 },	      { FI_BAND, 0xff, 0x3c, 0x3c },
		{ FI_BOR, 0xf0, 0xf, 0xff },  { FI_BXOR, 0xff, 0xf, 0xf0 },
		{ FI_MIN, 7, 3, 3 },	      { FI_MAX, 7, 9, 9 },
		{ FI_ATOMIC_WRITE, 1, 2, 2 },
	};
	const enum fi_datatype types[] = { FI_UINT64, FI_INT64, FI_UINT32, FI_INT32 };

	for (size_t t = 0; t < 4; t++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			assert_true(weft_btl_has_atomic(btl, cases[i].op, types[t]));
			put_value(64, cases[i].before);
			assert_int_equal(fetch(cases[i].op, types[t], cases[i].operand),
					 cases[i].before);
			assert_int_equal(get_value(64), cases[i].after);
		}
}

static void an_atomic_without_a_result_updates(void **state)
{
	struct weft_btl_target target = at(64);
	struct weft_btl_op ops[10];
	uint64_t one = 1;

	put_value(64, 5);
	for (size_t i = 0; i < 10; i++) {
		size_t ended = 0;

		ops[i] = (struct weft_btl_op){ .done = count_end, .arg = &ended };
		assert_int_equal(
			BEGIN(weft_btl_atomic(ctx, &target, FI_SUM, FI_UINT64, &one, &ops[i])),
			0);
		wait_for(&ended, 1);
	}
	assert_int_equal(get_value(64), 15);
}

static void floats_are_added(void **state)
{
	struct weft_btl_target target = at(64);
	size_t ended = 0;
	struct weft_btl_op op = { .done = count_end, .arg = &ended };
	double value = 1.5, more = 2.25, old = 0;

	if (!weft_btl_has_atomic(btl, FI_SUM, FI_DOUBLE))
		skip();
	assert_int_equal(put_now(64, &value, sizeof(value)), 0);
	assert_int_equal(
		BEGIN(weft_btl_fetch_atomic(ctx, &target, FI_SUM, FI_DOUBLE, &more, &old, &op)),
		0);
	wait_for(&ended, 1);
	assert_int_equal(get_now(64, &value, sizeof(value)), 0);
	assert_true(old == 1.5 && value == 3.75);
}

static uint64_t swap_if(uint64_t compare, uint64_t value, uint64_t *result)
{
	struct weft_btl_target target = at(64);
	size_t ended = 0;
	struct weft_btl_op op = { .done = count_end, .arg = &ended };

	assert_int_equal(
		weft_btl_compare_swap(ctx, &target, FI_UINT64, &compare, &value, result, &op),
		0);
	wait_for(&ended, 1);
	assert_int_equal(op.status, 0);
	return get_value(64);
}

static void a_value_is_swapped_if_it_is_there(void **state)
{
	uint64_t old = 0;

	put_value(64, 10);
	assert_int_equal(swap_if(11, 12, &old), 10);
	assert_int_equal(old, 10);
	assert_int_equal(swap_if(10, 12, &old), 12);
	assert_int_equal(old, 10);
	assert_int_equal(swap_if(12, 13, NULL), 13);
}

/* What is refused has not begun, and nothing waits for it. */
static void what_a_handle_does_not_allow_is_refused(void **state)
{
	unsigned char changed[WEFT_BTL_HANDLE_MAX], bytes[16] = { 0 };
	struct weft_btl_op op = { .done = NULL };
	struct weft_btl_target target = to;
	struct weft_btl_peer *self;
	unsigned char name[WEFT_BTL_NAME_MAX];
	size_t len = sizeof(name);

	target.handle = told->read_only;
	assert_int_equal(weft_btl_put(ctx, &target, bytes, 8, NULL, &op), -FI_EACCES);
	target.handle = memcpy(changed, told->handle, sizeof(changed));
	changed[20] ^= 1;
	assert_int_equal(weft_btl_get(ctx, &target, bytes, 8, NULL, &op), -FI_EKEYREJECTED);
	target = at(LEN - 8);
	assert_int_equal(weft_btl_get(ctx, &target, bytes, 9, NULL, &op), -FI_EFAULT);
	target = at((uint64_t)-1);
	assert_int_equal(weft_btl_get(ctx, &target, bytes, 1, NULL, &op), -FI_EFAULT);
	target = at(4);
	assert_int_equal(weft_btl_atomic(ctx, &target, FI_SUM, FI_UINT64, bytes, &op),
			 -FI_EINVAL);
	assert_int_equal(weft_btl_atomic(ctx, &to, FI_PROD, FI_UINT64, bytes, &op),
			 -FI_EOPNOTSUPP);
	assert_int_equal(weft_btl_atomic(ctx, &to, FI_SUM, FI_INT8, bytes, &op), -FI_EOPNOTSUPP);
	assert_int_equal(weft_btl_name(btl, name, &len), 0);
	assert_int_equal(weft_btl_peer_open(btl, name, len, &self), 0);
	target = (struct weft_btl_target){ self, told->handle, told->addr };
	assert_int_equal(weft_btl_get(ctx, &target, bytes, 8, NULL, &op), -FI_EKEYREJECTED);
	weft_btl_peer_close(self);
	weft_btl_flush(ctx, NULL);
	assert_int_equal(weft_btl_progress(ctx), 0);
}

static void a_transport_reaches_itself(void **state)
{
	unsigned char name[WEFT_BTL_NAME_MAX], handle[WEFT_BTL_HANDLE_MAX];
	static uint64_t memory[2];
	size_t len = sizeof(name), ended = 0;
	struct weft_btl_op op = { .done = count_end, .arg = &ended };
	struct weft_btl_target target;
	struct weft_btl_mem *mem;
	struct weft_btl_peer *self;
	uint64_t value = 99, old = 0;

	assert_int_equal(weft_btl_name(btl, name, &len), 0);
	assert_int_equal(weft_btl_peer_open(btl, name, len, &self), 0);
	assert_int_equal(weft_btl_mem_open(btl, memory, sizeof(memory), RW, &mem), 0);
	weft_btl_mem_handle(mem, handle);
	target = (struct weft_btl_target){ self, handle, (uintptr_t)&memory[1] };
	assert_int_equal(BEGIN(weft_btl_put(ctx, &target, &value, sizeof(value), mem, &op)), 0);
	wait_for(&ended, 1);
	assert_int_equal(memory[1], 99);
	assert_int_equal(BEGIN(weft_btl_fetch_atomic(ctx, &target, FI_SUM, FI_UINT64, &value,
						     &old, &op)),
			 0);
	wait_for(&ended, 2);
	assert_int_equal(old, 99);
	assert_int_equal(memory[1], 198);
	weft_btl_peer_close(self);
	assert_int_equal(weft_btl_mem_close(mem), 0);
}

static void a_second_context_reaches_the_same_memory(void **state)
{
	struct weft_btl_ctx *second, *first = ctx;

	assert_int_equal(weft_btl_ctx_open(btl, &second), 0);
	put_value(64, 1);
	ctx = second;
	assert_int_equal(get_value(64), 1);
	assert_int_equal(fetch(FI_SUM, FI_UINT64, 1), 1);
	ctx = first;
	assert_int_equal(get_value(64), 2);
	assert_int_equal(weft_btl_ctx_close(second), 0);
}

/*
 * struct worker - a thread with a context of its own
 * @slot: where it puts, by 8 bytes
 */
struct worker {
	pthread_t thread;
	uint64_t slot;
	int ret;
};

#define WORKERS	   4
#define WORKS	   500
#define COUNTER_AT 8
#define SLOTS_AT   1024

static int begin(struct weft_btl_ctx *own, const struct weft_btl_target *counter,
		 const struct weft_btl_target *slot, const uint64_t *values,
		 struct weft_btl_op *ops)
{
	uint64_t one = 1;
	int ret;

	do {
		ret = weft_btl_atomic(own, counter, FI_SUM, FI_UINT64, &one, &ops[0]);
		weft_btl_progress(own);
	} while (ret == -FI_EAGAIN);
	while (!ret) {
		ret = weft_btl_put(own, slot, values, sizeof(*values), NULL, &ops[1]);
		if (ret != -FI_EAGAIN)
			return ret;
		ret = 0;
		weft_btl_progress(own);
	}
	return ret;
}

/* Adds to the counter that all add to, and puts into a place of its own, WORKS times each. */
static int work(struct worker *w, struct weft_btl_ctx *own)
{
	struct weft_btl_target counter = at(COUNTER_AT), slot = at(SLOTS_AT + 8 * w->slot);
	struct weft_btl_op *ops = calloc(2 * WORKS, sizeof(*ops));
	uint64_t *values = calloc(WORKS, sizeof(*values));
	size_t ended = 0;
	int ret = 0;

	for (size_t i = 0; i < WORKS && !ret; i++) {
		values[i] = w->slot << 32 | (i + 1);
		for (size_t n = 2 * i; n < 2 * i + 2; n++)
			ops[n] = (struct weft_btl_op){ .done = count_end, .arg = &ended };
		ret = begin(own, &counter, &slot, &values[i], &ops[2 * i]);
	}
	weft_btl_flush(own, peer);
	for (size_t n = 0; n < 2 * WORKS && !ret; n++)
		ret = ops[n].status;
	free(ops);
	free(values);
	return ret ? ret : ended == 2 * WORKS ? 0 : -FI_EOTHER;
}

static void *worker_run(void *arg)
{
	struct weft_btl_ctx *own;
	struct worker *w = arg;

	w->ret = weft_btl_ctx_open(btl, &own);
	if (w->ret)
		return NULL;
	w->ret = work(w, own);
	if (weft_btl_ctx_close(own))
		w->ret = -FI_EOTHER;
	return NULL;
}

static void threads_have_contexts_of_their_own(void **state)
{
	struct worker workers[WORKERS];

	put_value(COUNTER_AT, 0);
	for (uint64_t i = 0; i < WORKERS; i++) {
		workers[i].slot = i;
		assert_int_equal(
			pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]), 0);
	}
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].ret, 0);
	}
	assert_int_equal(get_value(COUNTER_AT), WORKERS * WORKS);
	for (uint64_t i = 0; i < WORKERS; i++)
		assert_int_equal(get_value(SLOTS_AT + 8 * i) >> 32, i);
}

/* A peer that is killed: what is begun afterwards ends, with an error, and others are served. */
static void operations_on_a_dead_peer_end(void **state)
{
	struct told *mine = told;
	struct weft_btl_peer *dead;
	struct weft_btl_target target;
	uint64_t value = 1;
	size_t ended = 0;
	struct weft_btl_op op = { .done = count_end, .arg = &ended };
	int began, status;
	pid_t pid = spawn();

	assert_true(pid > 0);
	assert_int_equal(weft_btl_peer_open(btl, told->name, told->name_len, &dead), 0);
	target = (struct weft_btl_target){ dead, told->handle, told->addr };
	assert_int_equal(BEGIN(weft_btl_put(ctx, &target, &value, sizeof(value), NULL, &op)), 0);
	wait_for(&ended, 1);
	assert_int_equal(op.status, 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	began = BEGIN(weft_btl_get(ctx, &target, &value, sizeof(value), NULL, &op));
	if (!began) {
		wait_for(&ended, 2);
		assert_int_not_equal(op.status, 0);
	}
	weft_btl_flush(ctx, dead);
	weft_btl_peer_close(dead);
	munmap(told, sizeof(*told));
	told = mine;
	put_value(64, 7);
	assert_int_equal(get_value(64), 7);
}

static uint64_t bytes_sent(void)
{
	struct weft_route routes[WEFT_ROUTES_MAX];
	size_t count = WEFT_ROUTES_MAX;
	uint64_t bytes = 0;

	assert_int_equal(weft_btl_routes(ctx, routes, &count), 0);
	for (size_t i = 0; i < count; i++)
		bytes += routes[i].tx_bytes;
	return bytes;
}

/*
 * What has ended and was not polled is the program's again, and the context's successor knows
 * nothing of it.
 */
static void a_context_that_closes_gives_operations_back(void **state)
{
	struct weft_btl_op *op = calloc(1, sizeof(*op)), *ended;
	uint64_t value = 5;

	assert_int_equal(BEGIN(weft_btl_put(ctx, &to, &value, sizeof(value), NULL, op)), 0);
	assert_int_equal(weft_btl_ctx_close(ctx), 0);
	memset(op, 0xff, sizeof(*op));
	free(op);
	assert_int_equal(weft_btl_ctx_open(btl, &ctx), 0);
	assert_int_equal(weft_btl_poll(ctx, &ended, 1), 0);
	assert_int_equal(get_value(0), 5);
}

static void routes_count_what_is_put(void **state)
{
	struct weft_route none;
	size_t count = 0;
	uint64_t before;
	int ret;

	assert_non_null(weft_btl_provider(btl));
	ret = weft_btl_routes(ctx, &none, &count);
	if (ret == -FI_ENOSYS)
		skip(); /* not Weft's provider */
	assert_int_equal(ret, -FI_ETOOSMALL);
	assert_true(count > 0);
	before = bytes_sent();
	put_value(64, 7);
	/* a request is longer than what it puts */
	assert_in_range(bytes_sent() - before, sizeof(uint64_t), 512);
}

static void a_name_of_a_stranger_is_refused(void **state)
{
	struct weft_btl_peer *none = NULL;

	assert_int_equal(weft_btl_peer_open(btl, "garbage", 7, &none), -FI_EINVAL);
	assert_int_equal(weft_btl_peer_open(btl, told->name, told->name_len - 1, &none),
			 -FI_EINVAL);
	assert_null(none);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_is_got),
		cmocka_unit_test(nothing_is_put_and_got_of_no_bytes),
		cmocka_unit_test(a_flush_waits_for_all),
		cmocka_unit_test(what_is_injected_has_arrived_after_a_flush),
		cmocka_unit_test(a_batch_begins_together),
		cmocka_unit_test(atomics_update_and_fetch),
		cmocka_unit_test(an_atomic_without_a_result_updates),
		cmocka_unit_test(floats_are_added),
		cmocka_unit_test(a_value_is_swapped_if_it_is_there),
		cmocka_unit_test(what_a_handle_does_not_allow_is_refused),
		cmocka_unit_test(a_transport_reaches_itself),
		cmocka_unit_test(a_second_context_reaches_the_same_memory),
		cmocka_unit_test(threads_have_contexts_of_their_own),
		cmocka_unit_test(operations_on_a_dead_peer_end),
		cmocka_unit_test(a_context_that_closes_gives_operations_back),
		cmocka_unit_test(routes_count_what_is_put),
		cmocka_unit_test(a_name_of_a_stranger_is_refused),
	};

	provider = argc > 1 ? argv[1] : "link";
	return cmocka_run_group_tests(tests, start, end);
}
