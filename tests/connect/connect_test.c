/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections of MSG endpoints over tcp, with both ends in one process: how they begin and end, and
 * calls in other states. An argument "auto" asks for automatic progress.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "party.h"
#include <cmocka.h>

#define MANY   100
#define FEW    160 /* descriptors that the process may have */
#define ROUNDS 2000

static struct party listener, caller, callee;

static int setup(void **state)
{
	party_listen(&listener);
	return 0;
}

static int teardown(void **state)
{
	party_close_all();
	return 0;
}

/* The caller connects with @data; returns the request's event. */
static struct heard request(const char *data)
{
	struct heard heard;

	party_open(&caller, NULL);
	assert_int_equal(fi_connect(caller.ep, listener.name, data, data ? strlen(data) : 0), 0);
	party_expect(&listener, FI_CONNREQ, &heard);
	return heard;
}

static void data_go_both_ways(void **state)
{
	struct heard heard = request("let me in");

	assert_int_equal(heard.data_len, 9);
	assert_memory_equal(heard.data, "let me in", 9);
	assert_int_equal(heard.cm.info->handle->fclass, FI_CLASS_CONNREQ);
	assert_int_equal(heard.cm.info->ep_attr->type, FI_EP_MSG);
	assert_non_null(heard.cm.info->src_addr);
	assert_non_null(heard.cm.info->dest_addr);
	party_open_in(&callee, &listener, heard.cm.info);
	assert_true(party_quiet(&caller));
	assert_int_equal(fi_accept(callee.ep, "welcome", 7), 0);
	party_expect(&callee, FI_CONNECTED, &heard);
	assert_int_equal(heard.data_len, 0);
	party_expect(&caller, FI_CONNECTED, &heard);
	assert_int_equal(heard.data_len, 7);
	assert_memory_equal(heard.data, "welcome", 7);
}

/* Makes a round at one party alone, and takes nothing. Returns true if it has an event. */
static bool round_alone(struct party *p)
{
	struct fi_eq_cm_entry entry;
	uint32_t event;

	return fi_eq_read(p->eq, &event, &entry, sizeof(entry), FI_PEEK) != -FI_EAGAIN;
}

/*
 * fi_accept itself reports the connection. So a program that waits for it is not told of the next
 * request first, which may have arrived by then.
 */
static void a_connection_is_reported_before_the_next_request(void **state)
{
	struct heard heard = request(NULL);
	time_t end = time(NULL) + 60;
	static struct party next;

	party_open_beside(&callee, &listener, heard.cm.info);
	/* A domain that the program has just driven is not driven by its event queue's next read. */
	assert_int_equal(fi_cq_read(callee.cq, NULL, 0), -FI_EAGAIN);
	assert_int_equal(fi_accept(callee.ep, NULL, 0), 0);
	while (!round_alone(&caller))
		assert_true(time(NULL) < end);
	party_open(&next, NULL);
	assert_int_equal(fi_connect(next.ep, listener.name, NULL, 0), 0);
	for (int i = 0; i < ROUNDS; i++)
		assert_false(round_alone(&next));
	party_expect(&callee, FI_CONNECTED, &heard);
	party_expect(&listener, FI_CONNREQ, &heard);
	fi_freeinfo(heard.cm.info);
	party_close(&next);
}

static void most_data_arrive_and_more_are_refused(void **state)
{
	unsigned char most[PARTY_DATA_MAX + 1];
	size_t value = 0, len = sizeof(value);
	struct heard heard;

	memset(most, 0x5a, sizeof(most));
	party_open(&caller, NULL);
	assert_int_equal(
		fi_getopt(&caller.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, &len),
		0);
	assert_int_equal(value, PARTY_DATA_MAX);
	assert_int_equal(fi_getopt(&listener.pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE,
				   &value, &len),
			 0);
	assert_int_equal(value, PARTY_DATA_MAX);
	assert_int_equal(fi_connect(caller.ep, listener.name, most, value + 1), -FI_EINVAL);
	assert_int_equal(fi_connect(caller.ep, listener.name, NULL, 1), -FI_EINVAL);
	assert_int_equal(fi_connect(caller.ep, listener.name, most, value), 0);
	party_expect(&listener, FI_CONNREQ, &heard);
	assert_int_equal(heard.data_len, value);
	assert_memory_equal(heard.data, most, value);
	assert_int_equal(fi_reject(listener.pep, heard.cm.info->handle, most, value + 1),
			 -FI_EINVAL);
	assert_int_equal(fi_reject(listener.pep, heard.cm.info->handle, most, value), 0);
	fi_freeinfo(heard.cm.info);
	party_expect(&caller, PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ECONNREFUSED);
	assert_int_equal(heard.data_len, value);
	assert_memory_equal(heard.data, most, value);
}

