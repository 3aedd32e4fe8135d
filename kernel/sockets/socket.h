/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What carries out net_socket.h shares: a socket and its place in a set. For sources that
 * include Linux' headers.
 */
#ifndef KOFI_SOCKET_H
#define KOFI_SOCKET_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "net_socket.h"

struct socket;

/* Sockets, and those of them that may have events. */
struct kofi_events {
	/*
	 * Protects what follows, and in the sockets of the set @events, @what and @ready. Taken
	 * in interrupts too
	 */
	spinlock_t lock;
	/*
	 * struct kofi_socket: something has happened there since the last look, or there was an
	 * event at it
	 */
	struct list_head ready;
	/* Called with the lock held; NULL: nobody sleeps */
	void (*ring)(void *arg);
	void *arg;
};

struct kofi_socket {
	struct socket *sock;
	/* What it counts in while it is open; NULL: in nothing */
	atomic_t *counted;
	/* NULL: in none. While it is in one, @waiter is in the socket's own queue */
	struct kofi_events *set;
	wait_queue_entry_t waiter;
	/* What is looked for, and what is said where that is found */
	u32 events;
	void *what;
	/* In set->ready, or empty */
	struct list_head ready;
};

/*
 * kofi_socket_of - returns the socket of a number that sys_socket_open() or sys_socket_accept()
 * has returned
 */
struct kofi_socket *kofi_socket_of(int fd);

/* kofi_socket_keep - takes @sock, also where it fails. Returns its number or -FI_ENOMEM */
int kofi_socket_keep(struct socket *sock);

/* kofi_events_leave - take a socket out of its set, if it is in one */
void kofi_events_leave(struct kofi_socket *s);

/* kofi_shown_open, kofi_shown_close - the file in debugfs */
void kofi_shown_open(void);
void kofi_shown_close(void);

/* kofi_sockets_left, kofi_events_left - returns true if one is open */
bool kofi_sockets_left(void);
bool kofi_events_left(void);

#endif
