/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resources that the kernel refuses to a process: descriptors, memory, /proc, the memory of others.
 * Two processes exchange messages of every size, and something is taken away from one of them or
 * from both, before they begin or in the middle. Where there is another way their messages go on,
 * with the right bytes; else there is an error; nothing hangs, and nothing crashes.
 *
 *	refused_test PROVIDER [CASE]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "echo.h"
#include "place.h"
#include <cmocka.h>

#define TEST_SECS 100
#define TAG	  0x100000000u

enum gate { GATE_OPENED, GATE_FIRST, GATE_OVER, GATE_SKIP };

/* The process from which something is taken away. */
enum who {
	ASKER = 1,
	ANSWERER = 2,
	BOTH = 3,
};

/* When, and what. */
struct refusal {
	enum who who;
	/* Before the endpoint is opened; returns -1 and why when it can't be done here. */
	int (*before)(char *why, size_t len);
	/* Between the first messages and the others. */
	void (*amid)(void *stage);
	/* It may be that no endpoint can be opened, that messages fail: over this provider, or any. */
	bool may_fail;
};

struct scene {
	struct stage stage;
	char names[3][NODE_NAME];
	char why[128];
	int opened[2]; /* 0 or -FI_E* */
	int failed;    /* FI_E* of a message */
};

static const char *provider;
static const struct refusal *refusal;
static int own_rank; /* of this process */

static bool concerns(int rank)
{
	return refusal->who & (rank ? ANSWERER : ASKER);
}

/*
 * The exit of a process that may lack what a sanitizer needs for its final check. The others have
 * the usual one.
 */
static void leave(void)
{
	fflush(NULL);
	_exit(0);
}

/* Takes away what is to be lacking from the beginning, and opens. Returns whether both did. */
static bool open_both(struct scene *s, struct node *n, int rank)
{
	struct node_attr attr = { .provider = provider };

	own_rank = rank;
	if (refusal->before && concerns(rank) && refusal->before(s->why, sizeof(s->why))) {
		stage_pass(s, GATE_SKIP);
		leave();
	}
	s->opened[rank] = node_open(n, s, &attr);
	if (!s->opened[rank])
		node_name(n, s->names[rank]);
	stage_pass(s, GATE_OPENED);
	NODE_UNTIL(s, stage_passed(s, GATE_OPENED) == 2 || stage_passed(s, GATE_SKIP), false);
	if (stage_passed(s, GATE_SKIP))
		leave();
	if (!s->opened[0] && !s->opened[1])
		return true;
	if (!s->opened[rank])
		node_close(n);
	return false;
}

static void ask_all(struct scene *s, struct echo *e)
{
	for (const size_t *len = echo_sizes; *len && !e->err; len++) {
		echo_ask(e, *len);
		NODE_UNTIL(s, echo_over(e), echo_took(e, node_turn(e->node)));
	}
}

static void asker(void *stage, int rank)
{
	struct scene *s = stage;
	struct node n;
	struct echo e;

	if (!open_both(s, &n, rank))
		leave();
	echo_open(&e, &n, node_knows(&n, s->names[1]), TAG);
	if (refusal->amid)
		ask_all(s, &e);
	stage_pass(s, GATE_FIRST);
	if (refusal->amid && concerns(rank))
		refusal->amid(s);
	if (!e.err)
		ask_all(s, &e);
	s->failed = e.err;
	stage_pass(s, GATE_OVER);
	node_close(&n);
	echo_close(&e);
	leave();
}

static void answerer(void *stage, int rank)
{
	struct scene *s = stage;
	bool amid = false;
	struct node n;
	struct echo e;

	if (!open_both(s, &n, rank))
		leave();
	echo_open(&e, &n, node_knows(&n, s->names[0]), TAG);
	echo_expect(&e);
	while (!stage_passed(s, GATE_OVER)) {
		ssize_t turn = e.err ? -FI_EAGAIN : node_turn(&n);

		if (!echo_took(&e, turn))
			node_pause(s);
		if (!amid && stage_passed(s, GATE_FIRST)) {
			amid = true;
			if (refusal->amid && concerns(rank))
				refusal->amid(s);
		}
	}
	node_close(&n);
	echo_close(&e);
	leave();
}

