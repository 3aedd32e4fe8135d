/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the memory region object: a domain without endpoints, on one or two threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include "auth.h"
#include "core_double.h"
#include "mr_fid.h"
#include "resolve.h"
#include <cmocka.h>

#define RMA (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* A domain and what it belongs to. */
struct world {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct engine_domain *engine;
};

static struct fi_provider provider = { .name = "test" };
static const struct engine_family family = { .provider = &provider };

static void open_world(struct world *w, uint32_t api_version, int mr_mode)
{
	struct fi_fabric_attr fabric_attr = { .api_version = api_version };
	struct fi_domain_attr attr = { .mr_mode = mr_mode, .threading = FI_THREAD_SAFE };
	struct fi_info info = { .domain_attr = &attr };

	assert_int_equal(engine_fabric_open(&family, &fabric_attr, &w->fabric, NULL), 0);
	assert_int_equal(fi_domain(w->fabric, &info, &w->domain, NULL), 0);
	w->engine = container_of(w->domain, struct engine_domain, fid);
}

static void close_world(struct world *w)
{
	assert_int_equal(fi_close(&w->domain->fid), 0);
	assert_int_equal(fi_close(&w->fabric->fid), 0);
}

/* Resolves into one piece: 0 or an error. */
static int resolve(struct world *w, uint64_t key, uint64_t addr, uint64_t len, uint64_t access,
		   void **at)
{
	struct iovec iov[MR_IOV_MAX];
	struct engine_mr *mr;
	size_t cnt;
	int ret = engine_mr_resolve(w->engine, NULL, key, addr, len, access, iov, &cnt, &mr);

	if (ret)
		return ret;
	assert_int_equal(cnt, 1);
	*at = iov[0].iov_base;
	return 0;
}

static void a_mode_says_who_names_keys_and_addresses(void **state)
{
	static const int modes[] = {
		0,
		FI_MR_SCALABLE,
		FI_MR_VIRT_ADDR,
		FI_MR_PROV_KEY,
		FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED,
		FI_MR_BASIC,
	};
	char buf[64];

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		bool basic = modes[i] == FI_MR_BASIC;
		uint64_t base = basic || modes[i] & FI_MR_VIRT_ADDR ? (uintptr_t)buf : 0;
		struct fid_mr *mr, *other;
		void *at = NULL;
		struct world w;

		open_world(&w, FI_VERSION(1, 18), modes[i]);
		assert_int_equal(fi_mr_reg(w.domain, buf, 64, RMA, 0, 77, 0, &mr, &w), 0);
		assert_ptr_equal(mr->fid.context, &w);
		assert_int_equal(mr->fid.fclass, FI_CLASS_MR);
		assert_non_null(fi_mr_desc(mr));
		if (basic || modes[i] & FI_MR_PROV_KEY) {
			assert_true(fi_mr_key(mr) != 77);
			assert_int_equal(
				fi_mr_reg(w.domain, buf, 64, RMA, 0, 77, 0, &other, NULL), 0);
			assert_true(fi_mr_key(mr) != fi_mr_key(other));
			assert_int_equal(fi_close(&other->fid), 0);
		} else {
			assert_true(fi_mr_key(mr) == 77);
			assert_int_equal(
				fi_mr_reg(w.domain, buf, 64, RMA, 0, 77, 0, &other, NULL),
				-FI_ENOKEY);
		}
		assert_int_equal(resolve(&w, fi_mr_key(mr), base + 1, 63, FI_REMOTE_WRITE, &at),
				 0);
		assert_ptr_equal(at, buf + 1);
		assert_int_equal(resolve(&w, fi_mr_key(mr), base + 1, 64, FI_REMOTE_WRITE, &at),
				 -FI_EACCES);
		assert_int_equal(resolve(&w, fi_mr_key(mr) + 1, base, 1, FI_REMOTE_WRITE, &at),
				 -FI_EKEYREJECTED);
		assert_int_equal(fi_close(&w.domain->fid), -FI_EBUSY);
		assert_int_equal(fi_close(&mr->fid), 0);
		assert_int_equal(resolve(&w, 77, base, 1, FI_REMOTE_WRITE, &at),
				 -FI_EKEYREJECTED);
		close_world(&w);
	}
}

