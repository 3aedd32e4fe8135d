/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traffic that is verified; traffic.h has the contract. One thread. A message has its number as
 * tag; receives match any, so that the n-th that was posted gets the n-th message. The memory that
 * the other process writes to has a place for each write under way, behind two words that it adds
 * to.
 */
#include <sched.h>
#include <time.h>
#include "traffic.h"

#define KEY	 11u
#define WORDS	 4096u
#define ANY_LEN	 8192u
#define ADD_STEP 3u
#define IDLE_MAX 256u /* looks at an empty queue before this process gives its core to others */

enum kind { KIND_SEND, KIND_RECEIVE, KIND_WRITE, KIND_READ, KIND_FETCH, KIND_ADD };

struct operation {
	enum kind kind;
	bool busy;
	uint32_t number, place;
	size_t len;
	uint8_t *buf;
	struct fid_mr *mr;
};

struct traffic {
	struct node *node;
	const struct traffic_plan *plan;
	fi_addr_t peer;
	uint64_t rank;
	struct operation sends[TRAFFIC_WINDOW], receives[TRAFFIC_WINDOW], writes[TRAFFIC_WINDOW];
	struct operation fetch, add;
	uint64_t fetched, step;
	uint32_t sent, received, posted, written, fetches, adds, under_way;
	uint32_t idle;
	uint8_t *region, *room;
};

_Atomic uint64_t *traffic_progress;

/* What both processes know of a message or a write of the process @rank. */
static size_t len_of(const struct traffic *t, enum kind kind, uint64_t rank, uint32_t number)
{
	static const size_t first[] = { 8, 4096, 65536, TRAFFIC_MAX };
	uint64_t seed = t->plan->seed ^ (uint64_t)kind << 48 ^ rank << 40 ^ number;

	if (number < sizeof(first) / sizeof(first[0]))
		return first[number];
	return 8 + seeded_below(&seed, seeded_below(&seed, t->plan->large) ? ANY_LEN - 8
									   : TRAFFIC_MAX - 8);
}

static uint64_t id_of(const struct traffic *t, enum kind kind, uint64_t rank, uint32_t number)
{
	return t->plan->seed ^ (uint64_t)(kind + 1) << 56 ^ rank << 48 ^ number;
}

/* Posting */

/* Returns true if the call was accepted; the operation is under way then. */
static bool begun(struct traffic *t, struct operation *o, ssize_t ret)
{
	NODE_CHECK(t->node->stage, !ret || ret == -FI_EAGAIN);
	if (ret)
		return false;
	o->busy = true;
	t->under_way++;
	return true;
}

static struct operation *idle_one(struct operation *window)
{
	for (struct operation *o = window; o < window + TRAFFIC_WINDOW; o++)
		if (!o->busy)
			return o;
	return NULL;
}

static bool post_receive(struct traffic *t)
{
	struct operation *o = idle_one(t->receives);

	if (!o || t->posted == t->plan->messages)
		return false;
	o->number = t->posted;
	o->len = len_of(t, KIND_SEND, !t->rank, o->number);
	memset(o->buf, 0xee, o->len);
	if (!begun(t, o,
		   fi_trecv(t->node->ep, o->buf, TRAFFIC_MAX, NULL, t->peer, 0, UINT64_MAX, o)))
		return false;
	t->posted++;
	return true;
}

static bool post_send(struct traffic *t)
{
	struct operation *o = idle_one(t->sends);

	if (!o || t->sent == t->plan->messages)
		return false;
	o->number = t->sent;
	o->len = len_of(t, KIND_SEND, t->rank, o->number);
	node_pattern(o->buf, o->len, id_of(t, KIND_SEND, t->rank, o->number));
	if (!begun(t, o, fi_tsend(t->node->ep, o->buf, o->len, NULL, t->peer, o->number, o)))
		return false;
	t->sent++;
	return true;
}

static uint64_t place_of(const struct operation *o)
{
	return WORDS + (uint64_t)o->place * TRAFFIC_MAX;
}

static bool post_write(struct traffic *t)
{
	struct operation *o = idle_one(t->writes);

	if (!o || t->written == t->plan->writes)
		return false;
	o->kind = KIND_WRITE;
	o->number = t->written;
	o->len = len_of(t, KIND_WRITE, t->rank, o->number);
	node_pattern(o->buf, o->len, id_of(t, KIND_WRITE, t->rank, o->number));
	if (!begun(t, o,
		   fi_write(t->node->rma, o->buf, o->len, NULL, t->peer, place_of(o), KEY, o)))
		return false;
	t->written++;
	return true;
}

/* Returns true if the write is being read back. The queue may be full: then it is tried again. */
static bool post_read(struct traffic *t, struct operation *o)
{
	o->kind = KIND_READ;
	memset(o->buf, 0xdd, o->len);
	return begun(t, o,
		     fi_read(t->node->ep, o->buf, o->len, NULL, t->peer, place_of(o), KEY, o));
}

static bool post_fetch(struct traffic *t)
{
	if (t->fetch.busy || t->fetches == t->plan->adds)
		return false;
	t->step = 1;
	if (!begun(t, &t->fetch,
		   fi_fetch_atomic(t->node->ep, &t->step, 1, NULL, &t->fetched, NULL, t->peer,
				   0, KEY, FI_UINT64, FI_SUM, &t->fetch)))
		return false;
	t->fetches++;
	return true;
}

static bool post_add(struct traffic *t)
{
	static const uint64_t step = ADD_STEP;

	if (t->add.busy || t->adds == t->plan->adds)
		return false;
	if (!begun(t, &t->add,
		   fi_atomic(t->node->rma, &step, 1, NULL, t->peer, sizeof(uint64_t), KEY,
			     FI_UINT64, FI_SUM, &t->add)))
		return false;
	t->adds++;
	return true;
}

