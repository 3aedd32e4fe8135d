/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address vector of a real provider through the public interface: what it is opened with,
 * insertions that end on an event queue, user ids, and ranges of names. One thread.
 *
 * usage: av_test PROVIDER
 */
#include "av_side.h"

/* What it is opened with */

static void attributes_are_checked(void **state)
{
	struct fi_av_attr unspec = { 0 };
	struct fid_av *av;
	struct side s;
	char name[300];

	side_open(&s);
	assert_int_equal(opened(&s, (struct fi_av_attr){ .type = 99 }), 0);
	assert_int_equal(
		opened(&s, (struct fi_av_attr){ .type = FI_AV_MAP, .count = SIZE_MAX }), 0);
	assert_int_equal(
		opened(&s, (struct fi_av_attr){ .ep_per_node = 4, .flags = FI_SYMMETRIC }), 0);
	assert_int_equal(opened(&s, (struct fi_av_attr){ .flags = FI_AV_USER_ID }), 0);
	assert_int_equal(opened(&s, (struct fi_av_attr){ .flags = 1ull << 61 }), -FI_EBADFLAGS);
	assert_int_equal(opened(&s, (struct fi_av_attr){ .flags = FI_SYMMETRIC | FI_PEEK }),
			 -FI_EBADFLAGS);
	assert_int_equal(opened(&s, (struct fi_av_attr){ .rx_ctx_bits = 4 }), 0);
	assert_int_equal(opened(&s, (struct fi_av_attr){ .rx_ctx_bits = 32 }), 0);
	assert_int_equal(opened(&s, (struct fi_av_attr){ .rx_ctx_bits = 33 }), -FI_EINVAL);
	assert_int_equal(opened(&s, (struct fi_av_attr){ .rx_ctx_bits = -1 }), -FI_EINVAL);
	assert_int_equal(opened(&s, (struct fi_av_attr){ .flags = FI_READ }), -FI_EINVAL);
	assert_int_equal(opened(&s, (struct fi_av_attr){ .name = "" }), -FI_EINVAL);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(opened(&s, (struct fi_av_attr){ .name = name }), -FI_EINVAL);
	assert_int_equal(fi_av_open(s.domain, &unspec, &av, NULL), 0);
	assert_int_equal(unspec.type, FI_AV_TABLE);
	assert_int_equal(fi_close(&av->fid), 0);
	side_close(&s);
}

