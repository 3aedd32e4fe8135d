/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: the other side of a controller, an owner on its slot with memory that it maps, and queue pairs there. It is
 * small and trusting; what a test wants to do wrong it does by itself. The controller runs in another process, or in
 * this one: then the host makes its rounds whenever it waits.
 */
#ifndef WEFT_NVMED_HOST_SIDE_H
#define WEFT_NVMED_HOST_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "nvme/spec.h"
#include "slot/slot.h"

#define HOST_MEMORY_LEN (64ull << 20)
#define HOST_BASE	0x100000000ull /* where the memory is for the controller */

/*
 * struct host
 * @memory:   a file that is mapped in the owner's domain at HOST_BASE
 * @used:     bytes of it that host_take() has given out
 * @progress: makes the controller's rounds; NULL: it runs by itself
 */
struct host {
	int fd;
	uint32_t seq;
	const uint8_t *registers;
	uint8_t *memory;
	int memory_fd;
	uint64_t used;
	void (*progress)(void *arg);
	void *arg;
	struct slot_message attached;
};

struct host_pair {
	struct host *host;
	uint16_t qid;
	uint16_t size;
	uint16_t tail;
	uint16_t head; /* of the completion queue */
	uint16_t sq_head;
	uint8_t phase;
	uint16_t cid;
	uint64_t base; /* address of DMA of the submission queue; the completion queue is behind it */
	struct nvme_sqe *sq;
	struct nvme_cqe *cq;
	struct slot_doorbells *page;
	int page_fd;
	int kick;
};

/* host_connect - connect to a slot. Returns 0 or a negative errno */
int host_connect(struct host *h, const char *path, void (*progress)(void *arg), void *arg);

/* host_close - go away */
void host_close(struct host *h);

/*
 * host_ask - a message and its answer
 * @m:      the request; out: the answer
 * @got:    out: descriptors beside the answer, room for SLOT_FDS_MAX; NULL: they are closed
 *
 * Returns the answer's status, or -EPIPE when the controller has closed the connection.
 */
int host_ask(struct host *h, struct slot_message *m, const int *fds, uint32_t cnt, int *got);

/* host_attach - attach, reset the controller, end what is mapped, and map the memory */
int host_attach(struct host *h);

/* host_memory - a sealed memfd, mapped. Returns the mapping */
uint8_t *host_memory(uint64_t len, int *fd);

/* host_map, host_unmap - of any file. Return the answer's status */
int host_map(struct host *h, uint32_t domain, uint64_t addr, uint64_t len, uint32_t access,
	     int fd);
int host_unmap(struct host *h, uint32_t domain, uint64_t addr, uint64_t len);

/* host_take - memory in whole pages, zeros. Returns its address of DMA; host_at() is where it is here */
uint64_t host_take(struct host *h, uint64_t len);
void *host_at(const struct host *h, uint64_t addr);

int host_write(struct host *h, uint32_t reg, uint64_t value);
uint32_t host_read(struct host *h, uint32_t reg);

/* host_enable - make the admin pair and enable the controller. Returns 0, or -EIO when it does not get ready */
int host_enable(struct host *h, struct host_pair *admin, uint16_t size);

/* host_pair_page - the doorbell page of a pair, and its file, which stays open as @page_fd */
int host_pair_page(struct host_pair *p);

/*
 * host_pair_create - create an I/O pair
 * @lease: whose memory, at the same address, it is in
 * @vector: of the completion queue; negative: no interrupts
 *
 * Returns the NVMe status.
 */
uint16_t host_pair_create(struct host *h, struct host_pair *admin, struct host_pair *p,
			  uint16_t qid, uint16_t size, uint32_t lease, int vector);

/* host_pair_forget - unmap its page */
void host_pair_forget(struct host_pair *p);

/* host_submit - put a command into the queue, with a new command id. Returns that; host_ring() tells the controller */
uint16_t host_submit(struct host_pair *p, const struct nvme_sqe *sqe);
void host_ring(struct host_pair *p);

/* host_poll - the next completion, if there is one */
bool host_poll(struct host_pair *p, struct nvme_cqe *cqe);

/* host_wait - wait for it; false: it did not come in time */
bool host_wait(struct host_pair *p, struct nvme_cqe *cqe);

/* host_run - submit, ring, wait. Returns the NVMe status without 'do not retry', or 0xffff; @result may be NULL */
uint16_t host_run(struct host_pair *p, const struct nvme_sqe *sqe, uint32_t *result);

/* host_rw - the entry of a read, write or the like over a contiguous buffer, whose list is taken as needed */
struct nvme_sqe host_rw(struct host *h, uint8_t opcode, uint64_t lba, uint32_t blocks,
			uint64_t addr, uint64_t len);

#endif
