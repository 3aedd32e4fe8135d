/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libfabric.so.1 as programs of all ages see it: by symbol version, with structures that end where
 * those of their version end. The library is the argument: the one of this build, or 'stock' for
 * the machine's, into which our loadable provider is loaded the same way.
 *
 * Like any program this one uses libfabric only by its symbols; the loadable provider is found by
 * FI_PROVIDER_PATH.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

typedef int (*getinfo_fn)(uint32_t version, const char *node, const char *service,
			  uint64_t flags, const struct fi_info *hints, struct fi_info **info);
typedef struct fi_info *(*dupinfo_fn)(const struct fi_info *info);
typedef void (*freeinfo_fn)(struct fi_info *info);
typedef int (*fabric_fn)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

static const uint32_t newest_api = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

static void *library;
static bool is_stock;

/* Where the structures of a symbol version end, as its programs were compiled. */
static const struct age {
	const char *version;
	/* version that such a program requests; the provider is of 1.17 */
	uint32_t api;
	size_t info;
	size_t tx_attr;
	size_t rx_attr;
	size_t ep_attr;
	size_t domain_attr;
	size_t fabric_attr;
} ages[] = {
	{ "FABRIC_1.0", FI_VERSION(1, 4), 112, 72, 64, 80, 120, 28 },
	{ "FABRIC_1.1", FI_VERSION(1, 5), 112, 72, 64, 96, 184, 32 },
	{ "FABRIC_1.2", FI_VERSION(1, 7), 120, 72, 64, 96, 184, 32 },
	{ "FABRIC_1.3", FI_VERSION(1, 9), 120, 76, 64, 96, 188, 32 },
	{ "FABRIC_1.7", FI_VERSION(1, 17), 120, 76, 64, 96, 200, 32 },
	{ "FABRIC_1.8", FI_VERSION(1, 17), 120, 76, 64, 96, 204, 32 },
	{ "FABRIC_1.9", FI_VERSION(1, 17), 120, 76, 64, 96, 224, 32 },
	{ "FABRIC_1.10", FI_VERSION(1, 17), 120, 80, 64, 104, 232, 32 },
};
#define AGE_CNT (sizeof(ages) / sizeof(ages[0]))

static void *symbol(const char *name, const char *version)
{
	return dlvsym(library, name, version);
}

/* The versions of the library under test: a stock one ends at FABRIC_1.3 or later. */
static size_t age_cnt(void)
{
	size_t cnt = 0;

	while (cnt < AGE_CNT && symbol("fi_getinfo", ages[cnt].version))
		cnt++;
	return cnt;
}

static void *exactly(size_t len)
{
	void *part = malloc(len);

	memset(part, 0, len);
	return part;
}

/* Hints in memory of exactly the sizes of an age. */
static struct fi_info *old_hints(const struct age *age)
{
	struct fi_info *hints = exactly(age->info);

	hints->caps = FI_TAGGED;
	hints->tx_attr = exactly(age->tx_attr);
	hints->rx_attr = exactly(age->rx_attr);
	hints->ep_attr = exactly(age->ep_attr);
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr = exactly(age->domain_attr);
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr = exactly(age->fabric_attr);
	hints->fabric_attr->prov_name = strdup("answer");
	return hints;
}

static void old_hints_free(struct fi_info *hints)
{
	free(hints->tx_attr);
	free(hints->rx_attr);
	free(hints->ep_attr);
	free(hints->domain_attr);
	free(hints->fabric_attr->prov_name);
	free(hints->fabric_attr);
	free(hints);
}

static void all_functions_exist_at_all_their_versions(void **state)
{
	static const struct {
		const char *name;
		const char *version;
	} known[] = {
		{ "fi_fabric", "FABRIC_1.0" },	    { "fi_fabric", "FABRIC_1.1" },
		{ "fi_fabric2", "FABRIC_1.8" },	    { "fi_tostr", "FABRIC_1.0" },
		{ "fi_tostr_r", "FABRIC_1.4" },	    { "fi_open", "FABRIC_1.5" },
		{ "fi_log_ready", "FABRIC_1.6" },   { "fi_version", "FABRIC_1.0" },
		{ "fi_strerror", "FABRIC_1.0" },    { "fi_log", "FABRIC_1.0" },
		{ "fi_log_enabled", "FABRIC_1.0" }, { "fi_param_define", "FABRIC_1.0" },
		{ "fi_param_get", "FABRIC_1.0" },   { "fi_getparams", "FABRIC_1.0" },
		{ "fi_freeparams", "FABRIC_1.0" },
	};
	size_t i;

	if (is_stock)
		skip();
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!symbol(known[i].name, known[i].version))
			fail_msg("%s@%s is missing", known[i].name, known[i].version);
	assert_int_equal(age_cnt(), AGE_CNT);
	for (i = 0; i < AGE_CNT; i++) {
		assert_non_null(symbol("fi_dupinfo", ages[i].version));
		assert_non_null(symbol("fi_freeinfo", ages[i].version));
	}
	assert_null(symbol("info_dup", "FABRIC_1.10"));
	assert_null(dlsym(library, "info_dup"));
	assert_null(dlsym(library, "fi_getinfo_1_0"));
}

