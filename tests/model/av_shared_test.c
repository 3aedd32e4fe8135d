/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors that processes share by a name, over a real provider and through the public
 * interface: processes that create them, open them, die and race. One thread in each child.
 *
 *	usage: av_shared_test PROVIDER
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "av_side.h"

static char shared_name[64];

static int name_anew(void **state)
{
	static int n;

	snprintf(shared_name, sizeof(shared_name), "av-test-%d-%d", (int)getpid(), n++);
	return 0;
}

/* Children and their words: a byte at a time. */
struct child {
	pid_t pid;
	int to, from;
};

static struct child child_start(void (*role)(int in, int out))
{
	int down[2], up[2];
	struct child c;

	assert_int_equal(pipe(down), 0);
	assert_int_equal(pipe(up), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid) {
		alarm(WAIT_SECS * 2);
		role(down[0], up[1]);
		_exit(0);
	}
	close(down[0]);
	close(up[1]);
	c.to = down[1];
	c.from = up[0];
	return c;
}

static void child_end(struct child *c, bool kill_it)
{
	int status;

	if (kill_it)
		kill(c->pid, SIGKILL);
	close(c->to);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_true(kill_it || status == 0);
	close(c->from);
}

static void say(int fd, char c)
{
	assert_int_equal(write(fd, &c, 1), 1);
}

static void hear(int fd, char what)
{
	char c = 0;

	assert_int_equal(read(fd, &c, 1), 1);
	assert_int_equal(c, what);
}

