/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Strangers at the port of a passive endpoint of tcp (strangers.h), which accepts, rejects or
 * leaves unanswered who asks there. Meanwhile a peer connects to it again and again, and every
 * message of theirs arrives; when the strangers have gone, so have their descriptors and their
 * memory. With a secret and TLS where the environment says so.
 *
 *	callers_test [ROUNDS]		SURVIVE_SEED, SURVIVE_ROUNDS
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include "echo.h"
#include "strangers.h"

#define ECHO_TAG   (1ull << 63) /* strangers' messages have no such bit, unless it was bent */
#define GUESTS	   16		/* strangers whose connection was accepted */
#define UNANSWERED 8
#define GROWTH_MAX (4u << 20)
#define DATA_MAX   256
#define PEER	   "the peer" /* the data of the peer's requests */
#define STRANGER   "a stranger"

enum gate { GATE_NAMED, GATE_TALKING, GATE_STRANGERS_OVER, GATE_OVER };

struct street {
	struct stage stage;
	char name[NODE_NAME];	   /* of the port */
	_Atomic uint64_t talked;   /* messages there and back */
	_Atomic uint64_t accepted; /* connections of the peer */
	uint64_t seed;
	uint32_t rounds;
};

/* What both sides of connections have */

struct side {
	struct node node; /* its ep is the connection that is talked over, or NULL */
	struct fid_eq *eq;
};

/* The last event of an event queue. */
struct news {
	uint32_t event; /* 0: an error */
	struct {
		fid_t fid;
		struct fi_info *info;
		char data[DATA_MAX];
	} cm;
};

static void side_open(struct side *side, void *stage, uint64_t flags)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_info *hints = fi_allocinfo();
	struct node *n = &side->node;

	*side = (struct side){ .node.stage = stage };
	NODE_CHECK(stage, hints);
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode = 0;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup("tcp");
	NODE_CHECK(stage,
		   !fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, flags, hints, &n->info));
	fi_freeinfo(hints);
	NODE_CHECK(stage, !fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	NODE_CHECK(stage, !fi_eq_open(n->fabric, &eq_attr, &side->eq, NULL));
	NODE_CHECK(stage, !fi_domain(n->fabric, n->info, &n->domain, NULL));
	NODE_CHECK(stage, !fi_cq_open(n->domain, &cq_attr, &n->cq, NULL));
}

/* Opens an endpoint: with a request's @info one that may accept it. */
static struct fid_ep *side_endpoint(struct side *side, struct fi_info *info)
{
	struct node *n = &side->node;
	struct fid_ep *ep;

	NODE_CHECK(n->stage, !fi_endpoint(n->domain, info, &ep, NULL));
	NODE_CHECK(n->stage, !fi_ep_bind(ep, &side->eq->fid, 0));
	NODE_CHECK(n->stage, !fi_ep_bind(ep, &n->cq->fid, FI_TRANSMIT | FI_RECV));
	NODE_CHECK(n->stage, !fi_enable(ep));
	return ep;
}

static void endpoint_close(struct side *side, struct fid_ep **ep)
{
	if (*ep)
		NODE_CHECK(side->node.stage, !fi_close(&(*ep)->fid));
	*ep = NULL;
}

/* Takes the next event. Returns false if there is none. */
static bool side_news(struct side *side, struct news *news)
{
	union {
		struct fi_eq_cm_entry cm;
		char bytes[sizeof(struct fi_eq_cm_entry) + DATA_MAX];
	} entry = { 0 };
	struct fi_eq_err_entry err = { 0 };
	ssize_t ret;

	*news = (struct news){ 0 };
	ret = fi_eq_read(side->eq, &news->event, &entry, sizeof(entry), 0);
	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		NODE_CHECK(side->node.stage, fi_eq_readerr(side->eq, &err, 0) > 0);
		news->event = 0;
		news->cm.fid = err.fid;
		return true;
	}
	NODE_CHECK(side->node.stage, ret >= (ssize_t)sizeof(entry.cm));
	news->cm.fid = entry.cm.fid;
	news->cm.info = entry.cm.info;
	memcpy(news->cm.data, entry.bytes + sizeof(entry.cm), DATA_MAX);
	return true;
}

static void side_close(struct side *side)
{
	struct fid_eq *eq = side->eq;
	struct fid_fabric *fabric = side->node.fabric;

	side->node.fabric = NULL; /* closed behind its event queue */
	if (side->node.ep)
		endpoint_close(side, &side->node.ep);
	if (side->node.mr)
		NODE_CHECK(side->node.stage, !fi_close(&side->node.mr->fid));
	NODE_CHECK(side->node.stage, !fi_close(&side->node.cq->fid));
	NODE_CHECK(side->node.stage, !fi_close(&side->node.domain->fid));
	NODE_CHECK(side->node.stage, !fi_close(&eq->fid));
	NODE_CHECK(side->node.stage, !fi_close(&fabric->fid));
	fi_freeinfo(side->node.info);
}