static void hints_of_every_age_are_answered(void **state)
{
	size_t i, cnt = age_cnt();

	for (i = 0; i < cnt; i++) {
		getinfo_fn getinfo = (getinfo_fn)symbol("fi_getinfo", ages[i].version);
		freeinfo_fn freeinfo = (freeinfo_fn)symbol("fi_freeinfo", ages[i].version);
		struct fi_info *hints = old_hints(&ages[i]), *info = NULL;

		assert_int_equal(getinfo(ages[i].api, NULL, NULL, 0, hints, &info), 0);
		assert_string_equal(info->fabric_attr->prov_name, "answer");
		assert_int_equal(info->fabric_attr->prov_version, FI_VERSION(4, 2));
		assert_int_equal(info->caps, FI_TAGGED | FI_SEND | FI_RECV);
		assert_int_equal(info->domain_attr->threading, FI_THREAD_DOMAIN);
		assert_int_equal(info->tx_attr->size, 64);
		assert_int_equal(info->tx_attr->tclass, FI_TC_BULK_DATA);
		assert_null(info->next);
		freeinfo(info);

		hints->caps = FI_RMA;
		info = (struct fi_info *)hints;
		assert_int_equal(getinfo(ages[i].api, NULL, NULL, 0, hints, &info), -FI_ENODATA);
		assert_null(info);
		old_hints_free(hints);
	}
	assert_true(cnt > 0);
}

static void a_copy_of_every_age_is_freed_at_every_age(void **state)
{
	size_t i, k, cnt = age_cnt();

	for (i = 0; i < cnt; i++) {
		dupinfo_fn dupinfo = (dupinfo_fn)symbol("fi_dupinfo", ages[i].version);
		struct fi_info *hints = old_hints(&ages[i]);

		for (k = 0; k < cnt; k++) {
			freeinfo_fn freeinfo = (freeinfo_fn)symbol("fi_freeinfo",
								   ages[k].version);
			struct fi_info *dup = dupinfo(hints);

			assert_string_equal(dup->fabric_attr->prov_name, "answer");
			assert_int_equal(dup->caps, FI_TAGGED);
			freeinfo(dup);
			freeinfo(dupinfo(NULL));
			freeinfo(NULL);
		}
		old_hints_free(hints);
	}
}

/* What Open MPI does: getinfo, dupinfo and freeinfo at 1.3, then fi_fabric and fi_domain. */
static void an_info_of_every_age_opens_fabric_and_domain(void **state)
{
	fabric_fn fabric_open = (fabric_fn)symbol("fi_fabric", "FABRIC_1.1");
	size_t i, cnt = age_cnt();

	for (i = 0; i < cnt; i++) {
		getinfo_fn getinfo = (getinfo_fn)symbol("fi_getinfo", ages[i].version);
		dupinfo_fn dupinfo = (dupinfo_fn)symbol("fi_dupinfo", ages[i].version);
		freeinfo_fn freeinfo = (freeinfo_fn)symbol("fi_freeinfo", ages[i].version);
		struct fi_info *hints = old_hints(&ages[i]), *info, *dup;
		struct fid_fabric *fabric;
		struct fid_domain *domain;

		assert_int_equal(getinfo(ages[i].api, NULL, NULL, 0, hints, &info), 0);
		dup = dupinfo(info);
		freeinfo(info);
		assert_int_equal(fabric_open(dup->fabric_attr, &fabric, state), 0);
		assert_ptr_equal(fabric->fid.context, state);
		if (i > 0) /* the oldest fi_dupinfo has no field for it */
			assert_int_equal(fabric->api_version, ages[i].api);
		assert_int_equal(fi_domain(fabric, dup, &domain, NULL), -FI_ENOSYS);
		assert_int_equal(fi_close(&fabric->fid), 0);
		freeinfo(dup);
		old_hints_free(hints);
	}
}