static void access_is_what_was_granted(void **state)
{
	struct fid_mr *mr, *local[2];
	struct world w;
	char buf[64];
	void *at;

	open_world(&w, FI_VERSION(1, 18), 0);
	assert_int_equal(fi_mr_reg(w.domain, buf, 64, FI_REMOTE_READ, 0, 1, 0, &mr, NULL), 0);
	assert_int_equal(resolve(&w, 1, 0, 1, FI_REMOTE_READ, &at), 0);
	assert_int_equal(resolve(&w, 1, 0, 1, FI_REMOTE_WRITE, &at), -FI_EACCES);
	assert_int_equal(resolve(&w, 1, 0, 1, RMA, &at), -FI_EACCES);
	assert_int_equal(fi_close(&mr->fid), 0);
	/* A region for local use takes no key, and fi_mr_key() returns the requested one. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_mr_reg(w.domain, buf, 64, FI_SEND | FI_RECV, 0, 1, 0,
					   &local[i], NULL),
				 0);
		assert_true(fi_mr_key(local[i]) == 1);
		assert_non_null(fi_mr_desc(local[i]));
	}
	assert_int_equal(resolve(&w, 1, 0, 1, 0, &at), -FI_EKEYREJECTED);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_close(&local[i]->fid), 0);
	assert_int_equal(fi_mr_reg(w.domain, buf, 64, 0, 0, 1, 0, &mr, NULL), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_world(&w);
}

static void access_and_flags_that_say_nothing_are_let_through(void **state)
{
	static const uint64_t flags[] = { FI_RMA_PMEM, FI_HMEM_DEVICE_ONLY, FI_MR_SINGLE_USE,
					  1ull << 63 };
	static const uint64_t access[] = { FI_RMA,     FI_MSG | FI_TAGGED, FI_ATOMIC,
					   1ull << 30, 1ull << 31,	   1ull << 63,
					   ~RMA };
	struct fi_mr_attr attr = { .iov_count = 1, .requested_key = 1 };
	struct iovec iov;
	struct fid_mr *mr;
	struct world w;
	char buf[64];
	void *at;

	open_world(&w, FI_VERSION(2, 0), 0);
	iov = (struct iovec){ buf, sizeof(buf) };
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		assert_int_equal(fi_mr_reg(w.domain, buf, 64, RMA, 0, 1, flags[i], &mr, NULL),
				 0);
		assert_int_equal(fi_close(&mr->fid), 0);
	}
	attr.mr_iov = &iov;
	for (size_t i = 0; i < sizeof(access) / sizeof(access[0]); i++) {
		attr.access = access[i] | FI_REMOTE_READ;
		assert_int_equal(fi_mr_regattr(w.domain, &attr, 0, &mr), 0);
		assert_int_equal(resolve(&w, 1, 0, 1, FI_REMOTE_READ, &at), 0);
		assert_int_equal(resolve(&w, 1, 0, 1, FI_REMOTE_WRITE, &at), -FI_EACCES);
		assert_int_equal(fi_close(&mr->fid), 0);
	}
	close_world(&w);
}

static void what_is_not_offered_is_refused(void **state)
{
	struct iovec iov[MR_IOV_MAX + 1] = { [0 ... MR_IOV_MAX] = { NULL, 1 } };
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = 1, .access = RMA, .iface = FI_HMEM_CUDA
	};
	struct fid_mr *mr = NULL;
	struct world w;

	open_world(&w, FI_VERSION(2, 0), 0);
	assert_int_equal(fi_mr_reg(w.domain, iov, 1, RMA, 0, 1, FI_MR_DMABUF, &mr, NULL),
			 -FI_ENOSYS);
	assert_int_equal(fi_mr_reg(w.domain, iov, UINTPTR_MAX, RMA, 0, 1, 0, &mr, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_mr_reg(w.domain, iov, 1, RMA, 0, FI_KEY_NOTAVAIL, 0, &mr, NULL),
			 -FI_EKEYREJECTED);
	assert_int_equal(fi_mr_regv(w.domain, iov, MR_IOV_MAX + 1, RMA, 0, 1, 0, &mr, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_mr_regv(w.domain, iov, 0, RMA, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_regv(w.domain, NULL, 1, RMA, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_regattr(w.domain, NULL, 0, &mr), -FI_EINVAL);
	assert_int_equal(fi_mr_regattr(w.domain, &attr, 0, &mr), -FI_ENOSYS);
	assert_null(mr);
	assert_true(core_warnings > 5); /* the log says so each time */
	close_world(&w);
}

