/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How endpoints find each other where /proc does not lead from one to the other: it is not mounted,
 * hides its processes, or belongs to another pid namespace; or the process does not permit others
 * to read its /proc files.
 *
 * A process that has shm endpoints listens at one socket, or two: an abstract one, and one in the
 * folder of FI_SHM_SOCKET_DIR. The socket's number is the first bytes of the nonces of all
 * endpoints of the process. An endpoint that requests a connection sends descriptors of the pair's
 * memory and of its own inbox there, and receives one of the other inbox. The answer itself is
 * written to the pair, as for any connection.
 *
 * One such socket connects two processes, however many connections use it. It stays open: its end
 * reports that the process is dead, and a note on it wakes a sleeper whose pipe can't be opened.
 *
 *	asker				listener
 *
 *	ASK, with pair and inbox	->	maps them, for the endpoint's next poll()
 *			<-  INBOX, with its inbox; or REFUSED
 *
 *	WAKE				<->	wakes an endpoint
 *
 * Both sides have to belong to one user. Every note is checked field by field, and memory as if it
 * had been found through /proc. Any endpoint that polls reads the sockets, about once a
 * millisecond, and so does one that is about to sleep; while all sleep the sockets wake one of them
 * (watcher.h). So making a connection takes up to a millisecond, where /proc takes microseconds.
 *
 * One lock for the process; all calls from the thread that holds the endpoint's domain.
 */
#ifndef WEFT_SHM_SOCKET_H
#define WEFT_SHM_SOCKET_H

#include "note.h"
#include "process.h"
#include "region.h"
#include "socket_state.h"

struct pshm_wire;

/* A request to an endpoint of this process. */
struct pshm_request {
	struct list link;
	/* the asker's, held */
	struct pshm_process *process;
	/* the pair that is offered, and the asker's inbox, mapped */
	struct pshm_region pair, inbox;
	/* of the pair */
	struct pshm_sizes sizes;
	/* nonce of the asker's endpoint */
	uint8_t from[PSHM_NONCE];
};

/*
 * The first bytes of a nonce are random and one process's: its number, at which it listens. With
 * the rest, which counts the process's endpoints from a random start, a nonce is as good as a
 * random one.
 */
#define PSHM_NUMBER_LEN 5u

/* pshm_sockets_number - returns the number at which the process of that endpoint listens */
static inline uint64_t pshm_sockets_number(const uint8_t nonce[PSHM_NONCE])
{
	uint64_t number = 0;

	memcpy(&number, nonce, PSHM_NUMBER_LEN);
	return number;
}

/* pshm_sockets_name - make a nonce for an endpoint of this process. Returns 0 or -FI_E* */
int pshm_sockets_name(uint8_t nonce[PSHM_NONCE]);

/*
 * pshm_sockets_join - let an endpoint be found by its nonce, made by pshm_sockets_name()
 * The first one makes the process listen. Returns 0 or -FI_E*: the endpoint is found through /proc
 * alone.
 */
int pshm_sockets_join(struct pshm_wire *wire);
/*
 * pshm_sockets_leave - end that; with the last endpoint the process stops listening. Nothing
 * without a join
 */
void pshm_sockets_leave(struct pshm_wire *wire);

/* pshm_sockets_look - read the sockets, for any endpoint of the process */
void pshm_sockets_look(void);
/* pshm_sockets_sweep - the same, unless it was done within the last millisecond */
void pshm_sockets_sweep(void);

/*
 * pshm_sockets_bell - from now on wake an endpoint when the sockets have input for it
 * @bell: its pipe
 * @poll_set: the poll set that its domain sleeps on, which holds that pipe. From now on until the
 *            endpoint leaves, the poll set may hold the process's sockets too: one endpoint is
 *            woken by all input, reads it, and rings the others
 */
void pshm_sockets_bell(struct pshm_wire *wire, int bell, int poll_set);

/*
 * pshm_sockets_sleep - an endpoint is about to sleep. Returns for how many ns at most; UINT64_MAX:
 * until it is woken
 */
uint64_t pshm_sockets_sleep(struct pshm_wire *wire);
/* pshm_sockets_woken - an endpoint is awake; without effect if it already was */
void pshm_sockets_woken(struct pshm_wire *wire);

/*
 * pshm_sockets_room - returns true if fewer requests to that endpoint's process are under way than
 * may be
 */
bool pshm_sockets_room(const uint8_t to[PSHM_NONCE]);

/*
 * pshm_sockets_ask - request a connection
 * @to: nonce of the endpoint
 * @pair: this side of it, with its descriptor
 * @ask: memory of the caller, zeroed; in use until pshm_sockets_drop()
 * Returns 0 and the other process, held, in @ask->process; -FI_EHOSTUNREACH if no socket leads
 * there; -FI_EAGAIN if it accepts no more now; -FI_EMFILE or -FI_ENOMEM if this process lacks
 * descriptors or memory.
 */
int pshm_sockets_ask(struct pshm_wire *wire, const uint8_t to[PSHM_NONCE],
		     const struct pshm_region *pair, struct pshm_ask *ask);

/*
 * pshm_sockets_answer - check for the answer to a request
 * @inbox: out: the peer's inbox, owned, if the answer has arrived; otherwise not written
 * Returns 0, or -FI_E* if the connection was refused.
 */
int pshm_sockets_answer(struct pshm_ask *ask, struct pshm_region *inbox);
/*
 * pshm_sockets_drop - give a request up; @ask->process stays held. Without effect on one that is
 * zeroed
 */
void pshm_sockets_drop(struct pshm_ask *ask);

/*
 * pshm_sockets_take - take the next request to an endpoint
 * Returns it, owned, or NULL. The caller releases its regions and its process, and frees it with
 * platform_free().
 */
struct pshm_request *pshm_sockets_take(struct pshm_wire *wire);

/* pshm_sockets_wake - wake the endpoint with that nonce in a process that we hold by a socket */
void pshm_sockets_wake(struct pshm_process *process, const uint8_t to[PSHM_NONCE]);

#endif