static void the_oldest_fabric_attributes_have_no_api_version(void **state)
{
	fabric_fn fabric_open = (fabric_fn)symbol("fi_fabric", "FABRIC_1.0");
	struct fi_info *hints = old_hints(&ages[0]);
	struct fi_fabric_attr *attr = hints->fabric_attr;
	struct fid_fabric *fabric;

	attr->name = "fabric";
	assert_int_equal(fabric_open(attr, &fabric, NULL), 0);
	assert_int_equal(fabric->api_version, FI_VERSION(1, 0));
	assert_int_equal(fi_close(&fabric->fid), 0);
	old_hints_free(hints);
	if (!is_stock)
		assert_int_equal(fabric_open(NULL, &fabric, NULL), -FI_EINVAL);
}

/* A number of an fi_info, and the first of the ages above that has it. */
#define NUMBER_IN(attr, type, field, age)                                         \
	{                                                                         \
		offsetof(struct fi_info, attr), offsetof(struct type, field),     \
			sizeof(((struct type *)0)->field), #attr "->" #field, age \
	}

static const struct number {
	/* of the pointer in struct fi_info */
	size_t attr_at;
	size_t at;
	size_t len;
	const char *name;
	size_t since;
} numbers[] = {
	NUMBER_IN(tx_attr, fi_tx_attr, rma_iov_limit, 0),
	NUMBER_IN(tx_attr, fi_tx_attr, tclass, 3),
	NUMBER_IN(rx_attr, fi_rx_attr, iov_limit, 0),
	NUMBER_IN(ep_attr, fi_ep_attr, rx_ctx_cnt, 0),
	NUMBER_IN(ep_attr, fi_ep_attr, xpu_ctx, 7),
	NUMBER_IN(domain_attr, fi_domain_attr, max_ep_rx_ctx, 0),
	NUMBER_IN(domain_attr, fi_domain_attr, cntr_cnt, 1),
	NUMBER_IN(domain_attr, fi_domain_attr, mr_iov_limit, 1),
	NUMBER_IN(domain_attr, fi_domain_attr, caps, 1),
	NUMBER_IN(domain_attr, fi_domain_attr, mode, 1),
	NUMBER_IN(domain_attr, fi_domain_attr, max_err_data, 1),
	NUMBER_IN(domain_attr, fi_domain_attr, mr_cnt, 1),
	NUMBER_IN(domain_attr, fi_domain_attr, tclass, 3),
	NUMBER_IN(domain_attr, fi_domain_attr, max_ep_auth_key, 4),
	NUMBER_IN(domain_attr, fi_domain_attr, max_group_id, 5),
	NUMBER_IN(domain_attr, fi_domain_attr, max_cntr_value, 6),
	NUMBER_IN(domain_attr, fi_domain_attr, max_err_cntr_value, 6),
	NUMBER_IN(domain_attr, fi_domain_attr, max_xpu_ctx_cnt, 7),
	NUMBER_IN(fabric_attr, fi_fabric_attr, prov_version, 0),
	NUMBER_IN(fabric_attr, fi_fabric_attr, api_version, 1),
};
#define NUMBER_CNT (sizeof(numbers) / sizeof(numbers[0]))

static char *number_of(struct fi_info *info, const struct number *number)
{
	return *(char **)((char *)info + number->attr_at) + number->at;
}

static void a_copy_has_the_fields_of_its_age(void **state)
{
	size_t i, n, cnt = age_cnt();
	uint64_t marks[NUMBER_CNT];

	for (i = 0; i < cnt; i++) {
		dupinfo_fn dupinfo = (dupinfo_fn)symbol("fi_dupinfo", ages[i].version);
		freeinfo_fn freeinfo = (freeinfo_fn)symbol("fi_freeinfo", ages[i].version);
		struct fi_info *hints = old_hints(&ages[i]), *dup;
		uint64_t none = 0;

		for (n = 0; n < NUMBER_CNT; n++) {
			marks[n] = 0x0101010101010101u * (n + 1);
			if (numbers[n].since <= i)
				memcpy(number_of(hints, &numbers[n]), &marks[n], numbers[n].len);
		}
		dup = dupinfo(hints);
		assert_non_null(dup);
		for (n = 0; n < NUMBER_CNT; n++) {
			bool has = numbers[n].since <= i;

			/* A stock library's copy ends where the age does. */
			if ((has || !is_stock) &&
			    memcmp(number_of(dup, &numbers[n]), has ? &marks[n] : &none,
				   numbers[n].len))
				fail_msg("%s at %s", numbers[n].name, ages[i].version);
		}
		freeinfo(dup);
		old_hints_free(hints);
	}
}

