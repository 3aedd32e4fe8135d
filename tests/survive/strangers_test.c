/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Strangers at the port of an endpoint of tcp: random bytes, greetings that are bent or end early,
 * connections on which nothing ever comes, and whole greetings behind which the stream is bent
 * (relay.h). Meanwhile the endpoint talks to a peer, and every message of theirs arrives;
 * when the strangers have gone, so have their descriptors and their memory.
 *
 *	strangers_test [ROUNDS]		SURVIVE_SEED, SURVIVE_ROUNDS
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include "echo.h"
#include "relay.h"

#define TEST_SECS  900
#define KEY	   5
#define REGION	   65536u
#define ECHO_TAG   (1ull << 63) /* strangers' messages have no such bit, unless it was bent */
#define HELD_MAX   100		/* connections of strangers that stay open, of one kind */
#define NOISE_MAX  4096u
#define LEN_MAX	   100000u
#define UNDER_WAY  4u	     /* operations of the stranger's own endpoint */
#define ROUND_NS   20000000u /* at most; a round ends when something was done to a connection */
#define GROWTH_MAX (4u << 20)

enum gate { GATE_NAMED, GATE_TALKING, GATE_STRANGERS_OVER, GATE_OVER };

struct street {
	struct stage stage;
	char names[2][NODE_NAME]; /* of the host, whose port it is, and of its peer */
	_Atomic uint64_t talked;  /* messages there and back */
	uint64_t seed;
	uint32_t rounds;
};

/* The host */

struct host {
	struct street *street;
	struct node node;
	struct echo echo;
	uint64_t foreign; /* messages of strangers, and what failed of theirs */
	char in[64];
};

/* Takes whatever strangers send, so that it does not wait in memory for ever. */
static void take_foreign(struct host *h)
{
	NODE_CHECK(h->street, !fi_trecv(h->node.ep, h->in, sizeof(h->in), NULL, FI_ADDR_UNSPEC,
					0, ~ECHO_TAG, h->in));
}

static bool host_turn(struct host *h)
{
	ssize_t turn = node_turn(&h->node);

	if (turn == -FI_EAGAIN)
		return false;
	if (echo_took(&h->echo, turn))
		return true;
	h->foreign++;
	if (turn == 1 || h->node.error.op_context == h->in)
		take_foreign(h);
	return true;
}

static void host_role(void *stage, int rank)
{
	struct node_attr attr = { .provider = "tcp" };
	struct street *s = stage;
	struct host h = { .street = s };
	void *region = calloc(1, REGION);
	int descriptors;
	size_t heap;

	NODE_CHECK(s, region && !node_open(&h.node, s, &attr));
	node_expose(&h.node, region, REGION, KEY);
	node_name(&h.node, s->names[0]);
	stage_pass(s, GATE_NAMED);
	NODE_UNTIL(s, stage_passed(s, GATE_NAMED) == 2, false);
	echo_open(&h.echo, &h.node, node_knows(&h.node, s->names[1]), ECHO_TAG);
	echo_expect(&h.echo);
	take_foreign(&h);
	NODE_UNTIL(s, stage_passed(s, GATE_TALKING), host_turn(&h));
	descriptors = node_descriptors();
	heap = node_heap();
	while (!stage_passed(s, GATE_STRANGERS_OVER)) {
		NODE_CHECK(s, !h.echo.err);
		if (!host_turn(&h))
			node_pause(s);
	}
	NODE_UNTIL(s, node_descriptors() <= descriptors, host_turn(&h));
	printf("%llu messages and failures of strangers; %d descriptors; %zu bytes allocated before, %zu after\n",
	       (unsigned long long)h.foreign, node_descriptors(), heap, node_heap());
	/* What of a broken connection is kept for its peer's return is given up after a while. */
	NODE_UNTIL(s, NODE_SANITIZED || node_heap() < heap + GROWTH_MAX, host_turn(&h));
	stage_pass(s, GATE_OVER);
	NODE_UNTIL(s, stage_passed(s, GATE_OVER) == 2, host_turn(&h));
	node_close(&h.node);
	echo_close(&h.echo);
	free(region);
}

/* The peer */