/* As libfabric's providers do; a domain with a key of its own has others alone. */
static void an_offset_and_a_key_of_nobody_say_nothing(void **state)
{
	uint8_t key[8] = "domain's";
	struct iovec iov = { key, sizeof(key) };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = RMA,
				   .offset = 100,
				   .requested_key = 1,
				   .auth_key = key,
				   .auth_key_size = sizeof(key) };
	struct fid_mr *mr;
	struct world w;

	open_world(&w, FI_VERSION(2, 0), 0);
	assert_int_equal(fi_mr_regattr(w.domain, &attr, 0, &mr), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(engine_auth_read(key, sizeof(key), &w.engine->auth), 0);
	assert_int_equal(fi_mr_regattr(w.domain, &attr, 0, &mr), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	key[0] = 'D';
	assert_int_equal(fi_mr_regattr(w.domain, &attr, 0, &mr), -FI_ENOSYS);
	attr.auth_key_size = 0;
	assert_int_equal(fi_mr_regattr(w.domain, &attr, 0, &mr), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_world(&w);
}

static void an_old_program_has_a_shorter_struct(void **state)
{
	static const struct {
		uint32_t api_version;
		size_t len;
	} ages[] = {
		{ FI_VERSION(1, 4), offsetof(struct fi_mr_attr, auth_key_size) },
		{ FI_VERSION(1, 8), offsetof(struct fi_mr_attr, iface) },
		{ FI_VERSION(1, 18), offsetof(struct fi_mr_attr, hmem_data) },
		{ FI_VERSION(1, 21), offsetof(struct fi_mr_attr, page_size) },
		{ FI_VERSION(1, 22), offsetof(struct fi_mr_attr, base_mr) },
		{ FI_VERSION(2, 0), sizeof(struct fi_mr_attr) },
	};
	char buf[64];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_mr_attr full = {
		.mr_iov = &iov, .iov_count = 1, .access = RMA, .requested_key = 5
	};

	for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
		/* The bytes behind the struct are not read; a sanitizer checks it. */
		struct fi_mr_attr *attr = malloc(ages[i].len);
		struct fi_mr_attr longer;
		struct fid_mr *mr;
		struct world w;

		open_world(&w, ages[i].api_version, 0);
		memcpy(attr, &full, ages[i].len);
		assert_int_equal(fi_mr_regattr(w.domain, attr, 0, &mr), 0);
		assert_true(fi_mr_key(mr) == 5);
		assert_int_equal(fi_close(&mr->fid), 0);
		memset(&longer, 0xa5, sizeof(longer));
		memcpy(&longer, &full, ages[i].len);
		assert_int_equal(fi_mr_regattr(w.domain, &longer, 0, &mr), 0);
		assert_int_equal(fi_close(&mr->fid), 0);
		close_world(&w);
		free(attr);
	}
}

static void any_address_and_none_can_be_registered(void **state)
{
	struct fid_mr *all, *none;
	struct world w;
	void *at;

	open_world(&w, FI_VERSION(1, 18), 0);
	assert_int_equal(fi_mr_reg(w.domain, NULL, UINTPTR_MAX, RMA, 0, 1, 0, &all, NULL), 0);
	assert_int_equal(fi_mr_reg(w.domain, &w, 0, RMA, 0, 2, 0, &none, NULL), 0);
	assert_int_equal(resolve(&w, 1, (uintptr_t)&w, sizeof(w), RMA, &at), 0);
	assert_ptr_equal(at, &w);
	assert_int_equal(resolve(&w, 2, 0, 0, RMA, &at), 0);
	assert_int_equal(resolve(&w, 2, 0, 1, RMA, &at), -FI_EACCES);
	assert_int_equal(fi_close(&all->fid), 0);
	assert_int_equal(fi_close(&none->fid), 0);
	close_world(&w);
}

static void pieces_are_one_region(void **state)
{
	char buf[64];
	struct iovec iov[2] = { { buf + 32, 8 }, { buf, 8 } }, out[MR_IOV_MAX];
	struct engine_mr *found = NULL;
	struct fid_mr *mr;
	struct world w;
	size_t cnt;

	open_world(&w, FI_VERSION(1, 18), 0);
	assert_int_equal(fi_mr_regv(w.domain, iov, 2, RMA, 0, 9, 0, &mr, NULL), 0);
	assert_int_equal(engine_mr_acquire(w.engine, NULL, 9, 4, 8, RMA, out, &cnt, &found), 0);
	assert_int_equal(cnt, 2);
	assert_ptr_equal(out[0].iov_base, buf + 36);
	assert_ptr_equal(out[1].iov_base, buf);
	assert_true(out[0].iov_len == 4 && out[1].iov_len == 4);
	assert_ptr_equal(&found->fid, mr);
	engine_mr_release(found);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_world(&w);
}

static void a_region_with_events_waits_for_enable(void **state)
{
	struct fid_mr *mr;
	struct world w;
	char buf[64];
	void *at;

	open_world(&w, FI_VERSION(1, 18), FI_MR_RMA_EVENT);
	assert_int_equal(fi_mr_reg(w.domain, buf, 64, RMA, 0, 3, FI_RMA_EVENT, &mr, NULL), 0);
	assert_int_equal(resolve(&w, 3, 0, 1, RMA, &at), -FI_EKEYREJECTED);
	assert_int_equal(fi_mr_enable(mr), 0);
	assert_int_equal(resolve(&w, 3, 0, 1, RMA, &at), 0);
	assert_int_equal(fi_mr_enable(mr), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	/* Without the flag, and where the mode does not ask for it, there is nothing to wait for. */
	assert_int_equal(fi_mr_reg(w.domain, buf, 64, RMA, 0, 3, 0, &mr, NULL), 0);
	assert_int_equal(resolve(&w, 3, 0, 1, RMA, &at), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_world(&w);
	open_world(&w, FI_VERSION(1, 18), 0);
	assert_int_equal(fi_mr_reg(w.domain, buf, 64, RMA, 0, 3, FI_RMA_EVENT, &mr, NULL), 0);
	assert_int_equal(resolve(&w, 3, 0, 1, RMA, &at), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_world(&w);
}

/* Endpoints as far as a binding looks at them. */
static void fake_ep(struct engine_ep *ep, struct engine_domain *domain)
{
	memset(ep, 0, sizeof(*ep));
	ep->ctx.fid.fid.fclass = FI_CLASS_EP;
	ep->ctx.domain = ep->domain = domain;
	ep->ctx.ep = ep;
	list_init(&ep->blocked);
	list_init(&ep->acks);
	list_init(&ep->acks_later);
	list_init(&ep->all);
}

static void a_key_serves_its_endpoint_alone(void **state)
{
	static struct engine_ep ep, other;
	struct iovec iov[MR_IOV_MAX];
	struct engine_mr *found;
	struct fid_mr *mr;
	struct world w;
	char buf[64];
	size_t cnt;

	open_world(&w, FI_VERSION(1, 18), FI_MR_ENDPOINT);
	fake_ep(&ep, w.engine);
	fake_ep(&other, w.engine);
	assert_int_equal(fi_mr_reg(w.domain, buf, 64, RMA, 0, 3, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_enable(mr), -FI_EOPBADSTATE);
	assert_int_equal(fi_mr_bind(mr, &ep.ctx.fid.fid, FI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_mr_bind(mr, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_bind(mr, &w.domain->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_bind(mr, &ep.ctx.fid.fid, 0), 0);
	assert_int_equal(fi_mr_bind(mr, &other.ctx.fid.fid, 0), -FI_EINVAL);
	assert_true(engine_mr_bound(w.engine, &ep) && !engine_mr_bound(w.engine, &other));
	assert_int_equal(engine_mr_resolve(w.engine, &ep, 3, 0, 1, RMA, iov, &cnt, &found),
			 -FI_EKEYREJECTED);
	assert_int_equal(fi_mr_enable(mr), 0);
	assert_int_equal(engine_mr_resolve(w.engine, &ep, 3, 0, 1, RMA, iov, &cnt, &found), 0);
	assert_int_equal(engine_mr_resolve(w.engine, &other, 3, 0, 1, RMA, iov, &cnt, &found),
			 -FI_EKEYREJECTED);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_false(engine_mr_bound(w.engine, &ep));
	close_world(&w);
	open_world(&w, FI_VERSION(1, 18), 0);
	fake_ep(&ep, w.engine);
	assert_int_equal(fi_mr_reg(w.domain, buf, 64, RMA, 0, 3, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &ep.ctx.fid.fid, 0), -FI_ENOSYS);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_world(&w);
}

static void a_raw_key_is_the_key(void **state)
{
	uint64_t base = 1, key = 0;
	uint8_t raw[8];
	size_t len = 0;
	struct fid_mr *mr;
	struct world w;

	open_world(&w, FI_VERSION(1, 18), FI_MR_VIRT_ADDR);
	assert_int_equal(fi_mr_reg(w.domain, raw, 8, RMA, 0, 0x0102030405060708, 0, &mr, NULL),
			 0);
	assert_int_equal(fi_mr_raw_attr(mr, &base, NULL, &len, 0), -FI_ETOOSMALL);
	assert_int_equal(len, 8);
	assert_int_equal(fi_mr_raw_attr(mr, &base, raw, &len, 1), -FI_EBADFLAGS);
	assert_int_equal(fi_mr_raw_attr(mr, &base, raw, &len, 0), 0);
	assert_true(base == (uintptr_t)raw && raw[0] == 8 && raw[7] == 1);
	assert_int_equal(fi_mr_map_raw(w.domain, base, raw, 7, &key, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_map_raw(w.domain, base, raw, 8, &key, 0), 0);
	assert_true(key == 0x0102030405060708);
	assert_int_equal(fi_mr_unmap_key(w.domain, key), 0);
	assert_int_equal(fi_control(&w.domain->fid, FI_GETWAIT, NULL), -FI_ENOSYS);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_world(&w);
}

static void refresh_is_for_ranges_inside(void **state)
{
	char buf[64];
	struct iovec whole[2] = { { buf, 16 }, { buf + 32, 16 } };
	struct iovec in = { buf + 40, 8 }, out = { buf + 40, 9 };
	struct fid_mr *mr;
	struct world w;

	open_world(&w, FI_VERSION(1, 18), 0);
	assert_int_equal(fi_mr_regv(w.domain, whole, 2, RMA, 0, 3, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_refresh(mr, NULL, 0, 0), 0);
	assert_int_equal(fi_mr_refresh(mr, whole, 2, 0), 0);
	assert_int_equal(fi_mr_refresh(mr, &in, 1, 0), 0);
	assert_int_equal(fi_mr_refresh(mr, &out, 1, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_refresh(mr, NULL, 1, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_refresh(mr, &in, 1, 1), -FI_EBADFLAGS);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_world(&w);
}

static void a_part_keeps_its_base(void **state)
{
	char buf[64];
	struct iovec inside = { buf + 8, 8 }, outside = { buf + 60, 8 };
	struct fi_mr_attr attr = { .iov_count = 1,
				   .access = FI_REMOTE_WRITE,
				   .requested_key = 2 };
	struct fid_mr *base, *part;
	struct world w;
	void *at;

	open_world(&w, FI_VERSION(2, 0), 0);
	assert_int_equal(fi_mr_reg(w.domain, buf, 64, FI_SEND, 0, 1, 0, &base, NULL), 0);
	attr.base_mr = base;
	attr.mr_iov = &outside;
	assert_int_equal(fi_mr_regattr(w.domain, &attr, 0, &part), -FI_EINVAL);
	attr.mr_iov = &inside;
	assert_int_equal(fi_mr_regattr(w.domain, &attr, 0, &part), 0);
	assert_int_equal(resolve(&w, 2, 0, 8, FI_REMOTE_WRITE, &at), 0);
	assert_ptr_equal(at, buf + 8);
	assert_int_equal(fi_close(&base->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&part->fid), 0);
	assert_int_equal(fi_close(&base->fid), 0);
	close_world(&w);
}

/* A transfer in flight that ends when its endpoint is polled for the third time. */
static struct engine_mr *in_flight;
static int polls;

static int poll_and_end(struct wire *wire)
{
	void *at;

	assert_int_equal(resolve((void *)wire, 6, 0, 1, RMA, &at), -FI_EKEYREJECTED);
	if (++polls == 3)
		engine_mr_release(in_flight);
	return 0;
}

static void close_waits_for_what_is_in_flight(void **state)
{
	static const struct wire_ops ops = { .poll = poll_and_end };
	static struct engine_ep ep;
	struct iovec iov[MR_IOV_MAX];
	struct fid_mr *mr;
	struct world w;
	char buf[64];
	size_t cnt;
	int ret;

	open_world(&w, FI_VERSION(1, 18), 0);
	fake_ep(&ep, w.engine);
	polls = 0;
	ep.wire_cnt = 1;
	ep.wires[0].ops = &ops;
	ep.wires[0].wire = (void *)&w;
	list_add_tail(&w.engine->eps, &ep.domain_link);
	assert_int_equal(fi_mr_reg(w.domain, buf, 64, RMA, 0, 6, 0, &mr, NULL), 0);
	assert_int_equal(engine_mr_acquire(w.engine, &ep, 6, 0, 64, RMA, iov, &cnt, &in_flight),
			 0);
	/* it waits for a second, in which this thread may not have run */
	do {
		ret = fi_close(&mr->fid);
	} while (ret == -FI_EBUSY && polls < 3);
	assert_int_equal(ret, 0);
	assert_int_equal(polls, 3);
	list_remove(&ep.domain_link);
	close_world(&w);
}

static void a_transfer_that_does_not_end_keeps_the_region(void **state)
{
	struct iovec iov[MR_IOV_MAX];
	struct engine_mr *used = NULL;
	uint64_t begin, key;
	struct fid_mr *mr;
	struct world w;
	char buf[64];
	size_t cnt;
	void *at;

	open_world(&w, FI_VERSION(1, 18), FI_MR_PROV_KEY);
	assert_int_equal(fi_mr_reg(w.domain, buf, 64, RMA, 0, 0, 0, &mr, NULL), 0);
	key = fi_mr_key(mr);
	assert_int_equal(engine_mr_acquire(w.engine, NULL, key, 0, 64, RMA, iov, &cnt, &used),
			 0);
	begin = platform_now_ns();
	assert_int_equal(fi_close(&mr->fid), -FI_EBUSY);
	assert_true(platform_now_ns() - begin >= 1000000000u);
	assert_int_equal(resolve(&w, key, 0, 1, RMA, &at), 0); /* the same key is good again */
	engine_mr_release(used);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(resolve(&w, key, 0, 1, RMA, &at), -FI_EKEYREJECTED);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mode_says_who_names_keys_and_addresses),
		cmocka_unit_test(access_is_what_was_granted),
		cmocka_unit_test(access_and_flags_that_say_nothing_are_let_through),
		cmocka_unit_test(what_is_not_offered_is_refused),
		cmocka_unit_test(an_offset_and_a_key_of_nobody_say_nothing),
		cmocka_unit_test(an_old_program_has_a_shorter_struct),
		cmocka_unit_test(any_address_and_none_can_be_registered),
		cmocka_unit_test(pieces_are_one_region),
		cmocka_unit_test(a_region_with_events_waits_for_enable),
		cmocka_unit_test(a_key_serves_its_endpoint_alone),
		cmocka_unit_test(a_raw_key_is_the_key),
		cmocka_unit_test(refresh_is_for_ranges_inside),
		cmocka_unit_test(a_part_keeps_its_base),
		cmocka_unit_test(close_waits_for_what_is_in_flight),
		cmocka_unit_test(a_transfer_that_does_not_end_keeps_the_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
