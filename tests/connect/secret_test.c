/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints whose processes have different secrets, of connections and of RDM: who calls gets
 * FI_EKEYREJECTED, and the listener serves the others. One side is this process, the other a child.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "party.h"
#include "stranger.h"
#include <cmocka.h>

#define LOG_LEN 1024

/* The file of this process */
static const char *path;
static const char mine[] = "the secret of this process", theirs[] = "the secret of other ones";

/* ---- connections ---- */

/* Calls the name that it reads. Exits with the number of the error; 0: it was accepted. */
static void call(int fd)
{
	unsigned char name[64];
	struct heard heard;
	static struct party p;

	if (read(fd, name, sizeof(name)) != sizeof(name))
		_exit(1);
	party_open(&p, NULL);
	if (fi_connect(p.ep, name, NULL, 0))
		_exit(2);
	party_expect(&p, PARTY_ERROR, &heard);
	stranger_forget();
	_exit(heard.err);
}

/* ---- this side ---- */

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
	static struct party listener, caller, callee;
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

/* As rdm_open(), with what is logged meanwhile. */
static int logged_open(struct rdm *r, const char *provider, char log[LOG_LEN])
{
	int out = dup(STDERR_FILENO), ret;
	FILE *file = tmpfile();
	size_t len;

	assert_non_null(file);
	assert_true(out >= 0 && dup2(fileno(file), STDERR_FILENO) == STDERR_FILENO);
	ret = rdm_open(r, provider);
	dup2(out, STDERR_FILENO);
	close(out);
	rewind(file);
	len = fread(log, 1, LOG_LEN - 1, file);
	log[len] = '\0';
	fclose(file);
	return ret;
}

/* An endpoint that has another wire too is not opened without its secret, and for the same reason. */
static void endpoints_without_their_secret_are_not_opened(void **state)
{
	static const char *const providers[] = { "tcp", "link" };
	char log[LOG_LEN];
	struct rdm r;

	assert_int_equal(chmod(path, 0644), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(logged_open(&r, providers[i], log), -FI_EACCES);
		assert_non_null(strstr(
			log,
			"the endpoint is not opened: FI_TCP_SECRET_FILE is open to others"));
		rdm_close(&r);
	}
	assert_int_equal(chmod(path, 0600), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(logged_open(&r, providers[i], log), 0);
		assert_string_equal(log, "");
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

		s->call = stranger_start(call, s->secret, s->tls, &s->call_fd);
		s->send = stranger_start(stranger_send, s->secret, s->tls, &s->send_fd);
	}
	path = stranger_settings(mine, "0");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	stranger_forget();
	return failed;
}
