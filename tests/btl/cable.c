/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stream of puts over two devices, for a test that cuts one of them (tests/interop/cable.py). Each round is a put of
 * 8 MiB; then its number, by which the server knows that all of it is there. The server checks each byte and says so
 * in a word that the client gets; every few rounds the client gets all bytes back. Nothing may end with an error,
 * be wrong, or take longer than PATIENCE.
 *
 * usage: cable serve PROVIDER		prints what a client needs, one line
 *	  cable put PROVIDER		reads that line, and prints now and then what it has sent
 *
 * Both end with their input; the client has all bytes back before, and says so.
 */
#define _GNU_SOURCE
#include <err.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <weft/btl.h>

#define LEN	 ((size_t)8 << 20)
#define WORDS	 (LEN / sizeof(uint64_t))
#define DEVICES	 2
#define PATIENCE 60 /* s */
#define BACK	 8  /* rounds to one that is got back */
#define PRINT_S	 0.2
#define QUIET_S	 3

/*
 * struct window - the server's memory
 * @round:   the client's: all of @words is there
 * @checked: the server's: the last round that it has checked
 * @wrong:   and which word was not right, from 1 on; 0: all were
 */
struct window {
	uint64_t words[WORDS];
	_Alignas(64) _Atomic uint64_t round;
	_Alignas(64) _Atomic uint64_t checked, wrong;
};

/* struct told - what the client needs of the server */
struct told {
	uint64_t name_len, addr;
	unsigned char handle[WEFT_BTL_HANDLE_MAX], name[WEFT_BTL_NAME_MAX];
};

static struct weft_btl *btl;
static struct weft_btl_ctx *ctx;

