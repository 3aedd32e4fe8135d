/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A borrower without the library: what it sends to a lender, and writes into queues and doorbells, is what its program
 * says, and nothing is checked before. For the hostile programs of this folder, each of which is one process that ends
 * when something is not as it must be.
 */
#ifndef WEFT_TESTS_DEVICES_RAW_H
#define WEFT_TESTS_DEVICES_RAW_H

#include <stdint.h>

#include "message.h"
#include "packet.h"
#include "slot.h"
#include "spec.h"

#define RAW_ENTRIES 64u

/* The pages of a borrower's memory: both queues, lists, data. */
enum raw_page { RAW_SQ, RAW_CQ, RAW_LIST, RAW_LIST2, RAW_DATA, RAW_PAGES = RAW_DATA + 256 };

/*
 * struct raw - a connection to a lender, and what it has borrowed by it
 * @got:  descriptors of the last answer, which the next one closes
 * @memory, @mem, @addr: RAW_PAGES pages, here and for the device
 * @kick, @doorbells: of the queue pair @qid
 */
struct raw {
	int fd;
	uint32_t seq;
	uint64_t device;
	uint32_t lease;
	uint32_t generation;
	struct lease_token token;
	int got[PACKET_FDS_MAX];
	uint32_t got_cnt;
	int memory;
	uint8_t *mem;
	uint64_t addr;
	uint32_t qid;
	int kick;
	struct slot_doorbells *doorbells;
	uint32_t sq_tail;
	uint32_t cq_head;
	uint16_t phase;
};

/* must - the process ends if a condition does not hold, with a line that says what is not so */
#define must(condition, ...)                   \
	do {                                   \
		if (!(condition))              \
			raw_fail(__VA_ARGS__); \
	} while (0)
void raw_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* raw_is - an answer or a status is the one that it must be, or the process ends. @what: in the line that says so */
void raw_is(const char *what, int is, int want);

/* raw_done - say that all was done, and wait until standard input ends: who has borrowed is looked for meanwhile */
void raw_done(void);

/* raw_connect - to the lender at @path. The connection has nothing yet */
struct raw raw_connect(const char *path);

/* raw_send - send bytes as they are. Returns 0 or a negative errno */
int raw_send(struct raw *r, const void *bytes, size_t len, const int *fds, uint32_t fd_cnt);

/* raw_ended - wait until the lender has ended the connection */
void raw_ended(struct raw *r);

/*
 * raw_ask - send a request, whose version, number and lengths are filled in, and take the answer in its place
 * @data: in and out, LEASE_DATA_MAX bytes; NULL: none is sent
 * Returns the answer's status.
 */
int raw_ask(struct raw *r, struct lease_message *msg, void *data, const int *fds);

/* raw_named - a request of a kind about the lease of @r */
struct lease_message raw_named(const struct raw *r, uint16_t kind);

/* raw_borrow - a shared lease */
void raw_borrow(struct raw *r);

/* raw_window - a window to a file. Returns as raw_ask(); @addr: out */
int raw_window(struct raw *r, int fd, uint32_t access, uint64_t len, uint64_t *addr);

/* raw_memory - a memfd of @len bytes, with these seals */
int raw_memory(size_t len, int seals);

/* raw_pair - have a lease, memory with a window, and a queue pair */
struct raw raw_pair(const char *path);

/* raw_page - the address for the device of a page of the memory */
static inline uint64_t raw_page(const struct raw *r, uint32_t page)
{
	return r->addr + (uint64_t)page * NVME_PAGE;
}

/* raw_ring - write the doorbell of the submission queue, and wake the controller if it sleeps */
void raw_ring(struct raw *r, uint32_t tail);

/* raw_status - wait for the next completion, and say that it was taken. Returns its status without Do Not Retry */
int raw_status(struct raw *r);

/* raw_do - have a command carried out. Returns as raw_status() */
int raw_do(struct raw *r, const struct nvme_sqe *sqe);

/* raw_read - a read of blocks that is right, but for what a test changes in it */
struct nvme_sqe raw_read(const struct raw *r, uint32_t blocks);

#endif
