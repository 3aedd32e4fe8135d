/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What 'weft tcp' says of who may come in: which connections have proved the secret or are encrypted, and who was
 * refused. Two endpoints of this process are connected; senders of other settings try. The tool is the first
 * argument, what this process asks of its peers the second: open, secret or tls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "stranger.h"
#include <cmocka.h>
#include <jansson.h>

#define DEADLINE_S 30
#define STRANGERS  3

static const char mine[] = "the secret of this process", theirs[] = "the secret of other ones";

/* Who tries, and as what he is counted. */
struct stranger {
	const char *secret, *tls, *figure;
};

static const struct asks {
	const char *name, *secret, *tls, *access;
	int proved, encrypted;
	struct stranger strangers[STRANGERS];
} modes[] = {
	{ .name = "open",
	  .tls = "0",
	  .access = "anyone",
	  .strangers = { { mine, "0", "refused_no_secret" },
			 { mine, "1", "refused_no_secret" },
			 { theirs, "0", "refused_no_secret" } } },
	{ .name = "secret",
	  .secret = mine,
	  .tls = "0",
	  .access = "secret",
	  .proved = 2,
	  .strangers = { { theirs, "0", "refused_other_secret" },
			 { NULL, "0", "refused_no_secret" },
			 { mine, "1", "refused_no_secret" } } },
	{ .name = "tls",
	  .secret = mine,
	  .tls = "1",
	  .access = "tls",
	  .proved = 2,
	  .encrypted = 2,
	  .strangers = { { theirs, "1", "refused_tls" },
			 { NULL, "0", "refused_no_secret" },
			 { mine, "0", "refused_no_secret" } } },
};

static const char *const refusals[] = { "refused_other_secret", "refused_no_secret",
					"refused_tls" };
#define REFUSALS (sizeof(refusals) / sizeof(refusals[0]))

static const char *weft;
static const struct asks *asks;
static pid_t pids[STRANGERS];
static int fds[STRANGERS];
static struct rdm ends[2];

static void progress(void)
{
	struct fi_cq_entry entry;

	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_cq_read(ends[i].cq, &entry, 1), -FI_EAGAIN);
}

/* Returns what the tool prints of this process; @options: of its own. To be freed. */
static char *told(const char *options)
{
	char command[4096], *text = NULL;
	size_t len = 0;
	FILE *from;

	snprintf(command, sizeof(command), "%s tcp %s %d", weft, options, (int)getpid());
	from = popen(command, "re");
	assert_non_null(from);
	assert_true(getdelim(&text, &len, '\0', from) > 0);
	assert_int_equal(pclose(from), 0);
	return text;
}

/* Returns a figure of this process, -1 if it has none of that name. */
static int figure(const char *name)
{
	char *text = told("--json");
	json_t *whole = json_loads(text, 0, NULL), *value;
	int number = -1;

	value = json_array_get(json_object_get(whole, "processes"), 0);
	value = json_object_get(value, name);
	if (json_is_integer(value))
		number = (int)json_integer_value(value);
	json_decref(whole);
	free(text);
	return number;
}

static void connections_are_told_by_what_was_proved(void **state)
{
	char line[64], *text;

	assert_int_equal(figure("connections"), 2);
	assert_int_equal(figure("proved"), asks->proved);
	assert_int_equal(figure("encrypted"), asks->encrypted);
	snprintf(line, sizeof(line), "  access           %s: %d have", asks->access,
		 asks->proved);
	text = told("");
	assert_non_null(strstr(text, line));
	free(text);
	text = told("--watch=0.1 --seconds=0.1");
	snprintf(line, sizeof(line), " %s ", asks->access);
	assert_non_null(strstr(text, "access"));
	assert_non_null(strstr(text, line));
	free(text);
}

/* Has the stranger try, and returns how that ended for him: an FI_E*. */
static int try_stranger(int idx)
{
	time_t until = time(NULL) + DEADLINE_S;
	unsigned char name[64];
	size_t len = sizeof(name);
	int status;

	assert_int_equal(fi_getname(&ends[0].ep->fid, name, &len), 0);
	assert_int_equal(write(fds[idx], name, sizeof(name)), sizeof(name));
	while (!waitpid(pids[idx], &status, WNOHANG) && time(NULL) < until)
		progress();
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void refusals_are_counted_by_their_cause(void **state)
{
	time_t until = time(NULL) + DEADLINE_S;
	int wanted[REFUSALS] = { 0 }, before;

	for (int i = 0; i < STRANGERS; i++) {
		const char *name = asks->strangers[i].figure;

		before = figure(name);
		assert_int_equal(try_stranger(i), FI_EKEYREJECTED);
		while (figure(name) == before && time(NULL) < until)
			progress();
		for (size_t r = 0; r < REFUSALS; r++) {
			wanted[r] += !strcmp(refusals[r], name);
			assert_int_equal(figure(refusals[r]), wanted[r]);
		}
	}
	/* nothing is lost for others */
	assert_int_equal(figure("connections"), 2);
	assert_int_equal(figure("lost"), 0);
}

/* Two endpoints that have exchanged a message. */
static int start(void **state)
{
	struct fi_cq_entry entry;
	unsigned char name[64];
	size_t len = sizeof(name);
	char bytes[8];
	fi_addr_t peer;
	bool sent = false, received = false;

	if (rdm_open(&ends[0], "tcp") || rdm_open(&ends[1], "tcp") ||
	    fi_getname(&ends[1].ep->fid, name, &len) ||
	    fi_av_insert(ends[0].av, name, 1, &peer, 0, NULL) != 1 ||
	    fi_recv(ends[1].ep, bytes, sizeof(bytes), NULL, FI_ADDR_UNSPEC, NULL))
		return -1;
	if (fi_send(ends[0].ep, "hello", 5, NULL, peer, NULL))
		return -1;
	while (!sent || !received) {
		sent |= fi_cq_read(ends[0].cq, &entry, 1) == 1;
		received |= fi_cq_read(ends[1].cq, &entry, 1) == 1;
	}
	return 0;
}

static int end(void **state)
{
	rdm_close(&ends[0]);
	rdm_close(&ends[1]);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_are_told_by_what_was_proved),
		cmocka_unit_test(refusals_are_counted_by_their_cause),
	};
	int failed;

	for (size_t i = 0; argc == 3 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[2], modes[i].name))
			asks = &modes[i];
	if (!asks) {
		fprintf(stderr, "Usage: connect_shown_test WEFT open|secret|tls\n");
		return 2;
	}
	weft = argv[1];
	for (int i = 0; i < STRANGERS; i++)
		pids[i] = stranger_start(stranger_send, asks->strangers[i].secret,
					 asks->strangers[i].tls, &fds[i]);
	stranger_settings(asks->secret, asks->tls);
	failed = cmocka_run_group_tests(tests, start, end);
	stranger_forget();
	return failed;
}