/* Runs it; skips the test when what it needs is not there. */
static void run(const struct refusal *what)
{
	struct scene *s = stage_open(sizeof(*s));
	pid_t pids[2];
	bool ok;

	refusal = what;
	pids[0] = stage_start(s, 0, TEST_SECS, asker);
	pids[1] = stage_start(s, 1, TEST_SECS, answerer);
	ok = stage_ended(s, pids[0], 0);
	ok &= stage_ended(s, pids[1], 0);
	assert_true(ok);
	if (stage_passed(s, GATE_SKIP)) {
		print_message("skip: %s\n", s->why);
		skip();
	}
	for (int i = 0; i < 2; i++)
		if (s->opened[i])
			print_message("%s of %s: %s\n", i ? "answerer" : "asker", provider,
				      fi_strerror(-s->opened[i]));
	if (s->failed)
		print_message("messages over %s: %s\n", provider, fi_strerror(s->failed));
	if (!what->may_fail || !strcmp(provider, "link"))
		assert_true(!s->opened[0] && !s->opened[1] && !s->failed);
}

/* The same for one side, the other, and both. */
static void run_each(struct refusal what)
{
	for (enum who who = ASKER; who <= BOTH; who++) {
		what.who = who;
		run(&what);
	}
}

/* The memory of others */

static int forbid_eperm(char *why, size_t len)
{
	return place_forbid(EPERM, false, why, len);
}

static int forbid_enosys(char *why, size_t len)
{
	return place_forbid(ENOSYS, true, why, len);
}

static void other_memory_refused(void **state)
{
	run_each((struct refusal){ .before = forbid_eperm });
}

static void old_kernel_without_calls(void **state)
{
	run_each((struct refusal){ .before = forbid_enosys });
}

static void amid_eperm(void *stage)
{
	char why[128];

	NODE_CHECK(stage, !place_forbid(EPERM, true, why, sizeof(why)));
}

static void other_memory_refused_amid(void **state)
{
	run_each((struct refusal){ .amid = amid_eperm });
}

/* What others may look into */

static int drop(char *why, size_t len)
{
	return place_drop(why, len);
}

static int drop_undumpable(char *why, size_t len)
{
	if (place_drop(why, len))
		return -1;
	return prctl(PR_SET_DUMPABLE, 0);
}

static void ordinary_user_works(void **state)
{
	run(&(struct refusal){ .who = BOTH, .before = drop });
}

/* Root looks into everything: both are ordinary users. */
static int undumpable_asker(char *why, size_t len)
{
	return own_rank ? drop(why, len) : drop_undumpable(why, len);
}

static int undumpable_answerer(char *why, size_t len)
{
	return own_rank ? drop_undumpable(why, len) : drop(why, len);
}

static void process_closed_to_others(void **state)
{
	run(&(struct refusal){ .who = BOTH, .before = undumpable_asker, .may_fail = true });
	run(&(struct refusal){ .who = BOTH, .before = undumpable_answerer, .may_fail = true });
	run(&(struct refusal){ .who = BOTH, .before = drop_undumpable, .may_fail = true });
}

static void other_user_namespace(void **state)
{
	run_each((struct refusal){ .before = place_leave_user, .may_fail = true });
}

/* /proc */

static int without_proc(char *why, size_t len)
{
	return place_own_mounts(why, len) || place_lose_proc(why, len) ? -1 : 0;
}

static void amid_without_proc(void *stage)
{
	char why[128];

	NODE_CHECK(stage, !place_lose_proc(why, sizeof(why)));
}

static void proc_unmounted(void **state)
{
	run_each((struct refusal){ .before = without_proc, .may_fail = true });
}

