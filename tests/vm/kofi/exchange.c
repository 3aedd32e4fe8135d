/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What two ends do with each other (exchange.h). */
#include "exchange.h"
#include "place.h"

#define LONG	(4u << 20)
#define TAG	0x77u
#define WAIT_MS 60000u
#define KEY	7u

struct side {
	const struct exchange_how *how;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t other;
	/* LONG bytes of messages, and LONG that the other side accesses */
	uint8_t *bytes;
};

/* The first message: who calls. */
struct caller {
	uint32_t name_len;
	uint8_t name[60];
};

#define TRY(call)                                                             \
	do {                                                                  \
		long try_ret = (long)(call);                                  \
		if (try_ret < 0) {                                            \
			place_say("%d: %s: %ld\n", __LINE__, #call, try_ret); \
			return (int)try_ret;                                  \
		}                                                             \
	} while (0)

/* Calls that are refused for now are made again. */
#define AGAIN(s, call)                                                                     \
	do {                                                                               \
		uint64_t again_end = place_now_ms() + WAIT_MS;                             \
		ssize_t again_ret;                                                         \
		while ((again_ret = (call)) == -FI_EAGAIN && place_now_ms() < again_end) { \
			fi_cq_read((s)->cq, NULL, 0);                                      \
			place_yield();                                                     \
		}                                                                          \
		TRY(again_ret);                                                            \
	} while (0)

static void fill(uint8_t *bytes, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(seed + i * 7 + (i >> 12));
}

static int holds(const uint8_t *bytes, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != (uint8_t)(seed + i * 7 + (i >> 12)))
			return -FI_EIO;
	return 0;
}

static int completion_error(struct side *s)
{
	struct fi_cq_err_entry error = { .err_data_size = 0 };
	ssize_t n = fi_cq_readerr(s->cq, &error, 0);

	return n == 1 ? -error.err : -FI_EOTHER;
}

/* Sleeps until there is a completion. Returns 0 or its error. */
static int completion(struct side *s)
{
	uint64_t end = place_now_ms() + WAIT_MS;
	struct fi_cq_tagged_entry entry;
	ssize_t n = -FI_EAGAIN;

	while ((n == -FI_EAGAIN || n == -FI_EINTR) && place_now_ms() < end)
		n = fi_cq_sread(s->cq, &entry, 1, NULL, 5000);
	if (n == -FI_EAVAIL)
		return completion_error(s);
	return n == 1 ? 0 : n < 0 ? (int)n : -FI_EOTHER;
}

static int give(struct side *s, size_t len, uint8_t seed)
{
	fill(s->bytes, len, seed);
	AGAIN(s, fi_tsend(s->ep, s->bytes, len, NULL, s->other, TAG, NULL));
	return completion(s);
}

static int take(struct side *s, size_t len, uint8_t seed)
{
	memset(s->bytes, 0, len);
	AGAIN(s, fi_trecv(s->ep, s->bytes, len, NULL, s->other, TAG, 0, NULL));
	TRY(completion(s));
	return holds(s->bytes, len, seed);
}

static int messages(struct side *s, bool first)
{
	static const size_t lengths[] = { 1, 8, 4096, 40000, 64u << 10, 256u << 10, LONG };
	size_t i, at;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (at = 0; at < 2; at++)
			TRY(first == !at ? give(s, lengths[i], (uint8_t)(i + at))
					 : take(s, lengths[i], (uint8_t)(i + at)));
	return 0;
}