static void must(const char *what, int ret)
{
	if (ret)
		errx(1, "%s: %s", what, fi_strerror(-ret));
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *allocate(size_t len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		err(1, "mmap");
	return at;
}

static void start(const char *provider)
{
	struct weft_btl_attr attr = { .size = sizeof(attr),
				      .provider = provider,
				      .device_cnt = DEVICES };

	must("open", weft_btl_open(&attr, &btl));
	must("context", weft_btl_ctx_open(btl, &ctx));
}

/* The word of a round at a place. */
static uint64_t word(uint64_t round, size_t at)
{
	return (round << 32) + at * 0x9e3779b97f4a7c15u;
}

/* Returns the number of the first wrong word, from 1 on, or 0. */
static uint64_t wrong_word(const uint64_t *words, uint64_t round)
{
	for (size_t i = 0; i < WORDS; i++)
		if (words[i] != word(round, i))
			return i + 1;
	return 0;
}

static bool input_ends(void)
{
	struct pollfd in = { .fd = STDIN_FILENO };

	return poll(&in, 1, 0) && in.revents & (POLLHUP | POLLERR);
}

static int serve(void)
{
	struct window *window = allocate(sizeof(*window));
	struct told *told = allocate(sizeof(*told));
	struct weft_btl_mem *mem;
	uint64_t seen = 0, round, wrong;

	told->name_len = sizeof(told->name);
	told->addr = (uintptr_t)window;
	must("register", weft_btl_mem_open(btl, window, sizeof(*window),
					   FI_REMOTE_READ | FI_REMOTE_WRITE, &mem));
	weft_btl_mem_handle(mem, told->handle);
	must("name", weft_btl_name(btl, told->name, &told->name_len));
	for (size_t i = 0; i < offsetof(struct told, name) + told->name_len; i++)
		printf("%02x", ((unsigned char *)told)[i]);
	printf("\n");
	fflush(stdout);
	while (!input_ends()) {
		round = window->round;
		if (round == seen) {
			usleep(100);
			continue;
		}
		wrong = wrong_word(window->words, round);
		if (wrong)
			warnx("round %lu: word %lu is %lx, not %lx", round, wrong - 1,
			      window->words[wrong - 1], word(round, wrong - 1));
		window->wrong = wrong;
		window->checked = seen = round;
	}
	return 0;
}

static struct told *read_told(void)
{
	static char line[2 * sizeof(struct told) + 2];
	struct told *told = allocate(sizeof(*told));
	unsigned char *at = (unsigned char *)told;

	if (!fgets(line, sizeof(line), stdin))
		errx(1, "no server has told anything");
	for (size_t i = 0; i < sizeof(*told) && sscanf(line + 2 * i, "%2hhx", &at[i]) == 1; i++)
		;
	return told;
}

/* Begins an operation by @gets, and waits for its end. */
static void move(bool gets, const struct weft_btl_target *to, size_t at, void *bytes, size_t len)
{
	struct weft_btl_op op = { .done = NULL }, *ended = NULL;
	struct weft_btl_target target = *to;
	double until = now() + PATIENCE;
	int ret;

	target.addr += at;
	do {
		ret = gets ? weft_btl_get(ctx, &target, bytes, len, NULL, &op)
			   : weft_btl_put(ctx, &target, bytes, len, NULL, &op);
		weft_btl_progress(ctx);
	} while (ret == -FI_EAGAIN && now() < until);
	must(gets ? "get" : "put", ret);
	while (!weft_btl_poll(ctx, &ended, 1))
		if (now() > until)
			errx(1, "a transfer of %zu bytes does not end", len);
	must(gets ? "a get that has begun" : "a put that has begun", op.status);
}

static uint64_t get_word(const struct weft_btl_target *to, size_t at)
{
	uint64_t value = 0;

	move(true, to, at, &value, sizeof(value));
	return value;
}

static void get_back(const struct weft_btl_target *to, uint64_t round, uint64_t *words)
{
	uint64_t wrong;

	memset(words, 0, LEN);
	move(true, to, 0, words, LEN);
	wrong = wrong_word(words, round);
	if (wrong)
		errx(1, "got back in round %lu: word %lu is %lx, not %lx", round, wrong - 1,
		     words[wrong - 1], word(round, wrong - 1));
}

static void round_trip(const struct weft_btl_target *to, uint64_t round, uint64_t *words)
{
	double until = now() + PATIENCE;

	for (size_t i = 0; i < WORDS; i++)
		words[i] = word(round, i);
	move(false, to, 0, words, LEN);
	move(false, to, offsetof(struct window, round), &round, sizeof(round));
	while (get_word(to, offsetof(struct window, checked)) != round)
		if (now() > until)
			errx(1, "round %lu does not arrive", round);
	if (get_word(to, offsetof(struct window, wrong)))
		errx(1, "round %lu has a wrong word", round);
	if (!(round % BACK))
		get_back(to, round, words);
}

/* Bytes that each device has sent. */
static void print_state(uint64_t round)
{
	struct weft_route routes[WEFT_ROUTES_MAX];
	size_t cnt = WEFT_ROUTES_MAX;

	must("routes", weft_btl_routes(ctx, routes, &cnt));
	printf("round %lu sent", round);
	for (size_t i = 0; i < cnt; i++)
		if (*routes[i].local)
			printf(" %lu", routes[i].tx_bytes);
	printf("\n");
	fflush(stdout);
}

static int put(void)
{
	struct told *told = read_told();
	struct weft_btl_target to = { .handle = told->handle, .addr = told->addr };
	uint64_t *words = allocate(LEN), round = 0;
	double printed = 0;

	must("peer", weft_btl_peer_open(btl, told->name, told->name_len, &to.peer));
	while (!input_ends()) {
		round_trip(&to, ++round, words);
		if (now() < printed + PRINT_S)
			continue;
		printed = now();
		print_state(round);
	}
	/* what was put stays, whatever a device that works again has of it */
	sleep(QUIET_S);
	get_back(&to, round, words);
	weft_btl_peer_close(to.peer);
	must("closing the context", weft_btl_ctx_close(ctx));
	must("closing", weft_btl_close(btl));
	printf("end after %lu rounds\n", round);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve")) {
		start(argv[2]);
		return serve();
	}
	if (argc == 3 && !strcmp(argv[1], "put")) {
		start(argv[2]);
		return put();
	}
	errx(2, "usage: cable serve|put PROVIDER");
}
