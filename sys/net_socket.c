/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What no message takes of TCP sockets; net_socket.h has the contract. Any thread; the only state is which sockets are
 * private.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include "net_socket.h"

#define BITS 64

/* A bit for each number, set only while that is an open private socket; @end: of the words that may have one */
static struct {
	_Atomic uint64_t words[SYS_SOCKETS_PRIVATE / BITS];
	_Atomic int end;
} private;

static bool has_bit(int fd)
{
	return fd >= 0 && fd < SYS_SOCKETS_PRIVATE;
}

void sys_socket_private(int fd)
{
	int end = atomic_load_explicit(&private.end, memory_order_relaxed);

	if (!has_bit(fd))
		return;
	while (end <= fd / BITS && !atomic_compare_exchange_weak_explicit(
					   &private.end, &end, fd / BITS + 1,
					   memory_order_relaxed, memory_order_relaxed))
		;
	atomic_fetch_or_explicit(&private.words[fd / BITS], 1ull << fd % BITS,
				 memory_order_relaxed);
}

void sys_sockets_leave(int instead)
{
	int end = atomic_load_explicit(&private.end, memory_order_relaxed);

	for (int i = 0; i < end; i++) {
		uint64_t word = atomic_exchange_explicit(&private.words[i], 0,
							 memory_order_relaxed);

		for (; word; word &= word - 1)
			dup3(instead, i * BITS + __builtin_ctzll(word), O_CLOEXEC);
	}
}

void sys_socket_close(int fd)
{
	if (has_bit(fd))
		atomic_fetch_and_explicit(&private.words[fd / BITS], ~(1ull << fd % BITS),
					  memory_order_relaxed);
	sys_descriptor_close(fd);
}

ssize_t sys_call_send(int fd, const void *bytes, size_t len, int flags)
{
	int state = sys_uncancelled();
	ssize_t n = send(fd, bytes, len, flags);

	sys_uncancelled_end(state);
	return n;
}

int sys_socket_accept(int fd)
{
	fd = (int)SYS_SOCKET_CALL(accept4, fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	fd = sys_descriptor_keep(fd);
	return fd < 0 ? -errno : fd;
}

int sys_socket_state(int fd, struct sys_socket_state *state)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return -errno;
	*state = (struct sys_socket_state){ info.tcpi_last_ack_recv, info.tcpi_unacked,
					    info.tcpi_retransmits, info.tcpi_probes };
	return 0;
}