static void peer_role(void *stage, int rank)
{
	struct node_attr attr = { .provider = "tcp" };
	struct street *s = stage;
	struct echo e;
	struct node n;

	NODE_CHECK(s, !node_open(&n, s, &attr));
	node_name(&n, s->names[1]);
	stage_pass(s, GATE_NAMED);
	NODE_UNTIL(s, stage_passed(s, GATE_NAMED) == 2, false);
	echo_open(&e, &n, node_knows(&n, s->names[0]), ECHO_TAG);
	for (size_t i = 0; !stage_passed(s, GATE_OVER); i++) {
		if (!echo_sizes[i]) {
			i = 0;
			if (!stage_passed(s, GATE_TALKING))
				stage_pass(s, GATE_TALKING);
		}
		echo_ask(&e, echo_sizes[i]);
		NODE_UNTIL(s, echo_over(&e), echo_took(&e, node_turn(&n)));
		NODE_CHECK(s, !e.err);
		atomic_fetch_add(&s->talked, 1);
	}
	stage_pass(s, GATE_OVER);
	node_close(&n);
	echo_close(&e);
}

/* The strangers */

struct strangers {
	struct street *street;
	pthread_mutex_t lock; /* of @relay, which has a thread */
	struct relay relay;
	bool over;	  /* for that thread */
	struct node node; /* of ours, so that its greetings are right */
	fi_addr_t host;
	bool open;
	uint32_t under_way;
	int held[HELD_MAX];
	uint8_t *bytes;
	uint64_t seed, completed, failed;
};

/* Keeps a connection open, and ends the one that was in its place. */
static void hold(struct strangers *s, int fd)
{
	int *held = &s->held[node_below(&s->seed, HELD_MAX)];

	if (*held >= 0)
		close(*held);
	*held = fd;
}

/* Random bytes, by themselves or behind a greeting that is whole, bent or ends early; or none. */
static void stranger_raw(struct strangers *s)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t head, len;
	uint8_t bytes[RELAY_HEAD + NOISE_MAX];

	NODE_CHECK(s->street, fd >= 0);
	if (connect(fd, (struct sockaddr *)&s->relay.to, sizeof(s->relay.to))) {
		close(fd);
		return;
	}
	pthread_mutex_lock(&s->lock);
	head = node_below(&s->seed, 3) ? s->relay.head_len : 0;
	memcpy(bytes, s->relay.head, head);
	pthread_mutex_unlock(&s->lock);
	if (head && node_below(&s->seed, 2))
		bytes[node_below(&s->seed, head)] ^= (uint8_t)(1u << node_below(&s->seed, 8));
	if (head && !node_below(&s->seed, 3))
		head = node_below(&s->seed, head);
	len = head + (node_below(&s->seed, 2) ? node_below(&s->seed, NOISE_MAX) : 0);
	for (size_t i = head; i < len; i++)
		bytes[i] = (uint8_t)node_random(&s->seed);
	if (len)
		send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (node_below(&s->seed, 4))
		close(fd);
	else
		hold(s, fd);
}

static void node_begin(struct strangers *s)
{
	struct node_attr attr = { .provider = "tcp" };

	if (s->open)
		node_close(&s->node);
	NODE_CHECK(s->street, !node_open(&s->node, s->street, &attr));
	s->open = true;
	s->under_way = 0;
	NODE_CHECK(s->street,
		   fi_av_insert(s->node.av, &s->relay.here, 1, &s->host, 0, NULL) == 1);
}

/* What it sends does not have to arrive. */
static ssize_t node_act(struct strangers *s)
{
	size_t len = node_below(&s->seed, node_below(&s->seed, 4) ? 600 : LEN_MAX);
	struct fid_ep *ep = s->node.rma;
	fi_addr_t to = s->host;

	switch (node_below(&s->seed, 4)) {
	case 0:
		return fi_write(ep, s->bytes, len % REGION, NULL, to, 0, KEY, NULL);
	case 1:
		return fi_read(ep, s->bytes, len % REGION, NULL, to, 0, KEY, NULL);
	case 2:
		return fi_atomic(ep, s->bytes, 1, NULL, to, 0, KEY, FI_UINT64, FI_SUM, NULL);
	default:
		return fi_tsend(ep, s->bytes, len, NULL, to, node_random(&s->seed) >> 1, NULL);
	}
}