/* The child's assertions do not reach cmocka: they end it. */
#define CHECK(cond)                                                          \
	do {                                                                 \
		if (!(cond)) {                                               \
			fprintf(stderr, "child: %d: %s\n", __LINE__, #cond); \
			_exit(1);                                            \
		}                                                            \
	} while (0)

/* Makes the vector with its own endpoint in it, answers messages by their source, removes it. */
static void maker(int in, int out)
{
	struct fi_context2 context;
	struct fi_cq_tagged_entry entry;
	fi_addr_t addr = 7, src = 0;
	struct fid_av *av;
	struct side s;
	uint64_t word;
	ssize_t ret;

	side_open(&s);
	av = av_open(&s, shared_name, 0);
	side_enable(&s, av);
	CHECK(fi_av_insert(av, s.name, 1, &addr, 0, NULL) == 1 && !addr);
	CHECK(!fi_trecv(s.ep, &word, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &context));
	say(out, 'm');
	while ((ret = fi_cq_readfrom(s.cq, &entry, 1, &src)) == -FI_EAGAIN)
		;
	CHECK(ret == 1 && src == 1); /* inserted by the other process */
	CHECK(!fi_tinject(s.ep, "answer", 7, src, 2));
	for (fi_addr_t gone = 0; fi_cq_read(s.cq, &entry, 1) == -FI_EAGAIN && gone < 1000;
	     gone++)
		;
	hear(in, 'r');
	CHECK(!fi_av_remove(av, &addr, 1, 0));
	say(out, 'r');
	hear(in, 'e');
	CHECK(!fi_close(&s.ep->fid));
	s.ep = NULL;
	CHECK(!fi_close(&av->fid));
	side_close(&s);
}

static void processes_share_a_vector_and_talk_over_it(void **state)
{
	struct child c = child_start(maker);
	struct fi_av_attr attr = { .name = shared_name, .type = FI_AV_MAP };
	struct fi_context2 in, out;
	char name[ADDR_MAX];
	struct fid_av *av, *reader;
	fi_addr_t addr = 99;
	struct side s;
	uint64_t word;
	size_t len;

	hear(c.from, 'm');
	side_open(&s);
	assert_int_equal(fi_av_open(s.domain, &attr, &av, NULL), 0);
	assert_non_null(attr.map_addr);
	reader = av_open(&s, shared_name, FI_READ);
	side_enable(&s, av);
	len = sizeof(name);
	assert_int_equal(fi_av_lookup(av, 0, name, &len), 0);
	assert_int_equal(fi_av_insert(av, s.name, 1, &addr, 0, NULL), 1);
	assert_int_equal(addr, 1);
	assert_int_equal(((fi_addr_t *)attr.map_addr)[0], 0);
	assert_int_equal(((fi_addr_t *)attr.map_addr)[1], 1);
	len = sizeof(name);
	assert_int_equal(fi_av_lookup(reader, 1, name, &len), 0);
	assert_memory_equal(name, s.name, len);
	assert_int_equal(fi_trecv(s.ep, &word, 8, NULL, FI_ADDR_UNSPEC, 2, 0, &in), 0);
	assert_int_equal(fi_tsend(s.ep, "question", 8, NULL, 0, 1, &out), 0);
	completion(s.cq, NULL, &out);
	assert_int_equal(completion(s.cq, NULL, &in), 0);
	assert_string_equal((char *)&word, "answer");

	assert_int_equal(fi_av_insert(reader, s.name, 1, &addr, 0, NULL), -FI_EACCES);
	assert_int_equal(fi_av_remove(reader, &addr, 1, 0), -FI_EACCES);
	assert_int_equal(fi_av_insert(av, s.name, 1, &addr, 0, NULL), 1);
	/* As often as all processes have inserted it, or not at all. */
	assert_int_equal(fi_av_remove(av, (fi_addr_t[]){ addr, addr, addr }, 3, 0), -FI_EINVAL);
	say(c.to, 'r');
	hear(c.from, 'r');
	len = sizeof(name);
	assert_int_equal(fi_av_lookup(reader, 0, name, &len), -FI_EINVAL);
	assert_int_equal(fi_av_lookup(av, 0, name, &len), -FI_EINVAL);
	assert_int_equal(fi_tsend(s.ep, "question", 8, NULL, 0, 1, &out), -FI_EINVAL);
	say(c.to, 'e');
	child_end(&c, false);
	/* The name is gone; a process that has the vector open keeps its addresses. */
	assert_int_equal(fi_av_lookup(av, 1, name, &len), 0);
	assert_int_equal(
		opened(&s, (struct fi_av_attr){ .name = shared_name, .flags = FI_READ }),
		-FI_ENOENT);
	assert_int_equal(fi_close(&reader->fid), 0);
	assert_int_equal(fi_close(&s.ep->fid), 0);
	s.ep = NULL;
	assert_int_equal(fi_close(&av->fid), 0);
	side_close(&s);
}

static void keeper(int in, int out)
{
	struct fid_av *av;
	struct side s;

	side_open(&s);
	av = av_open(&s, shared_name, 0);
	side_enable(&s, av);
	CHECK(fi_av_insert(av, s.name, 1, NULL, 0, NULL) == 1);
	say(out, 'k');
	for (;;)
		pause();
}

static void killed_maker_leaves_no_name(void **state)
{
	struct child c = child_start(keeper);
	struct fid_av *old, *av;
	char name[ADDR_MAX];
	size_t len = sizeof(name);
	struct side s;

	hear(c.from, 'k');
	side_open(&s);
	old = av_open(&s, shared_name, 0);
	child_end(&c, true);
	assert_int_equal(
		opened(&s, (struct fi_av_attr){ .name = shared_name, .flags = FI_READ }),
		-FI_ENOENT);
	av = av_open(&s, shared_name, 0);
	assert_int_equal(fi_av_lookup(old, 0, name, &len), 0);
	assert_int_equal(fi_av_lookup(av, 0, name, &len), -FI_EINVAL);
	side_enable(&s, av);
	assert_int_equal(fi_av_insert(old, s.name, 1, NULL, 0, NULL), 1);
	assert_int_equal(fi_av_lookup(av, 0, name, &len), -FI_EINVAL);
	assert_int_equal(fi_close(&s.ep->fid), 0);
	s.ep = NULL;
	assert_int_equal(fi_close(&old->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	side_close(&s);
}

/* Makes the vector, and a child that has what it has until the test has heard enough, and changes nothing. */
static void parent(int in, int out)
{
	struct fid_av *av;
	struct side s;

	side_open(&s);
	av = av_open(&s, shared_name, 0);
	side_enable(&s, av);
	say(out, 'p');
	if (!fork()) {
		alarm(WAIT_SECS * 2);
		CHECK(fi_av_insert(av, s.name, 1, NULL, 0, NULL) == -FI_EOPBADSTATE);
		say(out, 'c');
		hear(in, 'e');
		_exit(0);
	}
	for (;;)
		pause();
}

static void killed_maker_leaves_no_name_to_its_children(void **state)
{
	struct child c = child_start(parent);
	struct fid_av *av;
	struct side s;
	char none;

	hear(c.from, 'p');
	hear(c.from, 'c');
	kill(c.pid, SIGKILL);
	assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);
	side_open(&s);
	assert_int_equal(
		opened(&s, (struct fi_av_attr){ .name = shared_name, .flags = FI_READ }),
		-FI_ENOENT);
	av = av_open(&s, shared_name, 0);
	assert_int_equal(fi_close(&av->fid), 0);
	side_close(&s);
	say(c.to, 'e');
	assert_int_equal(read(c.from, &none, 1), 0);
	close(c.to);
	close(c.from);
}

#define MAKERS 4
#define EACH   30

/* Inserts addresses, says where they are. */
static void racer(int in, int out)
{
	struct fid_ep *ep[EACH];
	struct fid_cq *cq[EACH];
	struct fid_av *av, *own;
	fi_addr_t at[EACH];
	char name[ADDR_MAX];
	struct side s;
	size_t len;

	side_open(&s);
	own = av_open(&s, NULL, 0);
	hear(in, 'g');
	av = av_open(&s, shared_name, 0);
	/* All stay open: an address of one that is closed may come again. */
	for (int i = 0; i < EACH; i++) {
		ep[i] = ep_open(&s, own, &cq[i], name, &len);
		CHECK(fi_av_insert(av, name, 1, &at[i], 0, NULL) == 1);
	}
	CHECK(write(out, at, sizeof(at)) == sizeof(at));
	hear(in, 'e');
	for (int i = 0; i < EACH; i++) {
		CHECK(!fi_close(&ep[i]->fid));
		CHECK(!fi_close(&cq[i]->fid));
	}
	CHECK(!fi_close(&own->fid));
	CHECK(!fi_close(&av->fid));
	side_close(&s);
}

static void makers_at_once_make_one_vector(void **state)
{
	bool seen[MAKERS * EACH] = { false };
	struct child c[MAKERS];
	fi_addr_t at[EACH];

	for (int i = 0; i < MAKERS; i++)
		c[i] = child_start(racer);
	for (int i = 0; i < MAKERS; i++)
		say(c[i].to, 'g');
	for (int i = 0; i < MAKERS; i++) {
		for (size_t got = 0; got < sizeof(at);) {
			ssize_t n = read(c[i].from, (char *)at + got, sizeof(at) - got);

			assert_true(n > 0);
			got += (size_t)n;
		}
		for (int n = 0; n < EACH; n++) {
			assert_true(at[n] < MAKERS * EACH);
			assert_false(seen[at[n]]);
			seen[at[n]] = true;
		}
	}
	for (int i = 0; i < MAKERS; i++)
		say(c[i].to, 'e');
	for (int i = 0; i < MAKERS; i++)
		child_end(&c[i], false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(processes_share_a_vector_and_talk_over_it, name_anew),
		cmocka_unit_test_setup(killed_maker_leaves_no_name, name_anew),
		cmocka_unit_test_setup(killed_maker_leaves_no_name_to_its_children, name_anew),
		cmocka_unit_test_setup(makers_at_once_make_one_vector, name_anew),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	if (!side_choose(argv[1]))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
