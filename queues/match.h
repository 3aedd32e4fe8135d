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
 * (Open MPI: three, with and without a source). Masks beyond MATCH_CLASS_MAX share a plain list
 * until a class is free.
 *
 * Nothing is hashed before it has to be. A message is entered in a class only when a receive of that
 * class has to look past it, a receive only when a message does not match the first one posted: what
 * leaves in the order in which it came is never entered, and adding costs the same however many
 * classes there are. A receive that is the only one posted is not even in a list.
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
	/* nonzero id of the source, or MATCH_ANY_SOURCE */
	uint64_t source;
	/* bits that are set in ignore are not compared */
	uint64_t tag;
	/* bits of the tag that are not compared */
	uint64_t ignore;
	/* in the list of all receives, in post order; set only while several are posted */
	struct list all;
	/* its class, or one of the values of match.c; set with @all */
	uint32_t class_idx;
	/* The following members are set once it is entered. */
	/* in a bin of its class, or in the list of receives without a class; in post order */
	struct list bin;
	/* position in the post order */
	uint64_t order;
};

/* A message that no receive fitted when it arrived; embedded in its owner. */
struct match_msg {
	/* every stored message, in order of arrival */
	struct list all;
	/* nonzero id of the sender */
	uint64_t source;
	uint64_t tag;
	/* bit i: entered in class i; set by match_store() */
	uint32_t classes;
	/* bins[i]: in a bin of class i, if entered there; in order of arrival */
	struct list bins[MATCH_CLASS_MAX];
};

/* A hash table of lists. */
struct match_bins {
	struct list *heads;
	/* 64 - log2 of their number */
	uint32_t shift;
	/* linked nodes */
	uint32_t cnt;
	/* ... from which on twice the bins are better */
	uint32_t full;
};

struct match_class {
	uint64_t ignore;
	struct match_bins recvs;
	struct match_bins msgs;
	/* last entered message, linked by 'all', or the head of all */
	struct list *last;
	/* source given */
	bool directed;
};

/* The fields are private to match.c and to the functions below, which are here to be inlined. */
struct match {
	/* the only receive that is posted; NULL: none is, or those of recvs */
	struct match_recv *only;
	/* messages in order of arrival, by 'all' */
	struct list stored;
	/* receives in post order, by 'all'; empty while there is an only one */
	struct list recvs;
	/* the first of those that is not entered, or the head of recvs: all before it are */
	struct list *fresh;
	/* the entered ones without a class, by 'bin' */
	struct list plain;
	/* receives that are entered */
	uint32_t entered_cnt;
	uint32_t class_cnt;
	/* requests that found no class, since one last changed hands */
	uint32_t misses;
	/* class to change hands next */
	uint32_t victim;
	/* of the next receive that is entered */
	uint64_t order;
	/* odd, random: peers choose tags and must not choose bins */
	uint64_t mult;
	struct match_class classes[MATCH_CLASS_MAX];
};

/* match_create - an empty matcher. Returns it owned, or NULL without memory */
struct match *match_create(void);
/*
 * match_destroy - free the matcher, which may be NULL; receives and messages that are still linked
 * in it belong to their owners
 */
void match_destroy(struct match *m);

/* match_fits - returns true if a message with that source and tag matches a receive */
static inline bool match_fits(uint64_t recv_source, uint64_t recv_tag, uint64_t ignore,
			      uint64_t source, uint64_t tag)
{
	return (recv_source == MATCH_ANY_SOURCE || recv_source == source) &&
	       !((recv_tag ^ tag) & ~ignore);
}

/* What the functions below do where there are several. */
void match_post_next(struct match *m, struct match_recv *recv);
void match_unpost_listed(struct match *m, struct match_recv *recv);
struct match_recv *match_arrive_listed(struct match *m, uint64_t source, uint64_t tag);
struct match_msg *match_find_stored(struct match *m, uint64_t source, uint64_t tag,
				    uint64_t ignore);

/*
 * match_post - add a receive that match_find() found no message for
 * @recv: source, tag and ignore set by the caller; stays in place until it is taken out
 */
static inline void match_post(struct match *m, struct match_recv *recv)
{
	if (likely(!m->only && list_empty(&m->recvs)))
		m->only = recv;
	else
		match_post_next(m, recv);
}

/*
 * match_idle - returns true if no receive is posted and no message stored
 * match_post_first - match_post() for a matcher that is idle: calls nothing
 */
static inline bool match_idle(const struct match *m)
{
	return likely(list_empty(&m->stored) && !m->only && list_empty(&m->recvs));
}

static inline void match_post_first(struct match *m, struct match_recv *recv)
{
	m->only = recv;
}

/* match_unpost - remove a posted receive */
static inline void match_unpost(struct match *m, struct match_recv *recv)
{
	if (likely(m->only == recv))
		m->only = NULL;
	else
		match_unpost_listed(m, recv);
}

/*
 * match_arrive - the first posted receive that fits, left in place; or NULL
 * @source: nonzero id of the sender
 */
static inline struct match_recv *match_arrive(struct match *m, uint64_t source, uint64_t tag)
{
	struct match_recv *only = m->only;

	if (likely(only))
		return match_fits(only->source, only->tag, only->ignore, source, tag) ? only
										      : NULL;
	return list_empty(&m->recvs) ? NULL : match_arrive_listed(m, source, tag);
}

/*
 * match_store - keep a message that match_arrive() found no receive for
 * @msg: source and tag set by the caller; stays in place until it is taken out
 */
void match_store(struct match *m, struct match_msg *msg);

/*
 * match_find - the first stored message that fits, left in place; or NULL
 * @source: id or MATCH_ANY_SOURCE
 */
static inline struct match_msg *match_find(struct match *m, uint64_t source, uint64_t tag,
					   uint64_t ignore)
{
	return likely(list_empty(&m->stored)) ? NULL : match_find_stored(m, source, tag, ignore);
}

/* match_take - remove a stored message */
void match_take(struct match *m, struct match_msg *msg);

/*
 * match_rename - set the source of a stored message, once it is known; the order of messages stays
 */
void match_rename(struct match *m, struct match_msg *msg, uint64_t source);

/* match_next_msg - the message stored after @msg, or the first for NULL; or NULL at the end */
struct match_msg *match_next_msg(struct match *m, struct match_msg *msg);

/* match_next_recv - the receive posted after @recv, or the first for NULL; or NULL at the end */
struct match_recv *match_next_recv(const struct match *m, const struct match_recv *recv);

#endif