static void addresses_are_looked_up_whole_or_cut(void **state)
{
	char got[ADDR_MAX + 8], text[8], whole[512];
	fi_addr_t addr = 77;
	struct fid_av *av;
	struct side s;
	size_t len;

	side_open(&s);
	av = av_open(&s, NULL, 0);
	side_enable(&s, av);
	assert_int_equal(fi_av_insert(av, NULL, 0, NULL, 0, NULL), 0);
	assert_int_equal(fi_av_insert(av, s.name, 1, &addr, FI_MORE, NULL), 1);
	assert_int_equal(addr, 0);
	len = sizeof(got);
	assert_int_equal(fi_av_lookup(av, 0, got, &len), 0);
	assert_int_equal(len, s.len);
	assert_memory_equal(got, s.name, s.len);
	memset(got, 'x', sizeof(got));
	len = 5;
	assert_int_equal(fi_av_lookup(av, 0, got, &len), 0);
	assert_int_equal(len, s.len);
	assert_memory_equal(got, s.name, 4);
	assert_int_equal(got[4], s.info->addr_format == FI_ADDR_STR ? '\0' : s.name[4]);
	assert_int_equal(got[5], 'x');
	len = 0;
	assert_int_equal(fi_av_lookup(av, 0, NULL, &len), 0);
	assert_int_equal(len, s.len);
	len = sizeof(got);
	assert_int_equal(fi_av_lookup(av, 1, got, &len), -FI_EINVAL);
	assert_int_equal(fi_av_lookup(av, FI_ADDR_NOTAVAIL, got, &len), -FI_EINVAL);
	assert_int_equal(fi_av_lookup(av, 0, got, NULL), -FI_EINVAL);

	len = sizeof(got);
	assert_int_equal(fi_av_lookup2(av, 0, got, &len, 0, NULL), 0);
	len = 5;
	assert_int_equal(fi_av_lookup2(av, 0, got, &len, 0, NULL), -FI_ETOOSMALL);
	assert_int_equal(len, s.len);
	assert_int_equal(fi_av_lookup2(av, 9, got, &len, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_lookup2(av, 0, got, &len, FI_XPU, NULL), -FI_ENOSYS);
	assert_int_equal(fi_av_lookup2(av, 0, got, &len, 1ull << 50, NULL), -FI_EBADFLAGS);

	len = sizeof(whole);
	assert_ptr_equal(fi_av_straddr(av, s.name, whole, &len), whole);
	assert_int_equal(len, strlen(whole) + 1);
	len = sizeof(text);
	fi_av_straddr(av, s.name, text, &len);
	assert_int_equal(len, strlen(whole) + 1);
	assert_int_equal(strlen(text), 7);
	assert_memory_equal(text, whole, 7);

	assert_int_equal(fi_av_insert(av, s.name, 1, NULL, 0, NULL), 1); /* a second reference */
	assert_int_equal(fi_av_remove(av, &addr, 1, 0), 0);
	assert_int_equal(fi_av_remove(av, &addr, 1, FI_AUTH_KEY), -FI_EBADFLAGS);
	assert_int_equal(fi_av_remove(av, NULL, 1, 0), -FI_EINVAL);
	assert_int_equal(fi_av_remove(av, NULL, 0, 0), 0);
	/* All that are named, or none. */
	assert_int_equal(fi_av_remove(av, (fi_addr_t[]){ 0, 5, FI_ADDR_NOTAVAIL }, 3, 0),
			 -FI_EINVAL);
	assert_int_equal(fi_av_remove(av, (fi_addr_t[]){ 0, 0 }, 2, 0), -FI_EINVAL);
	len = sizeof(got);
	assert_int_equal(fi_av_lookup(av, 0, got, &len), 0);
	assert_int_equal(fi_av_insert(av, s.name, 1, NULL, 0, NULL), 1);
	assert_int_equal(fi_av_remove(av, (fi_addr_t[]){ 0, 0, 0 }, 3, 0), -FI_EINVAL);
	assert_int_equal(fi_av_remove(av, (fi_addr_t[]){ 0, 0 }, 2, 0), 0);
	assert_int_equal(fi_av_lookup(av, 0, got, &len), -FI_EINVAL);
	assert_int_equal(fi_av_remove(av, &addr, 1, 0), -FI_EINVAL);

	assert_int_equal(fi_av_insert_auth_key(av, "key", 3, &addr, 0), -FI_ENOSYS);
	assert_int_equal(fi_av_lookup_auth_key(av, 0, got, &len), -FI_ENOSYS);
	assert_int_equal(fi_av_insert(av, s.name, 1, &addr, FI_AUTH_KEY, NULL), -FI_EBADFLAGS);
	assert_int_equal(fi_close(&av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&s.ep->fid), 0);
	s.ep = NULL;
	assert_int_equal(fi_close(&av->fid), 0);
	side_close(&s);
}

/* Insertions that end on an event queue */

/* fi_av_bind; its deprecation does not matter here. */
static int bind_eq(struct fid_av *av, struct fid *target, uint64_t flags)
{
	return av->fid.ops->bind(&av->fid, target, flags);
}

static void event(struct side *s, struct fid_av *av, void *context, uint64_t cnt)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t what = 0;

	assert_int_equal(fi_eq_sread(s->eq, &what, &entry, sizeof(entry), 1000, 0),
			 sizeof(entry));
	assert_int_equal(what, FI_AV_COMPLETE);
	assert_ptr_equal(entry.fid, &av->fid);
	assert_ptr_equal(entry.context, context);
	assert_int_equal(entry.data, cnt);
}