/* Completions */

static void end_receive(struct traffic *t, struct operation *o)
{
	const struct fi_cq_tagged_entry *e = &t->node->entry;

	if (e->tag != o->number || e->len != o->len)
		fprintf(stderr, "receive %u of %zu bytes got message %llu of %zu\n", o->number,
			o->len, (unsigned long long)e->tag, e->len);
	NODE_CHECK(t->node->stage, e->tag == o->number && e->len == o->len);
	NODE_CHECK(t->node->stage,
		   node_is_pattern(o->buf, o->len, id_of(t, KIND_SEND, !t->rank, o->number)));
	t->received++;
}

static void end_one(struct traffic *t, struct operation *o)
{
	NODE_CHECK(t->node->stage, o && o->busy);
	o->busy = false;
	t->under_way--;
	atomic_fetch_add(traffic_progress, 1);
	switch (o->kind) {
	case KIND_RECEIVE:
		end_receive(t, o);
		break;
	case KIND_WRITE:
		NODE_UNTIL(t->node->stage, post_read(t, o),
			   (fi_cq_read(t->node->cq, NULL, 0), false));
		break;
	case KIND_READ:
		NODE_CHECK(t->node->stage,
			   node_is_pattern(o->buf, o->len,
					   id_of(t, KIND_WRITE, t->rank, o->number)));
		break;
	case KIND_FETCH:
		/* Nobody else adds to it: the n-th addition finds n - 1. */
		NODE_CHECK(t->node->stage, t->fetched == t->fetches - 1);
		break;
	case KIND_SEND:
	case KIND_ADD:
		break;
	}
}

/* Nothing has completed: lets others run, or sleeps until something does. */
static void rest(struct traffic *t)
{
	static const struct timespec moment = { .tv_nsec = 50000 };

	node_pause(t->node->stage);
	if (++t->idle < IDLE_MAX)
		return;
	if (t->plan->sleeps)
		fi_cq_sread(t->node->cq, NULL, 0, NULL, 20);
	else
		nanosleep(&moment, NULL);
}

static bool turn(struct traffic *t)
{
	ssize_t ret = node_turn(t->node);

	if (ret == -FI_EAVAIL)
		fprintf(stderr, "an operation failed: %s\n", fi_strerror(t->node->error.err));
	NODE_CHECK(t->node->stage, ret != -FI_EAVAIL);
	if (ret != 1) {
		rest(t);
		return false;
	}
	t->idle = 0;
	end_one(t, t->node->entry.op_context);
	return true;
}

static bool step(struct traffic *t)
{
	bool any = false;

	while (post_receive(t))
		any = true;
	any |= post_send(t);
	any |= post_write(t);
	any |= post_fetch(t);
	any |= post_add(t);
	return turn(t) || any;
}

static bool all_posted(const struct traffic *t)
{
	const struct traffic_plan *p = t->plan;

	return t->sent == p->messages && t->posted == p->messages && t->written == p->writes &&
	       t->fetches == p->adds && t->adds == p->adds;
}

/* Makes progress as long as anything completes within node_secs. */
static void run_all(struct traffic *t)
{
	uint64_t end_ns = node_now_ns() + node_secs * 1000000000ull;

	while (!all_posted(t) || t->under_way) {
		if (step(t))
			end_ns = node_now_ns() + node_secs * 1000000000ull;
		if (node_now_ns() > end_ns) {
			fprintf(stderr,
				"sent %u, received %u, written %u, fetched %u, added %u; %u under way\n",
				t->sent, t->received, t->written, t->fetches, t->adds,
				t->under_way);
			NODE_CHECK(t->node->stage, !"operations complete in time");
		}
	}
}

static void traffic_open(struct traffic *t)
{
	size_t places = TRAFFIC_WINDOW * (size_t)TRAFFIC_MAX;
	struct operation *windows[] = { t->sends, t->receives, t->writes };
	const enum kind kinds[] = { KIND_SEND, KIND_RECEIVE, KIND_WRITE };

	t->region = calloc(1, WORDS + places);
	t->room = malloc(3 * places);
	NODE_CHECK(t->node->stage, t->region && t->room);
	for (size_t i = 0; i < 3; i++)
		for (uint32_t k = 0; k < TRAFFIC_WINDOW; k++)
			windows[i][k] = (struct operation){
				.kind = kinds[i],
				.place = k,
				.buf = t->room + i * places + (size_t)k * TRAFFIC_MAX,
			};
	t->fetch.kind = KIND_FETCH;
	t->add.kind = KIND_ADD;
	node_expose(t->node, t->region, WORDS + places, KEY);
}

void traffic_run(struct node *node, fi_addr_t peer, int rank, const struct traffic_plan *plan,
		 bool (*meet)(void *stage, uint32_t meeting))
{
	struct traffic t = { .node = node, .plan = plan, .peer = peer, .rank = (uint64_t)rank };
	uint64_t words[2];

	traffic_open(&t);
	NODE_UNTIL(node->stage, meet(node->stage, 0), turn(&t));
	run_all(&t);
	NODE_UNTIL(node->stage, meet(node->stage, 1), turn(&t));
	memcpy(words, t.region, sizeof(words));
	NODE_CHECK(node->stage, words[0] == plan->adds);
	NODE_CHECK(node->stage, words[1] == (uint64_t)plan->adds * ADD_STEP);
	NODE_CHECK(node->stage, t.received == plan->messages);
	/* More of them would be duplicates. */
	NODE_UNTIL(node->stage, meet(node->stage, 2), turn(&t));
	free(t.room);
	free(t.region);
}
