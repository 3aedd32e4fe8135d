/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The thread that serves peers. Opened and closed by btl/transport.c. */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "atomic_apply.h"
#include "client.h"
#include "clock.h"
#include "mem.h"
#include "service.h"

/* A peer's operation takes some of these, since it has to be noticed and its answers too. */
#define PERIOD_NS 200000

/* Rounds after the last request in which the next one is looked for at once. */
#define SPINS 64u

/* Rounds to one look for answers that nobody waits for any more. */
#define LATE_ROUNDS 4096u

/* Clients whose addresses are known, and the places in which one is looked for. */
#define CLIENTS	      4096u
#define CLIENT_PLACES 16u

/* struct client - a context of a peer that has asked; @id 0: none */
struct client {
	uint64_t id;
	fi_addr_t addr;
};

/*
 * struct server - where peers ask for what a device does not have
 * @answers: to be sent, where the device takes no more for now: receives that hold one
 * @rounds:  since the last look for late answers
 */
struct server {
	struct btl_lane lane;
	struct btl_tag *answers;
	uint32_t rounds;
	struct client clients[CLIENTS];
};

/* struct btl_service - @servers: by device; NULL where it needs none */
struct btl_service {
	struct weft_btl *btl;
	struct server *servers[WEFT_BTL_DEVICES_MAX];
	pthread_t thread;
	bool is_started;
	_Atomic bool stop;
};

/* An access of a peer to the program's memory, which can't be closed meanwhile. */
static int access_locked(struct weft_btl *btl, const struct btl_request *r, unsigned char *out,
			 uint64_t *old)
{
	const struct btl_handle *mem = btl_mem_find_locked(btl, r->mem);
	uint64_t access = r->kind == BTL_REQUEST_GET ? FI_REMOTE_READ : FI_REMOTE_WRITE;
	void *at = (void *)(uintptr_t)r->addr;
	uint64_t was;
	bool reads;

	if (!mem)
		return -FI_EKEYREJECTED;
	if (!(mem->access & access))
		return -FI_EACCES;
	if (!btl_handle_covers(mem, r->addr, r->len))
		return -FI_EFAULT;
	switch (r->kind) {
	case BTL_REQUEST_PUT:
		memcpy(at, r->data, r->len);
		return 0;
	case BTL_REQUEST_GET:
		memcpy(out, at, r->len);
		return 0;
	default:
		/* a comparison tells what is there too */
		reads = mem->access & FI_REMOTE_READ;
		if (r->fi_op == FI_CSWAP && !reads)
			return -FI_EACCES;
		was = btl_atomic_apply(at, (enum fi_op)r->fi_op, (enum fi_datatype)r->type,
				       r->operand, r->compare);
		*old = reads ? was : 0;
		return 0;
	}
}

static bool is_sound(const struct btl_request *r)
{
	uint32_t len;

	if (r->kind != BTL_REQUEST_ATOMIC)
		return r->len <= BTL_REQUEST_DATA_MAX;
	len = btl_type_len((enum fi_datatype)r->type);
	return len && r->len == len && !(r->addr % len) &&
	       btl_atomic_has((enum fi_op)r->fi_op, (enum fi_datatype)r->type);
}

/* Carries a request out. The answer takes the place of the request in @bytes. Returns its bytes. */
static size_t answer(struct weft_btl *btl, const struct btl_request *request,
		     unsigned char *bytes)
{
	struct btl_answer a = { .number = request->number, .status = -FI_EINVAL };
	size_t len = request->kind == BTL_REQUEST_GET ? request->len : 0;

	if (is_sound(request)) {
		pthread_mutex_lock(&btl->lock);
		a.status = access_locked(btl, request, bytes + BTL_ANSWER_HEAD, &a.old);
		pthread_mutex_unlock(&btl->lock);
	}
	return btl_answer_write(&a, bytes) + (a.status ? 0 : len);
}

/*
 * Finds a client's place: where it is known, else a free one, else the last of those that it may
 * have, whose client is forgotten.
 */
static struct client *client_place(struct server *server, uint64_t id)
{
	struct client *client = NULL, *free_one = NULL;

	for (uint32_t i = 0; i < CLIENT_PLACES; i++) {
		client = &server->clients[(id + i) % CLIENTS];
		if (client->id == id)
			return client;
		if (!client->id && !free_one)
			free_one = client;
	}
	return free_one ? free_one : client;
}

