/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* For tests: a controller and its host on one thread */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "file_target.h"
#include "rig.h"

static void rig_round(void *arg)
{
	struct rig *r = arg;

	/* Descriptors are looked at in each round, and not only when a while has passed. */
	r->loop.polled = 0;
	r->loop.rounds = UINT32_MAX - 1;
	loop_round(&r->loop);
}

void rig_rounds(struct rig *r, int n)
{
	while (n--)
		rig_round(r);
}

static struct backend *file_backend(struct rig *r, enum rig_backend kind,
				    const struct nvmed_config *config)
{
	struct file_target f;
	struct backend *b;
	int fd = open(r->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, RIG_LEN), 0);
	close(fd);
	if (kind == RIG_FILE) {
		assert_int_equal(
			backend_file_open(r->file, config->block, config->read_only, &b), 0);
		return b;
	}
	assert_int_equal(file_open(&f, r->file, config->block, config->read_only), 0);
	assert_int_equal(backend_sync_open(&f, &b), 0);
	return b;
}

static void folder_make(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	strcpy(r->folder, "/tmp/weft-nvmed-XXXXXX");
	assert_non_null(mkdtemp(r->folder));
	snprintf(r->path, sizeof(r->path), "%s/slot", r->folder);
	snprintf(r->file, sizeof(r->file), "%s/file", r->folder);
}

static void controller_make(struct rig *r, struct backend *b, const struct nvmed_config *config)
{
	assert_int_equal(nvmed_create(config, b, &r->c), 0);
	assert_int_equal(loop_init(&r->loop, r->c, r->path, -1), 0);
	rig_connect(r, &r->h);
	assert_int_equal(host_attach(&r->h), 0);
}

void rig_open(struct rig *r, enum rig_backend backend, const struct nvmed_config *config)
{
	static const struct nvmed_config usual = { .queue_cnt = 8,
						   .block = 512,
						   .cmb_len = 1 << 20,
						   .granule = 64 << 10,
						   .spin_ns = 100000,
						   .serial = "RIG1" };
	struct backend *b;

	if (!config)
		config = &usual;
	folder_make(r);
	if (backend == RIG_MEMORY)
		assert_int_equal(backend_memory_open(RIG_LEN, &b), 0);
	else
		b = file_backend(r, backend, config);
	controller_make(r, b, config);
}

void rig_open_with(struct rig *r, struct backend *b, const struct nvmed_config *config)
{
	folder_make(r);
	controller_make(r, b, config);
}

void rig_connect(struct rig *r, struct host *h)
{
	assert_int_equal(host_connect(h, r->path, rig_round, r), 0);
}

void rig_open_enabled(struct rig *r, enum rig_backend backend, const struct nvmed_config *config)
{
	rig_open(r, backend, config);
	assert_int_equal(host_enable(&r->h, &r->admin, 64), 0);
}

void rig_pair(struct rig *r, struct host_pair *p, uint16_t qid, uint16_t size, uint32_t lease)
{
	assert_int_equal(host_pair_create(&r->h, &r->admin, p, qid, size, lease, -1), 0);
}

void rig_close(struct rig *r)
{
	host_pair_forget(&r->admin);
	host_close(&r->h);
	loop_fini(&r->loop);
	nvmed_destroy(r->c);
	unlink(r->file);
	assert_int_equal(rmdir(r->folder), 0);
}

uint16_t rig_admin(struct rig *r, struct nvme_sqe sqe, uint32_t *result)
{
	return host_run(&r->admin, &sqe, result);
}
