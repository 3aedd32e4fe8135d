/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections that others make, which are counted: net_socket.h has the contract. A program has
 * its descriptors to bound them by, and the kernel only its memory. Process context.
 */
#include <linux/moduleparam.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sizes.h>

#include "accepted.h"
#include "socket.h"

/* Memory of the machine for each of them: who acknowledges nothing has half of it */
#define MEMORY_EACH SZ_512K

static unsigned int accepted_max;
module_param(accepted_max, uint, 0644);
MODULE_PARM_DESC(accepted_max,
		 "Connections that others may have here, of which a peer has up to two "
		 "(default: one for each 512 KiB of the machine's memory)");

static atomic_t accepted_cnt;

/* Those that may not be accepted wait in TCP's queue, as for a program without descriptors. */
int sys_socket_accept(int fd)
{
	struct socket *listener = kofi_socket_of(fd)->sock, *sock;
	int ret;

	if (kofi_accepted_full(&accepted_cnt, READ_ONCE(accepted_max), MEMORY_EACH))
		return listener->ops->poll(NULL, listener, NULL) & EPOLLIN ? -ENFILE : -EAGAIN;
	ret = kernel_accept(listener, &sock, O_NONBLOCK);
	if (!ret)
		ret = kofi_socket_keep(sock);
	if (ret < 0)
		return ret;
	atomic_inc(&accepted_cnt);
	kofi_socket_of(ret)->counted = &accepted_cnt;
	return ret;
}