static void error(struct side *s, struct fid_av *av, void *context, uint64_t index)
{
	struct fi_eq_err_entry entry = { 0 };
	struct fi_eq_entry none;
	uint32_t what;
	char text[64];

	assert_int_equal(fi_eq_read(s->eq, &what, &none, sizeof(none), 0), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(s->eq, &entry, 0), sizeof(entry));
	assert_ptr_equal(entry.fid, &av->fid);
	assert_ptr_equal(entry.context, context);
	assert_int_equal(entry.data, index);
	assert_int_equal(entry.err, FI_EINVAL);
	assert_non_null(
		fi_eq_strerror(s->eq, entry.prov_errno, entry.err_data, text, sizeof(text)));
	assert_string_equal(text, fi_strerror(FI_EINVAL));
}

static void no_event(struct side *s)
{
	struct fi_eq_entry entry;
	uint32_t what;

	assert_int_equal(fi_eq_read(s->eq, &what, &entry, sizeof(entry), 0), -FI_EAGAIN);
}

static void insertions_end_on_the_event_queue_in_order(void **state)
{
	char contexts[3], batch[4 * ADDR_MAX];
	struct fid_av *sync, *av;
	fi_addr_t out[4];
	struct side s;

	side_open(&s);
	sync = av_open(&s, NULL, 0);
	side_enable(&s, sync);
	av = av_open(&s, NULL, FI_EVENT);
	assert_int_equal(fi_av_insert(av, s.name, 1, out, 0, &contexts[0]), -FI_ENOEQ);
	if (ports)
		assert_int_equal(fi_av_insertsvc(av, "127.0.0.1", "7", out, 0, NULL), -FI_ENOEQ);
	assert_int_equal(bind_eq(av, &s.cq->fid, 0), -FI_EINVAL);
	assert_int_equal(bind_eq(av, &s.eq->fid, FI_SEND), -FI_EBADFLAGS);
	assert_int_equal(bind_eq(av, &s.eq->fid, 0), 0);
	assert_int_equal(bind_eq(av, &s.eq->fid, 0), 0); /* again */

	assert_int_equal(fi_av_insert(av, s.name, 1, out, FI_SYNC_ERR, &contexts[0]),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_av_insert(av, NULL, 1, out, 0, &contexts[0]), -FI_EINVAL);
	no_event(&s);

	/* Good, bad, good, bad; then none at all; then without an array. */
	memset(batch, 0x5a, sizeof(batch));
	memcpy(batch, s.name, s.len);
	memcpy(batch + 2 * s.len, s.name, s.len);
	if (s.info->addr_format == FI_ADDR_STR)
		batch[2 * s.len - 1] = batch[4 * s.len - 1] = '\0';
	assert_int_equal(fi_av_insert(av, batch, 4, out, FI_MORE, &contexts[0]), 0);
	assert_int_equal(fi_av_insert(av, NULL, 0, NULL, 0, &contexts[1]), 0);
	assert_int_equal(fi_av_insert(av, s.name, 1, NULL, 0, &contexts[2]), 0);
	assert_int_equal(out[0], 0);
	assert_true(out[1] == FI_ADDR_NOTAVAIL && out[3] == FI_ADDR_NOTAVAIL);
	assert_int_equal(out[2], 0);
	error(&s, av, &contexts[0], 1);
	error(&s, av, &contexts[0], 3);
	event(&s, av, &contexts[0], 2);
	event(&s, av, &contexts[1], 0);
	event(&s, av, &contexts[2], 1);
	no_event(&s);
	if (ports) {
		assert_int_equal(fi_av_insertsvc(av, "127.0.0.1", "7", out, 0, &contexts[0]), 0);
		assert_int_equal(
			fi_av_insertsym(av, "127.0.0.1", 1, "65535", 2, out, 0, &contexts[1]),
			0);
		event(&s, av, &contexts[0], 1);
		error(&s, av, &contexts[1], 1);
		event(&s, av, &contexts[1], 1);
	}
	/* Events stay in the queue after the vector is closed. */
	assert_int_equal(fi_av_insert(av, s.name, 1, NULL, 0, &contexts[2]), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	event(&s, av, &contexts[2], 1);
	/* Without FI_EVENT insertions report there, and return what they do without a queue. */
	assert_int_equal(bind_eq(sync, &s.eq->fid, 0), 0);
	assert_int_equal(fi_av_insert(sync, s.name, 1, out, 0, &contexts[0]), 1);
	event(&s, sync, &contexts[0], 1);
	no_event(&s);
	assert_int_equal(fi_close(&s.ep->fid), 0);
	s.ep = NULL;
	assert_int_equal(fi_close(&sync->fid), 0);
	side_close(&s);
}

/* User ids */

/* Two endpoints in one domain, each with a vector of its own. */
struct two {
	struct side s; /* the receiver is s.ep */
	struct fid_av *av, *other_av;
	struct fid_cq *other_cq;
	struct fid_ep *other;
	char other_name[ADDR_MAX];
	fi_addr_t to;
};

static void two_open(struct two *t, uint64_t flags)
{
	size_t len;

	side_open(&t->s);
	t->av = av_open(&t->s, NULL, flags);
	side_enable(&t->s, t->av);
	t->other_av = av_open(&t->s, NULL, 0);
	t->other = ep_open(&t->s, t->other_av, &t->other_cq, t->other_name, &len);
	assert_int_equal(fi_av_insert(t->other_av, t->s.name, 1, &t->to, 0, NULL), 1);
}

static void two_close(struct two *t)
{
	assert_int_equal(fi_close(&t->other->fid), 0);
	assert_int_equal(fi_close(&t->other_cq->fid), 0);
	assert_int_equal(fi_close(&t->other_av->fid), 0);
	assert_int_equal(fi_close(&t->s.ep->fid), 0);
	t->s.ep = NULL;
	assert_int_equal(fi_close(&t->av->fid), 0);
	side_close(&t->s);
}

/* The source that the receiver reports for a message of the other one. */
static fi_addr_t source(struct two *t)
{
	static struct fi_context2 in, out;
	static uint64_t word;
	fi_addr_t src;

	assert_int_equal(
		fi_trecv(t->s.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, 1, 0, &in), 0);
	assert_int_equal(fi_tsend(t->other, "message", 8, NULL, t->to, 1, &out), 0);
	src = completion(t->s.cq, t->other_cq, &in);
	completion(t->other_cq, t->s.cq, &out);
	return src;
}

static void id_of_an_insertion_is_told_in_completions(void **state)
{
	static struct fi_context2 context;
	fi_addr_t addr = 0xabcdef;
	static uint64_t word;
	struct two t;

	two_open(&t, 0);
	assert_true(source(&t) == FI_ADDR_NOTAVAIL); /* connected before it is inserted */
	assert_int_equal(fi_av_insert(t.av, t.other_name, 1, NULL, FI_AV_USER_ID, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_av_set_user_id(t.av, 0, 5, 0), -FI_EINVAL);
	assert_int_equal(fi_av_insert(t.av, t.other_name, 1, &addr, FI_AV_USER_ID, NULL), 1);
	assert_int_equal(addr, 0);
	assert_int_equal(source(&t), 0xabcdef);
	addr = 1ull << 63;
	assert_int_equal(fi_av_insert(t.av, t.other_name, 1, &addr, FI_AV_USER_ID, NULL), 1);
	assert_int_equal(addr, 0);
	assert_true(source(&t) == 1ull << 63);
	/* Transfers go by the address. */
	assert_int_equal(fi_trecv(t.other, &word, 8, NULL, FI_ADDR_UNSPEC, 2, 0, &context), 0);
	assert_int_equal(fi_tinject(t.s.ep, "back", 5, 0, 2), 0);
	completion(t.other_cq, t.s.cq, &context);
	two_close(&t);
}

static void id_that_is_set_later_is_told_in_completions(void **state)
{
	fi_addr_t addr = 1234;
	struct two t;

	two_open(&t, FI_AV_USER_ID);
	assert_int_equal(fi_av_insert(t.av, t.other_name, 1, &addr, FI_AV_USER_ID, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_av_insert(t.av, t.other_name, 1, &addr, 0, NULL), 1);
	assert_int_equal(addr, 0);
	assert_true(source(&t) == FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_av_set_user_id(t.av, 1, 5, 0), -FI_EINVAL);
	assert_int_equal(fi_av_set_user_id(t.av, 0, 5, FI_AUTH_KEY), -FI_EBADFLAGS);
	assert_int_equal(fi_av_set_user_id(t.av, 0, 5, 0), 0);
	assert_int_equal(source(&t), 5);
	assert_int_equal(fi_av_set_user_id(t.av, 0, 6, 0), 0);
	assert_int_equal(source(&t), 6);
	assert_int_equal(fi_av_remove(t.av, &addr, 1, 0), 0);
	assert_true(source(&t) == FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_av_insert(t.av, t.other_name, 1, &addr, 0, NULL), 1);
	assert_true(source(&t) == FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_av_set_user_id(t.av, 0, 7, 0), 0);
	assert_int_equal(source(&t), 7);
	two_close(&t);
}

/* Ranges */

static void stands_at(struct fid_av *av, fi_addr_t at, const char *end)
{
	char addr[ADDR_MAX], text[256];
	size_t len = sizeof(addr);

	assert_int_equal(fi_av_lookup(av, at, addr, &len), 0);
	len = sizeof(text);
	fi_av_straddr(av, addr, text, &len);
	if (!strstr(text, end))
		fail_msg("%s at %d, not %s", text, (int)at, end);
}

static void ranges_of_nodes_and_services_are_inserted_in_order(void **state)
{
	fi_addr_t out[8] = { 0 };
	int errors[4];
	struct fid_av *av;
	struct side s;

	side_open(&s);
	av = av_open(&s, NULL, FI_SYMMETRIC);
	if (!ports) {
		assert_int_equal(fi_av_insertsvc(av, "localhost", "job-8", out, 0, NULL), 1);
		assert_int_equal(fi_av_insertsym(av, "localhost", 1, "job-8", 3, out,
						 FI_SYNC_ERR, errors),
				 3);
		assert_true(out[0] == 0 && out[1] == 1 && out[2] == 2);
		stands_at(av, 2, "job-10");
		/* Services of this host alone, whose names can be counted. */
		assert_int_equal(fi_av_insertsym(av, "127.0.0.1", 2, "5000", 1, out,
						 FI_SYNC_ERR, errors),
				 1);
		assert_int_equal(errors[1], FI_EINVAL);
		assert_int_equal(
			fi_av_insertsym(av, "localhost", 1, "job", 2, out, FI_SYNC_ERR, errors),
			1);
		assert_int_equal(errors[1], FI_EINVAL);
		goto end;
	}
	assert_int_equal(fi_av_insertsym(av, "10.1.1.1", 2, "5000", 2, out, 0, NULL), 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(out[i], i);
	stands_at(av, 0, "10.1.1.1:5000");
	stands_at(av, 1, "10.1.1.1:5001");
	stands_at(av, 2, "10.1.1.2:5000");
	stands_at(av, 3, "10.1.1.2:5001");
	assert_int_equal(fi_av_insertsym(av, "10.1.255.255", 2, "9", 1, NULL, 0, NULL), 2);
	stands_at(av, 4, "10.1.255.255:9");
	stands_at(av, 5, "10.2.0.0:9");
	assert_int_equal(
		fi_av_insertsym(av, "10.9.9.9", 1, "65534", 4, out, FI_SYNC_ERR, errors), 2);
	stands_at(av, 7, "10.9.9.9:65535");
	assert_true(!errors[0] && !errors[1] && errors[2] == FI_EINVAL &&
		    errors[3] == FI_EINVAL);
	assert_true(out[1] == 7 && out[2] == FI_ADDR_NOTAVAIL && out[3] == FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_av_insertsym(av, "10.1.1.1", 0, "5000", 2, out, 0, NULL), 0);
	assert_int_equal(fi_av_insertsym(av, "10.1.1.1", 2, "5000", 0, out, 0, NULL), 0);
	assert_int_equal(fi_av_insertsym(av, "10.1.1.1", SIZE_MAX, "5000", 2, out, 0, NULL),
			 -FI_EINVAL);
	assert_int_equal(
		fi_av_insertsym(av, "10.1.1.1", 1u << 16, "5000", 1u << 15, out, 0, NULL),
		-FI_EINVAL);
	assert_int_equal(fi_av_insertsym(av, NULL, 1, "5000", 1, out, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insertsym(av, "10.1.1.1", 1, NULL, 1, out, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insertsym(av, "host", 2, "5000", 1, out, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insertsvc(av, "10.3.3.3", "5000", out, 0, NULL), 1);
	stands_at(av, 8, "10.3.3.3:5000");
	assert_int_equal(
		fi_av_insertsvc(av, "fi_sockaddr_in://10.4.4.4:6000", NULL, out, 0, NULL), 1);
	stands_at(av, 9, "10.4.4.4:6000");
	assert_int_equal(fi_av_insertsvc(av, "10.3.3.3", NULL, out, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insertsvc(av, "fi_sockaddr_in://10.4.4.4", NULL, out, 0, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_av_insertsvc(av, "fi_sockaddr_in6://[::1:7", NULL, out, 0, NULL),
			 -FI_EINVAL);
	assert_true(fi_av_insertsvc(av, "10.3.3.3", "70000", out, FI_SYNC_ERR, errors) < 0);
	assert_int_not_equal(errors[0], 0);
	assert_true(out[0] == FI_ADDR_NOTAVAIL);
end:
	assert_int_equal(fi_close(&av->fid), 0);
	side_close(&s);
}

/* No endpoint can be at these addresses: fi_av_insert does not accept them either. */
static void name_that_means_any_host_is_not_inserted(void **state)
{
	fi_addr_t out[2] = { 0 };
	int errors[2];
	struct fid_av *av;
	struct side s;

	side_open(&s);
	av = av_open(&s, NULL, 0);
	if (!ports) { /* its services are of this host, whatever that is called */
		assert_int_equal(fi_av_insertsvc(av, "0.0.0.0", "5000", out, 0, NULL), 1);
		goto end;
	}
	assert_int_equal(fi_av_insertsvc(av, "0.0.0.0", "5000", out, FI_SYNC_ERR, errors),
			 -FI_ENODATA);
	assert_int_equal(errors[0], FI_ENODATA);
	assert_true(out[0] == FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_av_insertsym(av, "0.0.0.0", 1, "5000", 2, out, 0, NULL), 0);
	assert_int_equal(fi_av_insertsvc(av, "10.3.3.3", "5000", out, 0, NULL), 1);
	assert_int_equal(out[0], 0);
end:
	assert_int_equal(fi_close(&av->fid), 0);
	side_close(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_are_checked),
		cmocka_unit_test(addresses_are_looked_up_whole_or_cut),
		cmocka_unit_test(insertions_end_on_the_event_queue_in_order),
		cmocka_unit_test(id_of_an_insertion_is_told_in_completions),
		cmocka_unit_test(id_that_is_set_later_is_told_in_completions),
		cmocka_unit_test(ranges_of_nodes_and_services_are_inserted_in_order),
		cmocka_unit_test(name_that_means_any_host_is_not_inserted),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	if (!side_choose(argv[1]))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
