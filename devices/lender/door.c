/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Borrowers of other hosts; door.h has the contract. Who asks is known by the life and the name of its endpoint, as long
 * as it asks now and then; nothing is lost with it, for each request says where its answer goes.
 */
#define _GNU_SOURCE
#include "door.h"
#include "lent_types.h"
#include "log.h"
#include "message.h"
#include "port.h"
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RECEIVES 32u
#define SENDS	 32u
#define SPARE	 8u   /* sends that are to be free */
#define GUESTS	 256u /* borrowers that are known at once */
#define EVENTS	 64u  /* that wait for the thread */
#define POLL_MS	 1    /* between looks, where the provider has nothing to wait for */
#define LOOK_MS	 200  /* and where it has */

/*
 * struct letter - a message, and what it is being used for
 * @next: free ones
 * @sent: of a send that is under way: its number; else 0. @cancelled: it is to end
 */
struct letter {
	struct fi_context2 context;
	struct letter *next;
	uint64_t sent;
	bool cancelled;
	bool is_send;
	uint32_t index;
};

/*
 * struct guest - a borrower
 * @life:     0: none
 * @asked_ms: when it last did
 * @seq, @answer_len, @answer: its last request, and the answer, to be sent again
 * @watches_ms: until when it hears of events
 * @complained: kinds of requests of which a refusal was logged, as bits
 */
struct guest {
	uint64_t life;
	uint64_t asked_ms;
	uint64_t watches_ms;
	fi_addr_t addr;
	uint32_t complained;
	uint32_t name_len;
	uint8_t name[LEASE_NAME_MAX];
	uint32_t seq;
	size_t answer_len;
	uint8_t answer[sizeof(struct lease_message) + LEASE_DATA_MAX];
};

struct event {
	uint32_t kind, lease;
	uint64_t device;
};

/*
 * struct door
 * @letters: memory of all messages, receives first, LEASE_LETTER_MAX each
 * @sent:    number of the last one that was sent; @under_way: how many have not ended, of which @cancelled are to end
 * @lock:    of @events
 * @met_version: a message of another version has come, which was logged
 */
struct door {
	struct lender *lender;
	struct port port;
	struct fid_ep *ep;
	struct fid_mr *mr;
	uint8_t *letters;
	struct letter each[RECEIVES + SENDS];
	struct letter *free_sends;
	uint64_t sent;
	uint32_t under_way, cancelled;
	struct guest *guests;
	int wake;
	pthread_mutex_t lock;
	struct event events[EVENTS];
	uint32_t event_cnt;
	pthread_t thread;
	bool met_version;
};

static uint8_t *bytes_of(struct door *door, const struct letter *letter)
{
	return door->letters + letter->index * LEASE_LETTER_MAX;
}

static int post(struct door *door, struct letter *letter)
{
	return (int)fi_recv(door->ep, bytes_of(door, letter), LEASE_LETTER_MAX,
			    port_desc(door->mr), FI_ADDR_UNSPEC, letter);
}

/*
 * Have free sends: a message to an endpoint that does not answer, or that there never was, may be under way for ever, and
 * anyone can name one as his. The oldest is given up, which is hardly one that somebody takes.
 */
static void keep_spare(struct door *door)
{
	struct letter *oldest = NULL;
	uint32_t i;

	if (door->under_way - door->cancelled <= SENDS - SPARE)
		return;
	for (i = RECEIVES; i < RECEIVES + SENDS; i++) {
		struct letter *letter = &door->each[i];

		if (letter->sent && !letter->cancelled &&
		    (!oldest || letter->sent < oldest->sent))
			oldest = letter;
	}
	if (!oldest || fi_cancel(&door->ep->fid, oldest))
		return;
	oldest->cancelled = true;
	door->cancelled++;
}

/* Send a message. One that the provider has no room for is lost: who asked asks again. */
static void send_to(struct door *door, const struct guest *guest, const void *message,
		    size_t len)
{
	struct lease_envelope envelope = { .version = LEASE_VERSION, .life = guest->life };
	struct letter *letter = door->free_sends;
	uint8_t *bytes;

	if (!letter)
		return;
	bytes = bytes_of(door, letter);
	memcpy(bytes, &envelope, sizeof(envelope));
	memcpy(bytes + sizeof(envelope), message, len);
	if (fi_send(door->ep, bytes, sizeof(envelope) + len, port_desc(door->mr), guest->addr,
		    letter))
		return;
	door->free_sends = letter->next;
	letter->sent = ++door->sent;
	door->under_way++;
	keep_spare(door);
}