/* Moves a structure to memory that goes on with ones. */
static void *with_tail(void *part, size_t len)
{
	char *longer = malloc(len + 128);

	memcpy(longer, part, len);
	memset(longer + len, 0xff, 128);
	free(part);
	return longer;
}

static struct fi_info *hints_with_tails(const struct age *age)
{
	struct fi_info *hints = with_tail(old_hints(age), age->info);

	hints->tx_attr = with_tail(hints->tx_attr, age->tx_attr);
	hints->rx_attr = with_tail(hints->rx_attr, age->rx_attr);
	hints->ep_attr = with_tail(hints->ep_attr, age->ep_attr);
	hints->domain_attr = with_tail(hints->domain_attr, age->domain_attr);
	hints->fabric_attr = with_tail(hints->fabric_attr, age->fabric_attr);
	return hints;
}

static void what_lies_behind_an_age_is_not_read(void **state)
{
	size_t i, cnt = age_cnt();

	for (i = 0; i < cnt; i++) {
		getinfo_fn getinfo = (getinfo_fn)symbol("fi_getinfo", ages[i].version);
		dupinfo_fn dupinfo = (dupinfo_fn)symbol("fi_dupinfo", ages[i].version);
		freeinfo_fn freeinfo = (freeinfo_fn)symbol("fi_freeinfo", ages[i].version);
		struct fi_info *hints = hints_with_tails(&ages[i]), *info = NULL;

		assert_int_equal(getinfo(ages[i].api, NULL, NULL, 0, hints, &info), 0);
		freeinfo(info);
		info = dupinfo(hints);
		assert_non_null(info);
		freeinfo(info);
		old_hints_free(hints);
	}
}

/*
 * With a provider of this build's level: fields that 1.17, the version of "answer", does not have.
 */
static void newer_fields_count_where_the_age_has_them(void **state)
{
	static const struct {
		size_t at;
		size_t since;
	} wishes[] = {
		{ offsetof(struct fi_domain_attr, max_ep_auth_key), 4 },
		{ offsetof(struct fi_domain_attr, max_group_id), 5 },
	};
	size_t i, w;

	if (is_stock)
		skip();
	for (i = 4; i < AGE_CNT; i++) {
		getinfo_fn getinfo = (getinfo_fn)symbol("fi_getinfo", ages[i].version);
		freeinfo_fn freeinfo = (freeinfo_fn)symbol("fi_freeinfo", ages[i].version);
		struct fi_info *hints = hints_with_tails(&ages[i]), *info = NULL;

		free(hints->fabric_attr->prov_name);
		hints->fabric_attr->prov_name = strdup("shm");
		assert_int_equal(getinfo(newest_api, NULL, NULL, 0, hints, &info), 0);
		freeinfo(info);
		for (w = 0; w < sizeof(wishes) / sizeof(wishes[0]); w++) {
			char *field = (char *)hints->domain_attr + wishes[w].at;

			if (wishes[w].since > i)
				continue;
			*field = 5;
			assert_int_equal(getinfo(newest_api, NULL, NULL, 0, hints, &info),
					 -FI_ENODATA);
			*field = 0;
		}
		old_hints_free(hints);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_functions_exist_at_all_their_versions),
		cmocka_unit_test(hints_of_every_age_are_answered),
		cmocka_unit_test(a_copy_of_every_age_is_freed_at_every_age),
		cmocka_unit_test(an_info_of_every_age_opens_fabric_and_domain),
		cmocka_unit_test(the_oldest_fabric_attributes_have_no_api_version),
		cmocka_unit_test(a_copy_has_the_fields_of_its_age),
		cmocka_unit_test(what_lies_behind_an_age_is_not_read),
		cmocka_unit_test(newer_fields_count_where_the_age_has_them),
	};
	char *(*tostr)(const void *data, enum fi_type type);

	if (argc != 2)
		return 1;
	is_stock = !strcmp(argv[1], "stock");
	library = dlopen(is_stock ? "libfabric.so.1" : argv[1], RTLD_NOW);
	tostr = library ? (__typeof__(tostr))symbol("fi_tostr", "FABRIC_1.0") : NULL;
	if (is_stock && (!tostr || strstr(tostr("", FI_TYPE_VERSION), "Weft"))) {
		printf("skipped: no stock libfabric is installed\n");
		return 77;
	}
	if (!tostr) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	setenv("FI_PROVIDER_PATH", LOADABLE_FILE_DIR, 1);
	return cmocka_run_group_tests_name("compat", tests, NULL, NULL);
}
