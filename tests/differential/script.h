/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A script is a text of calls, one a line, that the program act carries out on the libfabric it
 * was given, and answers with one line a call: its transcript. README.md has the language. All of
 * it runs on one thread of a child process that one script has for itself.
 */
#ifndef WEFT_DIFFERENTIAL_SCRIPT_H
#define WEFT_DIFFERENTIAL_SCRIPT_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <sys/types.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define CALL_WORDS  48
#define OBJECTS	    96
#define NAME_LEN    16
#define ARENAS	    64	    /* buffers, and contexts, of transfers */
#define ARENA_LEN   262144u /* bytes of one */
#define REGIONS	    4	    /* buffers that are registered */
#define ADDRESSES   32	    /* results of address vector inserts */
#define STASH_ENTRY 256	    /* one completion as text */
#define ANSWER_LEN  262144  /* what one call says */

/* What a call says instead of a result of the library's. */
enum {
	RESULT_ABSENT = -100000, /* an object that it names is not open */
	RESULT_WRONG = -100001,	 /* the script is */
};

/* One line of a script: a verb, names of objects, and fields KEY=VALUE. */
struct call {
	const char *words[CALL_WORDS];
	int cnt;
	/* behind the result, and lines that follow it */
	char answer[ANSWER_LEN];
	size_t answer_len;
};

/* What a script has opened, under its name. */
struct object {
	char name[NAME_LEN];
	struct fid *fid;
	/* of an answer: the list; of an endpoint: the fi_info that it was opened with */
	struct fi_info *info;
	enum fi_cq_format format;
	/* of a region */
	void *base;
	uint64_t mr_mode;
	/* of an endpoint: enabled; of a queue or counter: can be waited on */
	bool ready;
	/* of a queue: its completions say where from */
	bool source;
	/* of a queue: entries that were read and not yet printed, as text */
	char *stash;
	size_t stash_len;
};

/* The script's state, in one child process. */
struct stage {
	struct object objects[OBJECTS];
	fi_addr_t addresses[ADDRESSES];
	/* of addresses: inserted */
	bool known[ADDRESSES];
	struct fi_context2 contexts[ARENAS];
	/* a counter was written: what waits for its value starts, and may have no completion */
	bool counted;
	/* by context: a completion is to come ... */
	bool under_way[ARENAS];
	/* ... of what writes so many bytes into the buffer */
	size_t incoming[ARENAS];
	/* ... or many messages, until it says that it is full */
	bool multi[ARENAS];
	/* without an event, until nothing is expected any more */
	unsigned quiet_ms;
	/* that a call is tried again for while it says -FI_EAGAIN; half of it, that waits last */
	unsigned patience_ms;
};

extern struct stage stage;
extern unsigned char arenas[ARENAS][ARENA_LEN], regions[REGIONS][ARENA_LEN];

/* words.c: what a line says */

/* word_text - the value of KEY=, or NULL */
const char *word_text(const struct call *c, const char *key);
/* word_value - the same as a number: a decimal, 0x, max, or names joined by | */
uint64_t word_value(const struct call *c, const char *key, uint64_t otherwise);
/* word_number - returns the number that a text denotes */
uint64_t word_number(const char *text);
/* word_error - the name of a negative result, or the number as text */
const char *word_error(long result);
/* say - add to the call's answer */
void say(struct call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* objects.c: names */

/* object_find - by name; NULL when not open */
struct object *object_find(const char *name);
/* object_of - that the call's word @idx names, or NULL */
struct object *object_of(const struct call *c, int idx);
/* object_new - takes @fid; NULL without room */
struct object *object_new(const char *name, struct fid *fid);
void object_drop(struct object *o);
/* object_each - returns the next open object whose name begins so, after @o (NULL: first) */
struct object *object_each(struct object *o, const char *prefix);

/* events.c */

/* events_read - read one of that queue, keeping it; how many that were: 0 or 1 */
size_t events_read(struct object *o);
/* bytes_hash - of a buffer */
uint64_t bytes_hash(const unsigned char *bytes, size_t len);
/* events_progress - read all queues and counters once, keeping what they had; events read */
size_t events_progress(void);
uint64_t now_ms(void);
/* wait_ms - how long a call with the field timeout= waits, @otherwise without it */
int wait_ms(struct call *c, int otherwise);

/* A verb, and what carries it out: a result of the library, or RESULT_*. */
struct verb {
	const char *name;
	long (*run)(struct call *c);
};

/* Verbs by room; each ends with an empty entry. */
extern const struct verb info_verbs[], open_verbs[], control_verbs[], event_verbs[],
	address_verbs[], message_verbs[], access_verbs[], deferred_verbs[], sleep_verbs[];

/*
 * address_of - the address that the call's to= names; FI_ADDR_UNSPEC without one
 *
 * With rx=IDX and bits=, of that receive context.
 *
 * False when it is not there: libraries crash by what is none. With raw=1 it is what it is.
 */
bool address_of(const struct call *c, fi_addr_t *addr);

/*
 * trigger_read - with trigger=CNTR and threshold= the context becomes one of FI_TRIGGER
 *
 * False when the counter is absent.
 */
bool trigger_read(const struct call *c, unsigned ctx);

/* endpoint_of - the endpoint that may transfer, of word 1; NULL when absent, or not enabled
 * (without raw=1) */
struct fid_ep *endpoint_of(const struct call *c);

/* verb_transfer - run @post until it says something else than -FI_EAGAIN, or patience ends */
long verb_transfer(struct call *c, long (*post)(struct call *c));

/* library.c */

/*
 * library_open - the library at @path, and its calls of this step of the ABI ("1.3" or "newest")
 *
 * fi_getinfo and the other exported calls of this program go there. Ends the program without it.
 */
void library_open(const char *path, const char *abi);

#endif
