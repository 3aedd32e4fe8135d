/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Strangers at a port; strangers.h has the contract. */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <unistd.h>
#include "strangers.h"

#define PLAY_SECS 900 /* until a role is ended */
#define NOISE_MAX 4096u
#define UNDER_WAY 4u	    /* operations of the strangers' own endpoint */
#define ROUND_NS  20000000u /* at most; a round ends when something was done to a connection */

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

void strangers_open(struct strangers *s, void *stage, const char *name, uint64_t seed)
{
	struct sockaddr_in to;

	*s = (struct strangers){ .stage = stage, .seed = seed, .host = FI_ADDR_UNSPEC };
	memcpy(&to, name, sizeof(to));
	s->bytes = calloc(1, STRANGERS_LEN);
	NODE_CHECK(stage, s->bytes && !relay_open(&s->relay, &to, seed));
	for (int i = 0; i < STRANGERS_HELD; i++)
		s->held[i] = -1;
	pthread_mutex_init(&s->lock, NULL);
	NODE_CHECK(stage, !pthread_create(&s->thread, NULL, relay_role, s));
}

/* Keeps a connection open, and ends the one that was in its place. */
static void hold(struct strangers *s, int fd)
{
	int *held = &s->held[seeded_below(&s->seed, STRANGERS_HELD)];

	if (*held >= 0)
		close(*held);
	*held = fd;
}

/* A greeting that is whole, bent or ends early, or none, and perhaps random bytes. */
static size_t say(struct strangers *s, uint8_t *bytes)
{
	size_t head, len;

	pthread_mutex_lock(&s->lock);
	head = seeded_below(&s->seed, 3) ? s->relay.head_len : 0;
	memcpy(bytes, s->relay.head, head);
	pthread_mutex_unlock(&s->lock);
	if (head && seeded_below(&s->seed, 2))
		bytes[seeded_below(&s->seed, head)] ^= (uint8_t)(1u
								 << seeded_below(&s->seed, 8));
	if (head && !seeded_below(&s->seed, 3))
		head = seeded_below(&s->seed, head);
	len = head + (seeded_below(&s->seed, 2) ? seeded_below(&s->seed, NOISE_MAX) : 0);
	for (size_t i = head; i < len; i++)
		bytes[i] = (uint8_t)seeded_random(&s->seed);
	return len;
}

static void stranger_raw(struct strangers *s)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint8_t bytes[RELAY_HEAD + NOISE_MAX];
	size_t len;

	NODE_CHECK(s->stage, fd >= 0);
	if (connect(fd, (struct sockaddr *)&s->relay.to, sizeof(s->relay.to))) {
		close(fd);
		return;
	}
	len = say(s, bytes);
	if (len)
		send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	switch (seeded_below(&s->seed, 8)) {
	case 0: /* half open */
		shutdown(fd, SHUT_WR);
		hold(s, fd);
		break;
	case 1:
		hold(s, fd);
		break;
	default:
		close(fd);
	}
}

void strangers_come(struct strangers *s, uint32_t rounds, void (*bent)(struct strangers *))
{
	for (uint32_t round = 0; round < rounds; round++)
		if (seeded_below(&s->seed, 2))
			stranger_raw(s);
		else
			bent(s);
}

uint64_t strangers_deeds(struct strangers *s)
{
	uint64_t sum = 0;

	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < RELAY_DEEDS; i++)
		sum += s->relay.deeds[i];
	pthread_mutex_unlock(&s->lock);
	return sum;
}

/* What it sends does not have to arrive. */
static ssize_t act(struct strangers *s)
{
	size_t len = seeded_below(&s->seed, seeded_below(&s->seed, 4) ? 600 : STRANGERS_LEN);
	uint64_t key = STRANGERS_KEY;
	struct fid_ep *ep = s->node.rma;
	fi_addr_t to = s->host;

	switch (seeded_below(&s->seed, 4)) {
	case 0:
		return fi_write(ep, s->bytes, len % STRANGERS_SPAN, NULL, to, 0, key, NULL);
	case 1:
		return fi_read(ep, s->bytes, len % STRANGERS_SPAN, NULL, to, 0, key, NULL);
	case 2:
		return fi_atomic(ep, s->bytes, 1, NULL, to, 0, key, FI_UINT64, FI_SUM, NULL);
	default:
		return fi_tsend(ep, s->bytes, len, NULL, to, seeded_random(&s->seed) >> 1, NULL);
	}
}

bool strangers_look(struct strangers *s)
{
	ssize_t turn = node_turn(&s->node);

	s->completed += turn == 1;
	s->failed += turn == -FI_EAVAIL;
	s->under_way -= turn != -FI_EAGAIN;
	return turn != -FI_EAGAIN;
}

void strangers_bend(struct strangers *s, uint64_t before, bool (*look)(struct strangers *))
{
	uint64_t end = node_now_ns() + ROUND_NS;

	while (strangers_deeds(s) == before && node_now_ns() < end) {
		if (s->under_way < UNDER_WAY)
			s->under_way += !act(s);
		if (!look(s))
			node_pause(s->stage);
	}
}

static void report(const struct strangers *s, uint32_t rounds)
{
	static const char *const names[RELAY_DEEDS] = { "bent",	    "with noise", "with a gap",
							"repeated", "cut",	  "reset",
							"stalled" };

	printf("%u rounds; behind right greetings %llu operations completed, %llu failed; "
	       "connections",
	       rounds, (unsigned long long)s->completed, (unsigned long long)s->failed);
	for (int i = 0; i < RELAY_DEEDS; i++)
		printf(" %s: %llu", names[i], (unsigned long long)s->relay.deeds[i]);
	printf("\n");
}

void strangers_close(struct strangers *s, uint32_t rounds)
{
	for (int i = 0; i < STRANGERS_HELD; i++)
		if (s->held[i] >= 0)
			close(s->held[i]);
	pthread_mutex_lock(&s->lock);
	s->over = true;
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	relay_close(&s->relay);
	report(s, rounds);
	free(s->bytes);
}

uint32_t strangers_rounds(int argc, char **argv)
{
	return (uint32_t)node_setting("SURVIVE_ROUNDS",
				      argc > 1 ? strtoull(argv[1], NULL, 0) : 1000);
}

bool strangers_play(void *stage, void (*const roles[3])(void *stage, int rank))
{
	pid_t pids[3];
	bool ok = true;

	setenv("FI_LOG_SUBSYS", "core", 0); /* each stranger is reported */
	for (int i = 0; i < 3; i++)
		pids[i] = stage_start(stage, i, PLAY_SECS, roles[i]);
	for (int i = 0; i < 3; i++)
		ok &= stage_ended(stage, pids[i], 0);
	return ok;
}
