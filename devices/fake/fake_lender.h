/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lender that is a model, for tests of the library that borrows: it has one device, and answers as a lender does, or
 * refuses, says nothing, answers too late, ends the connection, or lies, by a rule for each kind of request. The device's
 * controller is the test itself, which finds queues and data by their addresses.
 *
 * The model runs on a thread of its own; its functions are called by any other one.
 */
#ifndef WEFT_DEVICES_FAKE_LENDER_H
#define WEFT_DEVICES_FAKE_LENDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <weft/device.h>

#include "message.h"
#include "packet.h"
#include "slot.h"

#define FAKE_LENDER_NODE    0x0102030405060708ULL
#define FAKE_LENDER_DEVICE  0x1112131415161718ULL
#define FAKE_LENDER_GRANULE 65536u
#define FAKE_CONNECTIONS    16u
#define FAKE_WINDOWS	    64u

/*
 * struct fake_answer - what is sent
 * @len: bytes of it; it need not be what the message says
 */
struct fake_answer {
	struct lease_message msg;
	uint8_t data[LEASE_DATA_MAX];
	size_t len;
	int fds[PACKET_FDS_MAX];
	uint32_t fd_cnt;
};

/* enum fake_how - FAKE_LATE: before the answer to the next request of the same connection */
enum fake_how { FAKE_HONEST, FAKE_REFUSES, FAKE_SILENT, FAKE_LATE, FAKE_ENDS, FAKE_LIES };

/*
 * struct fake_rule - how requests of a kind are answered
 * @skip:   so many are answered as they must be, before
 * @status: of FAKE_REFUSES
 * @lie:    of FAKE_LIES: changes the answer; descriptors that it adds are the answer's
 */
struct fake_rule {
	enum fake_how how;
	uint32_t skip;
	int status;
	void (*lie)(struct fake_answer *answer);
};

/* struct fake_window - memory that the device reaches */
struct fake_window {
	uint64_t addr;
	uint64_t len;
	uint8_t *mem;
};

/* struct fake_pair - the queue pair, of which there is one; @entries 0: none. @alive: what holds the lock of its page */
struct fake_pair {
	uint32_t entries;
	uint64_t sq;
	uint64_t cq;
	int alive;
	int kick;
	int vector;
	struct slot_doorbells *doorbells;
};

/* struct fake_lender - @lock is of all below. @asked: requests of each kind, so far */
struct fake_lender {
	char folder[32];
	char path[48];
	pthread_t thread;
	int wake;
	pthread_mutex_t lock;
	bool stop;
	int listener;
	struct {
		int fd;
		bool watches;
		struct fake_answer *late;
	} connections[FAKE_CONNECTIONS];
	struct fake_rule rules[LEASE_KINDS];
	uint32_t asked[LEASE_KINDS];
	struct weft_device_info info;
	struct lease_message lease;
	bool runs;
	uint64_t next_addr;
	struct fake_window windows[FAKE_WINDOWS];
	struct fake_pair pair;
	int exported;
	uint64_t exported_len;
	uint32_t exported_generation;
};

/* fake_lender_start - begin; it listens at @path. fake_lender_stop - end it, and all connections */
void fake_lender_start(struct fake_lender *f);
void fake_lender_stop(struct fake_lender *f);

/*
 * fake_lender_begin - the model alone, for whoever calls fake_lender_answer() and is no thread; fake_lender_forget - it has
 * nothing any more
 */
void fake_lender_begin(struct fake_lender *f);
void fake_lender_forget(struct fake_lender *f);

/* fake_lender_vanish - it ends, but for what its controller has; fake_lender_return - and is there again, with its lease */
void fake_lender_vanish(struct fake_lender *f);
void fake_lender_return(struct fake_lender *f);

/* fake_lender_rule - answer requests of a kind so from now on */
void fake_lender_rule(struct fake_lender *f, uint16_t kind, struct fake_rule rule);

/* fake_lender_asked - how many requests of a kind there were */
uint32_t fake_lender_asked(struct fake_lender *f, uint16_t kind);

/* fake_lender_end - the lease has ended, as its controller sees it: the page of the queue pair, and who asks */
void fake_lender_end(struct fake_lender *f);

/* fake_lender_die - the controller is gone, and has said nothing */
void fake_lender_die(struct fake_lender *f);

/* fake_lender_tell - send an event to all who watch */
void fake_lender_tell(struct fake_lender *f, uint32_t kind, uint64_t device, uint32_t lease);

/* fake_lender_mem - where the device finds an address; NULL: nowhere */
void *fake_lender_mem(struct fake_lender *f, uint64_t addr);

/* fake_lender_answer - the answer to a request; descriptors are taken. False: there is none, and @end: the connection ends */
bool fake_lender_answer(struct fake_lender *f, const struct lease_message *msg,
			const void *data, const int *fds, struct fake_answer *answer, bool *end);

/* fake_file - a memfd of @len bytes that does not shrink, owned */
int fake_file(size_t len);

#endif