static void a_request_is_rejected_once(void **state)
{
	struct heard heard = request(NULL);
	fid_t handle = heard.cm.info->handle;
	struct fi_info *info = heard.cm.info;

	assert_int_equal(fi_reject(listener.pep, handle, "no", 2), 0);
	assert_int_equal(fi_reject(listener.pep, handle, NULL, 0), -FI_EINVAL);
	party_expect(&caller, PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ECONNREFUSED);
	assert_ptr_equal(heard.cm.fid, &caller.ep->fid);
	assert_memory_equal(heard.data, "no", 2);
	assert_int_equal(fi_connect(caller.ep, listener.name, NULL, 0), -FI_EOPBADSTATE);
	fi_freeinfo(info);
}

static void a_request_is_taken_once(void **state)
{
	struct heard heard = request(NULL);
	struct fi_info *info = heard.cm.info;
	struct fid_domain *domain;
	struct fid_ep *ep, *other;

	assert_int_equal(fi_domain(listener.fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), 0);
	assert_int_equal(fi_endpoint(domain, info, &other, NULL), -FI_EINVAL);
	assert_int_equal(fi_reject(listener.pep, info->handle, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_connect(ep, listener.name, NULL, 0), -FI_EOPBADSTATE);
	/* closed without an answer: the caller is told */
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	party_expect(&caller, PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ECONNRESET);
	fi_freeinfo(info);
}

/* The requester's end of its socket is gone, and what a name could be asked of with it. */
static void a_request_whose_caller_has_gone_is_accepted_where_it_came(void **state)
{
	struct sockaddr_in at, name;
	struct heard heard = request(NULL);
	size_t len = sizeof(name);

	memcpy(&at, listener.name, sizeof(at));
	party_close(&caller);
	assert_true(party_quiet(&listener)); /* which reads the end of the socket */
	party_open_in(&callee, &listener, heard.cm.info);
	assert_int_equal(fi_getname(&callee.ep->fid, &name, &len), 0);
	assert_int_equal(len, sizeof(name));
	assert_int_equal(name.sin_addr.s_addr, at.sin_addr.s_addr);
	assert_int_equal(name.sin_port, at.sin_port);
	assert_int_equal(fi_accept(callee.ep, NULL, 0), 0);
	party_expect(&callee, PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ECONNRESET);
}

static void a_listener_that_closes_refuses_what_it_has_not_answered(void **state)
{
	struct heard heard = request(NULL);
	time_t end = time(NULL) + 60;
	static struct party second;

	fi_freeinfo(heard.cm.info);
	/* this one's event is there, and is not read */
	party_open(&second, NULL);
	assert_int_equal(fi_connect(second.ep, listener.name, NULL, 0), 0);
	while (!round_alone(&listener)) {
		assert_true(party_quiet(&second));
		assert_true(time(NULL) < end);
	}
	party_close(&listener);
	party_expect(&caller, PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ECONNREFUSED);
	party_expect(&second, PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ECONNREFUSED);
	party_close(&second);
}

static void nobody_at_the_port_is_an_error(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);
	struct heard heard;

	/* a socket that has the port and does not listen, so that no other program does */
	assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	party_open(&caller, NULL);
	assert_int_equal(fi_connect(caller.ep, &at, NULL, 0), 0);
	party_expect(&caller, PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ECONNREFUSED);
	assert_int_equal(heard.data_len, 0);
	close(fd);
}

