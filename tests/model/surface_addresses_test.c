/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of address vectors and of their sets: each slot of each of their tables works, or is
 * refused with -FI_ENOSYS. See surface.h.
 *
 * usage: surface_addresses_test PROVIDER
 */
#include "surface.h"

static char name[128];
static size_t name_len;

/* Address vectors: u->arg is one with FI_AV_USER_ID that is no endpoint's */

static ssize_t call_insert(struct subject *u)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	int ret = fi_av_insert(u->arg, name, 1, &addr, 0, NULL);

	assert_int_equal(addr, 0);
	return ret == 1 ? 0 : ret;
}

static const char *service(void)
{
	return strcmp(surface_provider, "shm") ? "4711" : "job-1";
}

static ssize_t call_insertsvc(struct subject *u)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	int ret = fi_av_insertsvc(u->arg, "127.0.0.1", service(), &addr, 0, NULL);

	assert_int_equal(addr, 1);
	return ret == 1 ? 0 : ret;
}

static ssize_t call_insertsym(struct subject *u)
{
	fi_addr_t addr[2] = { FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL };
	int ret = fi_av_insertsym(u->arg, "127.0.0.1", 1, service(), 2, addr, 0, NULL);

	assert_int_equal(addr[0], 1); /* that one it has */
	assert_int_equal(addr[1], 2);
	return ret == 2 ? 0 : ret;
}

static ssize_t call_remove(struct subject *u)
{
	fi_addr_t addr = 2;
	int ret = fi_av_remove(u->arg, &addr, 1, 0);
	char other[128];
	size_t len = sizeof(other);

	if (!ret)
		assert_int_equal(fi_av_lookup(u->arg, addr, other, &len), -FI_EINVAL);
	return ret;
}

static ssize_t call_lookup(struct subject *u)
{
	char other[128];
	size_t len = sizeof(other);
	int ret = fi_av_lookup(u->arg, 0, other, &len);

	assert_int_equal(len, name_len);
	assert_memory_equal(other, name, len);
	return ret;
}

static ssize_t call_straddr(struct subject *u)
{
	char text[128] = "";
	size_t len = sizeof(text);

	assert_ptr_equal(fi_av_straddr(u->arg, name, text, &len), text);
	assert_int_equal(len, strlen(text) + 1);
	assert_non_null(strchr(text, ':'));
	return 0;
}

static ssize_t call_av_set(struct subject *u)
{
	struct fi_av_set_attr attr = { .flags = FI_UNIVERSE };
	struct fid_av_set *set = NULL;
	int ret = fi_av_set(u->arg, &attr, &set, NULL);

	return OPENED(u, ret, set, FI_CLASS_AV_SET);
}

static ssize_t call_insert_key(struct subject *u)
{
	fi_addr_t addr;

	return fi_av_insert_auth_key(u->arg, "key", 3, &addr, 0);
}

static ssize_t call_lookup_key(struct subject *u)
{
	size_t len = sizeof(u->in);

	return fi_av_lookup_auth_key(u->arg, 0, u->in, &len);
}

static ssize_t call_user_id(struct subject *u)
{
	assert_int_equal(fi_av_set_user_id(u->arg, 99, 77, 0),
			 -FI_EINVAL); /* address of no endpoint */
	return fi_av_set_user_id(u->arg, 0, 77, 0);
}

static ssize_t call_lookup2(struct subject *u)
{
	char other[128];
	size_t len = 1;
	int ret;

	assert_int_equal(fi_av_lookup2(u->arg, 0, other, &len, 0, NULL), -FI_ETOOSMALL);
	assert_int_equal(len, name_len);
	ret = fi_av_lookup2(u->arg, 0, other, &len, 0, NULL);
	assert_memory_equal(other, name, len);
	return ret;
}

static const struct slot av_slots[] = {
	SLOT(fi_ops_av, insert, 0, call_insert, NULL),
	SLOT(fi_ops_av, insertsvc, 0, call_insertsvc, NULL),
	SLOT(fi_ops_av, insertsym, 0, call_insertsym, NULL),
	SLOT(fi_ops_av, remove, 0, call_remove, NULL),
	SLOT(fi_ops_av, lookup, 0, call_lookup, NULL),
	SLOT(fi_ops_av, straddr, 0, call_straddr, NULL),
	SLOT(fi_ops_av, av_set, 0, call_av_set, NULL),
	SLOT(fi_ops_av, insert_auth_key, DOES_NOT, call_insert_key, NULL),
	SLOT(fi_ops_av, lookup_auth_key, DOES_NOT, call_lookup_key, NULL),
	SLOT(fi_ops_av, set_user_id, 0, call_user_id, NULL),
	SLOT(fi_ops_av, lookup2, 0, call_lookup2, NULL),
};
ALL_SLOTS(fi_ops_av, av_slots);

/* Sets: u->arg contains near alone. An endpoint outside of a set can't join it. */

static struct fid_av_set *set_open(struct surface *s, fi_addr_t member)
{
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL,
				       .end_addr = FI_ADDR_NOTAVAIL };
	struct fid_av_set *set;

	assert_int_equal(fi_av_set(s->av, &attr, &set, NULL), 0);
	if (member != FI_ADDR_NOTAVAIL)
		assert_int_equal(fi_av_set_insert(set, member), 0);
	return set;
}

