/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sessions: making and ending them; session.h has the contract. */
#define _GNU_SOURCE
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "nvmed/nvmed.h"

#define RECEIVES_MIN 4u
#define RECEIVES_MAX 64u
#define WORK_MORE_MAX \
	32u /* beside @depth: of those whose end the borrower knows, and we do not yet */
#define LINGER_NS  1000000000ULL
#define CONNECT_NS 10000000000ULL /* as long as the borrower tries */

/* Completions that are read at once; polls without any after which only each @IDLE_LOOK-th one looks for some */
#define ENTRIES_AT_ONCE 16
#define IDLE_POLLS	20000u
#define IDLE_LOOK	64u

static uint64_t take(uint64_t *at, uint64_t len)
{
	uint64_t first = *at;

	*at += nvme_page_len(len);
	return first;
}

static void lay_out(struct session *s)
{
	struct places *at = &s->at;
	uint64_t end = 0;

	at->sq = take(&end, s->entries * sizeof(struct nvme_sqe));
	at->cq = take(&end, s->entries * sizeof(struct nvme_cqe));
	at->lists = take(&end, (uint64_t)s->work_cnt * NVME_PAGE);
	at->buffers = take(&end, (uint64_t)s->work_cnt * SESSION_INLINE);
	at->pool = take(&end, SESSION_POOL);
	at->receives = take(&end, s->receive_cnt * SESSION_RECEIVE);
	at->cqes = take(&end, s->work_cnt * sizeof(struct nvme_cqe));
	at->fetched = take(&end, SESSION_FETCH * sizeof(struct nvme_sqe));
	at->tells = take(&end, SESSION_TELLS * sizeof(struct remote_complete));
	at->len = end;
}

static int open_memory(struct session *s)
{
	struct domain_request window = {
		.addr = s->addr,
		.len = s->at.cqes,
		.access = SLOT_DMA_READ | SLOT_DMA_WRITE,
		.fd_cnt = 1,
	};
	void *mem;
	int fd, err;

	s->file = sealed_file("weft-nvmed session", s->at.len);
	if (s->file < 0)
		return s->file;
	mem = mmap(NULL, s->at.len, PROT_READ | PROT_WRITE, MAP_SHARED, s->file, 0);
	if (mem == MAP_FAILED)
		return -errno;
	s->memory = mem;
	fd = dup(s->file);
	if (fd < 0)
		return -errno;
	window.fds = &fd;
	err = domain_map(&s->c->leases.each[s->lease].domain, &window);
	if (err)
		close(fd);
	return err;
}

static int post(struct session *s, struct receive *r)
{
	return (int)fi_recv(s->ep, message_of(s, r), SESSION_MESSAGE, port_desc(s->mr),
			    FI_ADDR_UNSPEC, r);
}

static int open_endpoint(struct session *s, const struct port *port)
{
	struct iovec all = { s->memory, s->at.len };
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = NVMED_TAG_REMOTE };
	uint32_t i;
	int err = port_open_alike(port, 2 * (s->work_cnt + s->receive_cnt + SESSION_TELLS),
				  &s->port);

	if (!err)
		err = port_ep_open(&s->port, &s->ep);
	if (!err && s->port.wait_fd >= 0 && s->c->epoll >= 0 &&
	    epoll_ctl(s->c->epoll, EPOLL_CTL_ADD, s->port.wait_fd, &event))
		err = -errno;
	if (!err)
		err = port_mr_open(&s->port, s->ep, &all,
				   FI_SEND | FI_RECV | FI_READ | FI_WRITE, &s->mr);
	for (i = 0; !err && i < s->receive_cnt; i++)
		err = post(s, &s->receives[i]);
	return err;
}

