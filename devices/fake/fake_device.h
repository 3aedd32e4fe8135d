/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests of the lender: a controller that is a model, in the test's own process. It does what
 * slot.h and nvme/lease.h say, keeps what its owner before left, and fails where a test says so.
 *
 * It carries out admin commands when fake_device_run() is called: where a program is linked with --wrap=nanosleep, by
 * whoever waits for one. Time is the test's as well then (fake_time.h). Any thread; the lock is the device's.
 */
#ifndef WEFT_DEVICES_FAKE_FAKE_DEVICE_H
#define WEFT_DEVICES_FAKE_FAKE_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "function.h"
#include "lease.h"
#include "spec.h"

#define FAKE_PAIRS    8u
#define FAKE_GRANULES 16u
#define FAKE_MAPPINGS 64u

enum fake_op {
	FAKE_READ,
	FAKE_WRITE,
	FAKE_MAP,
	FAKE_UNMAP,
	FAKE_VECTOR,
	FAKE_REGION,
	FAKE_MAPPING,
	FAKE_QUEUE,
	FAKE_OPS,
};

/* struct fake_mapping - @mem: where the owner's own ones are here */
struct fake_mapping {
	uint8_t *mem;
	uint32_t domain;
	uint32_t access;
	uint64_t addr;
	uint64_t len;
	uint64_t offset;
	int fds[SLOT_FDS_MAX];
	uint32_t fd_cnt;
};

struct fake_queue {
	bool sq, cq;
	uint32_t lease;
	uint64_t sq_addr, cq_addr;
	uint32_t entries;
};

/* struct fake_lease - @ends: it has been ended, but a command is under way in it until fake_device_finish() */
struct fake_lease {
	bool runs;
	bool ends;
	uint32_t generation;
	uint32_t remaining_ms;
};

/*
 * struct fake_device
 * @err, @skip: what an operation fails with, after so many that do not
 * @status:     of an admin command, in place of carrying it out
 * @mute:       admin commands are taken and never completed
 * @slow:       commands are under way in all that is to end: leases end by fake_device_finish() alone
 * @ops:        operations that were asked for, by kind; @commands: admin commands, by opcode
 * @armed:      milliseconds of the last ARM
 * @reading:    called when a part of the log of leases has been read, with its offset; the lock is held
 * @attached:   times that it had an owner; @busy: so many next ones are refused, as it has another one
 */
struct fake_device {
	pthread_mutex_t lock;
	int err[FAKE_OPS];
	uint32_t skip[FAKE_OPS];
	uint16_t status[256];
	bool mute;
	bool slow;
	bool gone;
	uint32_t ops[FAKE_OPS];
	uint32_t commands[256];
	uint32_t armed;
	void (*reading)(struct fake_device *dev, uint32_t at);
	uint32_t attached;
	uint32_t busy;
	uint64_t serial;
	char sn[20];
	uint64_t cap;
	uint32_t cc, csts, aqa;
	uint64_t asq, acq;
	bool never_ready;
	struct fake_mapping mappings[FAKE_MAPPINGS];
	uint32_t mapping_cnt;
	struct slot_doorbells *pages[FAKE_PAIRS + 1];
	int page_fds[FAKE_PAIRS + 1];
	int kicks[FAKE_PAIRS + 1];
	int vectors[FAKE_PAIRS + 1];
	struct fake_queue queues[FAKE_PAIRS + 1];
	int granules[FAKE_GRANULES];
	struct fake_lease leases[NVME_LEASES + 1];
	uint16_t sq_head, cq_tail;
	uint8_t phase;
	uint16_t asked[16];
	uint32_t asked_cnt;
	uint32_t asked_max;
	uint32_t masked;
	uint32_t pending[16];
	uint32_t pending_cnt;
	struct nvme_error_log errors[8];
	uint32_t error_cnt;
	struct fake_owner *owner;
};

/* fake_device_init, _fini - a controller that was never enabled; what it has is closed */
void fake_device_init(struct fake_device *dev);
void fake_device_fini(struct fake_device *dev);

/* fake_device_open - own it, as function_open_slot() does. Returns 0 or -errno */
int fake_device_open(struct fake_device *dev, struct function **function);

/* fake_function_fd - as function_slot_fd() */
int fake_function_fd(const struct function *function);

/* fake_device_commands - how many commands of an opcode it has carried out; any thread */
uint32_t fake_device_commands(const struct fake_device *dev, uint8_t opcode);

/* fake_device_run - carry out what was submitted. Returns whether there was something */
bool fake_device_run(struct fake_device *dev);

/* fake_device_expire - the time of a lease runs out: it has ended, which is an event */
void fake_device_expire(struct fake_device *dev, uint32_t lease);

/* fake_device_end - the same for who holds the lock, and without an event */
void fake_device_end(struct fake_device *dev, uint32_t lease);

/* fake_device_finish - leases that end have ended, which is an event */
void fake_device_finish(struct fake_device *dev);

/* fake_device_event - have the controller tell of an event: dword 0 of its completion */
void fake_device_event(struct fake_device *dev, uint32_t event);

/* fake_device_error - add an entry to the error log: a doorbell of a queue was rung with a value that it can't have */
void fake_device_error(struct fake_device *dev, uint16_t sq_id);

/* fake_device_die - the controller process ends; fake_device_renew(): another one is there, of another run */
void fake_device_die(struct fake_device *dev);
void fake_device_renew(struct fake_device *dev);

/* fake_device_mappings - how many a domain has */
uint32_t fake_device_mappings(struct fake_device *dev, uint32_t domain);

#endif
