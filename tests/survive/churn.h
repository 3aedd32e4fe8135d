/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Everything at once with one peer that does the same: messages small and large both ways,
 * RMA, atomics; posted at random and counted until each has ended, well or with an error. For
 * death_test.c.
 */
#ifndef WEFT_CHURN_H
#define WEFT_CHURN_H

#include "node.h"

#define CHURN_OPS 32u
#define CHURN_LEN (1u << 20) /* bytes of the largest */

struct churn_op {
	bool busy, receive;
	const char *what;
	size_t len;
	uint64_t since_ns; /* when it was posted */
	uint8_t *buf;
};

struct churn {
	struct node *node;
	fi_addr_t peer; /* FI_ADDR_UNSPEC: not known yet */
	uint64_t key, seed;
	bool loose;		      /* operations may fail before the peer is dead */
	const _Atomic uint64_t *dead; /* when it died; 0: it is alive. NULL: unknown */
	struct churn_op ops[CHURN_OPS];
	uint32_t under_way, receives; /* receives: of those, directed ones */
	uint32_t errors;
	uint64_t received; /* messages */
	uint64_t last_ns;  /* of the last completion */
	bool wildcard_ended;
};

/* churn_room - memory of all; before any process is made */
void churn_room(void);

void churn_open(struct churn *c, struct node *node, uint64_t key, uint64_t seed);

/* churn_close - forget what is under way; before the node is closed */
void churn_close(struct churn *c);

/* What churn_step() may post. */
enum churn_may {
	CHURN_RECEIVE = 1,
	CHURN_SEND = 2,
	CHURN_ALL = 3,
};

/* churn_step - take a completion if there is one, and post one operation if there is room */
void churn_step(struct churn *c, unsigned int may);

/* churn_send - post one send, whatever it takes */
void churn_send(struct churn *c);

/* churn_wildcard - post a wildcard receive that matches no send */
void churn_wildcard(struct churn *c);

/* churn_take - one completion, if there is one */
bool churn_take(struct churn *c);

/* churn_sleep - wait for one in fi_cq_sread() */
void churn_sleep(struct churn *c, int ms);

/*
 * churn_owed - returns how many of the posted receives have to end when the peer dies
 * One that is posted after its death is known waits for the next peer at its address.
 */
uint32_t churn_owed(const struct churn *c, uint64_t killed_ns);

/* churn_tell - print what is under way */
void churn_tell(const struct churn *c);

/* churn_cancel - cancel the receives that are posted */
void churn_cancel(struct churn *c);

#endif