static void more_requests_than_the_backlog_are_refused(void **state)
{
	static struct party second;
	struct heard heard;
	int backlog = 0;

	assert_int_equal(fi_control(&listener.pep->fid, FI_BACKLOG, &backlog), -FI_EINVAL);
	backlog = 1;
	assert_int_equal(fi_control(&listener.pep->fid, FI_BACKLOG, &backlog), 0);
	heard = request(NULL);
	party_open(&second, NULL);
	assert_int_equal(fi_connect(second.ep, listener.name, NULL, 0), 0);
	fi_freeinfo(heard.cm.info);
	party_expect(&second, PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ECONNREFUSED);
	party_close(&second);
}

static void requests_take_no_more_than_a_part_of_the_descriptors(void **state)
{
	static struct party callers[FEW / 4 + 1], few;
	struct rlimit limit, low;
	struct heard heard;
	uint32_t i;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = FEW;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	party_listen(&few);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (i = 0; i <= FEW / 4; i++) {
		party_open(&callers[i], NULL);
		assert_int_equal(fi_connect(callers[i].ep, few.name, NULL, 0), 0);
		if (i == FEW / 4)
			break;
		party_expect(&few, FI_CONNREQ, &heard);
		fi_freeinfo(heard.cm.info);
	}
	party_expect(&callers[i], PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ECONNREFUSED);
	for (i = 0; i <= FEW / 4; i++)
		party_close(&callers[i]);
	party_close(&few);
}

