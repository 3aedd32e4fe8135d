/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets of RDS in the kernel, of its first network namespace; datagram.h has the contract, kernel/sockets/socket.c
 * the numbers. Process context.
 */
#include <linux/moduleparam.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <net/sock.h>

#include "accepted.h"
#include "datagram.h"
#include "socket.h"

/* As engine/wire/wire.h bounds them, with a head and a packet */
#define PIECES_MAX 10

/*
 * RDS takes half of each. Room to send is little, so that packets do not wait for long behind payload; room to receive is
 * much: each time that there is none, RDS tells all hosts.
 */
#define SEND_BYTES (1 << 20)
#define RECV_BYTES (4 << 20)

/* Memory of the machine for each conn of others, which takes half of that where its endpoint does not receive */
#define MEMORY_EACH SZ_4M

static unsigned int accepted_max;
module_param(accepted_max, uint, 0644);
MODULE_PARM_DESC(accepted_max, "Connections that others may have here "
			       "(default: one for each 4 MiB of the machine's memory)");

static atomic_t accepted_cnt;

static struct sock *sk_of(int fd)
{
	return kofi_socket_of(fd)->sock->sk;
}

int rds_socket_open(const union ip_sockaddr *at, union ip_sockaddr *where)
{
	int fd = sys_socket_open(PF_RDS, SOCK_SEQPACKET);
	struct sock *sk;

	if (fd < 0)
		return fd;
	sk = sk_of(fd);
	WRITE_ONCE(sk->sk_sndbuf, SEND_BYTES);
	WRITE_ONCE(sk->sk_rcvbuf, RECV_BYTES);
	return rds_socket_bound(fd, at, where);
}

int rds_socket_send(int fd, const union ip_sockaddr *to, const struct iovec *iov, size_t cnt)
{
	union ip_sockaddr name = *to;
	struct msghdr msg = { .msg_name = &name,
			      .msg_namelen = ip_sockaddr_len(to),
			      .msg_flags = MSG_DONTWAIT };
	struct kvec vec[PIECES_MAX];
	size_t len = 0, i;
	unsigned int noio;
	int ret;

	if (WARN_ON_ONCE(cnt > PIECES_MAX))
		return -EINVAL;
	for (i = 0; i < cnt; i++) {
		vec[i].iov_base = (void __force *)iov[i].iov_base;
		vec[i].iov_len = iov[i].iov_len;
		len += iov[i].iov_len;
	}
	/* RDS allocates what it sends. Who sends may be writing memory back. */
	noio = memalloc_noio_save();
	ret = kernel_sendmsg(kofi_socket_of(fd)->sock, &msg, vec, cnt, len);
	memalloc_noio_restore(noio);
	/* No room in the socket, at the receiver, or in memory */
	if (ret == -ENOBUFS || ret == -ENOMEM)
		return -EAGAIN;
	return ret < 0 ? ret : 0;
}

ssize_t rds_socket_recv(int fd, union ip_sockaddr *from, void *room, size_t len)
{
	struct msghdr msg = { .msg_name = from };
	struct kvec vec = { .iov_base = room, .iov_len = len };

	from->sa.sa_family = AF_UNSPEC;
	return kernel_recvmsg(kofi_socket_of(fd)->sock, &msg, &vec, 1, len,
			      MSG_DONTWAIT | MSG_TRUNC);
}

bool rds_socket_full(void)
{
	return kofi_accepted_full(&accepted_cnt, READ_ONCE(accepted_max), MEMORY_EACH);
}

void rds_socket_count(int fd)
{
	atomic_inc(&accepted_cnt);
	kofi_socket_of(fd)->counted = &accepted_cnt;
}

static __poll_t events_of(int fd)
{
	struct socket *sock = kofi_socket_of(fd)->sock;

	return sock->ops->poll(NULL, sock, NULL);
}

bool rds_socket_waiting(int fd)
{
	return events_of(fd) & EPOLLIN;
}

bool rds_socket_sent(int fd)
{
	/* There is room while less than half of this is on the way: with 2, while nothing is. */
	WRITE_ONCE(sk_of(fd)->sk_sndbuf, 2);
	return events_of(fd) & EPOLLOUT;
}
