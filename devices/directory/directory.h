/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A directory of lenders: etcd, where each lender has a key with what it lends, for as long as it says that it is there.
 * Lenders register, borrowers follow; neither needs the directory for what has been borrowed.
 *
 * libweft-directory.so has it, which is loaded when a directory is named (load.h): HTTP and TLS are no business of a
 * program that names none. The table below is all that it exports. Its threads are its own, with all signals blocked.
 */
#ifndef WEFT_DEVICES_DIRECTORY_H
#define WEFT_DEVICES_DIRECTORY_H

#include <stdint.h>
#include <weft/device.h>

#define DIRECTORY_VERSION     2u
#define DIRECTORY_DEVICES_MAX 1024u

/*
 * struct directory_lender - a lender as the directory has it
 * @node:    which, as its devices and addresses name it
 * @host:    a text that is the same for all processes of a host until it is booted again: @socket is of this host
 * @socket:  path of its socket, or ""
 * @address: where borrowers of other hosts reach it, HOST:PORT, or ""
 * @provider: of OFI, by which they do; "": the one that is taken where nobody says
 * @devices: @device_cnt of them
 */
struct directory_lender {
	uint64_t node;
	char host[40];
	char socket[108];
	char address[128];
	char provider[WEFT_PROVIDER_MAX];
	struct weft_device_info *devices;
	uint32_t device_cnt;
};

/*
 * struct directory_listener - who follows a directory; called by one thread at a time
 * @lender: a lender is there, or is not as it was; valid during the call
 * @gone:   it is there no more
 * @state:  0: all that the directory has is known; -errno: no member tells any more, why, and what is known stays so
 */
struct directory_listener {
	void (*lender)(void *arg, const struct directory_lender *lender);
	void (*gone)(void *arg, uint64_t node);
	void (*state)(void *arg, int err);
	void *arg;
};

struct directory_follow;
struct directory_registration;

/*
 * struct directory_ops - what libweft-directory.so does
 *
 * @urls are of the directory's members, with commas between: http://host:port, https://host:port. They are asked in turn
 * until one answers, each for DIRECTORY_ASK_MS at most; one that did not is asked last for a while.
 *
 * @follow_open:  tell a listener of all lenders that are there, during the call, and of every change from then on, by a
 *		  thread. Returns 0; -EINVAL: no URLs; -ECONNREFUSED: no member is there; -ETIMEDOUT; -EAGAIN: those that
 *		  answer have no majority; -EACCES: they refuse this program, or are not who they should be;
 *		  -ENOPROTOOPT: they are no etcd of version 3.4 or later; -ENOMEM.
 * @follow_close: tell no more
 *
 * @register_open:  begin to keep a lender registered
 * @tell:	    called with a line for people when that succeeds or fails, not both times in a row; any thread
 * @register_set:   what is registered from now on, and again whenever the directory has lost it. Returns 0; -EILSEQ: it
 *		    has texts that can't be; -ENOMEM.
 * @register_close: it is registered no more, at once where the directory answers
 */
struct directory_ops {
	uint32_t version;
	uint32_t rsvd4;
	int (*follow_open)(const char *urls, const struct directory_listener *listener,
			   struct directory_follow **follow);
	void (*follow_close)(struct directory_follow *follow);
	int (*register_open)(const char *urls, void (*tell)(const char *line),
			     struct directory_registration **registration);
	int (*register_set)(struct directory_registration *registration,
			    const struct directory_lender *lender);
	void (*register_close)(struct directory_registration *registration);
};

#define DIRECTORY_ASK_MS 2000

/* What libweft-directory.so exports, of this type. */
#define DIRECTORY_SYMBOL "weft_directory"

#endif