static void proc_unmounted_amid(void **state)
{
	/* An ordinary user has mounts of its own in a user namespace of its own alone. */
	run_each((struct refusal){ .before = place_own_mounts,
				   .amid = amid_without_proc,
				   .may_fail = geteuid() != 0 });
}

/* Descriptors and memory */

static void amid_no_descriptors(void *stage)
{
	struct rlimit limit = { .rlim_cur = 0, .rlim_max = 0 };

	NODE_CHECK(stage, !setrlimit(RLIMIT_NOFILE, &limit));
}

static int no_descriptors(char *why, size_t len)
{
	struct rlimit limit = { .rlim_cur = 3, .rlim_max = 3 };

	return setrlimit(RLIMIT_NOFILE, &limit);
}

static void descriptors_used_up(void **state)
{
	run_each((struct refusal){ .amid = amid_no_descriptors });
}

static void amid_no_memory(void *stage)
{
	struct rlimit limit = { .rlim_cur = 0, .rlim_max = RLIM_INFINITY };

	NODE_CHECK(stage, !setrlimit(RLIMIT_AS, &limit));
}

static void memory_used_up(void **state)
{
	if (NODE_SANITIZED) {
		print_message("skip: a sanitizer needs memory of its own\n");
		skip();
	}
	run_each((struct refusal){ .amid = amid_no_memory });
}

/*
 * Connecting to a peer without descriptors, or memory, waits; connecting to the other one does not.
 */

static int starved_resource;

static void allow(void *stage, bool allowed)
{
	struct rlimit limit;

	NODE_CHECK(stage, !getrlimit((unsigned int)starved_resource, &limit));
	limit.rlim_cur = allowed ? limit.rlim_max : 0;
	NODE_CHECK(stage, !setrlimit((unsigned int)starved_resource, &limit));
}

static void talk_once(struct scene *s, struct echo *e, struct echo *other, size_t len)
{
	echo_ask(e, len);
	while (!echo_over(e)) {
		ssize_t turn = node_turn(e->node);

		if (turn == -FI_EAGAIN)
			node_pause(s);
		else if (!echo_took(e, turn))
			NODE_CHECK(s, other && echo_took(other, turn));
	}
	NODE_CHECK(s, !e->err && (!other || !other->err));
}

static void starved_asker(struct scene *s, struct node *n)
{
	struct echo known, fresh;

	echo_open(&known, n, node_knows(n, s->names[1]), TAG);
	echo_open(&fresh, n, node_knows(n, s->names[2]), TAG);
	talk_once(s, &known, NULL, 100000);
	allow(s, false);
	echo_ask(&fresh, 1000);
	for (int i = 0; i < 1000; i++)
		talk_once(s, &known, &fresh, 100 << i % 8);
	/* A link uses another wire when shared memory is refused. */
	NODE_CHECK(s, !echo_over(&fresh) ||
			      (starved_resource == RLIMIT_AS && !strcmp(provider, "link")));
	allow(s, true);
	NODE_UNTIL(s, echo_over(&fresh), echo_took(&fresh, node_turn(n)));
	NODE_CHECK(s, !fresh.err);
	talk_once(s, &fresh, NULL, 100000);
	echo_close(&known);
	echo_close(&fresh);
}

static void one_of_three(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider };
	struct scene *s = stage;
	struct node n;
	struct echo e;

	NODE_CHECK(s, !node_open(&n, s, &attr));
	node_name(&n, s->names[rank]);
	stage_pass(s, GATE_OPENED);
	NODE_UNTIL(s, stage_passed(s, GATE_OPENED) == 3, false);
	if (!rank) {
		starved_asker(s, &n);
		stage_pass(s, GATE_OVER);
		node_close(&n);
		return;
	}
	echo_open(&e, &n, node_knows(&n, s->names[0]), TAG);
	echo_expect(&e);
	while (!stage_passed(s, GATE_OVER))
		if (e.err || !echo_took(&e, node_turn(&n)))
			node_pause(s);
	node_close(&n);
	echo_close(&e);
}