/* The host */

struct host {
	struct street *street;
	struct side side;
	struct fid_pep *pep;
	struct echo echo; /* with the peer, over side.node.ep */
	struct fid_ep *guests[GUESTS];
	struct fi_info *unanswered[UNANSWERED];
	uint64_t seed, requests, foreign;
	char in[64];
};

/* Takes whatever a guest sends. */
static void take_foreign(struct host *h, struct fid_ep *ep)
{
	ssize_t ret = fi_trecv(ep, h->in, sizeof(h->in), NULL, FI_ADDR_UNSPEC, 0, ~0ull, ep);

	NODE_CHECK(h->street, !ret || ret == -FI_EOPBADSTATE || ret == -FI_ENOTCONN);
}

static struct fid_ep **guest(struct host *h, const void *fid)
{
	for (int i = 0; i < GUESTS; i++)
		if (h->guests[i] && fid == &h->guests[i]->fid)
			return &h->guests[i];
	return NULL;
}

static void peer_asks(struct host *h, struct fi_info *info)
{
	endpoint_close(&h->side, &h->side.node.ep);
	echo_close(&h->echo);
	h->side.node.ep = side_endpoint(&h->side, info);
	echo_open(&h->echo, &h->side.node, FI_ADDR_NOTAVAIL, ECHO_TAG);
	echo_expect(&h->echo);
	NODE_CHECK(h->street, !fi_accept(h->side.node.ep, NULL, 0));
	atomic_fetch_add(&h->street->accepted, 1);
}

static void refuse(struct host *h, struct fi_info *info)
{
	NODE_CHECK(h->street, !fi_reject(h->pep, info->handle, NULL, 0));
	fi_freeinfo(info);
}

static void stranger_asks(struct host *h, struct fi_info *info)
{
	struct fid_ep **ep = &h->guests[seeded_below(&h->seed, GUESTS)];
	struct fi_info **place = &h->unanswered[seeded_below(&h->seed, UNANSWERED)];

	h->requests++;
	switch (seeded_below(&h->seed, 6)) {
	case 0:
		refuse(h, info);
		break;
	case 1:
		if (*place)
			refuse(h, *place);
		*place = info;
		break;
	default:
		endpoint_close(&h->side, ep);
		*ep = side_endpoint(&h->side, info);
		take_foreign(h, *ep);
		fi_accept(*ep, NULL, 0); /* may fail: who asked has gone */
		fi_freeinfo(info);
	}
}

static bool host_news(struct host *h)
{
	struct news news;
	struct fid_ep **ep;

	if (!side_news(&h->side, &news))
		return false;
	if (news.event == FI_CONNREQ) {
		if (strcmp(news.cm.data, PEER)) {
			stranger_asks(h, news.cm.info);
		} else {
			peer_asks(h, news.cm.info);
			fi_freeinfo(news.cm.info);
		}
		return true;
	}
	ep = guest(h, news.cm.fid);
	if (ep && news.event != FI_CONNECTED)
		endpoint_close(&h->side, ep);
	NODE_CHECK(h->street, ep || news.event); /* nothing of the peer's fails */
	return true;
}

static bool host_turn(struct host *h)
{
	ssize_t turn = node_turn(&h->side.node);
	struct fid_ep **ep;

	if (turn == -FI_EAGAIN)
		return host_news(h);
	if (echo_took(&h->echo, turn))
		return true;
	h->foreign++;
	if (turn == 1) {
		ep = guest(h, h->side.node.entry.op_context);
		if (ep)
			take_foreign(h, *ep);
	}
	return true;
}

static void host_begin(struct host *h, void *region)
{
	struct node *n = &h->side.node;
	size_t len = NODE_NAME;

	side_open(&h->side, h->street, FI_SOURCE);
	node_expose(n, region, STRANGERS_SPAN, STRANGERS_KEY);
	NODE_CHECK(h->street, !fi_passive_ep(n->fabric, n->info, &h->pep, NULL));
	NODE_CHECK(h->street, !fi_pep_bind(h->pep, &h->side.eq->fid, 0));
	NODE_CHECK(h->street, !fi_listen(h->pep));
	NODE_CHECK(h->street, !fi_getname(&h->pep->fid, h->street->name, &len));
	stage_pass(h->street, GATE_NAMED);
}

/* Refuses whom it has left waiting. Returns true if no guest is left. */
static bool strangers_gone(struct host *h)
{
	for (int i = 0; i < UNANSWERED; i++) {
		if (h->unanswered[i])
			refuse(h, h->unanswered[i]);
		h->unanswered[i] = NULL;
	}
	for (int i = 0; i < GUESTS; i++)
		if (h->guests[i])
			return false;
	return true;
}