static bool is_member(struct surface *s, const struct fid_av_set *set)
{
	struct fi_eq_entry event;
	struct fid_mc *mc;
	uint32_t what;
	int ret = fi_join_collective(s->near.ep, FI_ADDR_NOTAVAIL, set, 0, &mc, NULL);

	if (ret) {
		assert_int_equal(ret, -FI_EINVAL);
		return false;
	}
	END_UNTIL(fi_eq_read(s->eq, &what, &event, sizeof(event), 0) > 0,
		  fi_cq_read(s->near.cq, NULL, 0));
	assert_int_equal(what, FI_JOIN_COMPLETE);
	assert_int_equal(fi_close(&mc->fid), 0);
	return true;
}

static ssize_t call_union(struct subject *u)
{
	struct fid_av_set *set = set_open(u->s, FI_ADDR_NOTAVAIL);
	int ret;

	assert_false(is_member(u->s, set));
	ret = fi_av_set_union(set, u->arg);
	assert_true(is_member(u->s, set));
	assert_int_equal(fi_close(&set->fid), 0);
	return ret;
}

static ssize_t call_intersect(struct subject *u)
{
	struct fid_av_set *set = set_open(u->s, u->s->near.addr),
			  *none = set_open(u->s, FI_ADDR_NOTAVAIL);
	int ret = fi_av_set_intersect(set, u->arg);

	assert_true(is_member(u->s, set));
	assert_int_equal(fi_av_set_intersect(set, none), 0);
	assert_false(is_member(u->s, set));
	assert_int_equal(fi_close(&set->fid), 0);
	assert_int_equal(fi_close(&none->fid), 0);
	return ret;
}

static ssize_t call_diff(struct subject *u)
{
	struct fid_av_set *set = set_open(u->s, u->s->near.addr);
	int ret = fi_av_set_diff(set, u->arg);

	assert_false(is_member(u->s, set));
	assert_int_equal(fi_close(&set->fid), 0);
	return ret;
}

static ssize_t call_set_insert(struct subject *u)
{
	struct fid_av_set *set = set_open(u->s, FI_ADDR_NOTAVAIL);
	int ret = fi_av_set_insert(set, u->s->near.addr);

	assert_true(is_member(u->s, set));
	assert_int_equal(fi_close(&set->fid), 0);
	return ret;
}

static ssize_t call_set_remove(struct subject *u)
{
	struct fid_av_set *set = set_open(u->s, u->s->near.addr);
	int ret = fi_av_set_remove(set, u->s->near.addr);

	assert_false(is_member(u->s, set));
	assert_int_equal(fi_close(&set->fid), 0);
	return ret;
}

/* The set is named by its address: a set that is joined within it has to be contained in it. */
static ssize_t call_set_addr(struct subject *u)
{
	struct fid_av_set *both = set_open(u->s, u->s->near.addr);
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	int ret = fi_av_set_addr(u->arg, &addr);
	struct fid_mc *mc;

	assert_int_equal(fi_av_set_insert(both, u->s->far.addr), 0);
	assert_int_not_equal(addr, FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_join_collective(u->s->near.ep, addr, both, 0, &mc, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_close(&both->fid), 0);
	return ret;
}

static const struct slot set_slots[] = {
	SLOT(fi_ops_av_set, set_union, 0, call_union, NULL),
	SLOT(fi_ops_av_set, intersect, 0, call_intersect, NULL),
	SLOT(fi_ops_av_set, diff, 0, call_diff, NULL),
	SLOT(fi_ops_av_set, insert, 0, call_set_insert, NULL),
	SLOT(fi_ops_av_set, remove, 0, call_set_remove, NULL),
	SLOT(fi_ops_av_set, addr, 0, call_set_addr, NULL),
};
ALL_SLOTS(fi_ops_av_set, set_slots);

static void addresses_come_and_go(void **state)
{
	struct fid_av_set *set;
	struct fid_av *av;
	struct surface s;
	struct subject u;

	surface_open(&s, surface_all(), FI_THREAD_SAFE);
	name_len = sizeof(name);
	assert_int_equal(fi_getname(&s.near.ep->fid, name, &name_len), 0);
	for (int type = FI_AV_MAP; type <= FI_AV_TABLE; type++) {
		struct fi_av_attr attr = { .type = (enum fi_av_type)type,
					   .flags = FI_AV_USER_ID };

		assert_int_equal(fi_av_open(s.domain, &attr, &av, NULL), 0);
		surface_subject(&u, &s, type == FI_AV_MAP ? "map" : "table", NULL, 0);
		u.arg = av;
		surface_walk(&u, "fi_ops_av", av->ops, av_slots, COUNT_OF(av_slots));
		assert_int_equal(fi_close(&av->fid), 0);
	}
	set = set_open(&s, s.near.addr);
	surface_subject(&u, &s, "set", NULL, 0);
	u.arg = set;
	surface_walk(&u, "fi_ops_av_set", set->ops, set_slots, COUNT_OF(set_slots));
	assert_int_equal(fi_close(&set->fid), 0);
	surface_close(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_come_and_go),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	surface_provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
