/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Triggers of pressure stall information. Called by mem/'s keeper, on its thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "descriptor.h"
#include "fault.h"
#include "psi.h"

#define FDS_MAX 4

/* In us: so long in each window. A user without rights may only ask for windows of 2 s. */
static const char *const triggers[] = { "some 50000 500000", "some 200000 2000000" };

int sys_psi_open(const char *path)
{
	int err = sys_fault(SYS_CALL_PSI), fd;

	if (err)
		return -err;
	fd = sys_descriptor_keep(sys_descriptor_open(path, O_RDWR | O_NONBLOCK));
	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(triggers) / sizeof(*triggers); i++)
		if (sys_descriptor_write(fd, triggers[i], strlen(triggers[i]) + 1) >= 0)
			return fd;
	err = errno;
	sys_descriptor_close(fd);
	return -err;
}

bool sys_psi_wait(int *fds, int cnt, int ms)
{
	struct pollfd p[FDS_MAX];
	bool pressure = false;

	cnt = cnt < FDS_MAX ? cnt : FDS_MAX;
	for (int i = 0; i < cnt; i++)
		p[i] = (struct pollfd){ .fd = fds[i], .events = POLLPRI };
	if (poll(p, (nfds_t)cnt, ms) <= 0)
		return false;
	for (int i = 0; i < cnt; i++) {
		if (p[i].revents & ~POLLPRI)
			fds[i] = -1;
		else if (p[i].revents)
			pressure = true;
	}
	return pressure;
}
