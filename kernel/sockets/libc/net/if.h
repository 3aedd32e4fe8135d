/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the provider's sources take of <net/if.h>. */
#ifndef KOFI_NET_IF_H
#define KOFI_NET_IF_H

#define IF_NAMESIZE 16
#define IFF_UP	    1

#endif