/* Finds who asks. Returns its address, or FI_ADDR_NOTAVAIL. */
static fi_addr_t client_find(struct server *server, const struct btl_device *device,
			     const struct btl_request *r)
{
	struct client *client = client_place(server, r->client);
	fi_addr_t addr;

	if (client->id == r->client && r->client)
		return client->addr;
	/* an answer to the one that is forgotten may be under way */
	if (!r->client || !btl_device_takes(device, r->from, r->from_len) ||
	    (client->id && server->answers))
		return FI_ADDR_NOTAVAIL;
	if (fi_av_insert(server->lane.av, r->from, 1, &addr, 0, NULL) != 1)
		return FI_ADDR_NOTAVAIL;
	if (client->id)
		fi_av_remove(server->lane.av, &client->addr, 1, 0);
	*client = (struct client){ r->client, addr };
	return addr;
}

/* A receive that has held a request, and perhaps its answer, is to receive again. */
static void receive_again(struct server *server, struct btl_tag *tag)
{
	tag->kind = BTL_TAG_RECEIVE;
	btl_receive_again(&server->lane, tag);
}

/* Sends an answer, or drops it where that can't be done. Returns false: the device takes it later. */
static bool answer_send(struct server *server, struct btl_tag *tag)
{
	const struct btl_receives *receives = server->lane.receives;
	const struct btl_receive *receive = (struct btl_receive *)tag;
	void *desc = receives->mr ? fi_mr_desc(receives->mr) : NULL;
	ssize_t ret = fi_senddata(server->lane.ep, receive->bytes, tag->len, desc,
				  BTL_ID_ANSWER, tag->addr, tag);

	if (ret && ret != -FI_EAGAIN)
		receive_again(server, tag);
	return ret != -FI_EAGAIN;
}

/* A client that is not reached holds up no others. */
static void answers_send(struct server *server)
{
	struct btl_tag **at = &server->answers, *tag, *next;

	while ((tag = *at)) {
		next = tag->next;
		if (answer_send(server, tag))
			*at = next;
		else
			at = &tag->next;
	}
}

static bool is_late(const struct btl_tag *tag, uint64_t now)
{
	return now - ((const struct btl_receive *)tag)->since_ns > BTL_ANSWER_NS;
}

/* Gives up answers that clients do not wait for any more: else those to clients that are gone would be all there are. */
static void late_give_up(struct server *server, uint64_t now)
{
	struct btl_tag **at = &server->answers, *tag;

	while ((tag = *at)) {
		if (!is_late(tag, now)) {
			at = &tag->next;
			continue;
		}
		*at = tag->next;
		receive_again(server, tag);
	}
	/* those that the device has it may give back */
	for (uint32_t i = 0; i < BTL_RECEIVES; i++) {
		tag = &server->lane.receives->buffers[i].tag;
		if (tag->kind == BTL_TAG_ANSWER && is_late(tag, now))
			fi_cancel(&server->lane.ep->fid, tag);
	}
}

static void request_arrived(struct weft_btl *btl, struct server *server, uint32_t device,
			    struct btl_tag *tag, size_t len)
{
	struct btl_receive *receive = (struct btl_receive *)tag;
	struct btl_request request;

	if (!btl_request_read(receive->bytes, len, &request)) {
		btl_receive_again(&server->lane, tag);
		return;
	}
	tag->addr = client_find(server, &btl->devices[device], &request);
	if (tag->addr == FI_ADDR_NOTAVAIL) {
		btl_receive_again(&server->lane, tag);
		return;
	}
	tag->len = answer(btl, &request, receive->bytes);
	tag->kind = BTL_TAG_ANSWER;
	receive->since_ns = clock_ns();
	if (answer_send(server, tag))
		return;
	tag->next = server->answers;
	server->answers = tag;
}

/* A receive has a request, or its answer was sent. */
static void take(struct weft_btl *btl, struct server *server, uint32_t device,
		 const struct fi_cq_data_entry *entry)
{
	struct btl_tag *tag = entry->op_context;

	if (tag->kind == BTL_TAG_RECEIVE && entry->data == BTL_ID_REQUEST) {
		request_arrived(btl, server, device, tag, entry->len);
		return;
	}
	receive_again(server, tag);
}