static void host_role(void *stage, int rank)
{
	struct street *s = stage;
	struct host h = { .street = s, .seed = s->seed + 1 };
	void *region = calloc(1, STRANGERS_SPAN);
	int descriptors;
	size_t heap;

	NODE_CHECK(s, region);
	host_begin(&h, region);
	NODE_UNTIL(s, stage_passed(s, GATE_TALKING), host_turn(&h));
	descriptors = node_descriptors();
	heap = node_heap();
	while (!stage_passed(s, GATE_STRANGERS_OVER))
		if (!host_turn(&h))
			node_pause(s);
	NODE_UNTIL(s, strangers_gone(&h), host_turn(&h));
	NODE_UNTIL(s, node_descriptors() <= descriptors, host_turn(&h));
	printf("%llu requests of strangers, %llu messages and failures of theirs; %d descriptors; "
	       "%zu bytes allocated before, %zu after\n",
	       (unsigned long long)h.requests, (unsigned long long)h.foreign,
	       node_descriptors(), heap, node_heap());
	NODE_UNTIL(s, NODE_SANITIZED || node_heap() < heap + GROWTH_MAX, host_turn(&h));
	stage_pass(s, GATE_OVER);
	NODE_UNTIL(s, stage_passed(s, GATE_OVER) == 2, host_turn(&h));
	/* A request that was read late is answered, too. */
	NODE_UNTIL(s, strangers_gone(&h), host_turn(&h));
	endpoint_close(&h.side, &h.side.node.ep);
	NODE_CHECK(s, !fi_close(&h.pep->fid));
	side_close(&h.side);
	echo_close(&h.echo);
	free(region);
}

/* Who calls: the peer, and strangers */

/* Begins to connect to @at, with a new endpoint. */
static void call(struct side *side, const void *at, const char *data)
{
	struct node *n = &side->node;

	endpoint_close(side, &n->ep);
	n->ep = n->rma = side_endpoint(side, n->info);
	NODE_CHECK(n->stage, !fi_connect(n->ep, at, data, strlen(data) + 1));
}

static bool connected(struct side *side)
{
	struct news news;

	fi_cq_read(side->node.cq, NULL, 0);
	if (!side_news(side, &news))
		return false;
	NODE_CHECK(side->node.stage, news.event == FI_CONNECTED);
	return true;
}

static void talk(struct street *s, struct side *side)
{
	struct echo e;

	echo_open(&e, &side->node, FI_ADDR_NOTAVAIL, ECHO_TAG);
	for (int i = 0; echo_sizes[i]; i++) {
		echo_ask(&e, echo_sizes[i]);
		NODE_UNTIL(s, echo_over(&e), echo_took(&e, node_turn(&side->node)));
		NODE_CHECK(s, !e.err);
		atomic_fetch_add(&s->talked, 1);
	}
	echo_close(&e);
}

static void peer_role(void *stage, int rank)
{
	struct street *s = stage;
	struct side side;
	bool up;

	side_open(&side, s, 0);
	NODE_UNTIL(s, stage_passed(s, GATE_NAMED), false);
	while (!stage_passed(s, GATE_OVER)) {
		call(&side, s->name, PEER);
		up = false;
		NODE_UNTIL(s, up, (up = connected(&side)));
		talk(s, &side);
		if (!stage_passed(s, GATE_TALKING))
			stage_pass(s, GATE_TALKING);
	}
	stage_pass(s, GATE_OVER);
	side_close(&side);
}

/* The strangers' own endpoint, and its events, in a place that stranger_bent() finds. */
static struct side caller;

static bool caller_look(struct strangers *s)
{
	struct news news;

	return strangers_look(s) || side_news(&caller, &news);
}

/* Calls, and sends what it may until its connection was bent. */
static void stranger_bent(struct strangers *s)
{
	uint64_t before = strangers_deeds(s);

	if (caller.eq)
		side_close(&caller);
	side_open(&caller, s->stage, 0);
	call(&caller, &s->relay.here, STRANGER);
	s->node = caller.node;
	s->under_way = 0;
	strangers_bend(s, before, caller_look);
}

static void strangers_role(void *stage, int rank)
{
	struct street *street = stage;
	struct strangers s;

	NODE_UNTIL(street, stage_passed(street, GATE_TALKING), (usleep(1000), false));
	strangers_open(&s, street, street->name, street->seed);
	strangers_come(&s, street->rounds, stranger_bent);
	if (caller.eq)
		side_close(&caller);
	strangers_close(&s, street->rounds);
	stage_pass(street, GATE_STRANGERS_OVER);
}

int main(int argc, char **argv)
{
	static void (*const roles[])(void *, int) = { host_role, peer_role, strangers_role };
	struct street *s = stage_open(sizeof(*s));
	bool ok;

	s->rounds = strangers_rounds(argc, argv);
	s->seed = node_seed();
	ok = strangers_play(s, roles);
	printf("%llu connections of the peer, %llu messages there and back meanwhile\n",
	       (unsigned long long)s->accepted, (unsigned long long)s->talked);
	return !ok;
}
