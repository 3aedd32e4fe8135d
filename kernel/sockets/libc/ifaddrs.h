/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the provider's sources take of <ifaddrs.h>; getifaddrs() is sys_interfaces() of
 * net_socket.h.
 */
#ifndef KOFI_IFADDRS_H
#define KOFI_IFADDRS_H

struct sockaddr;

struct ifaddrs {
	struct ifaddrs *ifa_next;
	char *ifa_name;
	unsigned int ifa_flags;
	struct sockaddr *ifa_addr;
	struct sockaddr *ifa_netmask;
};

/* freeifaddrs - may sleep */
void freeifaddrs(struct ifaddrs *all);

#endif
