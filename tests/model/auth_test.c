/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authorization keys of a real provider through the public interface: endpoints with the same key
 * talk, others do not. One thread.
 *
 * usage: auth_test PROVIDER
 */
#include "ends.h"

static const char *provider;

struct keyed {
	struct end end;
	char name[128];
	fi_addr_t to;
};

static struct fi_info *offer(const char *domain_key, const char *ep_key)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED;
	if (domain_key) {
		hints->domain_attr->auth_key = (uint8_t *)strdup(domain_key);
		hints->domain_attr->auth_key_size = strlen(domain_key);
	}
	if (ep_key) {
		hints->ep_attr->auth_key = (uint8_t *)strdup(ep_key);
		hints->ep_attr->auth_key_size = strlen(ep_key);
	}
	if (fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

static void keyed_open(struct keyed *k, const char *domain_key, const char *ep_key)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct end *e = &k->end;
	size_t len = sizeof(k->name);

	*k = (struct keyed){ .end.info = offer(domain_key, ep_key) };
	assert_non_null(e->info);
	assert_int_equal(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), 0);
	assert_int_equal(fi_domain(e->fabric, e->info, &e->domain, NULL), 0);
	assert_int_equal(fi_av_open(e->domain, &av_attr, &e->av, NULL), 0);
	assert_int_equal(fi_cq_open(e->domain, &cq_attr, &e->cq, NULL), 0);
	assert_int_equal(fi_endpoint(e->domain, e->info, &e->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(e->ep), 0);
	assert_int_equal(fi_getname(&e->ep->fid, k->name, &len), 0);
}

/* A message from one to the other. Returns 0, or how the send failed. */
static int talk(struct keyed *a, struct keyed *b)
{
	static struct fi_context2 in, out;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	char word[8] = "";
	ssize_t ret, got = -FI_EAGAIN;
	fi_addr_t to;

	assert_int_equal(fi_av_insert(a->end.av, b->name, 1, &to, 0, NULL), 1);
	assert_int_equal(
		fi_trecv(b->end.ep, word, sizeof(word), NULL, FI_ADDR_UNSPEC, 1, 0, &in), 0);
	assert_int_equal(fi_tsend(a->end.ep, "message", 8, NULL, to, 1, &out), 0);
	END_UNTIL((ret = fi_cq_read(a->end.cq, &entry, 1)) != -FI_EAGAIN,
		  got = got == -FI_EAGAIN ? fi_cq_read(b->end.cq, &entry, 1) : got);
	if (ret == -FI_EAVAIL) {
		assert_int_equal(fi_cq_readerr(a->end.cq, &err, 0), 1);
		assert_ptr_equal(err.op_context, &out);
		assert_int_equal(got, -FI_EAGAIN);
		assert_int_equal(fi_cancel(&b->end.ep->fid, &in), 0);
		END_UNTIL(fi_cq_read(b->end.cq, &entry, 1) == -FI_EAVAIL, );
		assert_int_equal(fi_cq_readerr(b->end.cq, &(struct fi_cq_err_entry){ 0 }, 0), 1);
		return err.err;
	}
	END_UNTIL(got == 1, got = fi_cq_read(b->end.cq, &entry, 1));
	assert_string_equal(word, "message");
	return 0;
}

static int both_ways(const char *domain_a, const char *ep_a, const char *domain_b,
		     const char *ep_b)
{
	struct keyed a, b;
	int ret;

	keyed_open(&a, domain_a, ep_a);
	keyed_open(&b, domain_b, ep_b);
	ret = talk(&a, &b);
	assert_int_equal(talk(&b, &a), ret);
	assert_int_equal(talk(&a, &a), 0);
	end_close(&a.end);
	end_close(&b.end);
	return ret;
}

static void same_keys_talk(void **state)
{
	char longest[65];

	memset(longest, 'k', 64);
	longest[64] = '\0';
	assert_int_equal(both_ways(NULL, NULL, NULL, NULL), 0);
	assert_int_equal(both_ways("job 1", NULL, "job 1", NULL), 0);
	assert_int_equal(both_ways("job 1", NULL, NULL, "job 1"), 0);
	assert_int_equal(both_ways("job 1", longest, "job 2", longest), 0);
}

static void other_keys_do_not(void **state)
{
	assert_int_equal(both_ways("job 1", NULL, NULL, NULL), FI_EKEYREJECTED);
	assert_int_equal(both_ways("job 1", NULL, "job 2", NULL), FI_EKEYREJECTED);
	assert_int_equal(both_ways("job 1", "a", "job 1", "b"), FI_EKEYREJECTED);
	assert_int_equal(both_ways("job 1", "a", "job 1", NULL), FI_EKEYREJECTED);
}

static void key_is_in_the_answer_when_there_is_one(void **state)
{
	struct fi_info *info = offer(NULL, NULL);
	char longer[66];

	assert_int_equal(info->domain_attr->auth_key_size + info->ep_attr->auth_key_size, 0);
	assert_null(info->ep_attr->auth_key);
	fi_freeinfo(info);
	info = offer("domain", "endpoint");
	assert_int_equal(info->domain_attr->auth_key_size, 6);
	assert_memory_equal(info->domain_attr->auth_key, "domain", 6);
	assert_int_equal(info->ep_attr->auth_key_size, 8);
	assert_memory_equal(info->ep_attr->auth_key, "endpoint", 8);
	fi_freeinfo(info);
	memset(longer, 'k', 65);
	longer[65] = '\0';
	assert_null(offer(longer, NULL));
	assert_null(offer(NULL, longer));
}

static void impossible_keys_are_refused(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fid_domain *domain;
	struct fi_info *info;
	struct fid_ep *ep;
	struct end e;

	end_open(&e, &attr);
	info = fi_dupinfo(e.info);
	info->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	assert_int_equal(fi_domain(e.fabric, info, &domain, NULL), -FI_EINVAL);
	info->domain_attr->auth_key_size = 0;
	info->ep_attr->auth_key_size = 4;
	assert_int_equal(fi_endpoint(e.domain, info, &ep, NULL), -FI_EINVAL);
	info->ep_attr->auth_key_size = 0;
	fi_freeinfo(info);
	end_close(&e);
}

/* Its structures may end there: what follows is anything. */
static void what_follows_an_info_of_1_4_is_no_key(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct end e = { 0 };

	hints->fabric_attr->prov_name = strdup(provider);
	assert_int_equal(fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, hints, &e.info), 0);
	fi_freeinfo(hints);
	info = fi_dupinfo(e.info);
	info->domain_attr->auth_key_size = info->ep_attr->auth_key_size = 16;
	assert_int_equal(fi_fabric(info->fabric_attr, &e.fabric, NULL), 0);
	assert_int_equal(fi_domain(e.fabric, info, &e.domain, NULL), 0);
	assert_int_equal(fi_endpoint(e.domain, info, &e.ep, NULL), 0);
	info->domain_attr->auth_key_size = info->ep_attr->auth_key_size = 0;
	fi_freeinfo(info);
	assert_int_equal(fi_close(&e.ep->fid), 0);
	assert_int_equal(fi_close(&e.domain->fid), 0);
	assert_int_equal(fi_close(&e.fabric->fid), 0);
	fi_freeinfo(e.info);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_keys_talk),
		cmocka_unit_test(other_keys_do_not),
		cmocka_unit_test(key_is_in_the_answer_when_there_is_one),
		cmocka_unit_test(impossible_keys_are_refused),
		cmocka_unit_test(what_follows_an_info_of_1_4_is_no_key),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
