/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Strangers at a port of tcp, for the process that plays them: random bytes, greetings that are
 * bent or end early, connections on which nothing ever comes or that are closed by half, and, by
 * the test's own endpoints, whole greetings behind which a relay bends the stream (relay.h). One
 * thread, and one of the relay's.
 */
#ifndef WEFT_STRANGERS_H
#define WEFT_STRANGERS_H

#include <pthread.h>
#include "node.h"
#include "relay.h"

#define STRANGERS_HELD 100 /* connections of strangers that stay open */
#define STRANGERS_LEN  100000u
#define STRANGERS_SPAN 65536u /* bytes of remote memory that strangers_act() names */
#define STRANGERS_KEY  5

struct strangers {
	void *stage;
	uint64_t seed;
	pthread_t thread;
	pthread_mutex_t lock; /* of @relay, which has a thread */
	struct relay relay;
	bool over; /* for that thread */
	int held[STRANGERS_HELD];
	struct node node; /* of the strangers' own, so that its greetings are right */
	fi_addr_t host;	  /* FI_ADDR_UNSPEC for a connected endpoint */
	uint32_t under_way;
	uint8_t *bytes;
	uint64_t completed, failed;
};

/* strangers_rounds - the rounds that the environment or the arguments of a test name, or 1000 */
uint32_t strangers_rounds(int argc, char **argv);

/* strangers_play - run the roles of a test, each in a process of its own. Returns false if one of them failed */
bool strangers_play(void *stage, void (*const roles[3])(void *stage, int rank));

/* strangers_open - begin; @name: of the endpoint at whose port they will be, a sockaddr_in */
void strangers_open(struct strangers *s, void *stage, const char *name, uint64_t seed);

/*
 * strangers_come - so many rounds, each a raw connection or a call of @bent, which connects to
 * s->relay.here and lets strangers_bend() transfer
 */
void strangers_come(struct strangers *s, uint32_t rounds, void (*bent)(struct strangers *));

/* strangers_deeds - what has been done to connections so far */
uint64_t strangers_deeds(struct strangers *s);

/*
 * strangers_bend - transfer with s->node until something more than @before was done to a
 * connection, or for a while
 * @look: makes progress; returns true if anything was there
 */
void strangers_bend(struct strangers *s, uint64_t before, bool (*look)(struct strangers *));

/* strangers_look - for strangers_bend(): one look at the completion queue of s->node */
bool strangers_look(struct strangers *s);

/* strangers_close - end all their connections, and print what they did */
void strangers_close(struct strangers *s, uint32_t rounds);

#endif