static size_t serve_requests(struct weft_btl *btl, struct server *server, uint32_t device)
{
	struct fi_cq_data_entry entries[BTL_RECEIVES];
	struct fi_cq_err_entry err = { 0 };
	ssize_t n = fi_cq_read(server->lane.cq, entries, BTL_RECEIVES);

	if (n == -FI_EAVAIL && fi_cq_readerr(server->lane.cq, &err, 0) > 0 && err.op_context)
		receive_again(server, err.op_context);
	for (ssize_t i = 0; i < n; i++)
		take(btl, server, device, &entries[i]);
	answers_send(server);
	if (!(++server->rounds % LATE_ROUNDS))
		late_give_up(server, clock_ns());
	btl_receives_post(&server->lane);
	return n > 0 ? (size_t)n : 0;
}

/* One round. Returns whether anybody has asked. */
static bool serve(struct btl_service *service, bool program_is_idle)
{
	struct weft_btl *btl = service->btl;
	size_t served = 0;

	for (uint32_t i = 0; i < btl->device_cnt; i++) {
		if (service->servers[i])
			served += serve_requests(btl, service->servers[i], i);
		if (!btl->devices[i].serves && program_is_idle)
			fi_cq_read(btl->home->lanes[i].cq, NULL, 0);
	}
	return served;
}

static bool is_stopped(const struct btl_service *service)
{
	return atomic_load_explicit(&service->stop, memory_order_relaxed);
}

static void *service_run(void *arg)
{
	const struct timespec period = { .tv_nsec = PERIOD_NS };
	struct btl_service *service = arg;
	uint32_t seen = 0, rounds, idle;

	while (!is_stopped(service)) {
		rounds = atomic_load_explicit(&service->btl->home->rounds, memory_order_relaxed);
		/* where they are the same the program makes no progress itself */
		for (idle = 0; idle < SPINS && !is_stopped(service);) {
			idle = serve(service, rounds == seen) ? 0 : idle + 1;
			if (!btl_needs_server(service->btl))
				break;
			sched_yield();
		}
		seen = rounds;
		nanosleep(&period, NULL);
	}
	return NULL;
}

static bool is_needed(const struct weft_btl *btl)
{
	for (uint32_t i = 0; i < btl->device_cnt; i++)
		if (!btl->devices[i].serves)
			return true;
	return btl_needs_server(btl);
}

static int server_open(struct weft_btl *btl, uint32_t device, struct server **out)
{
	const struct btl_device *dev = &btl->devices[device];
	struct server *server = calloc(1, sizeof(*server));
	int ret;

	if (!server)
		return -FI_ENOMEM;
	ret = btl_lane_open(dev, dev->later_info, &server->lane);
	if (!ret)
		ret = btl_receives_open(btl, dev, &server->lane);
	if (ret) {
		btl_lane_close(&server->lane);
		free(server);
		return ret;
	}
	*out = server;
	return 0;
}

int btl_service_open(struct weft_btl *btl)
{
	struct btl_service *service;
	int ret = 0;

	if (!is_needed(btl))
		return 0;
	service = calloc(1, sizeof(*service));
	if (!service)
		return -FI_ENOMEM;
	service->btl = btl;
	btl->service = service;
	for (uint32_t i = 0; !ret && i < btl->device_cnt; i++)
		if (btl_device_needs_server(&btl->devices[i]))
			ret = server_open(btl, i, &service->servers[i]);
	if (ret)
		btl_service_close(btl);
	return ret;
}

int btl_service_name(struct weft_btl *btl, uint32_t device, void *addr, size_t *len)
{
	struct server *server = btl->service ? btl->service->servers[device] : NULL;

	if (server)
		return fi_getname(&server->lane.ep->fid, addr, len);
	*len = 0;
	return 0;
}

int btl_service_start(struct weft_btl *btl)
{
	struct btl_service *service = btl->service;
	sigset_t all, before;
	int err;

	if (!service)
		return 0;
	/* signals are the program's threads' */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&service->thread, NULL, service_run, service);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	service->is_started = !err;
	return err ? -FI_EAGAIN : 0;
}

void btl_service_close(struct weft_btl *btl)
{
	struct btl_service *service = btl->service;

	if (!service)
		return;
	atomic_store_explicit(&service->stop, true, memory_order_relaxed);
	if (service->is_started)
		pthread_join(service->thread, NULL);
	for (uint32_t i = 0; i < btl->device_cnt; i++) {
		if (service->servers[i])
			btl_lane_close(&service->servers[i]->lane);
		free(service->servers[i]);
	}
	free(service);
	btl->service = NULL;
}
