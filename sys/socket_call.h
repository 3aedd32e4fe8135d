/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls of sockets in which no thread ends that is cancelled: who makes them holds locks. As the
 * functions that they are named after, with errno. Any thread. Source: pthreads(7), socket(7).
 */
#ifndef WEFT_SYS_SOCKET_CALL_H
#define WEFT_SYS_SOCKET_CALL_H

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cancel.h"

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer is to see them. */
#define SYS_SOCKET_CALL(name, ...)                          \
	__extension__({                                     \
		int sys_state = sys_uncancelled();          \
		__auto_type sys_result = name(__VA_ARGS__); \
                                                            \
		sys_uncancelled_end(sys_state);             \
		sys_result;                                 \
	})
#else
#define SYS_SOCKET_CALL(name, ...) syscall(SYS_##name, __VA_ARGS__)
#endif

static inline int sys_call_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	return (int)SYS_SOCKET_CALL(connect, fd, to, len);
}

static inline ssize_t sys_call_recvfrom(int fd, void *room, size_t len, int flags,
					struct sockaddr *from, socklen_t *from_len)
{
#ifdef __SANITIZE_THREAD__
	/* gcc 12's knows of recv(2) alone that what was done before the bytes were sent is done. */
	if (!from)
		return SYS_SOCKET_CALL(recv, fd, room, len, flags);
#endif
	return SYS_SOCKET_CALL(recvfrom, fd, room, len, flags, from, from_len);
}

static inline ssize_t sys_call_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return SYS_SOCKET_CALL(recvmsg, fd, msg, flags);
}

static inline ssize_t sys_call_sendto(int fd, const void *bytes, size_t len, int flags,
				      const struct sockaddr *to, socklen_t to_len)
{
#ifdef __SANITIZE_THREAD__
	if (!to)
		return SYS_SOCKET_CALL(send, fd, bytes, len, flags);
#endif
	return SYS_SOCKET_CALL(sendto, fd, bytes, len, flags, to, to_len);
}

/* In net_socket.c, by send(2): tests put their own in its place. */
ssize_t sys_call_send(int fd, const void *bytes, size_t len, int flags);

static inline ssize_t sys_call_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return SYS_SOCKET_CALL(sendmsg, fd, msg, flags);
}

#endif
