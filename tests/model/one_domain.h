/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints that share a domain and its address vector, over the real library. One thread, but for
 * what a test says. A failure fails the test.
 */
#ifndef WEFT_ONE_DOMAIN_H
#define WEFT_ONE_DOMAIN_H

#include "ends.h"

/* of the addresses of receive contexts */
#define BITS 3

/* room for a name */
#define NAME_MAX 128

/* What the provider is asked for; the provider is set by main(). */
extern struct end_attr attr;
/*
 * The answer of fi_getinfo, and the objects that are open from one_domain_setup() to
 * one_domain_teardown().
 */
extern struct fi_info *info;
extern struct fid_fabric *fabric;
extern struct fid_domain *domain;
extern struct fid_av *av;
/* Contexts of operations. */
extern struct fi_context2 contexts[64];
/* The last completion of take(), and its source. */
extern struct fi_cq_tagged_entry entry;
extern fi_addr_t source;

int one_domain_setup(void **state);
int one_domain_teardown(void **state);
#define ONE_DOMAIN_TEST(name) \
	cmocka_unit_test_setup_teardown(name, one_domain_setup, one_domain_teardown)

/* cq_open - open a queue of FI_CQ_FORMAT_TAGGED */
struct fid_cq *cq_open(void);

/* address_of - insert the name of an endpoint into the vector */
fi_addr_t address_of(struct fid *fid);

/* An endpoint in the common domain. */
struct one {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t addr;
};

/*
 * one_make - make an endpoint with a queue, which is bound with @flags; one_open - enable it too, and
 * insert its name
 */
void one_make(struct one *e, uint64_t flags);
void one_open(struct one *e);
void one_close(struct one *e);

/* take - read a completion, if there is one; expect... - wait for it */
bool take(struct fid_cq *cq);
void expect(struct fid_cq *cq, void *context);
void expect_error(struct fid_cq *cq, void *context, int err);
void expect_nothing(struct fid_cq *cq);

#endif
