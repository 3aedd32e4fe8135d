/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Network namespaces with TUN devices; tunnel.h has the contract. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "place.h"
#include "tunnel.h"

static int refused(const char *what, char *why, size_t len)
{
	snprintf(why, len, "%s: %s", what, strerror(errno));
	return -1;
}

/* Sets an interface's address, unless @address is 0, and brings it up. */
static int interface_up(const char *name, uint32_t address)
{
	struct ifreq request = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&request.ifr_addr;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = fd < 0;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (!err && address) {
		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(address);
		err = ioctl(fd, SIOCSIFADDR, &request);
		in->sin_addr.s_addr = htonl(0xffffff00u);
		err = err || ioctl(fd, SIOCSIFNETMASK, &request);
	}
	err = err || ioctl(fd, SIOCGIFFLAGS, &request);
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	err = err || ioctl(fd, SIOCSIFFLAGS, &request);
	if (fd >= 0)
		close(fd);
	return err ? -1 : 0;
}

static int tun_open(uint32_t address, char *why, size_t len)
{
	struct ifreq request = { .ifr_name = "net0", .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return refused("/dev/net/tun", why, len);
	if (!ioctl(fd, TUNSETIFF, &request) && !interface_up("net0", address) &&
	    !interface_up("lo", 0))
		return fd;
	refused("no TUN device", why, len);
	close(fd);
	return -1;
}

/* Enters a new network namespace; as an ordinary user, in a user namespace of the process's own. */
static int new_space(char *why, size_t len)
{
	if (!unshare(CLONE_NEWNET))
		return 0;
	if (errno != EPERM)
		return refused("no network namespace", why, len);
	if (place_leave_user(why, len))
		return -1;
	return unshare(CLONE_NEWNET) ? refused("no network namespace", why, len) : 0;
}

int tunnel_pair(struct tunnel tunnels[2], char *why, size_t len)
{
	for (int i = 0; i < 2; i++) {
		if (new_space(why, len))
			return -1;
		tunnels[i].space = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		if (tunnels[i].space < 0)
			return refused("/proc/self/ns/net", why, len);
		tunnels[i].fd = tun_open(0x0a4d0001u + (uint32_t)i, why, len);
		if (tunnels[i].fd < 0)
			return -1;
	}
	return 0;
}

int tunnel_enter(const struct tunnel *tunnel)
{
	return setns(tunnel->space, CLONE_NEWNET);
}