static bool node_look(struct strangers *s)
{
	ssize_t turn = node_turn(&s->node);

	s->completed += turn == 1;
	s->failed += turn == -FI_EAVAIL;
	s->under_way -= turn != -FI_EAGAIN;
	return turn != -FI_EAGAIN;
}

static uint64_t deeds(struct strangers *s)
{
	uint64_t sum = 0;

	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < RELAY_DEEDS; i++)
		sum += s->relay.deeds[i];
	pthread_mutex_unlock(&s->lock);
	return sum;
}

/* Sends until its connection was bent; what comes of that is seen by the host. */
static void stranger_bent(struct strangers *s)
{
	uint64_t before = deeds(s), end = node_now_ns() + ROUND_NS;

	node_begin(s);
	while (deeds(s) == before && node_now_ns() < end) {
		if (s->under_way < UNDER_WAY)
			s->under_way += !node_act(s);
		if (!node_look(s))
			node_pause(s->street);
	}
}

static void *relay_role(void *arg)
{
	struct strangers *s = arg;
	bool over = false, any;

	while (!over) {
		pthread_mutex_lock(&s->lock);
		any = relay_turn(&s->relay);
		over = s->over;
		pthread_mutex_unlock(&s->lock);
		if (!any)
			usleep(50);
	}
	return NULL;
}

static void strangers_report(const struct strangers *s)
{
	static const char *const names[RELAY_DEEDS] = { "bent",	    "with noise", "with a gap",
							"repeated", "cut",	  "reset",
							"stalled" };

	printf("%u rounds; behind right greetings %llu operations completed, %llu failed; "
	       "connections",
	       s->street->rounds, (unsigned long long)s->completed,
	       (unsigned long long)s->failed);
	for (int i = 0; i < RELAY_DEEDS; i++)
		printf(" %s: %llu", names[i], (unsigned long long)s->relay.deeds[i]);
	printf("\n");
}

static void strangers_role(void *stage, int rank)
{
	struct street *street = stage;
	struct strangers s = { .street = street, .seed = street->seed };
	struct sockaddr_in to;
	pthread_t relay;

	NODE_UNTIL(street, stage_passed(street, GATE_TALKING), (usleep(1000), false));
	memcpy(&to, street->names[0], sizeof(to));
	s.bytes = calloc(1, LEN_MAX);
	NODE_CHECK(street, s.bytes && !relay_open(&s.relay, &to, street->seed));
	for (int i = 0; i < HELD_MAX; i++)
		s.held[i] = -1;
	pthread_mutex_init(&s.lock, NULL);
	NODE_CHECK(street, !pthread_create(&relay, NULL, relay_role, &s));
	for (uint32_t round = 0; round < street->rounds; round++)
		if (node_below(&s.seed, 2))
			stranger_raw(&s);
		else
			stranger_bent(&s);
	for (int i = 0; i < HELD_MAX; i++)
		if (s.held[i] >= 0)
			close(s.held[i]);
	if (s.open)
		node_close(&s.node);
	pthread_mutex_lock(&s.lock);
	s.over = true;
	pthread_mutex_unlock(&s.lock);
	pthread_join(relay, NULL);
	relay_close(&s.relay);
	strangers_report(&s);
	stage_pass(street, GATE_STRANGERS_OVER);
	free(s.bytes);
}

int main(int argc, char **argv)
{
	static void (*const roles[])(void *, int) = { host_role, peer_role, strangers_role };
	struct street *s = stage_open(sizeof(*s));
	pid_t pids[3];
	bool ok = true;

	setenv("FI_LOG_SUBSYS", "core", 0); /* each stranger is reported */
	s->rounds = (uint32_t)node_setting("SURVIVE_ROUNDS",
					   argc > 1 ? strtoull(argv[1], NULL, 0) : 1000);
	s->seed = node_seed();
	node_secs = 60;
	for (int i = 0; i < 3; i++)
		pids[i] = stage_start(s, i, TEST_SECS, roles[i]);
	for (int i = 0; i < 3; i++)
		ok &= stage_ended(s, pids[i], 0);
	printf("%llu messages of the peer there and back meanwhile\n",
	       (unsigned long long)s->talked);
	return !ok;
}
