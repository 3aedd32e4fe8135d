/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A kernel that lacks memory, for tests; mock_send.h has the contract. */
#include <errno.h>
#include <sys/socket.h>
#include "mock_send.h"

ssize_t __real_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags);

struct mock_send mock_send;

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
	if (mock_send.cnt) {
		mock_send.cnt--;
		if (mock_send.err) {
			errno = mock_send.err;
			return -1;
		}
		if (len > mock_send.most)
			len = mock_send.most;
	}
	return __real_send(fd, bytes, len, flags);
}