static void calls_in_other_states_are_refused(void **state)
{
	unsigned char name[64];
	size_t len = sizeof(name);
	struct fi_info *info;
	struct fid_pep *pep;
	struct heard heard;
	char byte = 0;

	party_open(&caller, NULL);
	assert_int_equal(fi_accept(caller.ep, NULL, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_shutdown(caller.ep, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_getpeer(caller.ep, name, &len), -FI_ENOTCONN);
	assert_int_equal(fi_send(caller.ep, &byte, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_connect(caller.ep, NULL, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_connect(caller.ep, listener.name, NULL, 0), 0);
	assert_int_equal(fi_connect(caller.ep, listener.name, NULL, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_send(caller.ep, &byte, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_shutdown(caller.ep, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_listen(listener.pep), -FI_EOPBADSTATE);
	assert_int_equal(fi_setname(&listener.pep->fid, listener.name, listener.name_len),
			 -FI_EOPBADSTATE);
	assert_int_equal(fi_reject(listener.pep, &caller.ep->fid, NULL, 0), -FI_EINVAL);
	party_expect(&listener, FI_CONNREQ, &heard);
	info = heard.cm.info;
	party_open_in(&callee, &listener, info);
	assert_int_equal(fi_connect(callee.ep, listener.name, NULL, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_accept(callee.ep, NULL, 0), 0);
	assert_int_equal(fi_accept(callee.ep, NULL, 0), -FI_EOPBADSTATE);
	party_expect(&caller, FI_CONNECTED, &heard);
	assert_int_equal(fi_connect(caller.ep, listener.name, NULL, 0), -FI_EOPBADSTATE);
	/* without an event queue nothing could be reported */
	assert_int_equal(fi_passive_ep(listener.fabric, listener.info, &pep, NULL), 0);
	assert_int_equal(fi_listen(pep), -FI_ENOEQ);
	assert_int_equal(fi_close(&pep->fid), 0);
	assert_int_equal(fi_close(&listener.eq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&caller.eq->fid), -FI_EBUSY);
}

/* A second queue would have the events of what the first one has told the program of. */
static void what_a_connected_endpoint_has_no_use_for_is_refused(void **state)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_eq *eq;
	struct fid_av *av;
	struct fid_ep *ep;

	party_open(&caller, NULL);
	assert_int_equal(fi_scalable_ep(caller.domain, caller.info, &ep, NULL), -FI_ENOSYS);
	assert_int_equal(fi_av_open(caller.domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_ep_bind(caller.ep, &av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_eq_open(listener.fabric, &eq_attr, &eq, NULL), 0);
	assert_int_equal(fi_pep_bind(listener.pep, &eq->fid, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_pep_bind(listener.pep, &listener.eq->fid, 0), 0);
	assert_int_equal(fi_pep_bind(listener.pep, &listener.eq->fid, FI_CONNREQ), 0);
	assert_int_equal(fi_pep_bind(listener.pep, &listener.eq->fid, FI_TRANSMIT),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_close(&eq->fid), 0);
}

static uint16_t port_of(const void *name)
{
	struct sockaddr_in in;

	memcpy(&in, name, sizeof(in));
	return ntohs(in.sin_port);
}

static void both_ends_are_named(void **state)
{
	unsigned char own[64], other[64];
	size_t own_len = sizeof(own), other_len = sizeof(other), none = 0;

	party_pair(&listener, &caller, &callee);
	assert_int_equal(fi_getpeer(caller.ep, own, &none), -FI_ETOOSMALL);
	assert_int_equal(none, sizeof(struct sockaddr_in));
	assert_int_equal(fi_getname(&caller.ep->fid, own, &own_len), 0);
	assert_int_equal(fi_getpeer(callee.ep, other, &other_len), 0);
	assert_int_equal(own_len, other_len);
	assert_memory_equal(own, other, own_len);
	assert_int_equal(fi_getpeer(caller.ep, other, &other_len), 0);
	assert_int_equal(port_of(other), port_of(listener.name));
}

static void a_listener_gets_the_name_that_it_is_given(void **state)
{
	static struct party named;
	unsigned char name[64];
	size_t len = sizeof(name);
	uint16_t port = port_of(listener.name);
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, "127.0.0.3", &in.sin_addr);
	party_silent(&named);
	assert_int_equal(fi_setname(&named.pep->fid, &in, sizeof(in)), 0);
	assert_int_equal(fi_getname(&named.pep->fid, name, &len), 0);
	assert_memory_equal(name, &in, sizeof(in));
	assert_int_equal(fi_listen(named.pep), 0);
	memcpy(named.name, name, sizeof(name));
	party_pair(&named, &caller, &callee);
	party_close(&caller);
	party_close(&callee);
	party_close(&named);
}

static void a_name_that_is_taken_is_refused(void **state)
{
	static struct party second;

	party_silent(&second);
	assert_int_equal(fi_setname(&second.pep->fid, listener.name, listener.name_len), 0);
	assert_int_equal(fi_listen(second.pep), -FI_EADDRINUSE);
	party_close(&second);
}

static void a_shutdown_is_an_event_at_both_ends(void **state)
{
	char in[3][8], out[8] = "payload";
	struct heard heard;
	void *context;

	party_pair(&listener, &caller, &callee);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			fi_recv(callee.ep, in[i], sizeof(in[i]), NULL, FI_ADDR_UNSPEC, in[i]),
			0);
	assert_int_equal(fi_inject(caller.ep, out, sizeof(out), FI_ADDR_UNSPEC), 0);
	assert_int_equal(fi_shutdown(caller.ep, 0), 0);
	party_expect(&caller, FI_SHUTDOWN, &heard);
	assert_int_equal(fi_send(caller.ep, out, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	party_expect(&callee, FI_SHUTDOWN, &heard);
	/* what was sent before arrives, the others are cancelled */
	assert_int_equal(party_ends(&callee, &context), 0);
	assert_ptr_equal(context, in[0]);
	assert_string_equal(in[0], out);
	for (int i = 1; i < 3; i++) {
		assert_int_equal(party_ends(&callee, &context), FI_ECANCELED);
		assert_ptr_equal(context, in[i]);
	}
	assert_int_equal(fi_shutdown(callee.ep, 0), 0); /* it has ended, as was asked for */
	assert_true(party_quiet(&callee));
}

static void a_peer_that_closes_is_an_event_and_cancels_sends(void **state)
{
	static char big[8 << 20];
	struct heard heard;
	void *context;

	party_pair(&listener, &caller, &callee);
	assert_int_equal(fi_send(caller.ep, big, sizeof(big), NULL, 0, big), 0);
	assert_true(party_quiet(&caller));
	party_close(&callee);
	party_expect(&caller, FI_SHUTDOWN, &heard);
	assert_int_equal(party_ends(&caller, &context), FI_ECANCELED);
	assert_ptr_equal(context, big);
}

static void a_message_that_has_arrived_is_received_after_the_end(void **state)
{
	char in[8] = "", out[8] = "payload";
	struct heard heard;
	void *context;

	party_pair(&listener, &caller, &callee);
	assert_int_equal(fi_inject(caller.ep, out, sizeof(out), 0), 0);
	party_close(&caller);
	party_expect(&callee, FI_SHUTDOWN, &heard);
	assert_int_equal(fi_recv(callee.ep, in, sizeof(in), NULL, 0, in), 0);
	assert_int_equal(party_ends(&callee, &context), 0);
	assert_string_equal(in, out);
}

/* Posts a receive of each kind at an endpoint whose connection has ended. Each of them ends. */
static void assert_receives_end(struct party *p)
{
	struct iovec iov;
	char in[4][8];
	void *context;
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = in[2] };

	iov = (struct iovec){ in[2], 8 };
	assert_int_equal(fi_recv(p->ep, in[0], 8, NULL, 0, in[0]), 0);
	assert_int_equal(fi_trecv(p->ep, in[1], 8, NULL, 0, 1, 0, in[1]), 0);
	assert_int_equal(fi_recvmsg(p->ep, &msg, FI_COMPLETION), 0);
	msg.context = in[3];
	assert_int_equal(fi_recvmsg(p->ep, &msg, FI_MULTI_RECV | FI_COMPLETION), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(party_ends(p, &context), FI_ECANCELED);
		assert_ptr_equal(context, in[i]);
	}
}

static void receives_that_are_posted_after_the_end_end(void **state)
{
	char in[8] = "", out[8] = "payload";
	struct heard heard;
	void *context;

	party_pair(&listener, &caller, &callee);
	assert_int_equal(fi_inject(caller.ep, out, sizeof(out), 0), 0);
	assert_int_equal(fi_shutdown(caller.ep, 0), 0);
	party_expect(&callee, FI_SHUTDOWN, &heard);
	/* What has arrived comes first. */
	assert_int_equal(fi_recv(callee.ep, in, sizeof(in), NULL, 0, in), 0);
	assert_int_equal(party_ends(&callee, &context), 0);
	assert_string_equal(in, out);
	assert_receives_end(&callee);
	party_expect(&caller, FI_SHUTDOWN, &heard);
	assert_receives_end(&caller);
}

static void receives_end_where_no_connection_was_made(void **state)
{
	struct heard heard;
	char in[8];
	void *context;

	party_open(&caller, NULL);
	assert_int_equal(fi_recv(caller.ep, in, sizeof(in), NULL, 0, in), 0);
	assert_int_equal(fi_connect(caller.ep, listener.name, NULL, 0), 0);
	party_expect(&listener, FI_CONNREQ, &heard);
	assert_int_equal(fi_reject(listener.pep, heard.cm.info->handle, NULL, 0), 0);
	fi_freeinfo(heard.cm.info);
	party_expect(&caller, PARTY_ERROR, &heard);
	assert_int_equal(party_ends(&caller, &context), FI_ECANCELED);
	assert_ptr_equal(context, in);
	assert_receives_end(&caller);
}

static void many_connections_stand_at_once(void **state)
{
	static struct party callers[MANY], callees[MANY];
	struct heard heard;
	void *context;
	int in, i;

	for (i = 0; i < MANY; i++) {
		party_open(&callers[i], NULL);
		assert_int_equal(fi_connect(callers[i].ep, listener.name, &i, sizeof(i)), 0);
	}
	for (i = 0; i < MANY; i++) {
		int which;

		party_expect(&listener, FI_CONNREQ, &heard);
		memcpy(&which, heard.data, sizeof(which));
		assert_in_range(which, 0, MANY - 1);
		assert_null(callees[which].ep);
		party_open_in(&callees[which], &listener, heard.cm.info);
		assert_int_equal(fi_accept(callees[which].ep, NULL, 0), 0);
	}
	for (i = 0; i < MANY; i++) {
		party_expect(&callers[i], FI_CONNECTED, &heard);
		party_expect(&callees[i], FI_CONNECTED, &heard);
		assert_int_equal(fi_inject(callers[i].ep, &i, sizeof(i), 0), 0);
	}
	for (i = 0; i < MANY; i++) {
		in = -1;
		assert_int_equal(fi_recv(callees[i].ep, &in, sizeof(in), NULL, 0, &in), 0);
		assert_int_equal(party_ends(&callees[i], &context), 0);
		assert_int_equal(in, i);
	}
	for (i = 0; i < MANY; i++) {
		party_close(&callers[i]);
		party_expect(&callees[i], FI_SHUTDOWN, &heard);
		party_close(&callees[i]);
	}
}

static void events_of_an_endpoint_that_closes_go_with_it(void **state)
{
	party_pair(&listener, &caller, &callee);
	assert_int_equal(fi_shutdown(caller.ep, 0), 0);
	assert_int_equal(fi_close(&caller.ep->fid), 0);
	caller.ep = NULL;
	assert_true(party_quiet(&caller));
}

static void rdm_endpoints_and_connected_ones_do_not_meet(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	struct fid_domain *domain;
	struct fid_fabric *fabric;
	unsigned char name[64];
	size_t len = sizeof(name);
	struct heard heard;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;

	hints->fabric_attr->prov_name = strdup("tcp");
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->addr_format = FI_SOCKADDR_IN;
	assert_int_equal(
		fi_getinfo(FI_VERSION(1, 18), "127.0.0.1", NULL, FI_SOURCE, hints, &info), 0);
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_av_open(domain, &(struct fi_av_attr){ 0 }, &av, NULL), 0);
	assert_int_equal(fi_cq_open(domain, &(struct fi_cq_attr){ 0 }, &cq, NULL), 0);
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_getname(&ep->fid, name, &len), 0);
	party_open(&caller, NULL);
	assert_int_equal(fi_connect(caller.ep, name, NULL, 0), 0);
	party_expect(&caller, PARTY_ERROR, &heard);
	assert_int_equal(heard.err, FI_ECONNREFUSED);
	fi_close(&ep->fid);
	fi_close(&cq->fid);
	fi_close(&av->fid);
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(data_go_both_ways),
		TEST(a_connection_is_reported_before_the_next_request),
		TEST(most_data_arrive_and_more_are_refused),
		TEST(a_request_is_rejected_once),
		TEST(a_request_is_taken_once),
		TEST(a_request_whose_caller_has_gone_is_accepted_where_it_came),
		TEST(a_listener_that_closes_refuses_what_it_has_not_answered),
		TEST(nobody_at_the_port_is_an_error),
		TEST(more_requests_than_the_backlog_are_refused),
		TEST(requests_take_no_more_than_a_part_of_the_descriptors),
		TEST(calls_in_other_states_are_refused),
		TEST(what_a_connected_endpoint_has_no_use_for_is_refused),
		TEST(both_ends_are_named),
		TEST(a_listener_gets_the_name_that_it_is_given),
		TEST(a_name_that_is_taken_is_refused),
		TEST(a_shutdown_is_an_event_at_both_ends),
		TEST(a_peer_that_closes_is_an_event_and_cancels_sends),
		TEST(a_message_that_has_arrived_is_received_after_the_end),
		TEST(receives_that_are_posted_after_the_end_end),
		TEST(receives_end_where_no_connection_was_made),
		TEST(many_connections_stand_at_once),
		TEST(events_of_an_endpoint_that_closes_go_with_it),
		TEST(rdm_endpoints_and_connected_ones_do_not_meet),
	};

	wishes.automatic = argc > 1 && !strcmp(argv[1], "auto");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
