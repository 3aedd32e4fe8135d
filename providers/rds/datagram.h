/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets of RDS, by number as those of net_socket.h, which closes them and puts them into sets: datagram.c by system
 * calls, kernel/rds/datagram.c in the kernel. A socket is used by one thread at a time, but for rds_socket_send().
 * Source: Linux' Documentation/networking/rds.rst, rds(7).
 */
#ifndef WEFT_RDS_DATAGRAM_H
#define WEFT_RDS_DATAGRAM_H

#include "net_socket.h"
#include "sockaddr.h"

/*
 * rds_socket_open - a socket that is bound
 * @at:    a specific address; port 0: any that is free
 * @where: out: @at with the port
 * Returns its number, owned, or -FI_E*: -FI_EADDRNOTAVAIL where RDS has no transport for the address, -EAFNOSUPPORT in a
 * kernel without RDS.
 */
int rds_socket_open(const union ip_sockaddr *at, union ip_sockaddr *where);

/*
 * rds_socket_send - send a datagram of @cnt pieces, which are copied
 * What is sent to nobody is lost. Any thread. Returns 0, -FI_EAGAIN: no room now, nothing happened; or another -FI_E*.
 */
int rds_socket_send(int fd, const union ip_sockaddr *to, const struct iovec *iov, size_t cnt);

/*
 * rds_socket_recv - receive the next datagram; what does not fit is lost
 * Returns its length, which may be more than @len, -FI_EAGAIN: there is none, or another -FI_E*.
 */
ssize_t rds_socket_recv(int fd, union ip_sockaddr *from, void *room, size_t len);

/*
 * rds_socket_full - returns true while others may not make more conns here. Descriptors bound those of a program
 * rds_socket_count - until it is closed the socket is of a conn that another end has made, which gets what is sent to it
 */
bool rds_socket_full(void);
void rds_socket_count(int fd);

/* rds_socket_waiting - returns true if a datagram has come that was not received */
bool rds_socket_waiting(int fd);

/*
 * rds_socket_sent - returns true if the hosts of the receivers have all that was sent; a close drops the rest
 * The last datagram to each receiver was a RDS_END. Nothing but beats is sent afterwards.
 */
bool rds_socket_sent(int fd);

/*
 * rds_socket_bound - the end of rds_socket_open(), in each of its places
 * Takes @fd, also where it fails. Returns it, or -FI_E*.
 */
static inline int rds_socket_bound(int fd, const union ip_sockaddr *at, union ip_sockaddr *where)
{
	union ip_sockaddr own;
	socklen_t len = sizeof(own);
	int ret = sys_socket_bind(fd, &at->sa, ip_sockaddr_len(at));

	if (!ret)
		ret = sys_socket_own(fd, &own.sa, &len);
	if (ret) {
		sys_socket_close(fd);
		return ret;
	}
	*where = own;
	return fd;
}

#endif