static int open_tables(struct session *s)
{
	uint32_t i;

	s->work = calloc(s->work_cnt, sizeof(*s->work));
	s->receives = calloc(s->receive_cnt, sizeof(*s->receives));
	s->tells = calloc(SESSION_TELLS, sizeof(*s->tells));
	if (!s->work || !s->receives || !s->tells)
		return -ENOMEM;
	ops_init(&s->free_work);
	ops_init(&s->free_tells);
	ops_init(&s->waiting);
	ops_init(&s->out);
	for (i = 0; i < s->work_cnt; i++) {
		s->work[i].op = (struct op){ .session = s, .kind = OP_WORK, .index = i };
		ops_add(&s->free_work, &s->work[i].op);
	}
	for (i = 0; i < s->receive_cnt; i++)
		s->receives[i].op = (struct op){ .session = s, .kind = OP_RECEIVE, .index = i };
	for (i = 0; i < SESSION_TELLS; i++) {
		s->tells[i] = (struct op){ .session = s, .kind = OP_TELL, .index = i };
		ops_add(&s->free_tells, &s->tells[i]);
	}
	s->fetch = (struct op){ .session = s, .kind = OP_FETCH };
	return 0;
}

static uint32_t within(uint32_t value, uint32_t min, uint32_t max)
{
	return value < min ? min : value > max ? max : value;
}

/* What nobody guesses */
static int make_keys(struct remote_place *place)
{
	return getrandom(&place->key, sizeof(place->key), 0) != sizeof(place->key) ||
			       getrandom(&place->data_key, sizeof(place->data_key), 0) !=
				       sizeof(place->data_key)
		       ? -EIO
		       : 0;
}

/* A session that has nothing open. */
static struct session *create(struct nvmed *c, uint32_t lease, uint16_t qid, uint32_t depth)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct session){
		.c = c,
		.port = { .wait_fd = -1 },
		.qid = qid,
		.lease = lease,
		.file = -1,
		.addr = REMOTE_ADDR(qid),
		.depth = depth,
		.work_cnt = depth + within(depth, 1, WORK_MORE_MAX),
		.receive_cnt = within(depth + 2, RECEIVES_MIN, RECEIVES_MAX),
		.phase = 1,
		.made_ns = nvmed_clock(c),
	};
	s->entries = s->work_cnt + 1;
	lay_out(s);
	return s;
}

int session_create(struct nvmed *c, const struct port *port, uint32_t lease, uint16_t qid,
		   uint32_t depth, struct session **out)
{
	struct session *s;
	int err = remote_refusal(c, lease, qid, depth, REMOTE_DEPTH_MAX);

	if (err)
		return err;
	s = create(c, lease, qid, depth);
	if (!s)
		return -ENOMEM;
	err = open_tables(s);
	if (!err)
		err = make_keys(&s->place);
	if (!err)
		err = open_memory(s);
	if (!err)
		err = open_endpoint(s, port);
	if (!err)
		err = remote_queues_make(c, lease, qid, s->entries, s->at.sq, s->at.cq);
	if (!err) {
		*out = s;
		return 0;
	}
	if (s->memory)
		domain_unmap(&c->leases.each[lease].domain, s->addr, s->at.cqes);
	session_destroy(s);
	return err;
}

int session_place(struct session *s, struct remote_place *out)
{
	struct remote_place *place = &s->place;
	size_t len = sizeof(place->name);
	int err;

	place->version = REMOTE_VERSION;
	place->data_len = (uint16_t)s->port.data_len;
	place->depth = s->depth;
	place->message_max = SESSION_MESSAGE;
	place->inline_max = SESSION_INLINE;
	err = port_ep_name(s->ep, place->name, &len);
	place->name_len = (uint32_t)len;
	snprintf(place->provider, sizeof(place->provider), "%s", port_provider(&s->port));
	*out = *place;
	return err;
}

static void close_endpoint(struct session *s)
{
	if (s->ep)
		fi_close(&s->ep->fid);
	s->ep = NULL;
	if (s->connected)
		port_peer_forget(&s->port, s->peer);
	s->connected = false;
}

void session_break(struct session *s, const char *why)
{
	if (s->broken)
		return;
	if (!s->over)
		fprintf(stderr, "weft-nvmed: queue pair %u of lease %u: the borrower %s\n",
			s->qid, s->lease, why);
	s->broken = true;
	close_endpoint(s);
}

void session_end(struct session *s)
{
	session_poll(s);
	s->over = true;
	s->over_ns = s->c->now;
	remote_window_end(s->c, s->lease, s->qid, s->at.cqes);
}

