/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kinds of memory that endpoints share:
 *
 * inbox - one per endpoint: peers leave requests in it. The inboxes of a process share memory
 * pair - one per connection, with a small ring in each direction
 * area - a larger data area for one direction that has traffic
 * table - one per domain: the memory that it has registered; peers map it for reading only
 *
 * All are memfds without a name, sealed at their size. They are found through /proc/PID/fd by the
 * numbers in an address, a request, a line or the pair, or received over a socket; a nonce proves
 * that the memory is the one meant.
 *
 * The other side may write anything into them at any time: fields are loaded once and checked.
 * Called by the wire, on the thread that holds the domain.
 */
#ifndef WEFT_SHM_REGION_H
#define WEFT_SHM_REGION_H

#include "coop_copy.h"
#include "mr.h"
#include "packet.h"
#include "ring.h"

#define PSHM_INBOX_MAGIC   0x786f6269u /* "ibox" */
#define PSHM_INBOXES_MAGIC 0x73786269u /* "ibxs" */
#define PSHM_PAIR_MAGIC	   0x72696170u /* "pair" */
#define PSHM_AREA_MAGIC	   0x61657261u /* "area" */
#define PSHM_TABLE_MAGIC   0x6c626174u /* "tabl" */
#define PSHM_VERSION	   8u
#define PSHM_SLOTS	   64u
#define PSHM_NONCE	   ADDR_NONCE_LEN
/* Doorbells of an endpoint. Each connection is given one; with more connections some share one. */
#define PSHM_DOORBELLS 512u

/* A request in an inbox's mailbox; mailbox.h defines which side writes what, and when. */
struct pshm_slot {
	/* phase, generation, process that claimed it */
	_Atomic uint64_t word;
	/* SLOT_FAILED: positive fi_errno */
	_Atomic int32_t error;
	/* descriptor of the pair's memory in the claimer */
	uint32_t fd;
	/* of the pair */
	uint8_t nonce[PSHM_NONCE];
	uint8_t zero[40];
};

_Static_assert(sizeof(struct pshm_slot) == CACHE_LINE, "layout");
_Static_assert(offsetof(struct pshm_slot, fd) == 12, "layout");
_Static_assert(offsetof(struct pshm_slot, nonce) == 16, "layout");

/*
 * Head of the memory of inboxes: up to PSHM_INBOXES of them, the first at PSHM_INBOXES_HEAD, the
 * others at multiples of PSHM_INBOX_STRIDE from there.
 *
 * The inboxes of a process share memory so that a thousand endpoints do not need a thousand
 * descriptors. A process that may write to one of them may write to all, as it may when it finds
 * one through /proc, which shows all descriptors of a process or none. The place of a closed inbox
 * is never used again, since peers of that endpoint may still have it mapped.
 */
#define PSHM_INBOXES 255u

struct pshm_inboxes {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
	uint8_t pad[8];
	/* of the endpoints, in the order of their inboxes */
	uint8_t nonces[PSHM_INBOXES][PSHM_NONCE];
	uint8_t pad2[2040];
};

#define PSHM_INBOXES_HEAD 4096u
#define PSHM_INBOX_STRIDE 8192u

_Static_assert(sizeof(struct pshm_inboxes) == PSHM_INBOXES_HEAD, "layout");
_Static_assert(offsetof(struct pshm_inboxes, nonces) == 16, "layout");

#define PSHM_DOORBELL_WORDS   0xffffffffu
#define PSHM_REQUEST_DOORBELL (1ull << 32)

