/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A wire that pins, for measuring what registration costs over one: its device is the fixed buffers of
 * an io_uring, and it sends nothing. One thread.
 */
#ifndef WEFT_BENCH_REGISTRATION_WIRE_H
#define WEFT_BENCH_REGISTRATION_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <rdma/fabric.h>

struct fi_provider;
struct fid_domain;
struct fid_fabric;
struct fid_mr;

/* wire_domain - open a domain over the wire. @threading: FI_THREAD_SAFE or another. Returns 0 or -FI_E*; -FI_ENODEV: there is no io_uring */
int wire_domain(enum fi_threading threading, struct fid_fabric **fabric,
		struct fid_domain **domain);

/*
 * wire_reaches - does the device find in a region what the process does?
 * @addr, @len: its memory
 * @file: an empty file, which the device writes to
 */
bool wire_reaches(struct fid_mr *mr, const void *addr, size_t len, int file);

#endif
