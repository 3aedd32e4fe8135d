/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses that are strings (FI_ADDR_STR), as programs keep them and hand them in, in memory that ends with
 * them, to a real provider through the public interface. One thread.
 *
 * usage: av_text_test PROVIDER
 */
#include <unistd.h>
#include "av_side.h"

#define MANY 5

/* Endpoints of one domain, the names of all in the vector of the first. */
struct crowd {
	struct side s;
	struct fid_av *av;
	struct fid_ep *ep[MANY];
	struct fid_cq *cq[MANY];
	char name[MANY][ADDR_MAX];
	size_t len;
};

static void crowd_open(struct crowd *c)
{
	size_t len;

	side_open(&c->s);
	assert_int_equal(c->s.info->addr_format, FI_ADDR_STR);
	c->av = av_open(&c->s, NULL, 0);
	for (int i = 0; i < MANY; i++) {
		memset(c->name[i], 0xee, sizeof(c->name[i]));
		c->ep[i] = ep_open(&c->s, c->av, &c->cq[i], c->name[i], &len);
		assert_int_equal(len, strlen(c->name[i]) + 1);
		assert_true(!i || len == c->len); /* programs count on it */
		c->len = len;
	}
}

static void crowd_close(struct crowd *c)
{
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(fi_close(&c->ep[i]->fid), 0);
		assert_int_equal(fi_close(&c->cq[i]->fid), 0);
	}
	assert_int_equal(fi_close(&c->av->fid), 0);
	side_close(&c->s);
}

static const char *without_prefix(const char *name)
{
	const char *at = strstr(name, "://");

	return at ? at + 3 : strchr(name, ':') + 1;
}

static void names_are_short_printable_strings(void **state)
{
	struct crowd c;
	char *name;
	size_t len;

	crowd_open(&c);
	assert_true(c.len <= 56);
	for (size_t i = 0; i + 1 < c.len; i++)
		assert_true(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				   "0123456789-_:/",
				   c.name[0][i]));
	/* How long, then exactly that. */
	len = 0;
	assert_int_equal(fi_getname(&c.ep[0]->fid, NULL, &len), -FI_ETOOSMALL);
	assert_int_equal(len, c.len);
	len = 99;
	assert_int_equal(fi_getname(&c.ep[0]->fid, NULL, &len), -FI_ETOOSMALL);
	assert_int_equal(len, c.len);
	name = malloc(len);
	assert_int_equal(fi_getname(&c.ep[0]->fid, name, &len), 0);
	assert_int_equal(len, c.len);
	assert_string_equal(name, c.name[0]);
	len--;
	assert_int_equal(fi_getname(&c.ep[0]->fid, name, &len), -FI_ETOOSMALL);
	assert_int_equal(len, c.len);
	assert_int_equal(strlen(name), len - 2);
	free(name);
	crowd_close(&c);
}

/* Inserts all, of @len bytes each but the last, which has @last. */
static void inserted(struct crowd *c, const char *bytes, size_t len, size_t last)
{
	char *copy = malloc((MANY - 1) * len + last);
	fi_addr_t out[MANY];
	char got[ADDR_MAX];
	size_t got_len;

	memcpy(copy, bytes, (MANY - 1) * len + last);
	assert_int_equal(fi_av_insert(c->av, copy, MANY, out, 0, NULL), MANY);
	for (int i = 0; i < MANY; i++) {
		got_len = sizeof(got);
		assert_int_equal(fi_av_lookup(c->av, out[i], got, &got_len), 0);
		assert_int_equal(got_len, c->len);
		assert_string_equal(got, c->name[i]);
	}
	assert_int_equal(fi_av_remove(c->av, out, MANY, 0), 0);
	free(copy);
}

static void names_are_inserted_however_they_are_kept(void **state)
{
	static const size_t cells[] = { 48, 56, 64, 128, 200 };
	char bytes[MANY * 256];
	struct crowd c;
	size_t bare;

	crowd_open(&c);
	for (int i = 0; i < MANY; i++)
		memcpy(bytes + (size_t)i * c.len, c.name[i], c.len);
	inserted(&c, bytes, c.len, c.len);
	bare = strlen(without_prefix(c.name[0])) + 1;
	for (int i = 0; i < MANY; i++)
		memcpy(bytes + (size_t)i * bare, without_prefix(c.name[i]), bare);
	inserted(&c, bytes, bare, bare);
	for (size_t j = 0; j < sizeof(cells) / sizeof(cells[0]); j++) {
		if (cells[j] < c.len) /* with IPv6 */
			continue;
		memset(bytes, 0, sizeof(bytes));
		for (int i = 0; i < MANY; i++)
			memcpy(bytes + (size_t)i * cells[j], c.name[i], c.len);
		inserted(&c, bytes, cells[j], cells[j]);
		inserted(&c, bytes, cells[j], c.len);
	}
	crowd_close(&c);
}

