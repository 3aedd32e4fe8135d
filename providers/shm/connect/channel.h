/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sockets of this process: the listeners, and those that lead to other processes, one for each
 * however many connections use it. All calls with the lock of socket.c, which alone calls them.
 */
#ifndef WEFT_SHM_CHANNEL_H
#define WEFT_SHM_CHANNEL_H

#include "local_socket.h"
#include "socket.h"

/* A socket to another process, or to ourselves. */
struct pshm_channel {
	struct pshm_process process;
	struct list link;
	uint64_t key;	  /* asked: the listener's */
	bool asked;	  /* we connected, and close it when it is not used any more */
	uint64_t idle_ns; /* accepted, of no use now: since when */
	uint32_t ask_cnt; /* requests of ours that wait for answers */
	bool owes;	  /* an answer that found no room; out of the watch meanwhile */
	struct pshm_note owed;
};

static inline struct pshm_channel *pshm_channel_of(struct pshm_process *process)
{
	return container_of(process, struct pshm_channel, process);
}

/*
 * pshm_channels_open - listen, unless we do
 * Returns 0, also when only one of two sockets could be made; or -FI_E*.
 */
int pshm_channels_open(uint64_t number);
/* pshm_channels_close - end everything; who holds a channel finds it over */
void pshm_channels_close(void);
/* pshm_channels_open_now - do we listen? */
bool pshm_channels_open_now(void);
/* pshm_channels_forget - in the child of a fork: leave the parent's alone, and close our copies */
void pshm_channels_forget(void);

/* pshm_channels_look - accept and read; calls pshm_note_take(). Returns whether anything had come */
bool pshm_channels_look(void);
/* pshm_channels_watch - a descriptor that is readable when there is something to look at, borrowed */
int pshm_channels_watch(void);
/*
 * pshm_channels_paused - nobody is accepted for want of descriptors, or answers are owed: look again in a
 * while, whatever wakes us
 */
bool pshm_channels_paused(void);

/* pshm_channel_find - the channel to the listener of that number, or NULL */
struct pshm_channel *pshm_channel_find(uint64_t number);
/* pshm_channel_connect - the channel to the listener of that number, made when there is none; or NULL and -FI_E* */
struct pshm_channel *pshm_channel_connect(uint64_t number, int *err);
/* pshm_channel_hold, pshm_channel_put - who holds it has it stay; one that nobody holds may go at any call */
void pshm_channel_hold(struct pshm_channel *c);
void pshm_channel_put(struct pshm_channel *c);
/* pshm_channel_over - nothing more passes */
void pshm_channel_over(struct pshm_channel *c);

/* pshm_note_of - an empty note of that type */
struct pshm_note pshm_note_of(enum pshm_note_type type);
/* pshm_note_send - 0 or -FI_E* as sys_local_send() */
int pshm_note_send(const struct pshm_channel *c, const struct pshm_note *note, const int *fds,
		   unsigned int cnt);
/*
 * pshm_note_refuse - answer a request with why not
 * A socket that takes no more owes the answer, and nothing more is read of it until it has passed: who
 * asks reads its answers whatever it has to send. 0, or -FI_E* to end the channel.
 */
int pshm_note_refuse(struct pshm_channel *c, const uint8_t pair[PSHM_NONCE], int err);

/* pshm_given_close - the descriptors that came with a note */
void pshm_given_close(struct sys_local_given *given);

/*
 * From socket.c, for channel.c:
 *
 * pshm_note_take - what came. Takes the descriptors. 0, or -FI_E* to end the channel
 * pshm_sockets_release - pshm_process.release of a channel; takes the lock
 */
int pshm_note_take(struct pshm_channel *c, const struct pshm_note *note,
		   struct sys_local_given *given);
void pshm_sockets_release(struct pshm_process *process);

#endif
