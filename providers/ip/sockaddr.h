/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A socket address of IP, as Linux has them. */
#ifndef WEFT_IP_SOCKADDR_H
#define WEFT_IP_SOCKADDR_H

#include <netinet/in.h>

union ip_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* ip_sockaddr_len - bytes of an address of its family, 0 for a family that is not of IP */
socklen_t ip_sockaddr_len(const union ip_sockaddr *sock);

#endif
