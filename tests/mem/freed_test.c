/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that goes on with a key over memory that was freed: the owner lives, finds no peer's data in its other
 * memory, and closes the region. Both endpoints are in this process, over shared memory. The memory is in a chunk
 * that ends when it is freed: since the process has forked, or since it is of the pool of huge pages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <weft/mem.h>

#define LEN	   ((size_t)1 << 20)
#define DEADLINE_S 20

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_ep *ep, *owner;
static fi_addr_t to;
static struct weft_mem_ops *mem;

static int open_endpoint(struct fi_info *info, struct fid_ep **out)
{
	if (fi_endpoint(domain, info, out, NULL) || fi_ep_bind(*out, &av->fid, 0) ||
	    fi_ep_bind(*out, &cq->fid, FI_TRANSMIT | FI_RECV))
		return -1;
	return fi_enable(*out);
}

static int open_all(struct fi_info *info)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	char name[128];
	size_t len = sizeof(name);

	if (fi_fabric(info->fabric_attr, &fabric, NULL) ||
	    fi_domain(fabric, info, &domain, NULL) || fi_cq_open(domain, &cq_attr, &cq, NULL) ||
	    fi_av_open(domain, &av_attr, &av, NULL) || open_endpoint(info, &ep) ||
	    open_endpoint(info, &owner) || fi_getname(&owner->fid, name, &len))
		return -1;
	return fi_av_insert(av, name, 1, &to, 0, NULL) == 1 ? 0 : -1;
}

static int start(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int err;

	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("shm");
	err = fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info) || open_all(info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return err || fi_open_ops(&domain->fid, WEFT_MEM_OPS, 0, (void **)&mem, NULL) ? -1 : 0;
}

static int end(void **state)
{
	struct fid *objects[] = { &ep->fid, &owner->fid,  &av->fid,
				  &cq->fid, &domain->fid, &fabric->fid };
	int err = 0;

	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		err |= fi_close(objects[i]);
	return err;
}

/* Reads or writes the region, whose addresses are from 0 on. */
static void access_key(uint64_t key, void *buf, size_t len, bool write)
{
	time_t until = time(NULL) + DEADLINE_S;
	struct fi_cq_msg_entry entry;
	ssize_t ret, done = -FI_EAGAIN;

	do {
		ret = write ? fi_write(ep, buf, len, NULL, to, 0, key, NULL)
			    : fi_read(ep, buf, len, NULL, to, 0, key, NULL);
		if (ret == -FI_EAGAIN)
			done = fi_cq_read(cq, &entry, 1);
	} while (ret == -FI_EAGAIN && time(NULL) < until);
	assert_int_equal(ret, 0);
	while (done == -FI_EAGAIN && time(NULL) < until)
		done = fi_cq_read(cq, &entry, 1);
	assert_int_equal(done, 1);
}

static void fork_once(void)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void free_and_access(uint64_t flags, size_t len)
{
	static unsigned char buf[LEN];
	struct fid_mr *mr;
	void *addr;

	assert_int_equal(mem->alloc(LEN, 0, flags, &addr), 0);
	memset(addr, 5, LEN);
	assert_int_equal(fi_mr_reg(domain, addr, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0,
				   &mr, NULL),
			 0);
	access_key(fi_mr_key(mr), buf, len, false);
	assert_int_equal(buf[len - 1], 5);
	fork_once();
	assert_int_equal(mem->free(addr), 0);
	for (int i = 0; i < 3; i++) {
		memset(buf, 9, len);
		access_key(fi_mr_key(mr), buf, len, true);
		access_key(fi_mr_key(mr), buf, len, false);
	}
	assert_int_equal(fi_close(&mr->fid), 0);
}

static void a_key_over_freed_memory_harms_nobody(void **state)
{
	static const size_t lens[] = { 64, 8192, LEN };
	static const uint64_t flags[] = { 0, WEFT_MEM_REMOTE_WRITE, WEFT_MEM_HUGE };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++)
			free_and_access(flags[k], lens[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_over_freed_memory_harms_nobody),
	};

	return cmocka_run_group_tests(tests, start, end);
}
