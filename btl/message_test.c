/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages between two processes over a real provider, the program's argument: a child process
 * sends back what it receives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include <weft/btl.h>

#define DEADLINE_S 30
#define LEN_MAX	   16384
/* More than a device takes, or receives at once. */
#define MANY 5000u

enum { ECHO = 7, NOBODY = 8, END = 255 };

struct side {
	struct weft_btl *btl;
	struct weft_btl_ctx *ctx;
	struct weft_btl_peer *peer;
};

/* Names of both processes, and whether they are there. */
static struct shared {
	unsigned char names[2][WEFT_BTL_NAME_MAX];
	size_t lens[2];
	volatile int ready;
} * shared;

static struct side side;
static pid_t child;
static const char *provider;

/* What has been received last, and how much. */
static unsigned char got[LEN_MAX];
static size_t got_len, got_cnt;
static uint32_t wrong;
static bool seen[MANY];

static void open_side(struct side *s, int who)
{
	struct weft_btl_attr attr = { .size = sizeof(attr),
				      .provider = provider,
				      .flags = WEFT_BTL_ONE_THREAD };

	if (weft_btl_open(&attr, &s->btl) || weft_btl_ctx_open(s->btl, &s->ctx))
		exit(2);
	shared->lens[who] = WEFT_BTL_NAME_MAX;
	if (weft_btl_name(s->btl, shared->names[who], &shared->lens[who]))
		exit(3);
}

static void meet(struct side *s, int who)
{
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < 2)
		usleep(100);
	if (weft_btl_peer_open(s->btl, shared->names[!who], shared->lens[!who], &s->peer))
		exit(4);
}

static void close_side(struct side *s)
{
	weft_btl_peer_close(s->peer);
	if (weft_btl_ctx_close(s->ctx) || weft_btl_close(s->btl))
		exit(5);
}

static void op_free(struct weft_btl_op *op)
{
	free(op);
}

/* Sends a copy, however long that takes. */
static void send_copy(struct side *s, uint8_t id, const void *data, size_t len)
{
	struct weft_btl_op *op = calloc(1, sizeof(*op) + LEN_MAX);
	int ret;

	if (!op)
		exit(6);
	memcpy(op + 1, data, len);
	op->done = op_free;
	while ((ret = weft_btl_send(s->ctx, s->peer, id, op + 1, len, NULL, op)) == -FI_EAGAIN)
		weft_btl_progress(s->ctx);
	if (ret < 0)
		exit(7);
	if (ret)
		free(op);
}

/* The child: what has arrived and was not sent back yet. */
static struct waiting {
	struct waiting *next;
	size_t len;
	unsigned char data[];
} * first, **last = &first;
static int ends;

static void keep(void *arg, const void *data, size_t len)
{
	struct waiting *w = malloc(sizeof(*w) + len);

	if (!w)
		exit(8);
	w->next = NULL;
	w->len = len;
	memcpy(w->data, data, len);
	*last = w;
	last = &w->next;
}

static void end(void *arg, const void *data, size_t len)
{
	ends = 1;
}

static void echo(void)
{
	struct side own;

	alarm(600);
	open_side(&own, 1);
	if (weft_btl_listen(own.btl, ECHO, keep, NULL) ||
	    weft_btl_listen(own.btl, END, end, NULL))
		exit(9);
	meet(&own, 1);
	while (!ends) {
		struct waiting *w = first;

		weft_btl_progress(own.ctx);
		if (!w)
			continue;
		send_copy(&own, ECHO, w->data, w->len);
		first = w->next;
		if (!first)
			last = &first;
		free(w);
	}
	close_side(&own);
	exit(0);
}

static void take(void *arg, const void *data, size_t len)
{
	memcpy(got, data, len);
	got_len = len;
	got_cnt++;
}

static int start(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	child = fork();
	if (!child)
		echo();
	open_side(&side, 0);
	if (weft_btl_listen(side.btl, ECHO, take, NULL))
		return -1;
	meet(&side, 0);
	return 0;
}

static int stop(void **state)
{
	int status;

	send_copy(&side, END, "", 0);
	weft_btl_flush(side.ctx, NULL);
	/* what was injected leaves with progress, or has left */
	while (!waitpid(child, &status, WNOHANG))
		weft_btl_progress(side.ctx);
	close_side(&side);
	return status;
}

static void wait_for(size_t cnt)
{
	time_t end_s = time(NULL) + DEADLINE_S;

	while (got_cnt < cnt) {
		weft_btl_progress(side.ctx);
		assert_true(time(NULL) < end_s);
	}
}

static void a_message_of_each_length_arrives(void **state)
{
	static unsigned char data[LEN_MAX];

	assert_int_equal(weft_btl_message_max(side.btl), LEN_MAX);
	for (size_t len = 0; len <= LEN_MAX; len = len < 64 ? len + 1 : 2 * len) {
		for (size_t i = 0; i < len; i++)
			data[i] = (unsigned char)(len + i);
		got_cnt = 0;
		send_copy(&side, ECHO, data, len);
		wait_for(1);
		assert_int_equal(got_len, len);
		assert_memory_equal(got, data, len);
	}
}

static void tick_off(void *arg, const void *data, size_t len)
{
	uint32_t number;

	memcpy(&number, data, sizeof(number));
	if (number >= MANY || seen[number] || len != 4 + number % 1000)
		wrong++;
	else
		seen[number] = true;
	got_cnt++;
}

static void each_of_many_messages_arrives_once(void **state)
{
	unsigned char data[1004] = { 0 };

	got_cnt = 0;
	assert_int_equal(weft_btl_listen(side.btl, ECHO, tick_off, NULL), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		memcpy(data, &i, sizeof(i));
		send_copy(&side, ECHO, data, 4 + i % 1000);
	}
	wait_for(MANY);
	assert_int_equal(wrong, 0);
	assert_int_equal(weft_btl_listen(side.btl, ECHO, take, NULL), 0);
}

static void a_message_that_nobody_listens_to_is_dropped(void **state)
{
	got_cnt = 0;
	send_copy(&side, NOBODY, "abc", 3);
	send_copy(&side, ECHO, "def", 3);
	wait_for(1);
	assert_memory_equal(got, "def", 3);
}

static void a_longer_message_is_refused(void **state)
{
	static char data[LEN_MAX + 1];
	struct weft_btl_op op = { 0 };

	assert_int_equal(weft_btl_send(side.ctx, side.peer, ECHO, data, sizeof(data), NULL, &op),
			 -FI_EMSGSIZE);
	assert_int_equal(weft_btl_send(side.ctx, NULL, ECHO, data, 1, NULL, &op), -FI_EINVAL);
}

static void a_transport_sends_to_itself(void **state)
{
	struct side own = side;

	assert_int_equal(
		weft_btl_peer_open(side.btl, shared->names[0], shared->lens[0], &own.peer), 0);
	got_cnt = 0;
	send_copy(&own, ECHO, "self", 4);
	wait_for(1);
	assert_memory_equal(got, "self", 4);
	weft_btl_peer_close(own.peer);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_of_each_length_arrives),
		cmocka_unit_test(each_of_many_messages_arrives_once),
		cmocka_unit_test(a_message_that_nobody_listens_to_is_dropped),
		cmocka_unit_test(a_longer_message_is_refused),
		cmocka_unit_test(a_transport_sends_to_itself),
	};

	provider = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests(tests, start, stop);
}
