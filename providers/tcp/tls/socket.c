/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A socket as OpenSSL's BIO; socket.h has the contract. OpenSSL's own writes with write(2), by which
 * a lane that the peer has closed would end the program.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include "socket.h"
#include "socket_call.h"

static BIO_METHOD *method;
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

/* An errno of the socket by which a call is to be repeated later. */
static bool again(int err)
{
	return err == EAGAIN || err == ENOBUFS || err == ENOMEM;
}

static int socket_write(BIO *bio, const char *bytes, int len)
{
	struct tls_socket *sock = BIO_get_data(bio);
	ssize_t n;
	int state;

	BIO_clear_retry_flags(bio);
	if (sock->out_err)
		return len;
	state = sys_uncancelled();
	do
		n = send(sock->fd, bytes, (size_t)len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	sys_uncancelled_end(state);
	if (n >= 0)
		return (int)n;
	if (again(errno)) {
		BIO_set_retry_write(bio);
		return -1;
	}
	sock->out_err = errno;
	return len;
}

static int socket_read(BIO *bio, char *room, int len)
{
	struct tls_socket *sock = BIO_get_data(bio);
	ssize_t n;

	do
		n = sys_call_recvfrom(sock->fd, room, (size_t)len, 0, NULL, NULL);
	while (n < 0 && errno == EINTR);
	sock->err = n < 0 ? errno : 0;
	BIO_clear_retry_flags(bio);
	if (n < 0 && again(sock->err))
		BIO_set_retry_read(bio);
	return (int)n;
}

static long socket_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	return cmd == BIO_CTRL_FLUSH; /* nothing is kept here */
}

static void method_make(void)
{
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft tcp lane");
	if (!method)
		return;
	BIO_meth_set_write(method, socket_write);
	BIO_meth_set_read(method, socket_read);
	BIO_meth_set_ctrl(method, socket_ctrl);
}

BIO *tls_socket_bio(struct tls_socket *sock)
{
	BIO *bio;

	pthread_once(&method_once, method_make);
	bio = method ? BIO_new(method) : NULL;
	if (!bio)
		return NULL;
	BIO_set_data(bio, sock);
	BIO_set_init(bio, 1);
	return bio;
}
