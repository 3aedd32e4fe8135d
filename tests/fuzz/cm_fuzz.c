/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: connections of MSG endpoints over tcp, as a program makes them. The peer, which is
 * the target, asks for connections at the port of a passive endpoint and answers those of endpoints
 * that connect to it; what it says is that of an honest peer, or bent, and its data may claim any
 * length. The program accepts, rejects, leaves unanswered, shuts down, transfers and closes at any
 * time.
 *
 * Checked: nothing crashes; an event is of an object that is open, and has no more data than its
 * length says and than there may be; a request is answered once; no descriptor is left behind.
 */
#include <dirent.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "fuzz.h"
#include "input.h"
#include "tcp_wire.h"

#define PEERS	  6	/* sockets of the peer */
#define EPS	  6	/* endpoints of the program */
#define REQUESTS  8	/* that the program has not answered */
#define CHECK_RUN 1024u /* runs between counts of the descriptors */
#define FD_SPARE  64

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_pep *pep;
	struct sockaddr_in name, target;
	int listener; /* the peer's, at @target */
	int peers[PEERS];
	struct fid_ep *eps[EPS];
	struct fi_info *requests[REQUESTS];
	char buf[64];
	unsigned int runs;
	int fd_cnt;
} f;

static int fd_cnt(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int cnt = 0;

	MUST(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

static struct fi_info *offer(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	MUST(hints);
	hints->fabric_attr->prov_name = strdup("tcp");
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	MUST(!fi_getinfo(FI_VERSION(1, 18), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void open_peer(void)
{
	socklen_t len = sizeof(f.target);

	f.target = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	f.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	MUST(f.listener >= 0 && !bind(f.listener, (struct sockaddr *)&f.target, len));
	MUST(!listen(f.listener, 64));
	MUST(!getsockname(f.listener, (struct sockaddr *)&f.target, &len));
}

static void open_program(void)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE };
	size_t len = sizeof(f.name);

	f.info = offer();
	MUST(!fi_fabric(f.info->fabric_attr, &f.fabric, NULL));
	MUST(!fi_eq_open(f.fabric, &eq_attr, &f.eq, NULL));
	MUST(!fi_domain(f.fabric, f.info, &f.domain, NULL));
	MUST(!fi_cq_open(f.domain, &cq_attr, &f.cq, NULL));
	MUST(!fi_passive_ep(f.fabric, f.info, &f.pep, NULL));
	MUST(!fi_pep_bind(f.pep, &f.eq->fid, 0) && !fi_listen(f.pep));
	MUST(!fi_getname(&f.pep->fid, &f.name, &len));
	open_peer();
	memset(f.peers, -1, sizeof(f.peers));
}

/* The peer */

static void peer_keep(int *slot, int fd)
{
	struct linger reset = { .l_onoff = 1 };

	if (fd >= 0) /* its port is free at once */
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	*slot = fd;
}

static void peer_call(int *slot)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	MUST(fd >= 0 && !connect(fd, (struct sockaddr *)&f.name, sizeof(f.name)));
	peer_keep(slot, fd);
}

static struct hello hello(void)
{
	return (struct hello){ .magic = HELLO_MAGIC,
			       .version = HELLO_VERSION,
			       .kind = HELLO_MSG,
			       .epoch = 999,
			       .window = 1 << 16,
			       .addr = { .version = ADDR_VERSION,
					 .kind = ADDR_NONCE,
					 .nonce = { 1 },
					 .family = ADDR_FAMILY_INET,
					 .port = ntohs(f.target.sin_port),
					 .ip = { 127, 0, 0, 1 } } };
}

static void bend(void *bytes, size_t len)
{
	for (int i = 1 + input_byte() % 3; i; i--) {
		uint32_t at = input_byte() | (uint32_t)input_byte() << 8;

		((uint8_t *)bytes)[at % len] = input_byte();
	}
}

static void say(int fd, const void *bytes, size_t len)
{
	(void)!send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* With @how as in the preamble and in the answer: data, of any length; another kind; bent; cut. */
static size_t vary(struct hello *h, void *whole, size_t len, uint8_t how)
{
	if (how & 1)
		h->data.len = input_byte();
	if (how & 2)
		h->data.len = input_word();
	if (how & 4)
		h->kind = input_byte();
	if (how & 8)
		bend(whole, len);
	return how & 16 ? input_word() % (len + 1) : len;
}

static void peer_asks(int fd)
{
	struct tcp_preamble p = { .magic = TCP_MAGIC,
				  .fresh = 1,
				  .cookie = { 1 },
				  .version = TCP_VERSION,
				  .lane = TCP_LANE_CONTROL,
				  .hello = hello() };

	say(fd, &p, vary(&p.hello, &p, sizeof(p), input_byte()));
}

static void peer_answers(int fd)
{
	struct tcp_answer a = { .magic = TCP_ANSWER_MAGIC,
				.version = TCP_VERSION,
				.cookie = { 1 },
				.hello = hello() };
	uint8_t how = input_byte();

	if (how & 32)
		a.err = input_byte();
	say(fd, &a, vary(&a.hello, &a, sizeof(a), how));
}

static void peer_says(int fd)
{
	uint8_t bytes[256];
	size_t len = 1 + input_byte();

	for (size_t i = 0; i < len; i++)
		bytes[i] = input_byte();
	say(fd, bytes, len);
}

/* The program */

static bool ours(fid_t fid)
{
	for (int i = 0; i < EPS; i++)
		if (f.eps[i] && &f.eps[i]->fid == fid)
			return true;
	return false;
}

static void requested(struct fi_info *info)
{
	MUST(info && info->handle && info->src_addr && info->dest_addr);
	for (int i = 0; i < REQUESTS; i++) {
		if (f.requests[i])
			continue;
		f.requests[i] = info;
		return;
	}
	MUST(!fi_reject(f.pep, info->handle, NULL, 0));
	fi_freeinfo(info);
}

/* Reads an event. Returns false if there is none. */
static bool event(void)
{
	unsigned char bytes[sizeof(struct fi_eq_cm_entry) + HELLO_DATA_MAX + 8];
	struct fi_eq_cm_entry *cm = (struct fi_eq_cm_entry *)bytes;
	struct fi_eq_err_entry err = { .err_data = bytes, .err_data_size = sizeof(bytes) };
	uint32_t what;
	ssize_t ret = fi_eq_read(f.eq, &what, bytes, sizeof(bytes), 0);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		MUST(fi_eq_readerr(f.eq, &err, 0) > 0);
		MUST(ours(err.fid) && err.err > 0 && err.err_data_size <= HELLO_DATA_MAX);
		return true;
	}
	MUST(ret >= (ssize_t)sizeof(*cm) && ret <= (ssize_t)(sizeof(*cm) + HELLO_DATA_MAX));
	MUST(what == FI_CONNREQ ? cm->fid == &f.pep->fid : ours(cm->fid));
	if (what == FI_CONNREQ)
		requested(cm->info);
	else
		MUST(what == FI_CONNECTED || what == FI_SHUTDOWN);
	return true;
}

static void open_ep(struct fid_ep **slot, struct fi_info *info)
{
	if (fi_endpoint(f.domain, info, slot, NULL)) {
		MUST(info != f.info);
		*slot = NULL;
		return;
	}
	MUST(!fi_ep_bind(*slot, &f.eq->fid, 0));
	MUST(!fi_ep_bind(*slot, &f.cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(!fi_enable(*slot));
}

static void connect_ep(struct fid_ep **slot)
{
	size_t len = input_byte();
	char data[256] = { 0 };
	int ret;

	open_ep(slot, f.info);
	ret = fi_connect(*slot, &f.target, data, len);
	MUST(!ret || ret == -FI_EAGAIN);
}

/* Answers a request: how is the input's. */
static void answer(struct fid_ep **slot)
{
	struct fi_info **request = &f.requests[input_byte() % REQUESTS], *info = *request;
	uint8_t how = input_byte();
	char data[256] = { 0 };

	if (!info)
		return;
	if (how & 1 || *slot) {
		MUST(!fi_reject(f.pep, info->handle, data, how));
		MUST(fi_reject(f.pep, info->handle, data, how) == -FI_EINVAL);
	} else {
		open_ep(slot, info);
		MUST(*slot);
		if (how & 2)
			fi_accept(*slot, data, how);
	}
	*request = NULL;
	fi_freeinfo(info);
}

static void close_ep(struct fid_ep **slot)
{
	if (*slot)
		MUST(!fi_close(&(*slot)->fid));
	*slot = NULL;
}

static void transfer(struct fid_ep *ep)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { 0 };

	if (input_byte() & 1)
		fi_recv(ep, f.buf, sizeof(f.buf), NULL, 0, f.buf);
	else
		fi_inject(ep, f.buf, input_byte() % sizeof(f.buf), 0);
	if (fi_cq_read(f.cq, &entry, 1) == -FI_EAVAIL)
		fi_cq_readerr(f.cq, &err, 0);
}

static void step(void)
{
	uint8_t what = input_byte();
	int *peer = &f.peers[(what >> 4) % PEERS];
	struct fid_ep **ep = &f.eps[(what >> 4) % EPS];

	switch (what & 15) {
	case 0:
		if (*peer < 0)
			peer_call(peer);
		break;
	case 1:
		if (*peer < 0)
			peer_keep(peer, accept(f.listener, NULL, NULL));
		break;
	case 2:
		if (*peer >= 0)
			peer_asks(*peer);
		break;
	case 3:
		if (*peer >= 0)
			peer_answers(*peer);
		break;
	case 4:
		if (*peer >= 0)
			peer_says(*peer);
		break;
	case 5:
		if (*peer >= 0)
			close(*peer);
		*peer = -1;
		break;
	case 6:
		if (!*ep)
			connect_ep(ep);
		break;
	case 7:
		answer(ep);
		break;
	case 8:
		close_ep(ep);
		break;
	case 9:
		if (*ep)
			fi_shutdown(*ep, 0);
		break;
	case 10:
		if (*ep)
			transfer(*ep);
		break;
	default:
		event();
	}
}

/* All that this run has begun ends. */
static void end(void)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;
	int fd;

	for (int i = 0; i < PEERS; i++)
		if (f.peers[i] >= 0)
			close(f.peers[i]);
	memset(f.peers, -1, sizeof(f.peers));
	for (int i = 0; i < EPS; i++)
		close_ep(&f.eps[i]);
	while ((fd = accept(f.listener, NULL, NULL)) >= 0)
		close(fd);
	while (event())
		;
	for (int i = 0; i < REQUESTS; i++) {
		if (!f.requests[i])
			continue;
		MUST(!fi_reject(f.pep, f.requests[i]->handle, NULL, 0));
		fi_freeinfo(f.requests[i]);
		f.requests[i] = NULL;
	}
	while ((ret = fi_cq_read(f.cq, &entry, 1)) != -FI_EAGAIN)
		if (ret == -FI_EAVAIL)
			fi_cq_readerr(f.cq, &err, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!f.fabric)
		open_program();
	input_begin(data, len);
	for (int i = 0; i < 64 && input_left(); i++)
		step();
	end();
	if (!(f.runs++ % CHECK_RUN)) {
		MUST(!f.fd_cnt || fd_cnt() <= f.fd_cnt + FD_SPARE);
		f.fd_cnt = f.fd_cnt ? f.fd_cnt : fd_cnt();
	}
	return 0;
}