/* Memory of an endpoint that others may write to. */
struct pshm_inbox {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
	/* of the endpoint's address */
	uint8_t nonce[PSHM_NONCE];
	/* 1: the endpoint is closed and answers no more requests */
	_Atomic uint32_t closed;
	uint8_t pad1[44];
	/*
	 * The owner polls this word, in which all doorbells are. PSHM_DOORBELL_WORDS: bit i is set
	 * while a bit of doorbells[i] is; only the owner clears it. Above, in units of
	 * PSHM_REQUEST_DOORBELL: requests left here and answers to the owner's own so far.
	 */
	_Atomic uint64_t rung;
	uint8_t pad2[56];
	/* The owner writes the next four; armed is cleared by peers too. */
	/* polls so far: peers see by it whether the owner polls */
	_Atomic uint32_t polls;
	/* 1: a thread sleeps for this endpoint; the peer that exchanges it for 0 has to wake it */
	_Atomic uint32_t armed;
	/* number of the owner's pipe in its process; 0: none */
	_Atomic uint32_t bell;
	uint32_t zero2;
	/* device and inode of that pipe, written before bell */
	uint64_t bell_dev, bell_ino;
	uint8_t pad3[32];
	/*
	 * Bit i of all: the producer that was given doorbell i has published to a ring that is not
	 * polled.
	 */
	_Atomic uint64_t doorbells[PSHM_DOORBELLS / 64];
	struct pshm_slot slots[PSHM_SLOTS];
};

_Static_assert(sizeof(struct pshm_inbox) == 256 + PSHM_SLOTS * 64, "layout");
_Static_assert(sizeof(struct pshm_inbox) <= PSHM_INBOX_STRIDE, "layout");
_Static_assert(offsetof(struct pshm_inbox, nonce) == 8, "layout");
_Static_assert(offsetof(struct pshm_inbox, closed) == 16, "layout");
_Static_assert(offsetof(struct pshm_inbox, rung) == 64, "the owner polls a line of its own");
_Static_assert(PSHM_DOORBELLS / 64 <= 32, "a bit for each word of doorbells");
_Static_assert(offsetof(struct pshm_inbox, polls) == 128, "what the owner writes is apart");
_Static_assert(offsetof(struct pshm_inbox, bell_dev) == 144, "layout");
_Static_assert(offsetof(struct pshm_inbox, doorbells) == 192, "layout");
_Static_assert(offsetof(struct pshm_inbox, slots) == 256, "layout");

/* pshm_inbox_requests - returns the count of requests in a value of rung */
static inline uint64_t pshm_inbox_requests(uint64_t rung)
{
	return rung & ~(uint64_t)PSHM_DOORBELL_WORDS;
}

/*
 * pshm_inbox_rung - returns true if a doorbell was rung, that of requests since their count was
 * @requests
 * Without order with what was left.
 */
static inline bool pshm_inbox_rung(const struct pshm_inbox *inbox, uint64_t requests)
{
	return atomic_load_explicit(&inbox->rung, memory_order_relaxed) != requests;
}

/*
 * pshm_inbox_notify - ring the request doorbell: the owner's next poll() checks requests and
 * answers
 * The owner may sleep: the caller checks pshm_inbox_wake_due().
 */
static inline void pshm_inbox_notify(struct pshm_inbox *inbox)
{
	/*
	 * R:pshm_inbox.request_doorbell  the request or answer before the count; pairs
	 * A:pshm_inbox.request_doorbell
	 * F:pshm_inbox.request_doorbell  before reading whether the owner sleeps; pairs
	 * F:pshm_inbox.armed
	 */
	atomic_fetch_add_explicit(&inbox->rung, PSHM_REQUEST_DOORBELL, memory_order_seq_cst);
}

/*
 * pshm_inbox_wake_due - returns true if the owner sleeps: to one of its callers, which has to wake
 * it
 */
static inline bool pshm_inbox_wake_due(struct pshm_inbox *inbox)
{
	/* A:pshm_inbox.armed  it before the bell; pairs R:pshm_inbox.armed */
	return atomic_load_explicit(&inbox->armed, memory_order_seq_cst) &&
	       atomic_exchange_explicit(&inbox->armed, 0, memory_order_relaxed);
}

/*
 * Side of a pair: the one that requested the connection, the one that answered. Side i sends on
 * ring i.
 */
enum pshm_side {
	PSHM_REQUESTER,
	PSHM_ACCEPTOR,
};

