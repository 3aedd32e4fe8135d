/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The event queue of a real provider through the public interface: what it is opened with, events
 * of the program's own, errors in their place, waiting, and the progress that reading makes. One
 * thread, and a second one to be waited for; and a forked process with a copy of a queue.
 *
 * usage: eq_test PROVIDER
 */
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ends.h"

static const char *provider;

static struct fid_eq *eq_open(struct end *e, enum fi_wait_obj wait)
{
	struct fi_eq_attr attr = { .size = 1, .flags = FI_WRITE, .wait_obj = wait };
	struct fid_eq *eq = NULL;

	assert_int_equal(fi_eq_open(e->fabric, &attr, &eq, e), 0);
	assert_ptr_equal(eq->fid.context, e);
	return eq;
}

static int opened(struct end *e, struct fi_eq_attr attr)
{
	struct fid_eq *eq = NULL;
	int ret = fi_eq_open(e->fabric, &attr, &eq, NULL);

	if (!ret)
		assert_int_equal(fi_close(&eq->fid), 0);
	else
		assert_null(eq);
	return ret;
}

static void attributes_are_checked(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fid_eq *eq;
	struct end e;

	end_open(&e, &attr);
	assert_int_equal(opened(&e, (struct fi_eq_attr){ .wait_obj = FI_WAIT_NONE }), 0);
	assert_int_equal(
		opened(&e, (struct fi_eq_attr){ .wait_obj = FI_WAIT_UNSPEC, .size = SIZE_MAX }),
		0);
	assert_int_equal(opened(&e, (struct fi_eq_attr){ .wait_obj = FI_WAIT_YIELD,
							 .flags = FI_AFFINITY }),
			 0);
	assert_int_equal(opened(&e, (struct fi_eq_attr){ .wait_obj = (enum fi_wait_obj)99 }),
			 -FI_EINVAL);
	assert_int_equal(opened(&e, (struct fi_eq_attr){ .flags = FI_SEND }), -FI_EBADFLAGS);
	assert_int_equal(fi_eq_open(e.fabric, NULL, &eq, NULL), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	end_close(&e);
}

static void written_events_are_read_in_order(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_eq_entry in = { 0 }, got;
	uint32_t event = 0;
	struct fid_eq *eq;
	struct end e;

	end_open(&e, &attr);
	eq = eq_open(&e, FI_WAIT_NONE);
	assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_sread(eq, &event, &got, sizeof(got), 0, 0), -FI_ENOSYS);
	for (uint64_t i = 0; i < 1000; i++) { /* more than it was opened for: it grows */
		in = (struct fi_eq_entry){ .fid = &eq->fid, .context = &e, .data = i };
		assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
	}
	for (uint64_t i = 0; i < 2000; i++) {
		assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), i % 2 ? 0 : FI_PEEK),
				 sizeof(got));
		assert_int_equal(event, FI_NOTIFY);
		assert_ptr_equal(got.fid, &eq->fid);
		assert_ptr_equal(got.context, &e);
		assert_int_equal(got.data, i / 2);
	}
	assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), FI_PEEK), -FI_EAGAIN);

	assert_int_equal(fi_eq_write(eq, 12345, NULL, 0, 0), 0); /* any event, of any length */
	assert_int_equal(fi_eq_read(eq, &event, NULL, 0, 0), 0);
	assert_int_equal(event, 12345);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, NULL, 8, 0), -FI_EINVAL);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, 8, FI_MORE), -FI_EBADFLAGS);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
	assert_int_equal(fi_eq_read(eq, &event, &got, 8, 0), -FI_ETOOSMALL);
	assert_int_equal(fi_eq_read(eq, NULL, &got, sizeof(got), 0), -FI_EINVAL);
	assert_int_equal(fi_eq_read(eq, &event, NULL, sizeof(got), 0), -FI_EINVAL);
	assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), FI_SEND), -FI_EBADFLAGS);
	assert_int_equal(fi_close(&eq->fid), 0); /* with one unread: leak checkers watch */
	end_close(&e);
}

/* A vector that reports its insertions to @eq. */
static struct fid_av *av_open(struct end *e, struct fid_eq *eq)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_EVENT };
	struct fid_av *av;

	assert_int_equal(fi_av_open(e->domain, &attr, &av, NULL), 0);
	assert_int_equal(av->fid.ops->bind(&av->fid, &eq->fid, 0), 0);
	return av;
}

