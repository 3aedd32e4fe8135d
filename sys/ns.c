/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Where this process is. Called by providers when an endpoint is made, on any thread. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "fault.h"
#include "hash.h"
#include "ns.h"

#define BOOT_ID	    "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_LEN 36 /* of a UUID, without the newline */

int sys_ns_pid(uint32_t *inode)
{
	int err = sys_fault(SYS_CALL_NS);
	struct stat st;

	if (err)
		return -err;
	if (stat("/proc/self/ns/pid", &st))
		return -errno;
	*inode = (uint32_t)st.st_ino;
	return 0;
}

int sys_ns_host(uint64_t *hash)
{
	int err = sys_fault(SYS_CALL_NS);
	unsigned char id[BOOT_ID_LEN];
	ssize_t n;
	int fd;

	if (err)
		return -err;
	fd = sys_descriptor_open(BOOT_ID, O_RDONLY);
	if (fd < 0)
		return -errno;
	do {
		n = sys_descriptor_read(fd, id, sizeof(id));
	} while (n < 0 && errno == EINTR);
	err = n < 0 ? errno : 0;
	sys_descriptor_close(fd);
	if (err)
		return -err;
	if (n != BOOT_ID_LEN)
		return -FI_EIO;
	*hash = sys_hash(id, sizeof(id));
	if (!*hash)
		*hash = 1;
	return 0;
}
