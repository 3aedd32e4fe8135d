/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets of the kernel, of its first network namespace, by number; net_socket.h has the
 * contract. Nothing waits: a call that would returns -FI_EAGAIN. Process context.
 */
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>
#include <net/inet_connection_sock.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "socket.h"

/* Pieces of one call, as engine/wire/wire.h and the provider bound them */
#define PIECES_MAX 80

static DEFINE_XARRAY_ALLOC(sockets);

struct kofi_socket *kofi_socket_of(int fd)
{
	return xa_load(&sockets, fd);
}

static struct socket *sock_of(int fd)
{
	return kofi_socket_of(fd)->sock;
}

int kofi_socket_keep(struct socket *sock)
{
	struct kofi_socket *s = kzalloc(sizeof(*s), GFP_KERNEL);
	u32 number;

	if (!s)
		goto err_release;
	s->sock = sock;
	INIT_LIST_HEAD(&s->ready);
	/* Who sends may be writing memory back: what is allocated here must not wait for that. */
	sock->sk->sk_allocation = GFP_NOIO;
	if (!xa_alloc(&sockets, &number, s, xa_limit_31b, GFP_KERNEL))
		return number;
	kfree(s);
err_release:
	sock_release(sock);
	return -ENOMEM;
}

int sys_socket_open(int family, int type)
{
	int protocol = type == SOCK_STREAM ? IPPROTO_TCP : type == SOCK_DGRAM ? IPPROTO_UDP : 0;
	struct socket *sock;
	int err = sock_create_kern(&init_net, family, type, protocol, &sock);

	return err ? err : kofi_socket_keep(sock);
}

void sys_socket_close(int fd)
{
	struct kofi_socket *s = xa_erase(&sockets, fd);

	kofi_events_leave(s);
	sock_release(s->sock);
	if (s->counted)
		atomic_dec(s->counted);
	kfree(s);
}

int sys_socket_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_storage copy = { 0 };

	memcpy(&copy, addr, min_t(size_t, len, sizeof(copy)));
	return kernel_bind(sock_of(fd), (struct sockaddr *)&copy, len);
}

int sys_socket_listen(int fd)
{
	return kernel_listen(sock_of(fd), SOMAXCONN);
}

int sys_socket_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_storage copy = { 0 };
	int err;

	memcpy(&copy, addr, min_t(size_t, len, sizeof(copy)));
	err = kernel_connect(sock_of(fd), (struct sockaddr *)&copy, len, O_NONBLOCK);
	return err == -EINPROGRESS ? 0 : err;
}

static int socket_name(int len, const struct sockaddr_storage *name, struct sockaddr *addr,
		       socklen_t *room)
{
	if (len < 0)
		return len;
	memcpy(addr, name, min_t(size_t, len, *room));
	*room = len;
	return 0;
}

int sys_socket_own(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_storage name;
	int ret = kernel_getsockname(sock_of(fd), (struct sockaddr *)&name);

	return socket_name(ret, &name, addr, len);
}

int sys_socket_peer(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_storage name;
	int ret = kernel_getpeername(sock_of(fd), (struct sockaddr *)&name);

	return socket_name(ret, &name, addr, len);
}

void sys_socket_shut(int fd)
{
	kernel_sock_shutdown(sock_of(fd), SHUT_WR);
}

static ssize_t receive(int fd, struct kvec *vec, size_t cnt, size_t len, int flags)
{
	struct msghdr msg = { 0 };

	return kernel_recvmsg(sock_of(fd), &msg, vec, cnt, len, MSG_DONTWAIT | flags);
}

static ssize_t transmit(int fd, struct kvec *vec, size_t cnt, size_t len, int flags)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL | flags };

	return kernel_sendmsg(sock_of(fd), &msg, vec, cnt, len);
}

ssize_t sys_socket_recv(int fd, void *room, size_t len, int flags)
{
	struct kvec vec = { .iov_base = room, .iov_len = len };

	return receive(fd, &vec, 1, len, flags);
}

ssize_t sys_socket_send(int fd, const void *bytes, size_t len, int flags)
{
	struct kvec vec = { .iov_base = (void *)bytes, .iov_len = len };

	return transmit(fd, &vec, 1, len, flags);
}

/* The provider's pieces are the kernel's memory. Returns bytes. */
static size_t pieces(const struct iovec *iov, size_t cnt, struct kvec *vec)
{
	size_t i, len = 0;

	for (i = 0; i < cnt; i++) {
		vec[i].iov_base = (void __force *)iov[i].iov_base;
		vec[i].iov_len = iov[i].iov_len;
		len += iov[i].iov_len;
	}
	return len;
}

ssize_t sys_socket_recvv(int fd, struct iovec *iov, size_t cnt)
{
	struct kvec vec[PIECES_MAX];
	size_t len;

	if (WARN_ON_ONCE(cnt > PIECES_MAX))
		return -EINVAL;
	len = pieces(iov, cnt, vec);
	return receive(fd, vec, cnt, len, 0);
}

ssize_t sys_socket_sendv(int fd, struct iovec *iov, size_t cnt)
{
	struct kvec vec[PIECES_MAX];
	size_t len;

	if (WARN_ON_ONCE(cnt > PIECES_MAX))
		return -EINVAL;
	len = pieces(iov, cnt, vec);
	return transmit(fd, vec, cnt, len, 0);
}

int sys_socket_set(int fd, int level, int option, const void *value, size_t len)
{
	struct socket *sock = sock_of(fd);
	sockptr_t from = KERNEL_SOCKPTR((void *)value);

	if (level == SOL_SOCKET)
		return sock_setsockopt(sock, level, option, from, len);
	return sock->ops->setsockopt(sock, level, option, from, len);
}

int sys_socket_error(int fd)
{
	return sock_error(sock_of(fd)->sk);
}

int sys_socket_congestion(int fd, char *name, size_t len)
{
	struct sock *sk = sock_of(fd)->sk;

	lock_sock(sk);
	strscpy(name, inet_csk(sk)->icsk_ca_ops->name, len);
	release_sock(sk);
	return 0;
}

int sys_socket_state(int fd, struct sys_socket_state *state)
{
	struct tcp_info info;

	tcp_get_info(sock_of(fd)->sk, &info);
	state->silent_ms = info.tcpi_last_ack_recv;
	state->unacked = info.tcpi_unacked;
	state->retransmits = info.tcpi_retransmits;
	state->probes = info.tcpi_probes;
	return 0;
}

/* Bytes from one of TCP's counts to the end of what was written. */
static int behind(int fd, bool sent)
{
	struct sock *sk = sock_of(fd)->sk;
	u32 len = 0;

	lock_sock(sk);
	if (!((1 << sk->sk_state) & (TCPF_SYN_SENT | TCPF_SYN_RECV | TCPF_LISTEN)))
		len = tcp_sk(sk)->write_seq - (sent ? tcp_sk(sk)->snd_nxt : tcp_sk(sk)->snd_una);
	release_sock(sk);
	return len;
}

int sys_socket_unacked(int fd)
{
	return behind(fd, false);
}

int sys_socket_unsent(int fd)
{
	return behind(fd, true);
}

bool kofi_sockets_left(void)
{
	return !xa_empty(&sockets);
}