static void names_that_are_none_are_told_one_by_one(void **state)
{
	fi_addr_t out[MANY];
	int errors[MANY];
	char bytes[MANY * ADDR_MAX] = "";
	struct crowd c;

	crowd_open(&c);
	for (int i = 0; i < MANY; i++)
		memcpy(bytes + (size_t)i * 64, c.name[i], c.len);
	memset(bytes + 2 * 64, 0, 64);
	bytes[3 * 64 + c.len - 2] = '!';
	assert_int_equal(fi_av_insert(c.av, bytes, MANY, out, FI_SYNC_ERR, errors), MANY - 2);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(errors[i], i == 2 || i == 3 ? FI_EINVAL : 0);
		assert_int_equal(out[i] == FI_ADDR_NOTAVAIL, i == 2 || i == 3);
	}
	crowd_close(&c);
}

static void names_are_nodes_too(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	fi_addr_t addr, again = 77;
	struct crowd c;
	char text[128];
	size_t len;

	crowd_open(&c);
	assert_int_equal(fi_av_insert(c.av, c.name[1], 1, &addr, 0, NULL), 1);
	assert_int_equal(fi_av_insertsvc(c.av, c.name[1], NULL, &again, 0, NULL), 1);
	assert_int_equal(again, addr);
	assert_int_equal(fi_av_insertsvc(c.av, "no address", NULL, &again, 0, NULL), -FI_EINVAL);
	len = sizeof(text);
	assert_ptr_equal(fi_av_straddr(c.av, c.name[1], text, &len), text);
	assert_int_equal(len, c.len);
	assert_string_equal(text, c.name[1]);

	hints->fabric_attr->prov_name = strdup(c.s.info->fabric_attr->prov_name);
	for (int i = 0; i < 3; i++) {
		const uint32_t formats[] = { FI_FORMAT_UNSPEC, FI_ADDR_STR, FI_ADDR_STR };

		hints->addr_format = formats[i];
		assert_int_equal(fi_getinfo(FI_VERSION(1, 20),
					    i == 2 ? without_prefix(c.name[1]) : c.name[1],
					    NULL, 0, hints, &info),
				 0);
		assert_int_equal(info->addr_format, FI_ADDR_STR);
		assert_int_equal(info->dest_addrlen, c.len);
		assert_string_equal(info->dest_addr, c.name[1]);
		fi_freeinfo(info);
	}
	hints->dest_addr = strdup(c.name[1]);
	hints->dest_addrlen = c.len;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info), 0);
	assert_string_equal(info->dest_addr, c.name[1]);
	assert_int_equal(strlen(info->src_addr) + 1, info->src_addrlen);
	fi_freeinfo(info);
	hints->addr_format = FI_SOCKADDR_IN;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info),
			 -FI_ENODATA);
	fi_freeinfo(hints);
	crowd_close(&c);
}

/* The endpoint that has the service has that name: messages to both names arrive at one. */
static void service_leads_to_the_name_behind_it(void **state)
{
	static struct fi_context2 in, out;
	static char word[8];
	char service[16], got[ADDR_MAX], name[ADDR_MAX];
	struct fid_cq *cq, *other_cq;
	struct fid_ep *ep, *other;
	struct fi_info *mine, *info;
	struct fid_av *av;
	struct side s;
	fi_addr_t to;
	size_t len;

	side_open(&s);
	av = av_open(&s, NULL, 0);
	mine = s.info;
	snprintf(service, sizeof(service), "%d", 20000 + getpid() % 10000);
	assert_int_equal(
		fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", service, FI_SOURCE, mine, &info), 0);
	s.info = info;
	ep = ep_open(&s, av, &cq, got, &len);
	s.info = mine;
	other = ep_open(&s, av, &other_cq, name, &len);
	assert_int_equal(fi_av_insertsvc(av, "127.0.0.1", service, &to, 0, NULL), 1);
	len = sizeof(name);
	assert_int_equal(fi_av_lookup(av, to, name, &len), 0);
	assert_int_equal(len, strlen(name) + 1);
	assert_string_equal(name, info->src_addr);
	assert_int_equal(fi_trecv(ep, word, sizeof(word), NULL, FI_ADDR_UNSPEC, 1, 0, &in), 0);
	assert_int_equal(fi_tsend(other, "message", 8, NULL, to, 1, &out), 0);
	completion(cq, other_cq, &in);
	completion(other_cq, cq, &out);
	assert_string_equal(word, "message");
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&other->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&other_cq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	fi_freeinfo(info);
	side_close(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_short_printable_strings),
		cmocka_unit_test(names_are_inserted_however_they_are_kept),
		cmocka_unit_test(names_that_are_none_are_told_one_by_one),
		cmocka_unit_test(names_are_nodes_too),
		cmocka_unit_test(service_leads_to_the_name_behind_it),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	if (!side_choose(argv[1]))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