/* pshm_pair.answer: low byte; above it a positive fi_errno when refused. */
enum pshm_answer {
	PSHM_WAITING,
	PSHM_ACCEPTED,
	PSHM_REFUSED,
};

/* pshm_pair.ended[] */
enum pshm_end {
	PSHM_OPEN,
	/* in order: nothing follows what is in the ring */
	PSHM_CLOSED,
	/* by an error */
	PSHM_BROKEN,
};

/* pshm_pair.grown[] */
enum pshm_grown {
	PSHM_NOT_GROWN,
	/* the area is mapped: the producer may move to it */
	PSHM_GROWN,
	/* the last area that was offered could not be mapped */
	PSHM_NOT_MAPPED,
};

/* pshm_pair.polling[].mode: what the producer of a ring does after it has published a line. */
enum pshm_polling_mode {
	/*
	 * The producer reads the mode again, after a full barrier: the consumer can't make one for
	 * it.
	 */
	PSHM_UNSURE,
	/* Nothing: the consumer polls this ring. */
	PSHM_POLLED,
	/* The producer rings its doorbell: the ring is polled seldom, or the consumer sleeps. */
	PSHM_RING_DOORBELL,
};

/* Written by the consumer of a ring, seldom, so that it stays in its producer's cache. */
struct pshm_polling {
	/* enum pshm_polling_mode */
	_Atomic uint32_t mode;
	/* the producer's doorbell in the consumer's inbox */
	_Atomic uint32_t doorbell;
	uint8_t pad[56];
};

struct pshm_flag {
	_Atomic uint32_t value;
	uint8_t pad[60];
};

/*
 * Location of the table of a side's registered memory, written before shown is set (share.c), and of
 * the directory of its arena (mem/arena/directory.h), written before arena_shown is set
 * (peer_arena.c). Each is written once.
 */
struct pshm_shown {
	/* 1: the table is valid */
	_Atomic uint32_t shown;
	/* descriptor of the key table's memory in that process */
	uint32_t fd;
	uint8_t nonce[PSHM_NONCE];
	/*
	 * FI_REMOTE_READ, FI_REMOTE_WRITE: accesses that have to be reported to that side, and so
	 * go by packet alone
	 */
	uint32_t remote_events;
	uint32_t zero;
	/* address of the write guard that writes pass, which may become another one; 0: nothing may be written */
	_Atomic uint64_t write_guard;
	/* 1: what follows is valid */
	_Atomic uint32_t arena_shown;
	/* descriptor of the directory in that process */
	uint32_t arena_fd;
	uint8_t arena_nonce[16];
	/* chunks that this side would like the other one to map: all up to this serial; it grows */
	_Atomic uint64_t arena_wanted;
};

_Static_assert(sizeof(struct pshm_shown) == CACHE_LINE, "layout");
_Static_assert(offsetof(struct pshm_shown, nonce) == 8, "layout");
_Static_assert(offsetof(struct pshm_shown, remote_events) == 16, "layout");
_Static_assert(offsetof(struct pshm_shown, write_guard) == 24, "layout");
_Static_assert(offsetof(struct pshm_shown, arena_shown) == 32, "layout");
_Static_assert(offsetof(struct pshm_shown, arena_nonce) == 40, "layout");
_Static_assert(offsetof(struct pshm_shown, arena_wanted) == 56, "layout");

/* What a side uses of the other one's memory. Written by that side alone. */
struct pshm_inside {
	/*
	 * line of the other side's key table whose memory it accesses now, with PSHM_INSIDE_MAPPED if
	 * that is by loads and stores; 0: none
	 */
	_Atomic uint32_t line;
	uint32_t zero;
	/* accesses begun so far, this one included */
	_Atomic uint64_t entered;
	/* it has mapped the chunks of the other side's arena up to this serial; it grows */
	_Atomic uint64_t mapped;
	uint8_t pad[40];
};