/* Completes when the bytes are there: what comes next may go another way, and overtake them. */
static ssize_t write_all(struct side *s)
{
	struct iovec iov = { .iov_base = PLACE_BASE(s->bytes), .iov_len = LONG };
	struct fi_rma_iov rma = { .len = LONG, .key = KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = s->other,
				  .rma_iov = &rma,
				  .rma_iov_count = 1 };

	return fi_writemsg(s->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

/*
 * One side accesses what the other one has registered, which has nothing to do but make
 * progress.
 */
static int accesses(struct side *s, bool first)
{
	if (!first) {
		TRY(take(s, 8, 99));
		return holds(s->bytes + LONG, LONG, 5);
	}
	fill(s->bytes, LONG, 5);
	AGAIN(s, write_all(s));
	TRY(completion(s));
	memset(s->bytes, 0, LONG);
	AGAIN(s, fi_read(s->ep, s->bytes, LONG, NULL, s->other, 0, KEY, NULL));
	TRY(completion(s));
	TRY(holds(s->bytes, LONG, 5));
	return give(s, 8, 99);
}

/*
 * Waits for an event. Returns 0, or the error of the one that came; @data: its first byte of
 * data.
 */
static int event(struct side *s, uint32_t *what, struct fi_info **info, uint8_t *data)
{
	uint64_t end = place_now_ms() + WAIT_MS;
	struct fi_eq_err_entry error = { .err_data = data, .err_data_size = 1 };
	union {
		struct fi_eq_cm_entry cm;
		uint8_t bytes[sizeof(struct fi_eq_cm_entry) + 16];
	} room = { .bytes = { 0 } };
	ssize_t n = -FI_EAGAIN;

	while ((n == -FI_EAGAIN || n == -FI_EINTR) && place_now_ms() < end)
		n = fi_eq_sread(s->eq, what, &room, sizeof(room), 5000, 0);
	if (n == -FI_EAVAIL)
		return fi_eq_readerr(s->eq, &error, 0) > 0 ? -error.err : -FI_EOTHER;
	if (n < 0)
		return (int)n;
	*data = room.cm.fid && n > (ssize_t)sizeof(room.cm) ? room.cm.data[0] : 0;
	if (info)
		*info = room.cm.info;
	return 0;
}

static int expect(struct side *s, uint32_t wanted, struct fi_info **info)
{
	uint32_t what = 0;
	uint8_t data;

	TRY(event(s, &what, info, &data));
	if (what != wanted)
		place_say("event %u, and not %u\n", what, wanted);
	return what == wanted ? 0 : -FI_EOTHER;
}

/* The end of a side that outlives the other one: what is sent fails before long. */
static int outlive(struct side *s)
{
	uint64_t end = place_now_ms() + WAIT_MS;
	int ret = 0;

	place_say("the other end's death is waited for\n");
	if (s->how->connected) {
		/* Some find a peer that is gone by what is sent to it. */
		fi_tsend(s->ep, s->bytes, 8, NULL, s->other, TAG, NULL);
		return expect(s, FI_SHUTDOWN, NULL);
	}
	while (!ret && place_now_ms() < end) {
		AGAIN(s, fi_tsend(s->ep, s->bytes, 8, NULL, s->other, TAG, NULL));
		ret = completion(s);
	}
	place_say("the other end has died: %d\n", ret);
	return ret == -FI_ECONNRESET || ret == -FI_ECONNREFUSED || ret == -FI_ECANCELED ||
			       ret == -FI_ETIMEDOUT || ret == -FI_EHOSTUNREACH
		       ? 0
		       : -FI_EOTHER;
}

static int talk(struct side *s, bool first)
{
	TRY(messages(s, first));
	TRY(accesses(s, first));
	TRY(accesses(s, !first));
	if (s->how->end == EXCHANGE_DIES)
		return place_die();
	return s->how->end == EXCHANGE_OUTLIVES ? outlive(s) : 0;
}

/* ---- endpoints ---- */

static int side_info(struct side *s)
{
	struct fi_info *hints = fi_allocinfo();
	int ret = -FI_ENOMEM;

	if (!hints)
		return ret;
	hints->ep_attr->type = s->how->connected ? FI_EP_MSG : FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	hints->domain_attr->mr_mode = FI_MR_LOCAL; /* where it wants that */
	hints->fabric_attr->prov_name = place_provider;
	ret = fi_getinfo(FI_VERSION(1, 18), s->how->host, s->how->port,
			 s->how->listens ? FI_SOURCE : 0, hints, &s->info);
	hints->fabric_attr->prov_name = NULL; /* not theirs to free */
	fi_freeinfo(hints);
	return ret;
}

static int side_open(struct side *s)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };

	s->bytes = place_alloc(2 * (size_t)LONG);
	if (!s->bytes)
		return -FI_ENOMEM;
	TRY(side_info(s));
	TRY(fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	return s->how->connected ? fi_eq_open(s->fabric, &eq, &s->eq, NULL) : 0;
}

/* Opens an endpoint, and what it needs. */
static int side_enable(struct side *s, struct fi_info *info)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	TRY(fi_domain(s->fabric, info, &s->domain, NULL));
	TRY(fi_cq_open(s->domain, &cq, &s->cq, NULL));
	TRY(fi_endpoint(s->domain, info, &s->ep, NULL));
	TRY(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	if (s->how->connected) {
		TRY(fi_ep_bind(s->ep, &s->eq->fid, 0));
	} else {
		TRY(fi_av_open(s->domain, &av, &s->av, NULL));
		TRY(fi_ep_bind(s->ep, &s->av->fid, 0));
	}
	TRY(fi_enable(s->ep));
	return fi_mr_reg(s->domain, s->bytes + LONG, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			 KEY, 0, &s->mr, NULL);
}

#define CLOSE(object)                             \
	do {                                      \
		if (object)                       \
			fi_close(&(object)->fid); \
		(object) = NULL;                  \
	} while (0)

static void side_disable(struct side *s)
{
	CLOSE(s->mr);
	CLOSE(s->ep);
	CLOSE(s->av);
	CLOSE(s->cq);
	CLOSE(s->domain);
}

static int side_close(struct side *s, int ret)
{
	side_disable(s);
	CLOSE(s->pep);
	CLOSE(s->eq);
	if (s->fabric && fi_close(&s->fabric->fid) && !ret)
		ret = -FI_EBUSY;
	fi_freeinfo(s->info);
	place_free(s->bytes);
	return ret;
}

/* ---- FI_EP_RDM ---- */

static int is_strange(int ret)
{
	place_say("nobody is let in: %d\n", ret);
	return ret == -FI_EKEYREJECTED ? 0 : -FI_EOTHER;
}

/* Who listens may not do so yet. */
static int greet(struct side *s)
{
	uint64_t end = place_now_ms() + WAIT_MS;
	struct caller caller = { .name_len = 0 };
	size_t len = sizeof(caller.name);
	int ret;

	TRY(fi_getname(&s->ep->fid, caller.name, &len));
	caller.name_len = (uint32_t)len;
	memcpy(s->bytes, &caller, sizeof(caller));
	do {
		AGAIN(s, fi_send(s->ep, s->bytes, sizeof(caller), NULL, s->other, NULL));
		ret = completion(s);
	} while (ret == -FI_ECONNREFUSED && place_now_ms() < end);
	return ret;
}

static int call_rdm(struct side *s)
{
	int ret;

	TRY(side_enable(s, s->info));
	if (fi_av_insert(s->av, s->info->dest_addr, 1, &s->other, 0, NULL) != 1)
		return -FI_EOTHER;
	ret = greet(s);
	if (s->how->end == EXCHANGE_IS_STRANGE)
		return is_strange(ret);
	TRY(ret);
	return talk(s, true);
}

static int listen_rdm(struct side *s)
{
	struct caller caller;

	TRY(side_enable(s, s->info));
	AGAIN(s, fi_recv(s->ep, s->bytes, sizeof(caller), NULL, FI_ADDR_UNSPEC, NULL));
	TRY(completion(s));
	memcpy(&caller, s->bytes, sizeof(caller));
	if (fi_av_insert(s->av, caller.name, 1, &s->other, 0, NULL) != 1)
		return -FI_EOTHER;
	return talk(s, false);
}

/* ---- FI_EP_MSG ---- */

static int listen_msg(struct side *s)
{
	struct fi_info *request = NULL;
	int ret;

	TRY(fi_passive_ep(s->fabric, s->info, &s->pep, NULL));
	TRY(fi_pep_bind(s->pep, &s->eq->fid, 0));
	TRY(fi_listen(s->pep));
	TRY(expect(s, FI_CONNREQ, &request));
	TRY(fi_reject(s->pep, request->handle, "N", 1));
	fi_freeinfo(request);
	TRY(expect(s, FI_CONNREQ, &request));
	ret = side_enable(s, request);
	fi_freeinfo(request);
	TRY(ret);
	TRY(fi_accept(s->ep, "Y", 1));
	TRY(expect(s, FI_CONNECTED, NULL));
	TRY(talk(s, false));
	return s->how->end == EXCHANGE_CLOSES ? expect(s, FI_SHUTDOWN, NULL) : 0;
}

/* Calls once. Returns 0 when it is connected, or the error; @data: of the answer. */
static int call_once(struct side *s, uint8_t *data)
{
	uint32_t what = 0;
	int ret;

	*data = 0;
	TRY(side_enable(s, s->info));
	TRY(fi_connect(s->ep, s->info->dest_addr, "C", 1));
	ret = event(s, &what, NULL, data);
	if (ret)
		side_disable(s);
	return !ret && what != FI_CONNECTED ? -FI_EOTHER : ret;
}

static int call_msg(struct side *s)
{
	uint64_t end = place_now_ms() + WAIT_MS;
	uint8_t data = 0;
	int ret;

	/* Until somebody listens, who rejects the first call */
	do
		ret = call_once(s, &data);
	while (ret == -FI_ECONNREFUSED && !data && place_now_ms() < end);
	if (s->how->end == EXCHANGE_IS_STRANGE)
		return is_strange(ret);
	if (ret != -FI_ECONNREFUSED || data != 'N') {
		place_say("not rejected: %d, %u\n", ret, data);
		return -FI_EOTHER;
	}
	TRY(call_once(s, &data));
	if (data != 'Y')
		return -FI_EOTHER;
	TRY(talk(s, true));
	return s->how->end == EXCHANGE_CLOSES ? fi_shutdown(s->ep, 0) : 0;
}

int exchange_run(const struct exchange_how *how)
{
	struct side s = { .how = how };
	int ret = side_open(&s);

	if (!ret && how->connected)
		ret = how->listens ? listen_msg(&s) : call_msg(&s);
	else if (!ret)
		ret = how->listens ? listen_rdm(&s) : call_rdm(&s);
	return side_close(&s, ret);
}

int exchange_read(struct exchange_how *how, const char *role, const char *type, const char *end)
{
	static const char *const ends[] = { "closes", "dies", "outlives", "strange" };
	size_t i;

	how->listens = !strcmp(role, "listen");
	how->connected = !strcmp(type, "msg");
	if ((!how->listens && strcmp(role, "call")) || (!how->connected && strcmp(type, "rdm")))
		return -FI_EINVAL;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!strcmp(end, ends[i])) {
			how->end = (enum exchange_end)i;
			return 0;
		}
	return -FI_EINVAL;
}
