/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A bad network; forward.h has the contract. A process of one thread: packets wait in a heap by
 * the time at which they are due.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>
#include "forward.h"
#include "segment.h"

#define PACKET_MAX 2048u
#define WAIT_MAX   8192u /* packets; what comes beyond them is lost, as in a router's queue */
#define FLOWS	   64u
#define LATE_US	   3000u /* at most */
#define MILLION	   1000000u

struct waiting {
	uint64_t due_ns, number; /* number: order among those of one time */
	uint8_t to;
	uint16_t len;
	uint8_t bytes[PACKET_MAX];
};

/* A direction of a connection: what its sender has sent, and its receiver has been given. */
struct half {
	uint32_t next;	    /* after what was sent */
	uint32_t ack;	    /* the receiver has acknowledged what is before it */
	uint32_t delivered; /* after what was delivered last */
	bool known;
};

/* A connection; half 0 leads from the end with the smaller address and port. */
struct flow {
	uint64_t low, high; /* address << 16 | port of both ends; 0: free */
	uint64_t used;
	struct half halves[2];
};

struct forwarder {
	struct forward *shared;
	const struct tunnel *tunnels;
	uint64_t seed, number;
	struct waiting *heap[WAIT_MAX];
	uint32_t cnt;
	struct waiting *spare[WAIT_MAX];
	uint32_t spare_cnt;
	struct flow flows[FLOWS];
	uint64_t clock; /* for the choice of a flow to forget */
};

/* Waiting packets */