#define PSHM_INSIDE_MAPPED (1u << 31)
_Static_assert(MR_SLOT_BITS < 31, "a line's index leaves room for the flag");

_Static_assert(sizeof(struct pshm_inside) == CACHE_LINE, "layout");

/* Bytes of a hello that are in the first page of a pair */
#define PSHM_HELLO_LEN offsetof(struct hello, data)

/*
 * Head of a pair's memory; the rings follow at PSHM_PAIR_HEAD, that of PSHM_REQUESTER first,
 * then areas.
 */
struct pshm_pair {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
	/* of each ring */
	uint32_t line_cnt;
	uint32_t data_len;
	/* bytes of all the memory */
	uint64_t len;
	uint8_t nonce[PSHM_NONCE];
	/*
	 * Bytes of data of the areas behind the rings in this memory, by side, each after its head;
	 * 0: there are none, and rings that grow get memory of their own.
	 */
	uint32_t area_len;
	/* enum pshm_answer; written once, by PSHM_ACCEPTOR */
	_Atomic uint32_t answer;
	uint8_t pad1[24];
	/* by side: a struct hello up to its data, and the length of the data in hello_data */
	uint8_t hello[2][PSHM_HELLO_LEN];
	uint32_t hello_data_len[2];
	uint8_t pad2[24];
	/* enum pshm_end, by side */
	struct pshm_flag ended[2];
	/* enum pshm_grown, of the ring of that side; written by the other one */
	struct pshm_flag grown[2];
	/*
	 * ns that reading the last probe of that side took; 0: not measured yet. Written by the
	 * other one
	 */
	struct pshm_flag probed[2];
	/* of the ring of that side; written by the other one */
	struct pshm_polling polling[2];
	/* 1: that side takes part in the other side's barriers */
	struct pshm_flag barriers[2];
	/* 1: that side can't wake the other one, which therefore sleeps for 1 ms at most */
	struct pshm_flag no_wake[2];
	/* 1: that side can't write to the other one's memory */
	struct pshm_flag no_coop_write[2];
	/* 1: the ring of that side does not grow for now */
	struct pshm_flag small[2];
	/* by the side that receives */
	struct pshm_coop_copy coop_copies[2][PSHM_COOP_COPIES];
	/* by the side that shows it */
	struct pshm_shown shown[2];
	/* by the side that is inside */
	struct pshm_inside inside[2];
	/*
	 * By side: private data of the hello, or of the refusal. In a page that is not touched
	 * without any
	 */
	uint8_t hello_data[2][HELLO_DATA_MAX];
};

#define PSHM_PAIR_HEAD 8192u

_Static_assert(offsetof(struct pshm_pair, line_cnt) == 8, "layout");
_Static_assert(offsetof(struct pshm_pair, len) == 16, "layout");
_Static_assert(offsetof(struct pshm_pair, nonce) == 24, "layout");
_Static_assert(offsetof(struct pshm_pair, area_len) == 32, "layout");
_Static_assert(offsetof(struct pshm_pair, hello) == 64, "layout");
_Static_assert(offsetof(struct pshm_pair, answer) == 36, "layout");
_Static_assert(offsetof(struct pshm_pair, ended) == 256, "layout");
_Static_assert(offsetof(struct pshm_pair, grown) == 384, "layout");
_Static_assert(offsetof(struct pshm_pair, probed) == 512, "layout");
_Static_assert(offsetof(struct pshm_pair, polling) == 640, "layout");
_Static_assert(offsetof(struct pshm_pair, barriers) == 768, "layout");
_Static_assert(offsetof(struct pshm_pair, no_wake) == 896, "layout");
_Static_assert(offsetof(struct pshm_pair, no_coop_write) == 1024, "layout");
_Static_assert(offsetof(struct pshm_pair, small) == 1152, "layout");
_Static_assert(offsetof(struct pshm_pair, coop_copies) == 1280, "layout");
_Static_assert(offsetof(struct pshm_pair, inside) == offsetof(struct pshm_pair, shown) + 128,
	       "layout");
