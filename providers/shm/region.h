/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two kinds of memory that endpoints share: the door, one per endpoint, where others
 * leave requests, and the pair, one per connection, with a ring in each direction. Both are
 * memfds without a name, sealed at their size, and found through /proc/PID/fd by the
 * numbers in an address or a request; what was found is proven by a nonce.
 *
 * The other side may write anything into them at any time: fields are loaded once and
 * checked. Called by the wire, on the thread that holds the domain.
 */
#ifndef WEFT_SHM_REGION_H
#define WEFT_SHM_REGION_H

#include "packet.h"
#include "ring.h"

#define SHM_DOOR_MAGIC 0x726f6f64u /* "door" */
#define SHM_PAIR_MAGIC 0x72696170u /* "pair" */
#define SHM_VERSION    1u
#define SHM_SLOTS      64u
#define SHM_NONCE      16u

/* A request in a door's mailbox; mailbox.h says who writes what and when. */
struct shm_slot {
	_Atomic uint64_t word; /* phase, generation, process that claimed it */
	_Atomic int32_t error; /* SLOT_FAILED: positive fi_errno */
	uint32_t fd;	       /* descriptor of the pair's memory in the claimer */
	uint8_t nonce[SHM_NONCE]; /* of the pair */
	uint8_t zero[32];
};

_Static_assert(sizeof(struct shm_slot) == CACHE_LINE, "layout");
_Static_assert(offsetof(struct shm_slot, fd) == 12, "layout");
_Static_assert(offsetof(struct shm_slot, nonce) == 16, "layout");

/* Memory of an endpoint that others may write to. */
struct shm_door {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
	uint8_t nonce[SHM_NONCE]; /* of the endpoint's address */
	_Atomic uint32_t closed;  /* the endpoint is gone: nobody will answer */
	uint8_t pad1[36];
	_Atomic uint32_t knocks;  /* requests ever made: the owner looks here and nowhere else */
	uint8_t pad2[60];
	struct shm_slot slots[SHM_SLOTS];
};

_Static_assert(sizeof(struct shm_door) == 128 + SHM_SLOTS * 64, "layout");
_Static_assert(offsetof(struct shm_door, nonce) == 8, "layout");
_Static_assert(offsetof(struct shm_door, closed) == 24, "layout");
_Static_assert(offsetof(struct shm_door, knocks) == 64, "the owner polls a line of its own");
_Static_assert(offsetof(struct shm_door, slots) == 128, "layout");

/* Side of a pair: who asked, who answered. Side i sends on ring i. */
enum shm_side {
	SHM_ASKED,
	SHM_ANSWERED,
};

/* shm_pair.answer: low byte; above it a positive fi_errno when refused. */
enum shm_answer {
	SHM_WAITING,
	SHM_ACCEPTED,
	SHM_REFUSED,
};

/* shm_pair.ended[] */
enum shm_end {
	SHM_OPEN,
	SHM_CLOSED, /* in order: everything that was begun is in the ring */
	SHM_BROKEN, /* with something left half done */
};

struct shm_flag {
	_Atomic uint32_t value;
	uint8_t pad[60];
};

/* Head of a pair's memory; the rings follow at SHM_PAIR_HEAD, that of SHM_ASKED first. */
struct shm_pair {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
	uint32_t line_cnt; /* of each ring */
	uint32_t data_len;
	uint64_t len;	   /* of all the memory */
	uint8_t nonce[SHM_NONCE];
	uint8_t pad1[24];
	struct hello hello[2];	/* by side */
	struct shm_flag answer; /* written once by SHM_ANSWERED */
	struct shm_flag ended[2];
};

#define SHM_PAIR_HEAD 4096u

_Static_assert(offsetof(struct shm_pair, line_cnt) == 8, "layout");
_Static_assert(offsetof(struct shm_pair, len) == 16, "layout");
_Static_assert(offsetof(struct shm_pair, nonce) == 24, "layout");
_Static_assert(offsetof(struct shm_pair, hello) == 64, "layout");
_Static_assert(offsetof(struct shm_pair, answer) == 256, "layout");
_Static_assert(offsetof(struct shm_pair, ended) == 320, "layout");
_Static_assert(sizeof(struct shm_pair) <= SHM_PAIR_HEAD, "layout");

/* Mapped memory and, while somebody else may have to open it, its descriptor. */
struct shm_region {
	void *addr; /* NULL: none */
	size_t len;
	int fd; /* -1: closed */
};

/* shm_region_close - unmap and close; nothing to do for a region that is none */
void shm_region_close(struct shm_region *region);
/* shm_region_close_fd - close the descriptor; the memory stays mapped */
void shm_region_close_fd(struct shm_region *region);

/*
 * shm_door_create - the door of an endpoint of ours
 * Returns 0 and the region with its descriptor, owned, or -FI_E*.
 */
int shm_door_create(const uint8_t nonce[SHM_NONCE], struct shm_region *region);

/*
 * shm_door_open - the door of another endpoint
 * @pid, @fd, @nonce: from its address, trusted in nothing
 * Returns 0 and the region, owned, without a descriptor; -FI_EHOSTUNREACH when no such
 * door is found there or we may not open it; -FI_EMFILE or -FI_ENOMEM for want of our own.
 */
int shm_door_open(uint32_t pid, uint32_t fd, const uint8_t nonce[SHM_NONCE], struct shm_region *region);

/*
 * shm_pair_create - memory for a connection
 * @line_cnt, @data_len: as ring_len() allows
 * Everything in it is filled but the hellos. Returns 0 and the region with its descriptor,
 * owned, or -FI_E*.
 */
int shm_pair_create(uint32_t line_cnt, uint32_t data_len, struct shm_region *region);

/* What a request says of the pair that it offers. */
struct shm_offer {
	uint32_t pid;
	uint32_t fd;
	uint8_t nonce[SHM_NONCE];
};

/*
 * shm_pair_open - the memory that a request offers
 * @line_cnt, @data_len: out: sizes of each ring, checked against the region
 *
 * Returns 0 and the region, owned, without a descriptor; -FI_EHOSTUNREACH when nothing of the
 * kind is there or we may not open it, -FI_ENOPROTOOPT for another version, -FI_EPROTO for
 * contents that can't be, -FI_EMFILE or -FI_ENOMEM for want of our own.
 */
int shm_pair_open(const struct shm_offer *offer, struct shm_region *region, uint32_t *line_cnt,
		  uint32_t *data_len);

/* shm_pair_ring - memory of the ring on which @side sends */
void *shm_pair_ring(const struct shm_region *region, enum shm_side side, uint32_t line_cnt, uint32_t data_len);

#endif
