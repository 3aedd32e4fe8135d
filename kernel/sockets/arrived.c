/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The other end of a connection within the machine's network namespace; net_socket.h has the
 * contract. Process context.
 */
#include <linux/in6.h>
#include <net/inet6_hashtables.h>
#include <net/inet_hashtables.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "socket.h"

/* Returns it with a reference; NULL: it is not here. With rcu_read_lock(). */
static struct sock *other_end(const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6)
		return __inet6_lookup_established(
			sock_net(sk), &tcp_hashinfo, &sk->sk_v6_rcv_saddr, inet->inet_sport,
			&sk->sk_v6_daddr, ntohs(inet->inet_dport), 0, 0);
#endif
	return __inet_lookup_established(sock_net(sk), &tcp_hashinfo, inet->inet_rcv_saddr,
					 inet->inet_sport, inet->inet_daddr,
					 ntohs(inet->inet_dport), 0, 0);
}

bool sys_socket_arrived(int fd)
{
	struct sock *sk = kofi_socket_of(fd)->sock->sk, *other;
	struct tcp_info here, there;
	bool all = false;

	tcp_get_info(sk, &here);
	rcu_read_lock();
	other = other_end(sk);
	rcu_read_unlock();
	if (!other)
		return false;
	/* One that waits for its time to end, or has not been accepted, tells nothing. */
	if (sk_fullsock(other)) {
		tcp_get_info(other, &there);
		all = there.tcpi_bytes_received >=
		      here.tcpi_bytes_sent - here.tcpi_bytes_retrans;
	}
	sock_gen_put(other);
	return all;
}