static void say_end(struct session *s)
{
	struct remote_head end = { REMOTE_VERSION, REMOTE_END, 0, s->place.key };
	int err = session_say(s, &end, sizeof(end));

	if (err != -FI_EAGAIN)
		s->end_told = true;
}

bool session_linger(struct session *s)
{
	if (s->connected && !s->broken && !s->out.first && !s->end_told)
		say_end(s);
	if (s->connected && !s->broken && s->c->now - s->over_ns < LINGER_NS &&
	    (s->out.first || !s->end_told || s->tells_under_way))
		return true;
	s->broken = true;
	close_endpoint(s);
	return false;
}

void session_destroy(struct session *s)
{
	close_endpoint(s);
	if (s->mr)
		fi_close(&s->mr->fid);
	port_close(&s->port);
	if (s->memory)
		munmap(s->memory, s->at.len);
	if (s->file >= 0)
		close(s->file);
	free(s->work);
	free(s->receives);
	free(s->tells);
	free(s);
}

void session_receive_again(struct session *s, struct receive *r)
{
	if (!s->broken && post(s, r))
		session_break(s, "can't be listened to");
}

/* Of what is read from it: what a borrower has named as its memory may be none, and ends this command alone. */
static void work_done(struct session *s, struct work *w, int err)
{
	w->pending--;
	if (w->state == WORK_FETCHING) {
		work_queue(s, w, err);
	} else if (w->state == WORK_WRITING && !w->pending) {
		w->state = WORK_WRITTEN;
		ops_add(&s->out, &w->op);
	} else if (w->state == WORK_SENDING && !w->pending) {
		work_free(s, w);
	}
}

static void done(struct session *s, struct op *op, size_t len, int err)
{
	/* Of a closed endpoint: nothing follows. */
	if (s->broken)
		return;
	/* A message that is longer than the borrower's are is a stranger's. */
	if (err == -FI_ETRUNC && op->kind == OP_RECEIVE) {
		session_stranger(s, &s->receives[op->index]);
		return;
	}
	if (err && (op->kind != OP_WORK || work_of(op)->state != WORK_FETCHING)) {
		session_break(s, "is not reached any more");
		return;
	}
	switch (op->kind) {
	case OP_RECEIVE:
		session_received(s, &s->receives[op->index], len);
		break;
	case OP_WORK:
		work_done(s, work_of(op), err);
		break;
	case OP_TELL:
		s->tells_under_way--;
		ops_add(&s->free_tells, op);
		break;
	case OP_FETCH:
		session_fetched(s);
		break;
	}
}

/* What has ended of its operations. Returns whether anything had */
static bool take_completions(struct session *s)
{
	struct fi_cq_data_entry entries[ENTRIES_AT_ONCE];
	struct fi_cq_err_entry e = { 0 };
	ssize_t n = fi_cq_read(s->port.cq, entries, ENTRIES_AT_ONCE), i;

	if (n == -FI_EAVAIL && fi_cq_readerr(s->port.cq, &e, 0) > 0) {
		if (e.op_context)
			done(s, e.op_context, 0, e.err ? -e.err : -FI_EIO);
		return true;
	}
	for (i = 0; i < n; i++)
		if (entries[i].op_context)
			done(s, entries[i].op_context, entries[i].len, 0);
	return n > 0;
}

bool session_poll(struct session *s)
{
	bool moved = !s->over && session_reap(s);

	if (s->out.first)
		moved |= session_tell(s);
	if (!s->broken && (++s->idle < IDLE_POLLS || s->idle % IDLE_LOOK == 0) &&
	    take_completions(s)) {
		s->idle = 0;
		moved = true;
	}
	if (s->waiting.first || s->near.entries)
		session_take(s);
	return moved;
}

bool session_may_sleep(struct session *s)
{
	if (s->over || s->port.wait_fd < 0)
		return false;
	if (s->broken)
		return true;
	/* Of a connection that is being made some providers' descriptors say nothing. */
	if (!s->connected && s->c->now - s->made_ns < CONNECT_NS)
		return false;
	if (s->out.first || (s->waiting.first && s->free_work.first))
		return false;
	s->idle = 0;
	return port_may_sleep(&s->port);
}
