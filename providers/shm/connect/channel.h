/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sockets of this process: its listeners, and one connected socket for each other process,
 * shared by all connections to it. Called by socket.c alone, with its lock held.
 */
#ifndef WEFT_SHM_CHANNEL_H
#define WEFT_SHM_CHANNEL_H

#include "socket.h"

/* A socket to another process, or to ourselves. */
struct pshm_channel {
	struct pshm_process process;
	struct list link;
	/* asked: number of the listener that it is connected to */
	uint64_t key;
	/* we connected, and close it once it is not used any more */
	bool asked;
	/* accepted, and not in use: since when */
	uint64_t idle_ns;
	/* requests of this process that are under way */
	uint32_t ask_cnt;
	/* unsent holds an answer for which the socket had no room; nothing is read of it meanwhile */
	bool has_unsent;
	struct pshm_note unsent;
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
/* pshm_channels_close - end all sockets; a channel that is held is over from then on */
void pshm_channels_close(void);
/* pshm_channels_open_now - returns true if we listen */
bool pshm_channels_open_now(void);
/*
 * pshm_channels_forget - in the child of a fork: close our copies of the parent's sockets, and
 * nothing else
 */
void pshm_channels_forget(void);

/*
 * pshm_channels_look - accept and read; calls pshm_note_take(). Returns true if anything was read
 * or accepted
 */
bool pshm_channels_look(void);
/* pshm_channels_watch - returns a descriptor, borrowed, that is readable when a socket has input */
int pshm_channels_watch(void);
/*
 * pshm_channels_paused - returns true if accepting lacks descriptors, or an answer is unsent
 * No descriptor reports when that ends, so the caller has to call pshm_channels_look() again after
 * a while.
 */
bool pshm_channels_paused(void);

/* pshm_channel_find - returns the channel to the listener of that number, or NULL */
struct pshm_channel *pshm_channel_find(uint64_t number);
/*
 * pshm_channel_connect - the same, and connect when there is none. Returns NULL and -FI_E* if that
 * fails
 */
struct pshm_channel *pshm_channel_connect(uint64_t number, int *err);
/*
 * pshm_channel_hold, pshm_channel_put - take and drop a reference; a channel without one may be
 * freed by any call
 */
void pshm_channel_hold(struct pshm_channel *c);
void pshm_channel_put(struct pshm_channel *c);

/* pshm_note_send - send a note with @cnt descriptors. Returns 0 or -FI_E* as sys_local_send() */
int pshm_note_send(const struct pshm_channel *c, const struct pshm_note *note, const int *fds,
		   unsigned int cnt);
/*
 * pshm_note_refuse - answer a request with the error @err Where the socket has no room the answer
 * is kept, and nothing more is read of that socket until it is sent: the asker reads its answers
 * whatever else it has to send. Returns 0, or -FI_E* to end the channel.
 */
int pshm_note_refuse(struct pshm_channel *c, const uint8_t pair[PSHM_NONCE], int err);

/*
 * Functions of socket.c that channel.c calls:
 *
 * pshm_note_take - handle a note that was received. Takes its descriptors. Returns 0, or -FI_E* to
 * end the channel
 * pshm_sockets_release - pshm_process.release of a channel; takes the lock
 */
int pshm_note_take(struct pshm_channel *c, const struct pshm_note *note,
		   struct sys_local_received *received);
void pshm_sockets_release(struct pshm_process *process);

#endif
