/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching of arriving messages with posted receives, and of receives with messages
 * that arrived unexpected. The endpoint engine embeds one matcher for tagged and one
 * for untagged messages (there tag and ignore are zero), on the thread that holds its
 * domain: the caller serializes.
 *
 * Post order holds over all receives: of those that fit a message the one that was
 * posted first gets it, whether it names a source, a tag, both or none. Of the stored
 * messages that fit a receive the one that was stored first is found.
 *
 * Both sides are hashed by classes. A class is (source given or any, ignore mask); within
 * one, receives and messages are found by (source, tag & ~ignore). Programs use few masks
 * (Open MPI: three, with and without a source). A message is entered in a class only when
 * a receive of that class has to look past it, so that storing costs the same however
 * many classes there are, and what leaves in the order of arrival is never entered. Masks
 * beyond MATCH_CLASS_MAX share a plain list until a class is free.
 *
 * Memory is allocated by match_create(), once per class, and when a class holds twice as
 * much as it has bins. Where that fails, matching is slower and still right.
 */
#ifndef WEFT_MATCH_H
#define WEFT_MATCH_H

#include "list.h"

#define MATCH_ANY_SOURCE 0u
#define MATCH_CLASS_MAX	 6u
#define MATCH_BIN_CNT	 64u /* of a class at first; a power of two */

/* A posted receive; embedded in its owner. */
struct match_recv {
	/* of its class, or the list of those without: in post order */
	struct list bin;
	/* place in the post order; set by match_post() */
	uint64_t order;
	/* nonzero id of the source, or MATCH_ANY_SOURCE */
	uint64_t source;
	/* bits under ignore are of no account */
	uint64_t tag;
	/* bits of the tag that may differ */
	uint64_t ignore;
	/* set by match_post() */
	uint32_t class_idx;
};

/* A message that no receive fitted when it arrived; embedded in its owner. */
struct match_msg {
	/* every stored message, in order of arrival */
	struct list all;
	/* nonzero */
	uint64_t source;
	uint64_t tag;
	/* bit i: entered in class i; set by match_store() */
	uint32_t classes;
	/* of class i, where entered: in order of arrival */
	struct list bins[MATCH_CLASS_MAX];
};

struct match;

/* match_create - an empty matcher. Returns it owned, or NULL without memory */
struct match *match_create(void);
/* match_destroy - takes the matcher, or NULL; what is still linked in it belongs to the owners */
void match_destroy(struct match *m);

/*
 * match_post - add a receive that match_find() found no message for
 * @recv: source, tag and ignore set by the caller; stays in place until it is taken out
 */
void match_post(struct match *m, struct match_recv *recv);

/* match_cancel - take out a posted receive */
void match_cancel(struct match *m, struct match_recv *recv);

/*
 * match_arrive - the first posted receive that fits, taken out; or NULL
 * @source: nonzero id of the sender
 */
struct match_recv *match_arrive(struct match *m, uint64_t source, uint64_t tag);

/*
 * match_again - put back the receive that match_arrive() has just returned, in its place: it takes
 * more than one message
 */
void match_again(struct match *m, struct match_recv *recv);

/*
 * match_store - keep a message that match_arrive() found no receive for
 * @msg: source and tag set by the caller; stays in place until it is taken out
 */
void match_store(struct match *m, struct match_msg *msg);

/*
 * match_find - the first stored message that fits, left in place; or NULL
 * @source: id or MATCH_ANY_SOURCE
 */
struct match_msg *match_find(struct match *m, uint64_t source, uint64_t tag, uint64_t ignore);

/* match_take - take out a stored message */
void match_take(struct match *m, struct match_msg *msg);

/* match_rename - a stored message is from @source, as is known now; its place in the order stays */
void match_rename(struct match *m, struct match_msg *msg, uint64_t source);

/* match_next_msg - the message stored after @msg, or the first for NULL; or NULL at the end */
struct match_msg *match_next_msg(struct match *m, struct match_msg *msg);

/*
 * match_first_recv, match_first_msg - walk for teardown: any linked one, left in place; or NULL
 *
 * Not for the fast path: the time of those about receives grows with the number posted.
 */
struct match_recv *match_first_recv(struct match *m);
struct match_msg *match_first_msg(struct match *m);

#endif
