/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints for tests of direct access, of which one shows the regions of its domain. Both are in this process,
 * which may read and write its own memory as any other's. Tests only.
 */
#ifndef WEFT_SHM_MOCK_KEYS_H
#define WEFT_SHM_MOCK_KEYS_H

#include "mock_engine.h"
#include "mr.h"

#define MOCK_RMA      (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MOCK_KEY      7u
#define MOCK_KEYS_LEN ((3u << 20) + 12345u)

struct mock_keys {
	/* the initiator, and the owner with what its domain shows */
	struct mock a, b;
	struct wire_share *share;
	struct mr_table table;
	/* MOCK_KEYS_LEN bytes each: of the owner, and of the initiator */
	unsigned char *memory, *buf;
	/* index of MOCK_KEY, where a test has given it */
	uint32_t region;
};

/* mock_keys_open - connect them; there is no region yet. @remote_events: of the owner, as struct wire_attr has them */
void mock_keys_open(struct mock_keys *k, uint64_t remote_events);
void mock_keys_close(struct mock_keys *k);

/* mock_keys_expose - give k->memory a key, in @iov_cnt pieces, one or two. Returns as mr_insert() */
int mock_keys_expose(struct mock_keys *k, uint64_t key, uint64_t access, size_t iov_cnt,
		     bool notify, uint32_t *index);

/* mock_keys_mark - what the initiator says that it is inside of */
_Atomic uint32_t *mock_keys_mark(struct mock_keys *k);

/*
 * mock_access_begin - read into k->buf, or write from there. Returns what direct() does
 * mock_access_end - until it ends; the owner does nothing. @ret: of mock_access_begin(). Returns 0 or -FI_E*
 * mock_access_all - both
 */
int mock_access_begin(struct mock_keys *k, bool write, uint64_t key, uint64_t addr, size_t len,
		      struct mock_op *op);
int mock_access_end(struct mock_keys *k, int ret, struct mock_op *op);
int mock_access_all(struct mock_keys *k, bool write, uint64_t key, uint64_t addr, size_t len);

#endif
