/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registrations of memory with one device of a wire that pins.
 *
 * Memory of the arena is registered in grains: a grain is registered whole when a range that touches
 * it is first asked for, and stays so, also without users. Asking for it again costs an atomic
 * operation, and no lock; a holder, who asks on one thread at a time, pays not even that. What no user
 * holds is given up in two cases: there is no room for another registration, then the least recently
 * used grain goes first, of all the process's devices, or of this one if it is its own table that is full; or
 * the arena is about to take pages of the grain away. So a registration is never stale: the device
 * reaches the pages that the process sees, from get to put.
 *
 * A range is asked for from mem/cache if it is not in the arena, or with an access that grains do not
 * have, or if there is no room for its grains.
 *
 * The device, and what is registered with it, stay the parent's in a fork: in the child nothing is
 * registered, to put and to destroy does nothing to the device, and there is no handle to ask for.
 *
 * Any thread. Two locks: see pin.c.
 */
#ifndef WEFT_MEM_PIN_H
#define WEFT_MEM_PIN_H

#include "pin_ops.h"
#include "platform.h"

struct mem_cache;
struct mem_pins;
struct mem_pin_own;

struct mem_pin_config {
	const struct mem_pin_ops *ops;
	/* argument of @ops */
	void *device;
	/*
	 * Bytes of a grain: a power of two, from a page to ARENA_SLOT. 0: 2 MiB, or less where
	 * RLIMIT_MEMLOCK has room for fewer than 8 of them.
	 */
	size_t grain;
	/*
	 * Access that grains are registered with. Whoever has it, has it to all that is in the same
	 * grain: FI_REMOTE_READ and FI_REMOTE_WRITE only if the wire checks what peers ask for.
	 */
	uint64_t access;
	/* spent - called once, when there was no room for the first time; may be NULL */
	void (*spent)(void *device);
};

/* What mem_pins_get() has taken, until mem_pins_put(). It may be copied. */
struct mem_pin_ref {
	/* the range by itself, or NULL */
	struct mem_pin_own *own;
	/* grains: index of the first, and how many */
	uint64_t first;
	uint64_t cnt;
};

struct mem_pins_stats {
	/* grains that are registered */
	uint64_t grains;
	/* ranges by themselves that are in use */
	uint64_t own;
	/* grains that were registered */
	uint64_t pinned;
	/* grains that were given up for want of room, and for the arena */
	uint64_t evicted, revoked;
};

/*
 * mem_pins_create - no registrations with a device
 * @config: borrowed during the call; ops and device until mem_pins_destroy()
 * Returns 0, -FI_EINVAL for @config, or -FI_ENOMEM.
 */
int mem_pins_create(const struct mem_pin_config *config, struct mem_pins **pins);
/* mem_pins_destroy - end them; every range was put, but in the child of a fork */
void mem_pins_destroy(struct mem_pins *pins);

/*
 * mem_pins_get - have a range registered
 * @len: not 0
 * @ref: out
 * Returns 0; -FI_EINVAL: no bytes, or beyond the last address; -FI_ENOMEM: there is no room, even
 * after everything that has no user was given up; -FI_EOPBADSTATE in the child of a fork; or another
 * -FI_E* of the device.
 */
int mem_pins_get(struct mem_pins *pins, const void *addr, size_t len, uint64_t access,
		 struct mem_pin_ref *ref);
/* mem_pins_put - the device uses the range no more */
void mem_pins_put(struct mem_pins *pins, const struct mem_pin_ref *ref);

/*
 * mem_pins_hold, mem_pins_unhold - the same for one thread at a time: whoever calls them sees what the
 * last caller has done. Other threads get and put meanwhile.
 */
int mem_pins_hold(struct mem_pins *pins, const void *addr, size_t len, uint64_t access,
		  struct mem_pin_ref *ref);
void mem_pins_unhold(struct mem_pins *pins, const struct mem_pin_ref *ref);

/*
 * mem_pins_handle - returns the registration that reaches @addr, which is in a range that was got
 * @len: out: bytes that it reaches from there on, which may be more than the range has
 */
uint64_t mem_pins_handle(const struct mem_pins *pins, const struct mem_pin_ref *ref,
			 const void *addr, size_t *len);

/* mem_pins_cache - returns what ranges by themselves come from; NULL: nothing was asked of it yet */
struct mem_cache *mem_pins_cache(const struct mem_pins *pins);

void mem_pins_stats(struct mem_pins *pins, struct mem_pins_stats *stats);

#endif
