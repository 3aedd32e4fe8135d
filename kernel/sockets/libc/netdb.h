/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the provider's sources take of <netdb.h>. Hosts and services are numbers: nobody is
 * asked for names.
 */
#ifndef KOFI_NETDB_H
#define KOFI_NETDB_H

#include <netinet/in.h>

#define AI_PASSIVE     1
#define AI_NUMERICHOST 4

struct addrinfo {
	int ai_flags;
	int ai_family;
	int ai_socktype;
	int ai_protocol;
	socklen_t ai_addrlen;
	struct sockaddr *ai_addr;
	char *ai_canonname;
	struct addrinfo *ai_next;
};

/* As POSIX has them; of the hints the flags and the family count. May sleep */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **found);
void freeaddrinfo(struct addrinfo *found);
const char *gai_strerror(int error);

#endif