_Static_assert(offsetof(struct pshm_pair, hello_data) == 4096, "a page of its own");
_Static_assert(sizeof(struct pshm_pair) <= PSHM_PAIR_HEAD, "layout");

/* Head of an area's memory; the data follow at PSHM_AREA_HEAD. */
struct pshm_area {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
	uint32_t data_len;
	uint32_t zero2;
	uint8_t nonce[PSHM_NONCE];
};

#define PSHM_AREA_HEAD 4096u

_Static_assert(sizeof(struct pshm_area) == 24, "layout");
_Static_assert(offsetof(struct pshm_area, nonce) == 16, "layout");

/*
 * Head of the memory of a key table (tables/mr.h), which peers map for reading; its slabs follow at
 * PSHM_TABLE_HEAD, as mr_slab_offset() lays them out.
 */
struct pshm_table {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
	uint8_t nonce[PSHM_NONCE];
};

#define PSHM_TABLE_HEAD 4096u
/* 65,536 lines: pages that are never touched cost nothing. */
#define PSHM_TABLE_SLABS 11u

_Static_assert(sizeof(struct pshm_table) == 16, "layout");
_Static_assert(offsetof(struct pshm_table, nonce) == 8, "layout");

static inline bool pshm_nonce_same(const uint8_t a[PSHM_NONCE], const uint8_t b[PSHM_NONCE])
{
	return memcmp(a, b, PSHM_NONCE) == 0;
}

/* Mapped memory and, as long as another process may have to open it, its descriptor. */
struct pshm_region {
	/* NULL: none */
	void *addr;
	size_t len;
	/* -1: closed */
	int fd;
};

/* pshm_is_shortage - returns true for an error of lacking descriptors or memory, which may pass */
bool pshm_is_shortage(int err);

/*
 * pshm_region_error - the error of a function that opens another process's memory, by that of a
 * system call Returns @err if it is scarce, else -FI_EHOSTUNREACH: there is no way through memory.
 */
int pshm_region_error(int err);

/* pshm_region_close - unmap and close a region; without effect on an empty one */
void pshm_region_close(struct pshm_region *region);
/* pshm_region_close_fd - close the descriptor; the memory stays mapped */
void pshm_region_close_fd(struct pshm_region *region);

/* The inbox of an endpoint of this process. */
struct pshm_own_inbox {
	/* NULL: none */
	struct pshm_inbox *inbox;
	/* descriptor of the memory that the inbox is in; borrowed */
	int fd;
	struct pshm_inbox_file *file;
};

/*
 * pshm_inboxes_watch - let forks wait for the lock of inbox.c; called before the first inbox, and
 * not within a thread's round
 */
void pshm_inboxes_watch(void);

/*
 * pshm_inbox_create - make the inbox of an endpoint of this process, in memory with other inboxes
 * Any thread. Returns 0 and the inbox, owned, or -FI_E*.
 */
int pshm_inbox_create(const uint8_t nonce[PSHM_NONCE], struct pshm_own_inbox *own);

/*
 * pshm_inbox_destroy - release the inbox of an endpoint that is closed; without effect on an empty
 * one
 * The place of an inbox is not used again. The memory is released with its last inbox. Any thread.
 */
void pshm_inbox_destroy(struct pshm_own_inbox *own);

/*
 * pshm_inbox_open - map the inbox of another endpoint
 * @pid, @fd, @nonce: from its address; not trusted
 * Returns 0 and the region, owned, without a descriptor; -FI_ENOENT if no such inbox is there;
 * -FI_EHOSTUNREACH if this process may not open it; -FI_EMFILE or -FI_ENOMEM if this process lacks
 * descriptors or memory.
 */
int pshm_inbox_open(uint32_t pid, uint32_t fd, const uint8_t nonce[PSHM_NONCE],
		    struct pshm_region *region);