static bool before(const struct waiting *a, const struct waiting *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static void heap_add(struct forwarder *f, struct waiting *w)
{
	uint32_t i = f->cnt++, up;

	for (; i && before(w, f->heap[up = (i - 1) / 2]); i = up)
		f->heap[i] = f->heap[up];
	f->heap[i] = w;
}

static struct waiting *heap_take(struct forwarder *f)
{
	struct waiting *first = f->heap[0], *last = f->heap[--f->cnt];
	uint32_t i = 0, down;

	while ((down = 2 * i + 1) < f->cnt) {
		if (down + 1 < f->cnt && before(f->heap[down + 1], f->heap[down]))
			down++;
		if (!before(f->heap[down], last))
			break;
		f->heap[i] = f->heap[down];
		i = down;
	}
	f->heap[i] = last;
	return first;
}

static void put(struct forwarder *f, int to, const uint8_t *bytes, size_t len, uint64_t due_ns)
{
	struct waiting *w;

	if (!f->spare_cnt) {
		atomic_fetch_add(&f->shared->overflowed, 1);
		return;
	}
	w = f->spare[--f->spare_cnt];
	w->due_ns = due_ns;
	w->number = f->number++;
	w->to = (uint8_t)to;
	w->len = (uint16_t)len;
	memcpy(w->bytes, bytes, len);
	heap_add(f, w);
}

/* Connections */

static uint64_t end_of(uint32_t address, uint16_t port)
{
	return (uint64_t)address << 16 | port;
}

/* Returns the connection of a segment and in @half its direction. */
static struct flow *flow_of(struct forwarder *f, const struct segment *s, int *half)
{
	uint64_t from = end_of(s->from, s->from_port), to = end_of(s->to, s->to_port);
	uint64_t low = from < to ? from : to, high = from < to ? to : from;
	struct flow *oldest = &f->flows[0], *found = NULL;

	for (struct flow *flow = f->flows; flow < f->flows + FLOWS && !found; flow++) {
		if (flow->low == low && flow->high == high)
			found = flow;
		if (flow->used < oldest->used)
			oldest = flow;
	}
	if (!found) {
		found = oldest;
		*found = (struct flow){ .low = low, .high = high };
	}
	found->used = ++f->clock;
	*half = from > to;
	return found;
}

static void saw(struct flow *flow, int half, const struct segment *s)
{
	struct half *ahead = &flow->halves[half], *back = &flow->halves[!half];

	/* Both ends may use their ports again. */
	if (s->syn && !s->has_ack)
		memset(flow->halves, 0, sizeof(flow->halves));
	if (!ahead->known || (int32_t)(s->next - ahead->next) > 0)
		ahead->next = s->next;
	if (!ahead->known)
		ahead->delivered = s->seq;
	ahead->known = true;
	if (s->has_ack)
		back->ack = s->ack;
}

static void write_packet(struct forwarder *f, int to, const uint8_t *bytes, size_t len)
{
	if (write(f->tunnels[to].fd, bytes, len) < 0)
		atomic_fetch_add(&f->shared->overflowed, 1);
}

/*
 * Sends a reset to the receiver of a half. It obeys if the number is the one that it expects:
 * after what it was given last or, if something before that is missing, what it has acknowledged.
 */
static void reset_half(struct forwarder *f, const struct flow *flow, int half, int to)
{
	const struct half *h = &flow->halves[half];
	uint64_t from = half ? flow->high : flow->low, dest = half ? flow->low : flow->high;
	struct segment s = { .from = (uint32_t)(from >> 16),
			     .from_port = (uint16_t)from,
			     .to = (uint32_t)(dest >> 16),
			     .to_port = (uint16_t)dest };
	uint32_t ack = flow->halves[!half].next;
	uint8_t packet[SEGMENT_RESET_LEN];

	segment_reset(&s, h->delivered, ack, packet);
	write_packet(f, to, packet, sizeof(packet));
	if (h->ack == h->delivered)
		return;
	segment_reset(&s, h->ack, ack, packet);
	write_packet(f, to, packet, sizeof(packet));
}

/* Both ends of the connection whose segment has come from the side @side. */
static void reset_flow(struct forwarder *f, struct flow *flow, int half, int side)
{
	reset_half(f, flow, half, !side);
	reset_half(f, flow, !half, side);
	atomic_fetch_add(&f->shared->resets, 1);
}

/* Packets */

static bool happens(struct forwarder *f, _Atomic uint32_t *per_million)
{
	return seeded_below(&f->seed, MILLION) < atomic_load(per_million);
}

/* Counts a packet. Returns true for the one that is the last. */
static bool is_last(_Atomic uint64_t *cnt)
{
	uint64_t left = atomic_load(cnt);

	return left && atomic_compare_exchange_strong(cnt, &left, left - 1) && left == 1;
}

static bool reset_is_due(struct forwarder *f)
{
	return is_last(&f->shared->reset_in) || happens(f, &f->shared->reset);
}

/* What becomes of a packet that has come from the side @side. */
static void take(struct forwarder *f, int side, const uint8_t *bytes, size_t len, uint64_t now)
{
	struct forward *shared = f->shared;
	uint64_t due = now + atomic_load(&shared->delay_us) * 1000ull;
	struct segment s;
	struct flow *flow;
	int half;

	atomic_fetch_add(&shared->taken, 1);
	if (is_last(&shared->cut_in))
		atomic_store(&shared->cut, true);
	if (atomic_load(&shared->cut)) {
		atomic_fetch_add(&shared->cut_off, 1);
		return;
	}
	if (segment_read(&s, bytes, len) && !s.rst) {
		flow = flow_of(f, &s, &half);
		saw(flow, half, &s);
		if (reset_is_due(f)) {
			reset_flow(f, flow, half, side);
			return;
		}
	}
	if (happens(f, &shared->lose)) {
		atomic_fetch_add(&shared->lost, 1);
		return;
	}
	if (happens(f, &shared->late)) {
		atomic_fetch_add(&shared->delayed_more, 1);
		due += seeded_below(&f->seed, LATE_US) * 1000;
	}
	put(f, !side, bytes, len, due);
	if (happens(f, &shared->repeat)) {
		atomic_fetch_add(&shared->repeated, 1);
		put(f, !side, bytes, len, due + seeded_below(&f->seed, LATE_US) * 1000);
	}
}

static void deliver(struct forwarder *f, struct waiting *w)
{
	struct segment s;
	struct half *h;
	int half;

	if (segment_read(&s, w->bytes, w->len)) {
		h = &flow_of(f, &s, &half)->halves[half];
		if ((int32_t)(s.next - h->delivered) > 0)
			h->delivered = s.next;
	}
	write_packet(f, w->to, w->bytes, w->len);
	f->spare[f->spare_cnt++] = w;
}

/* Sleeps until a packet comes or is due. */
static void sleep_on(struct forwarder *f, uint64_t now)
{
	struct pollfd fds[2] = { { .fd = f->tunnels[0].fd, .events = POLLIN },
				 { .fd = f->tunnels[1].fd, .events = POLLIN } };
	uint64_t ns = !f->cnt			 ? 1000000000u
		      : f->heap[0]->due_ns > now ? f->heap[0]->due_ns - now
						 : 0;
	struct timespec time = { .tv_sec = (time_t)(ns / 1000000000u),
				 .tv_nsec = (long)(ns % 1000000000u) };

	ppoll(fds, 2, &time, NULL);
}

static void forward_role(void *stage, int rank)
{
	struct forward_stage *s = stage;
	struct forwarder *f = calloc(1, sizeof(*f));
	struct waiting *room = calloc(WAIT_MAX, sizeof(*room));
	uint8_t bytes[PACKET_MAX];
	ssize_t len;

	NODE_CHECK(s, f && room);
	f->shared = &s->forward;
	f->tunnels = s->tunnels;
	f->seed = s->forward.seed;
	for (; f->spare_cnt < WAIT_MAX; f->spare_cnt++)
		f->spare[f->spare_cnt] = room + f->spare_cnt;
	for (;;) {
		sleep_on(f, node_now_ns());
		for (int side = 0; side < 2; side++)
			for (int i = 0; i < 64; i++) {
				len = read(s->tunnels[side].fd, bytes, sizeof(bytes));
				if (len <= 0)
					break;
				take(f, side, bytes, (size_t)len, node_now_ns());
			}
		while (f->cnt && f->heap[0]->due_ns <= node_now_ns())
			deliver(f, heap_take(f));
	}
}

pid_t forward_start(struct forward_stage *s, unsigned int secs)
{
	return stage_start(s, 0, secs, forward_role);
}

void forward_report(const struct forward *f)
{
	printf("%" PRIu64 " packets: %" PRIu64 " lost, %" PRIu64 " repeated, %" PRIu64
	       " late, %" PRIu64 " while it was cut, %" PRIu64 " for which there was no room; "
	       "%" PRIu64 " connections reset\n",
	       f->taken, f->lost, f->repeated, f->delayed_more, f->cut_off, f->overflowed,
	       f->resets);
}
