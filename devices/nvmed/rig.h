/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: a controller in this process, that makes rounds whenever the host on its slot waits for it; both on one
 * thread. A cmocka test fails where something of it can't be made.
 */
#ifndef WEFT_NVMED_RIG_H
#define WEFT_NVMED_RIG_H

#include <stdint.h>
#include <time.h>

#include "host_side.h"
#include "loop.h"
#include "nvmed.h"

enum rig_backend {
	RIG_MEMORY,
	RIG_FILE,      /* as the system has it: io_uring, if that is there */
	RIG_FILE_SYNC, /* each piece waited for */
};

struct rig {
	struct nvmed *c;
	struct loop loop;
	struct host h;
	struct host_pair admin;
	char folder[64];
	char path[96];
	char file[96];
};

#define RIG_LEN	   (16ull << 20)
#define RIG_WAIT_S 20

/* rig_open - @config may be NULL: eight queue pairs, blocks of 512 bytes, 1 MiB of CMB in granules of 64 KiB */
void rig_open(struct rig *r, enum rig_backend backend, const struct nvmed_config *config);

/* rig_open_with - the same with a backend of one's own, taken */
void rig_open_with(struct rig *r, struct backend *b, const struct nvmed_config *config);

/* rig_open_enabled - and enable the controller, with an admin pair of 64 */
void rig_open_enabled(struct rig *r, enum rig_backend backend,
		      const struct nvmed_config *config);

/* rig_connect - another host, which has not attached */
void rig_connect(struct rig *r, struct host *h);

/* rig_pair - an I/O pair without interrupts */
void rig_pair(struct rig *r, struct host_pair *p, uint16_t qid, uint16_t size, uint32_t lease);

/* rig_rounds - rounds of the controller */
void rig_rounds(struct rig *r, int n);

/* Rounds until a condition holds: how many it takes is the kernel's matter, where that reads and writes. */
#define RIG_UNTIL(r, condition)                            \
	do {                                               \
		time_t until = time(NULL) + RIG_WAIT_S;    \
		while (!(condition) && time(NULL) < until) \
			rig_rounds(r, 1);                  \
		assert_true(condition);                    \
	} while (0)

void rig_close(struct rig *r);

/* rig_admin - run an admin command. Returns its status */
uint16_t rig_admin(struct rig *r, struct nvme_sqe sqe, uint32_t *result);

#endif