/*
 * pshm_inbox_take - the same, by a descriptor that was received over a socket
 * @fd: takes it, even on failure
 * Returns -FI_EHOSTUNREACH for anything but that inbox.
 */
int pshm_inbox_take(int fd, const uint8_t nonce[PSHM_NONCE], struct pshm_region *region);

/* Sizes of the parts of a pair. */
struct pshm_sizes {
	/* of each ring, as ring_len() allows */
	uint32_t line_cnt, data_len;
	/* pshm_pair.area_len: 0, or more than data_len */
	uint32_t area_len;
};

/*
 * pshm_pair_allowed - returns true if the limit on the size of files lets this process make such a
 * pair
 */
bool pshm_pair_allowed(const struct pshm_sizes *sizes);

/*
 * pshm_pair_create - make the memory of a connection
 * Everything in it is filled but the hellos. Returns 0 and the region with its descriptor,
 * owned, or -FI_E*.
 */
int pshm_pair_create(const struct pshm_sizes *sizes, struct pshm_region *region);

/* Fields of a request that locate the pair. */
struct pshm_offer {
	uint32_t pid;
	uint32_t fd;
	uint8_t nonce[PSHM_NONCE];
};

/*
 * pshm_pair_open - map the memory that a request offers
 * @sizes: out: checked against the region
 * Returns 0 and the region, owned, without a descriptor; -FI_EHOSTUNREACH if no such memory is
 * there or this process may not open it, -FI_ENOPROTOOPT for another version, -FI_EPROTO for
 * invalid contents, -FI_EMFILE or -FI_ENOMEM if this process lacks descriptors or memory.
 */
int pshm_pair_open(const struct pshm_offer *offer, struct pshm_region *region,
		   struct pshm_sizes *sizes);

/*
 * pshm_pair_take - the same, by a descriptor that was received over a socket
 * @fd: takes it, even on failure
 */
int pshm_pair_take(int fd, const uint8_t nonce[PSHM_NONCE], struct pshm_region *region,
		   struct pshm_sizes *sizes);

/* pshm_hello_put - write the hello of @side; before the request or answer that publishes it */
void pshm_hello_put(struct pshm_pair *pair, enum pshm_side side, const struct hello *hello);
/*
 * pshm_hello_get - copy the hello of @side; after a refusal only its data is valid
 * The peer may change it meanwhile: the copy is what hello_check() or hello_data_check() is for.
 */
void pshm_hello_get(const struct pshm_pair *pair, enum pshm_side side, struct hello *hello);

/*
 * pshm_area_create - make a data area of @data_len bytes
 * Returns 0 and the region with its descriptor, owned, or -FI_E*.
 */
int pshm_area_create(uint32_t data_len, struct pshm_region *region);

/*
 * pshm_area_open - map the area of another process
 * @data_len: out: a power of two up to RING_DATA_MAX
 * Returns 0 and the region, owned, without a descriptor, or an error as pshm_pair_open() does.
 */
int pshm_area_open(const struct pshm_offer *offer, struct pshm_region *region,
		   uint32_t *data_len);

/*
 * pshm_table_create - make memory for a key table, which other processes may read
 * Returns 0 and the region with its descriptor, owned, or -FI_E*.
 */
int pshm_table_create(struct pshm_region *region);

/*
 * pshm_table_open - map that of another process for reading
 * Returns 0 and the region, owned, without a descriptor; or an error as pshm_pair_open() does.
 */
int pshm_table_open(const struct pshm_offer *offer, struct pshm_region *region);

/* pshm_pair_ring - returns the memory of the ring on which @side sends */
void *pshm_pair_ring(const struct pshm_region *region, enum pshm_side side,
		     const struct pshm_sizes *sizes);

/*
 * pshm_pair_area - the area of that ring in the pair's own memory Returns a region without a
 * descriptor, not to be unmapped; its addr is NULL when the pair has none.
 */
struct pshm_region pshm_pair_area(const struct pshm_region *region, enum pshm_side side,
				  const struct pshm_sizes *sizes);

#endif
