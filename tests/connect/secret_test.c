/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints whose processes have different secrets, of connections and of RDM: who calls gets
 * FI_EKEYREJECTED, and the listener serves the others. One side is this process, the other a child.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "party.h"
#include <cmocka.h>

static char path[] = "/tmp/weft-secret-test.XXXXXX";

/* Settings are read once in a process: this one's have to be there before the library is used. */
static void settings(const char *secret, const char *tls)
{
	int fd;

	setenv("FI_TCP_TLS", tls, 1);
	if (!secret) {
		unsetenv("FI_TCP_SECRET_FILE");
		return;
	}
	memcpy(strrchr(path, '.'), ".XXXXXX", 7);
	fd = mkstemp(path);
	if (fd < 0 || write(fd, secret, strlen(secret)) != (ssize_t)strlen(secret))
		_exit(9);
	close(fd);
	setenv("FI_TCP_SECRET_FILE", path, 1);
}

static const char mine[] = "the secret of this process", theirs[] = "the secret of other ones";

/* ---- connections ---- */

/* Calls the name that it reads. Exits with the number of the error; 0: it was accepted. */
static void call(int fd)
{
	unsigned char name[64];
	struct heard heard;
	struct party p;

	if (read(fd, name, sizeof(name)) != sizeof(name))
		_exit(1);
	party_open(&p, NULL);
	if (fi_connect(p.ep, name, NULL, 0))
		_exit(2);
	party_expect(&p, PARTY_ERROR, &heard);
	unlink(path);
	_exit(heard.err);
}

/* ---- RDM ---- */

struct rdm {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

/* Returns what fi_enable() returns. */
static int rdm_open(struct rdm *r, const char *provider)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo();
	int err;

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	*r = (struct rdm){ .info = NULL };
	err = fi_getinfo(FI_VERSION(1, 18), "127.0.0.1", NULL, FI_SOURCE, hints, &r->info);
	fi_freeinfo(hints);
	if (err || fi_fabric(r->info->fabric_attr, &r->fabric, NULL) ||
	    fi_domain(r->fabric, r->info, &r->domain, NULL) ||
	    fi_av_open(r->domain, &av_attr, &r->av, NULL) ||
	    fi_cq_open(r->domain, &cq_attr, &r->cq, NULL) ||
	    fi_endpoint(r->domain, r->info, &r->ep, NULL) || fi_ep_bind(r->ep, &r->av->fid, 0) ||
	    fi_ep_bind(r->ep, &r->cq->fid, FI_TRANSMIT | FI_RECV))
		return -1;
	return fi_enable(r->ep);
}

static void rdm_close(struct rdm *r)
{
	fi_close(&r->ep->fid);
	fi_close(&r->cq->fid);
	fi_close(&r->av->fid);
	fi_close(&r->domain->fid);
	fi_close(&r->fabric->fid);
	fi_freeinfo(r->info);
}

/* Sends to the name that it reads. Exits with the number of the error. */
static void send_to(int fd)
{
	struct fi_cq_err_entry error = { .err = 0 };
	struct fi_cq_entry entry;
	unsigned char name[64];
	fi_addr_t peer;
	struct rdm r;
	ssize_t n;

	if (read(fd, name, sizeof(name)) != sizeof(name) || rdm_open(&r, "tcp") ||
	    fi_av_insert(r.av, name, 1, &peer, 0, NULL) != 1)
		_exit(1);
	do
		n = fi_send(r.ep, "hello", 5, NULL, peer, NULL);
	while (n == -FI_EAGAIN && fi_cq_read(r.cq, &entry, 1) == -FI_EAGAIN);
	do
		n = fi_cq_read(r.cq, &entry, 1);
	while (n == -FI_EAGAIN);
	unlink(path);
	if (n != -FI_EAVAIL)
		_exit(0);
	fi_cq_readerr(r.cq, &error, 0);
	_exit(error.err);
}

/* ---- this side ---- */

/*
 * A child with these settings, which has to begin before this process uses the library. Returns its
 * process.
 */
static pid_t child(void (*act)(int fd), const char *secret, const char *tls, int *fd)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(ends[0]);
		settings(secret, tls);
		act(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	*fd = ends[0];
	return pid;
}

struct stranger {
	const char *secret, *tls;
	pid_t call, send;
	int call_fd, send_fd;
};

static struct stranger strangers[] = {
	{ .secret = theirs, .tls = "0" },
	{ .secret = NULL, .tls = "0" },
	{ .secret = mine, .tls = "1" },
};

#define STRANGERS (sizeof(strangers) / sizeof(strangers[0]))

static void callers_with_another_secret_are_rejected(void **state)
{
	struct party listener, caller, callee;
	int status;

	party_listen(&listener);
	for (size_t i = 0; i < STRANGERS; i++) {
		struct stranger *s = &strangers[i];

		assert_int_equal(write(s->call_fd, listener.name, sizeof(listener.name)),
				 sizeof(listener.name));
		while (!waitpid(s->call, &status, WNOHANG))
			party_quiet(&listener);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), FI_EKEYREJECTED);
		assert_true(party_quiet(&listener)); /* no FI_CONNREQ */
	}
	/* nothing is lost for others */
	party_pair(&listener, &caller, &callee);
	party_close(&caller);
	party_close(&callee);
	party_close(&listener);
}

static void senders_with_another_secret_are_rejected(void **state)
{
	unsigned char name[64];
	size_t len = sizeof(name);
	struct fi_cq_entry entry;
	struct rdm r;
	int status;

	assert_int_equal(rdm_open(&r, "tcp"), 0);
	assert_int_equal(fi_getname(&r.ep->fid, name, &len), 0);
	for (size_t i = 0; i < STRANGERS; i++) {
		struct stranger *s = &strangers[i];

		assert_int_equal(write(s->send_fd, name, sizeof(name)), sizeof(name));
		while (!waitpid(s->send, &status, WNOHANG))
			assert_int_equal(fi_cq_read(r.cq, &entry, 1), -FI_EAGAIN);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), FI_EKEYREJECTED);
	}
	rdm_close(&r);
}

/* An endpoint that has another wire too is not opened without its secret. */
static void endpoints_without_their_secret_are_not_opened(void **state)
{
	static const char *const providers[] = { "tcp", "link" };
	struct rdm r;

	assert_int_equal(chmod(path, 0644), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rdm_open(&r, providers[i]), -FI_EACCES);
		rdm_close(&r);
	}
	assert_int_equal(chmod(path, 0600), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rdm_open(&r, providers[i]), 0);
		rdm_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_with_another_secret_are_rejected),
		cmocka_unit_test(senders_with_another_secret_are_rejected),
		cmocka_unit_test(endpoints_without_their_secret_are_not_opened),
	};
	int failed;

	for (size_t i = 0; i < STRANGERS; i++) {
		struct stranger *s = &strangers[i];

		s->call = child(call, s->secret, s->tls, &s->call_fd);
		s->send = child(send_to, s->secret, s->tls, &s->send_fd);
	}
	settings(mine, "0");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
