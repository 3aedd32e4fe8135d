/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Error numbers. Every call of the interface returns 0 (or a count) or the
 * negative of one of these. Numbers below 256 are the system's errno values,
 * the rest belong to the interface. Usable from any thread.
 * Source: fi_errno(3).
 */
#ifndef FI_ERRNO_H
#define FI_ERRNO_H

#if defined(__KERNEL__)
#include <linux/errno.h>
#elif __STDC_HOSTED__
#include <errno.h>
#elif !defined(EPERM)
/* Freestanding: Linux' generic numbers, limited to those named below. */
#define EPERM	      1
#define ENOENT	      2
#define EINTR	      4
#define EIO	      5
#define E2BIG	      7
#define EBADF	      9
#define EAGAIN	      11
#define EWOULDBLOCK   EAGAIN
#define ENOMEM	      12
#define EACCES	      13
#define EFAULT	      14
#define EBUSY	      16
#define ENODEV	      19
#define EINVAL	      22
#define EMFILE	      24
#define ENOSPC	      28
#define ENOSYS	      38
#define ENOMSG	      42
#define ENODATA	      61
#define EPROTO	      71
#define EOVERFLOW     75
#define EMSGSIZE      90
#define ENOPROTOOPT   92
#define EOPNOTSUPP    95
#define EADDRINUSE    98
#define EADDRNOTAVAIL 99
#define ENETDOWN      100
#define ENETUNREACH   101
#define ECONNABORTED  103
#define ECONNRESET    104
#define ENOBUFS	      105
#define EISCONN	      106
#define ENOTCONN      107
#define ESHUTDOWN     108
#define ETIMEDOUT     110
#define ECONNREFUSED  111
#define EHOSTDOWN     112
#define EHOSTUNREACH  113
#define EALREADY      114
#define EINPROGRESS   115
#define EREMOTEIO     121
#define ECANCELED     125
#define EKEYREJECTED  129
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FI_SUCCESS 0

/* The system's own numbers, by topic: arguments and state ... */
#define FI_EINVAL      EINVAL
#define FI_EBADF       EBADF
#define FI_EFAULT      EFAULT
#define FI_E2BIG       E2BIG
#define FI_EMSGSIZE    EMSGSIZE
#define FI_EOVERFLOW   EOVERFLOW
#define FI_ENOPROTOOPT ENOPROTOOPT
#define FI_ENOSYS      ENOSYS /* this object does not have that call */
#define FI_EOPNOTSUPP  EOPNOTSUPP
#define FI_ENOENT      ENOENT
#define FI_ENODEV      ENODEV
#define FI_ENODATA     ENODATA /* fi_getinfo: nothing satisfies the hints */
#define FI_ENOMSG      ENOMSG  /* FI_PEEK: no message matches */

/* ... resources and rights ... */
#define FI_ENOMEM	ENOMEM
#define FI_ENOSPC	ENOSPC
#define FI_ENOBUFS	ENOBUFS
#define FI_EMFILE	EMFILE
#define FI_EBUSY	EBUSY
#define FI_EPERM	EPERM
#define FI_EACCES	EACCES
#define FI_EKEYREJECTED EKEYREJECTED /* RMA key refused by the target */

/* ... progress ... */
#define FI_EAGAIN      EAGAIN /* nothing happened: progress, then retry */
#define FI_EWOULDBLOCK EWOULDBLOCK
#define FI_EINTR       EINTR
#define FI_EALREADY    EALREADY
#define FI_EINPROGRESS EINPROGRESS
#define FI_ECANCELED   ECANCELED /* completion of a cancelled operation */

/* ... and the network. */
#define FI_EIO		 EIO
#define FI_EREMOTEIO	 EREMOTEIO
#define FI_EPROTO	 EPROTO
#define FI_EADDRINUSE	 EADDRINUSE
#define FI_EADDRNOTAVAIL EADDRNOTAVAIL
#define FI_ENETDOWN	 ENETDOWN
#define FI_ENETUNREACH	 ENETUNREACH
#define FI_EHOSTDOWN	 EHOSTDOWN
#define FI_EHOSTUNREACH	 EHOSTUNREACH
#define FI_ECONNABORTED	 ECONNABORTED
#define FI_ECONNRESET	 ECONNRESET
#define FI_ECONNREFUSED	 ECONNREFUSED
#define FI_EISCONN	 EISCONN
#define FI_ENOTCONN	 ENOTCONN
#define FI_ESHUTDOWN	 ESHUTDOWN
#define FI_ETIMEDOUT	 ETIMEDOUT

/* The interface's own numbers start here. */
#define FI_ERRNO_OFFSET 256

enum {
	FI_EOTHER = FI_ERRNO_OFFSET, /* none of the others fits */
	FI_ETOOSMALL,		     /* buffer too short; its length says how long */
	FI_EOPBADSTATE,		     /* call not possible in the object's state */
	FI_EAVAIL,		     /* an error entry waits: read it first */
	FI_EBADFLAGS,		     /* a flag bit that the call does not take */
	FI_ENOEQ,		     /* no event queue bound */
	FI_EDOMAIN,		     /* object belongs to another domain */
	FI_ENOCQ,		     /* no completion queue bound */
	FI_ECRC,		     /* payload damaged on the way */
	FI_ETRUNC,		     /* message longer than the receive buffer */
	FI_ENOKEY,		     /* memory key missing or unknown */
	FI_ENOAV,		     /* no address vector bound */
	FI_EOVERRUN,		     /* queue was full, entries are lost */
	FI_ENORX,		     /* peer has no receive buffer */
	FI_ENOMR,		     /* no room for another registration */
	FI_EFIREWALLADDR,	     /* peer must open the connection: firewall */
	FI_ERRNO_MAX
};

/*
 * fi_strerror - describe an error number
 * @errnum: positive FI_E* value
 *
 * Returns static text, never NULL. Source: fi_errno(3).
 */
const char *fi_strerror(int errnum);

#ifdef __cplusplus
}
#endif

#endif /* FI_ERRNO_H */
