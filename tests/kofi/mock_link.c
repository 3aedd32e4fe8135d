/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * kernel/ibverbs/link.h within a process: links of two ends, whose messages and payload are copied. What a device would
 * fail for ends both: a message without a receive, a write by a key that is not open, or beyond its window.
 */
#include <assert.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include "addr.h"
#include "list.h"
#include "mock_link.h"

#define DONE_MAX   256u
#define PORT_FIRST 1000u

bool mock_keeps_keys, mock_holds_writes;

/* Writes that have not ended */
static struct {
	struct kib_link *link;
	struct kib_done done;
} writes[KIB_WINDOWS];
static uint32_t writes_cnt;

struct kib_window {
	struct kib_link *link;
	struct kib_range range;
	uint32_t key;
	void *cookie;
	bool open, valid;
};

struct kib_port {
	struct list node, links, pending;
	struct kib_address at;
	bool listens, armed;
	void (*wake)(void *arg);
	void *arg;
};

struct kib_link {
	struct list mine, pending;
	struct kib_port *port;
	/* NULL: it has ended */
	struct kib_link *other;
	void *owner;
	bool requested, ready, ended, stopped, broken;
	int err;
	uint8_t greeting[KIB_GREETING_MAX];
	uint32_t greeting_len;
	struct kib_address from, to;
	struct kib_message out[KIB_DEPTH], *spare[KIB_DEPTH];
	uint32_t spare_cnt;
	/* Receives that are posted, in their order */
	uint32_t posted[KIB_DEPTH], posted_cnt;
	struct kib_done done[DONE_MAX];
	uint32_t done_from, done_cnt;
	struct kib_window windows[KIB_WINDOWS];
	uint8_t in_bytes[KIB_DEPTH][KIB_MESSAGE_MAX], out_bytes[KIB_DEPTH][KIB_MESSAGE_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list ports = { &ports, &ports };
static uint16_t port_last;
static uint32_t key_last;

void kofi_ibverbs_begin(void)
{
	port_last = PORT_FIRST;
}

void kofi_ibverbs_end(void)
{
	assert(list_empty(&ports));
}

static void step(struct kib_link *link)
{
	struct kib_port *port = link->port;

	if (!port)
		return;
	list_remove(&link->pending);
	list_add_tail(&port->pending, &link->pending);
	if (port->armed)
		port->wake(port->arg);
}

static void end(struct kib_link *link, int err)
{
	if (!link->ended)
		link->err = err;
	link->ended = true;
	step(link);
}

static void done_add(struct kib_link *link, const struct kib_done *done)
{
	assert(link->done_cnt < DONE_MAX);
	link->done[(link->done_from + link->done_cnt++) % DONE_MAX] = *done;
	if (link->port && link->port->armed)
		link->port->wake(link->port->arg);
}

static void link_break(struct kib_link *link)
{
	struct kib_done done = { .what = KIB_BROKEN };

	if (!link || link->broken)
		return;
	link->broken = true;
	done_add(link, &done);
}

/* Ports */

int kib_places(struct kib_place *out, int max)
{
	*out = (struct kib_place){ .device = "mock0",
				   .address = { .family = ADDR_FAMILY_INET,
						.ip = { 127, 0, 0, 1 } } };
	return 1;
}

int kib_address_read(const char *node, const char *service, struct kib_address *out)
{
	return -FI_ENODATA;
}

int kib_port_open(const struct kib_address *at, bool listens, void (*wake)(void *arg),
		  void *arg, struct kib_port **out, struct kib_address *where)
{
	struct kib_port *port = platform_alloc(sizeof(*port));

	if (!port)
		return -FI_ENOMEM;
	list_init(&port->links);
	list_init(&port->pending);
	port->at = *at;
	port->listens = listens;
	port->wake = wake;
	port->arg = arg;
	pthread_mutex_lock(&lock);
	if (listens)
		port->at.port = ++port_last;
	list_add_tail(&ports, &port->node);
	pthread_mutex_unlock(&lock);
	*where = port->at;
	*out = port;
	return 0;
}

void kib_port_close(struct kib_port *port)
{
	struct list *node;

	pthread_mutex_lock(&lock);
	list_remove(&port->node);
	pthread_mutex_unlock(&lock);
	while ((node = list_pop(&port->pending)))
		kib_link_free(container_of(node, struct kib_link, pending));
	assert(list_empty(&port->links));
	platform_free(port);
}

bool kib_port_next(struct kib_port *port, struct kib_event *event)
{
	struct kib_link *link;
	struct list *node;

	pthread_mutex_lock(&lock);
	node = list_pop(&port->pending);
	link = node ? container_of(node, struct kib_link, pending) : NULL;
	if (link) {
		event->link = link;
		event->step = link->requested ? KIB_REQUEST
			      : link->ready   ? KIB_READY
					      : KIB_ENDED;
		event->err = link->err;
		event->greeting_len = link->greeting_len;
		memcpy(event->greeting, link->greeting, sizeof(link->greeting));
		if (event->step == KIB_REQUEST)
			list_add_tail(&port->links, &link->mine);
		link->requested &= event->step != KIB_REQUEST;
		link->ready &= event->step != KIB_READY;
		if (event->step != KIB_ENDED && (link->ready || link->ended))
			list_add_tail(&port->pending, &link->pending);
	}
	pthread_mutex_unlock(&lock);
	return link;
}

bool kib_port_arm(struct kib_port *port)
{
	struct kib_link *link;
	bool armed;

	pthread_mutex_lock(&lock);
	armed = list_empty(&port->pending);
	list_for_each_entry(link, &port->links, mine)
		armed = armed && !link->done_cnt;
	port->armed = armed;
	pthread_mutex_unlock(&lock);
	return armed;
}

void kib_port_disarm(struct kib_port *port)
{
	pthread_mutex_lock(&lock);
	port->armed = false;
	pthread_mutex_unlock(&lock);
}

/* Links */

static struct kib_link *link_new(struct kib_port *port)
{
	struct kib_link *link = platform_alloc(sizeof(*link));

	if (!link)
		return NULL;
	list_init(&link->mine);
	list_init(&link->pending);
	link->port = port;
	for (uint32_t i = 0; i < KIB_DEPTH; i++) {
		link->out[i].bytes = link->out_bytes[i];
		link->spare[i] = &link->out[i];
		link->posted[i] = i;
	}
	link->spare_cnt = link->posted_cnt = KIB_DEPTH;
	for (uint32_t i = 0; i < KIB_WINDOWS; i++)
		link->windows[i].link = link;
	return link;
}

static struct kib_port *port_at(const struct kib_address *at)
{
	struct kib_port *port;

	list_for_each_entry(port, &ports, node)
		if (port->listens && port->at.port == at->port)
			return port;
	return NULL;
}

static int dial_locked(struct kib_port *port, const struct kib_address *to,
		       const void *greeting, uint32_t greeting_len, struct kib_link *link)
{
	struct kib_port *there = port_at(to);
	struct kib_link *other;

	if (!there) {
		end(link, -FI_ECONNREFUSED);
		return 0;
	}
	other = link_new(there);
	if (!other)
		return -FI_EAGAIN;
	link->other = other;
	other->other = link;
	other->from = *to;
	other->to = link->from;
	memcpy(other->greeting, greeting, greeting_len);
	other->greeting_len = greeting_len;
	other->requested = true;
	step(other);
	return 0;
}

int kib_link_dial(struct kib_port *port, const struct kib_address *to, const void *greeting,
		  uint32_t greeting_len, struct kib_link **out)
{
	struct kib_link *link = link_new(port);
	int ret;

	if (!link)
		return -FI_EAGAIN;
	link->from = port->at;
	link->to = *to;
	pthread_mutex_lock(&lock);
	list_add_tail(&port->links, &link->mine);
	ret = dial_locked(port, to, greeting, greeting_len, link);
	pthread_mutex_unlock(&lock);
	if (ret)
		kib_link_free(link);
	else
		*out = link;
	return ret;
}

int kib_link_accept(struct kib_link *link, const void *greeting, uint32_t greeting_len)
{
	struct kib_link *other;

	pthread_mutex_lock(&lock);
	other = link->other;
	if (other) {
		memcpy(other->greeting, greeting, greeting_len);
		other->greeting_len = greeting_len;
		other->ready = link->ready = true;
		step(other);
		step(link);
	}
	pthread_mutex_unlock(&lock);
	return other ? 0 : -FI_ECONNRESET;
}

void kib_link_reject(struct kib_link *link, const void *greeting, uint32_t greeting_len)
{
	pthread_mutex_lock(&lock);
	if (link->other) {
		end(link->other, -FI_ENOPROTOOPT);
		link->other->other = NULL;
		link->other = NULL;
	}
	pthread_mutex_unlock(&lock);
}

void kib_link_stop(struct kib_link *link)
{
	pthread_mutex_lock(&lock);
	if (link->other) {
		end(link->other, -FI_ECONNRESET);
		link->other->other = NULL;
		link->other = NULL;
	}
	link->stopped = true;
	pthread_mutex_unlock(&lock);
}

void kib_link_free(struct kib_link *link)
{
	kib_link_stop(link);
	kib_link_part(link);
	platform_free(link);
}

void *kib_link_owner(const struct kib_link *link)
{
	return link->owner;
}

void kib_link_own(struct kib_link *link, void *owner)
{
	link->owner = owner;
}

void kib_link_part(struct kib_link *link)
{
	pthread_mutex_lock(&lock);
	list_remove(&link->mine);
	list_remove(&link->pending);
	link->port = NULL;
	pthread_mutex_unlock(&lock);
}

void kib_link_join(struct kib_link *link, struct kib_port *port)
{
	pthread_mutex_lock(&lock);
	link->port = port;
	list_add_tail(&port->links, &link->mine);
	step(link);
	pthread_mutex_unlock(&lock);
}

int kib_link_names(struct kib_link *link, struct kib_address *local, struct kib_address *remote)
{
	*local = link->from;
	*remote = link->to;
	return 0;
}

/* Messages */

struct kib_message *kib_link_claim(struct kib_link *link)
{
	return link->spare_cnt ? link->spare[--link->spare_cnt] : NULL;
}

void kib_link_unclaim(struct kib_link *link, struct kib_message *message)
{
	link->spare[link->spare_cnt++] = message;
}

uint32_t kib_link_spare(const struct kib_link *link)
{
	return link->spare_cnt;
}

static struct kib_window *window_of(struct kib_link *link, uint32_t key)
{
	for (uint32_t i = 0; i < KIB_WINDOWS; i++)
		if (link->windows[i].open && link->windows[i].valid &&
		    link->windows[i].key == key)
			return &link->windows[i];
	return NULL;
}

static void deliver(struct kib_link *other, const struct kib_message *message, uint32_t len,
		    uint32_t key)
{
	uint32_t buffer = other->posted[0];
	struct kib_done done = { .what = KIB_RECEIVED,
				 .len = len,
				 .key = key,
				 .buffer = buffer,
				 .bytes = other->in_bytes[buffer] };

	other->posted_cnt--;
	memmove(other->posted, other->posted + 1, other->posted_cnt * sizeof(*other->posted));
	memcpy(other->in_bytes[buffer], message->bytes, len);
	done_add(other, &done);
}

static int send_locked(struct kib_link *link, struct kib_message *message, uint32_t len,
		       uint32_t key)
{
	struct kib_done done = { .what = KIB_SENT, .cookie = message };
	struct kib_link *other = link->other;
	struct kib_window *window;

	if (link->stopped || link->broken)
		return -FI_ENOTCONN;
	if (!other)
		return 0; /* it is lost, and the step says so */
	window = key && !mock_keeps_keys ? window_of(other, key) : NULL;
	if (!other->posted_cnt || (key && !mock_keeps_keys && !window)) {
		link_break(link);
		link_break(other);
		return 0;
	}
	if (window)
		window->valid = false;
	deliver(other, message, len, window ? key : 0);
	done_add(link, &done);
	return 0;
}

int kib_link_send_ending(struct kib_link *link, struct kib_message *message, uint32_t len,
			 uint32_t key)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = send_locked(link, message, len, key);
	pthread_mutex_unlock(&lock);
	return ret;
}

int kib_link_send(struct kib_link *link, struct kib_message *message, uint32_t len)
{
	return kib_link_send_ending(link, message, len, 0);
}

int kib_link_probe(struct kib_link *link)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = link->stopped || link->broken ? -FI_ENOTCONN : 0;
	pthread_mutex_unlock(&lock);
	return ret;
}