static void run_starved(int resource)
{
	struct scene *s = stage_open(sizeof(*s));
	bool ok = true;
	pid_t pids[3];

	starved_resource = resource;
	for (int i = 0; i < 3; i++)
		pids[i] = stage_start(s, i, TEST_SECS, one_of_three);
	for (int i = 0; i < 3; i++)
		ok &= stage_ended(s, pids[i], 0);
	assert_true(ok);
}

static void new_peer_waits_for_descriptors(void **state)
{
	run_starved(RLIMIT_NOFILE);
}

static void new_peer_waits_for_memory(void **state)
{
	if (NODE_SANITIZED) {
		print_message("skip: a sanitizer needs memory of its own\n");
		skip();
	}
	run_starved(RLIMIT_AS);
}

/* Opening fails with an error that says so, over any provider. */
static void open_refused(int (*before)(char *why, size_t len), int one, int other)
{
	struct refusal what = { .who = BOTH, .before = before, .may_fail = true };
	struct scene *s = stage_open(sizeof(*s));
	pid_t pids[2];

	refusal = &what;
	pids[0] = stage_start(s, 0, TEST_SECS, asker);
	pids[1] = stage_start(s, 1, TEST_SECS, answerer);
	assert_true(stage_ended(s, pids[0], 0));
	assert_true(stage_ended(s, pids[1], 0));
	for (int i = 0; i < 2; i++)
		if (s->opened[i] != one)
			assert_int_equal(s->opened[i], other);
}

static void no_endpoint_without_descriptors(void **state)
{
	open_refused(no_descriptors, -FI_EMFILE, -FI_EMFILE);
}

static const char *fault;

static int set_fault(char *why, size_t len)
{
	return setenv("WEFT_FAULT", fault, 1);
}

static void no_endpoint_without_memory(void **state)
{
	fault = "mmap:ENOMEM,memfd_create:ENOMEM";
	if (!strcmp(provider, "link")) /* has another way */
		run_each((struct refusal){ .before = set_fault });
	else
		open_refused(set_fault, -FI_ENOMEM, -FI_ENOMEM);
}

/* A shortage that passes: messages that were sent meanwhile arrive. */
static void want_that_passes_costs_time_alone(void **state)
{
	static const char *const faults[] = {
		"mmap:ENOMEM:1:3",
		"memfd_create:EMFILE:1:3",
		"memfd_create:ENOMEM:1:3",
		"open_fd:EMFILE::3",
		"open_image:EMFILE::3",
		"open_image:ENOENT,pidfd_open:EMFILE::3",
		"open_image:ENOENT",
		"open_image:ENOENT,pidfd_open:ENOSYS",
		"process_vm_readv:EPERM,process_vm_writev:EPERM",
		"process_vm_readv:ESRCH:2:2",
		"membarrier:ENOSYS",
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		fault = faults[i];
		print_message("%s\n", fault);
		run_each((struct refusal){ .before = set_fault });
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_user_works),
		cmocka_unit_test(other_memory_refused),
		cmocka_unit_test(old_kernel_without_calls),
		cmocka_unit_test(other_memory_refused_amid),
		cmocka_unit_test(process_closed_to_others),
		cmocka_unit_test(other_user_namespace),
		cmocka_unit_test(proc_unmounted),
		cmocka_unit_test(proc_unmounted_amid),
		cmocka_unit_test(descriptors_used_up),
		cmocka_unit_test(memory_used_up),
		cmocka_unit_test(new_peer_waits_for_descriptors),
		cmocka_unit_test(new_peer_waits_for_memory),
		cmocka_unit_test(no_endpoint_without_descriptors),
		cmocka_unit_test(no_endpoint_without_memory),
		cmocka_unit_test(want_that_passes_costs_time_alone),
	};

	if (argc < 2)
		return 2;
	provider = argv[1];
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	setenv("FI_LOG_SUBSYS", "core", 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