static void errors_stand_in_their_place(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_eq_err_entry err = { 0 };
	char junk[128], text[40];
	struct fi_eq_entry got;
	struct fid_av *av;
	struct fid_eq *eq;
	uint32_t event;
	struct end e;

	end_open(&e, &attr);
	eq = eq_open(&e, FI_WAIT_UNSPEC);
	av = av_open(&e, eq);
	memset(junk, 0x77, sizeof(junk) - 1);
	junk[sizeof(junk) - 1] = '\0'; /* a string of no address, where those are strings */
	got = (struct fi_eq_entry){ .data = 1 };
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(fi_av_insert(av, junk, 1, NULL, 0, junk), 0);
	assert_int_equal(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN); /* the other one is first */
	assert_int_equal(fi_eq_readerr(eq, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_eq_readerr(eq, &err, FI_SEND), -FI_EBADFLAGS);
	assert_int_equal(fi_eq_sread(eq, &event, &got, sizeof(got), -1, 0), sizeof(got));
	assert_int_equal(fi_eq_sread(eq, &event, &got, sizeof(got), -1, 0), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(eq, &err, FI_PEEK), sizeof(err));
	err = (struct fi_eq_err_entry){ 0 };
	assert_int_equal(fi_eq_readerr(eq, &err, 0), sizeof(err));
	assert_ptr_equal(err.fid, &av->fid);
	assert_ptr_equal(err.context, junk);
	assert_int_equal(err.err, FI_EINVAL);
	assert_int_equal(err.err_data_size, 0);
	assert_string_equal(fi_eq_strerror(eq, err.prov_errno, err.err_data, NULL, 0),
			    fi_strerror(FI_EINVAL));
	assert_ptr_equal(fi_eq_strerror(eq, err.prov_errno, err.err_data, text, 5), text);
	assert_int_equal(strlen(text), 4);
	assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(event, FI_AV_COMPLETE);
	assert_int_equal(got.data, 0);
	/* A vector outlives its queue: then nothing is reported. */
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_av_insert(av, junk, 1, NULL, 0, junk), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	end_close(&e);
}

static void *write_one(void *arg)
{
	struct fi_eq_entry entry = { .data = 42 };

	assert_int_equal(fi_eq_write(arg, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	return NULL;
}

static void waiting_ends_with_an_event_or_in_time(void **state)
{
	static const enum fi_wait_obj waits[] = { FI_WAIT_UNSPEC, FI_WAIT_YIELD, FI_WAIT_FD };
	struct end_attr attr = { .provider = provider };
	struct fi_eq_entry got;
	struct fid_eq *eq;
	pthread_t other;
	uint32_t event;
	double begin;
	struct end e;

	end_open(&e, &attr);
	for (size_t i = 0; i < 3; i++) {
		eq = eq_open(&e, waits[i]);
		begin = end_now();
		assert_int_equal(fi_eq_sread(eq, &event, &got, sizeof(got), 20, 0), -FI_EAGAIN);
		assert_true(end_now() - begin >= 0.02);
		assert_int_equal(fi_eq_sread(eq, &event, &got, sizeof(got), 0, 0), -FI_EAGAIN);
		assert_int_equal(pthread_create(&other, NULL, write_one, eq), 0);
		assert_int_equal(fi_eq_sread(eq, &event, &got, sizeof(got), -1, FI_PEEK),
				 sizeof(got));
		assert_int_equal(fi_eq_sread(eq, &event, &got, sizeof(got), 10, 0), sizeof(got));
		assert_int_equal(got.data, 42);
		assert_int_equal(pthread_join(other, NULL), 0);
		assert_int_equal(fi_close(&eq->fid), 0);
	}
	end_close(&e);
}

static bool rings(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void descriptor_is_readable_while_there_are_events(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_eq_err_entry err = { 0 };
	enum fi_wait_obj obj;
	struct fi_eq_entry got;
	struct fid *fids[1];
	struct fid_eq *eq;
	struct fid_av *av;
	pthread_t other;
	char junk[128];
	uint32_t event;
	struct end e;
	int fd = -1;

	end_open(&e, &attr);
	eq = eq_open(&e, FI_WAIT_YIELD);
	assert_int_equal(fi_control(&eq->fid, FI_GETWAIT, &fd), -FI_ENODATA);
	assert_int_equal(fi_close(&eq->fid), 0);
	eq = eq_open(&e, FI_WAIT_FD);
	fids[0] = &eq->fid;
	assert_int_equal(fi_control(&eq->fid, FI_GETWAIT, &fd), 0);
	assert_int_equal(fi_control(&eq->fid, FI_GETWAITOBJ, &obj), 0);
	assert_int_equal(obj, FI_WAIT_FD);
	assert_int_equal(fi_control(&eq->fid, FI_GETWAIT, NULL), -FI_EINVAL);
	assert_int_equal(fi_control(&eq->fid, FI_ENABLE, &fd), -FI_ENOSYS);
	assert_int_equal(fi_trywait(e.fabric, fids, 1), 0);
	assert_false(rings(fd, 0));
	assert_int_equal(pthread_create(&other, NULL, write_one, eq), 0);
	assert_true(rings(fd, 20000));
	assert_int_equal(pthread_join(other, NULL), 0);
	write_one(eq);
	assert_int_equal(fi_trywait(e.fabric, fids, 1), -FI_EAGAIN);
	assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), FI_PEEK), sizeof(got));
	assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
	assert_true(rings(fd, 0)); /* for the second */
	assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
	assert_false(rings(fd, 0));
	av = av_open(&e, eq);
	memset(junk, 0x77, sizeof(junk) - 1);
	junk[sizeof(junk) - 1] = '\0';
	assert_int_equal(fi_av_insert(av, junk, 1, NULL, 0, junk), 0);
	assert_true(rings(fd, 0));
	assert_int_equal(fi_eq_readerr(eq, &err, 0), sizeof(err));
	assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(fi_trywait(e.fabric, fids, 1), 0);
	assert_false(rings(fd, 0));
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	end_close(&e);
}

/* What a forked process does with its copy of a queue. */
static int used_by_child(struct fid_eq *eq, bool writes)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event;
	int status;
	pid_t pid = fork();

	if (!pid) {
		ssize_t ret = writes ? fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0)
				     : fi_eq_read(eq, &event, &entry, sizeof(entry), 0);

		_exit(ret != sizeof(entry));
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_forked_process_leaves_the_descriptor_of_its_parent_alone(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_eq_entry got;
	struct fid_eq *eq;
	uint32_t event;
	struct end e;
	int fd = -1;

	end_open(&e, &attr);
	eq = eq_open(&e, FI_WAIT_FD);
	assert_int_equal(fi_control(&eq->fid, FI_GETWAIT, &fd), 0);
	assert_int_equal(used_by_child(eq, true), 0);
	assert_false(rings(fd, 0));
	write_one(eq);
	assert_int_equal(used_by_child(eq, false), 0);
	assert_true(rings(fd, 0));
	assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
	assert_false(rings(fd, 0));
	assert_int_equal(fi_close(&eq->fid), 0);
	end_close(&e);
}

/* The sender works on its own; the receiver only looks for events. */
static void reading_makes_progress(void **state)
{
	struct end_attr attr = { .provider = provider, .threading = FI_THREAD_SAFE };
	static struct fi_context2 in, out;
	static volatile uint64_t word;
	struct fi_cq_tagged_entry entry;
	struct fi_eq_entry got;
	struct end a, b;
	struct fid_av *av;
	struct fid_eq *eq;
	uint32_t event;
	fi_addr_t to;

	end_open(&a, &attr);
	end_open(&b, &attr);
	eq = eq_open(&b, FI_WAIT_UNSPEC);
	av = av_open(&b, eq);
	to = end_knows(&a, &b);
	word = 0;
	assert_int_equal(
		fi_trecv(b.ep, (void *)&word, sizeof(word), NULL, FI_ADDR_UNSPEC, 1, 0, &in), 0);
	assert_int_equal(fi_tsend(a.ep, "progress", 8, NULL, to, 1, &out), 0);
	END_UNTIL(word, {
		fi_cq_read(a.cq, &entry, 1);
		assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), 0), -FI_EAGAIN);
	});
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	end_close(&b);
	end_close(&a);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_are_checked),
		cmocka_unit_test(written_events_are_read_in_order),
		cmocka_unit_test(errors_stand_in_their_place),
		cmocka_unit_test(waiting_ends_with_an_event_or_in_time),
		cmocka_unit_test(descriptor_is_readable_while_there_are_events),
		cmocka_unit_test(a_forked_process_leaves_the_descriptor_of_its_parent_alone),
		cmocka_unit_test(reading_makes_progress),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