/* Who has sent a message; one that is not known takes the place of the one that has not asked for longest. */
static struct guest *guest_of(struct door *door, const struct lease_envelope *e)
{
	struct guest *oldest = &door->guests[0], *g;
	fi_addr_t addr;
	uint32_t i;

	for (i = 0; i < GUESTS; i++) {
		g = &door->guests[i];
		if (g->life == e->life && g->name_len == e->name_len &&
		    !memcmp(g->name, e->name, e->name_len))
			return g;
		if (g->asked_ms < oldest->asked_ms)
			oldest = g;
	}
	if (port_peer(&door->port, e->name, e->name_len, &addr))
		return NULL;
	g = oldest;
	if (g->life)
		port_peer_forget(&door->port, g->addr);
	*g = (struct guest){ .life = e->life, .addr = addr, .name_len = e->name_len };
	memcpy(g->name, e->name, e->name_len);
	return g;
}

static void answer(struct door *door, struct guest *guest, const struct lease_message *request,
		   const uint8_t *data)
{
	/* There is no process here to be named, and no user. */
	const struct lent_borrower nobody = { -1, (uid_t)-1 };
	struct lease_message msg = *request;
	uint8_t *room = guest->answer + sizeof(msg);

	/* One that comes again, for its answer was late or got lost; or that is late itself. */
	if (guest->answer_len && msg.seq == guest->seq) {
		send_to(door, guest, guest->answer, guest->answer_len);
		return;
	}
	if (guest->answer_len && (int32_t)(msg.seq - guest->seq) < 0)
		return;
	memcpy(room, data, msg.data_len);
	if (session_answer_remote(door->lender, &nobody, &msg, room, &guest->complained))
		return;
	if (msg.kind == LEASE_WATCH && !msg.status)
		guest->watches_ms = lent_now_ms() + LEASE_WATCH_MS;
	memcpy(guest->answer, &msg, sizeof(msg));
	guest->seq = msg.seq;
	guest->answer_len = sizeof(msg) + msg.data_len;
	send_to(door, guest, guest->answer, guest->answer_len);
}

/* Its layout is not known, and so nobody can be answered. Any bytes may look so: one line is enough. */
static void drop_version(struct door *door, uint16_t version)
{
	if (!door->met_version)
		lender_log(
			"the door drops a message of version %u, and takes those of version %u",
			version, LEASE_VERSION);
	door->met_version = true;
}

/* A message from anyone */
static void receive(struct door *door, const uint8_t *bytes, size_t len)
{
	struct lease_envelope envelope;
	struct lease_message msg;
	struct guest *guest;

	if (len < sizeof(envelope))
		return;
	memcpy(&envelope, bytes, sizeof(envelope));
	if (envelope.version != LEASE_VERSION) {
		drop_version(door, envelope.version);
		return;
	}
	if (len < sizeof(envelope) + sizeof(msg))
		return;
	memcpy(&msg, bytes + sizeof(envelope), sizeof(msg));
	if (envelope.rsvd4 || !envelope.life || !envelope.name_len ||
	    envelope.name_len > LEASE_NAME_MAX ||
	    msg.data_len != len - sizeof(envelope) - sizeof(msg) ||
	    msg.data_len > LEASE_DATA_MAX)
		return;
	guest = guest_of(door, &envelope);
	if (!guest)
		return;
	guest->asked_ms = lent_now_ms();
	answer(door, guest, &msg, bytes + sizeof(envelope) + sizeof(msg));
}

static void done(struct door *door, struct letter *letter, size_t len)
{
	if (letter->is_send) {
		door->under_way--;
		door->cancelled -= letter->cancelled;
		letter->sent = 0;
		letter->cancelled = false;
		letter->next = door->free_sends;
		door->free_sends = letter;
		return;
	}
	if (len)
		receive(door, bytes_of(door, letter), len);
	if (post(door, letter))
		lender_log("the door listens with a message less: no memory");
}