int kib_link_repost(struct kib_link *link, uint32_t buffer)
{
	int ret = -FI_ENOTCONN;

	pthread_mutex_lock(&lock);
	if (!link->stopped && !link->broken) {
		assert(link->posted_cnt < KIB_DEPTH);
		link->posted[link->posted_cnt++] = buffer;
		ret = 0;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

int kib_link_poll(struct kib_link *link, struct kib_done *done, int max)
{
	int cnt = 0;

	pthread_mutex_lock(&lock);
	while (cnt < max && link->done_cnt && !link->stopped) {
		done[cnt] = link->done[link->done_from++ % DONE_MAX];
		link->done_cnt--;
		if (done[cnt].what == KIB_SENT)
			kib_link_unclaim(link, done[cnt].cookie);
		else
			cnt++;
	}
	pthread_mutex_unlock(&lock);
	return cnt;
}

/* Payload */

int kib_window_open(struct kib_link *link, const struct kib_range *range, void *cookie,
		    struct kib_window **out, uint32_t *key, uint64_t *at)
{
	struct kib_window *window = NULL;
	int ret = -FI_EAGAIN;

	assert(range->len && range->len <= KIB_WINDOW_MAX);
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < KIB_WINDOWS && !window; i++)
		if (!link->windows[i].open)
			window = &link->windows[i];
	if (link->stopped || link->broken) {
		ret = -FI_ENOTCONN;
	} else if (window) {
		window->open = window->valid = true;
		window->range = *range;
		window->cookie = cookie;
		window->key = *key = ++key_last;
		*at = (uintptr_t)range->addr;
		*out = window;
		ret = 0;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

int kib_window_shut(struct kib_window *window, uint32_t given_up)
{
	struct kib_done done = { .what = KIB_SHUT, .cookie = window->cookie };
	int ret;

	pthread_mutex_lock(&lock);
	ret = given_up == window->key;
	window->valid = window->open = false;
	if (!ret)
		done_add(window->link, &done);
	pthread_mutex_unlock(&lock);
	return ret;
}

static int write_locked(struct kib_link *link, const struct kib_range *ranges, uint32_t cnt,
			uint64_t at, uint32_t key, void *cookie)
{
	struct kib_done done = { .what = KIB_WRITTEN, .cookie = cookie };
	struct kib_window *window;
	size_t len = 0;

	if (link->stopped || link->broken)
		return -FI_ENOTCONN;
	if (!link->other)
		return 0;
	window = window_of(link->other, key);
	for (uint32_t i = 0; i < cnt; i++)
		len += ranges[i].len;
	if (!window || at != (uintptr_t)window->range.addr || len > window->range.len) {
		link_break(link->other);
		link_break(link);
		return 0;
	}
	for (uint32_t i = 0, to = 0; i < cnt; to += (uint32_t)ranges[i++].len)
		memcpy((uint8_t *)window->range.addr + to, ranges[i].addr, ranges[i].len);
	if (mock_holds_writes) {
		assert(writes_cnt < KIB_WINDOWS);
		writes[writes_cnt].link = link;
		writes[writes_cnt++].done = done;
	} else {
		done_add(link, &done);
	}
	return 0;
}

void mock_writes_end(void)
{
	pthread_mutex_lock(&lock);
	while (writes_cnt) {
		writes_cnt--;
		done_add(writes[writes_cnt].link, &writes[writes_cnt].done);
	}
	mock_holds_writes = false;
	pthread_mutex_unlock(&lock);
}

int kib_link_write(struct kib_link *link, const struct kib_range *ranges, uint32_t cnt,
		   uint64_t at, uint32_t key, void *cookie)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = write_locked(link, ranges, cnt, at, key, cookie);
	pthread_mutex_unlock(&lock);
	return ret;
}