/* Returns whether anything has ended */
static bool take_completions(struct door *door)
{
	struct fi_cq_data_entry entries[8];
	struct fi_cq_err_entry e = { 0 };
	ssize_t n = fi_cq_read(door->port.cq, entries, 8), i;

	if (n == -FI_EAVAIL && fi_cq_readerr(door->port.cq, &e, 0) > 0) {
		if (e.op_context)
			done(door, e.op_context, 0);
		return true;
	}
	/* What a stranger writes with remote CQ data is of no message. */
	for (i = 0; i < n; i++)
		if (entries[i].op_context)
			done(door, entries[i].op_context, entries[i].len);
	return n > 0;
}

static void tell_events(struct door *door)
{
	struct event events[EVENTS];
	uint64_t count, now = lent_now_ms();
	uint32_t cnt, i, k;

	if (read(door->wake, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&door->lock);
	cnt = door->event_cnt;
	memcpy(events, door->events, cnt * sizeof(*events));
	door->event_cnt = 0;
	pthread_mutex_unlock(&door->lock);
	for (i = 0; i < cnt; i++) {
		struct lease_message msg = { .version = LEASE_VERSION,
					     .kind = LEASE_EVENT,
					     .index = events[i].kind,
					     .device = events[i].device,
					     .lease = events[i].lease };

		for (k = 0; k < GUESTS; k++)
			if (door->guests[k].life && door->guests[k].watches_ms > now)
				send_to(door, &door->guests[k], &msg, sizeof(msg));
	}
}

static void *serve(void *arg)
{
	struct door *door = arg;
	bool has_fd = door->port.wait_fd >= 0;

	for (;;) {
		struct pollfd p[2] = { { .fd = door->wake, .events = POLLIN },
				       { .fd = door->port.wait_fd, .events = POLLIN } };

		while (take_completions(door))
			;
		tell_events(door);
		if (port_may_sleep(&door->port))
			poll(p, has_fd ? 2 : 1, has_fd ? LOOK_MS : POLL_MS);
	}
	return NULL;
}

static int open_letters(struct door *door)
{
	struct iovec all = { NULL, (RECEIVES + SENDS) * LEASE_LETTER_MAX };
	uint32_t i;
	int err;

	door->letters = calloc(1, all.iov_len);
	door->guests = calloc(GUESTS, sizeof(*door->guests));
	if (!door->letters || !door->guests)
		return -FI_ENOMEM;
	all.iov_base = door->letters;
	err = port_ep_open(&door->port, &door->ep);
	if (!err && door->port.mr_mode & FI_MR_LOCAL)
		err = port_mr_open(&door->port, door->ep, &all, FI_SEND | FI_RECV, &door->mr);
	for (i = 0; !err && i < RECEIVES + SENDS; i++) {
		struct letter *letter = &door->each[i];

		letter->index = i;
		letter->is_send = i >= RECEIVES;
		if (!letter->is_send) {
			err = post(door, letter);
			continue;
		}
		letter->next = door->free_sends;
		door->free_sends = letter;
	}
	return err;
}

int door_open(struct lender *lender, const char *provider, const char *address,
	      const char *service, struct door **out)
{
	struct port_request request = {
		.provider = provider,
		.host = address,
		.service = service ? service : LEASE_PORT,
		.own = true,
		.cq_len = 2 * (RECEIVES + SENDS),
	};
	struct door *door = calloc(1, sizeof(*door));
	int err;

	if (!door)
		return -FI_ENOMEM;
	door->lender = lender;
	pthread_mutex_init(&door->lock, NULL);
	door->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = door->wake < 0 ? -errno : port_open(&request, &door->port);
	if (!err)
		err = open_letters(door);
	if (!err)
		err = -pthread_create(&door->thread, NULL, serve, door);
	if (!err) {
		*out = door;
		return 0;
	}
	if (door->ep)
		fi_close(&door->ep->fid);
	if (door->mr)
		fi_close(&door->mr->fid);
	port_close(&door->port);
	if (door->wake >= 0)
		close(door->wake);
	free(door->letters);
	free(door->guests);
	free(door);
	return err;
}

const char *door_provider(const struct door *door)
{
	return port_provider(&door->port);
}

void door_tell(struct door *door, uint32_t kind, uint64_t device, uint32_t lease)
{
	uint64_t one = 1;

	pthread_mutex_lock(&door->lock);
	if (door->event_cnt < EVENTS)
		door->events[door->event_cnt++] = (struct event){ kind, lease, device };
	pthread_mutex_unlock(&door->lock);
	if (write(door->wake, &one, sizeof(one)) < 0)
		return; /* the thread has been woken already */
}
