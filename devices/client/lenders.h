/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A directory as a lender (weft_lender_open() with URLs): the lenders that it names, of which those are opened that are
 * used. What is known stays known when the directory does not answer.
 *
 * Locks: a directory's lock is of what it knows, and of @lender and @users of its lenders; no call to a lender is made
 * under it. A lender's open_lock, for which it is not held, has one thread at a time open it.
 */
#ifndef WEFT_DEVICES_CLIENT_LENDERS_H
#define WEFT_DEVICES_CLIENT_LENDERS_H

#include "client.h"

struct directory;

/* directory_urls - the URLs that weft_lender_open() means by a name, or NULL: a lender's own place */
const char *directory_urls(const char *name);

/* directory_open - returns 0, or as weft_lender_open() of a directory */
int directory_open(const char *urls, struct fid_eq *eq, struct directory **directory);

/* directory_close - returns 0, or -EBUSY: a device is borrowed or a segment exported, and nothing happened */
int directory_close(struct directory *directory);

/* directory_devices - out: those of all lenders, owned (free()). Returns how many, or -ENOMEM */
ssize_t directory_devices(struct directory *directory, struct weft_device_info **infos);

/*
 * directory_hold_device, directory_hold_node, directory_hold_here - have the lender of a device, of a node, or the first
 * of this host, opened, until lender_release()
 * Returns 0; -ENODEV: there is none; -EHOSTUNREACH: it is of another host, and has no address; -ETIMEDOUT: it is not
 * there; -EACCES, -ENOPROTOOPT, -ENOMEM.
 */
int directory_hold_device(struct directory *directory, uint64_t device,
			  struct weft_lender **lender);
int directory_hold_node(struct directory *directory, uint64_t node, struct weft_lender **lender);
int directory_hold_here(struct directory *directory, struct weft_lender **lender);

/* listed_hold - hold a lender of a directory that is held once more; listed_release - let go of it */
void listed_hold(struct listed *listed);
void listed_release(struct listed *listed);

/* listed_hear - an event of a lender of a directory, from the lender itself */
void listed_hear(struct listed *listed, const struct weft_event *event);

/* The calls of weft/device.h, and lender_ask(), for a lender that is a directory */
int directory_ask(struct directory *directory, struct request *request);
int directory_list(struct directory *directory, struct weft_device_info *infos, size_t *cnt);
int directory_borrow(struct directory *directory, const struct weft_borrow_attr *attr,
		     struct weft_device **dev);
int directory_attach(struct directory *directory, const char *ticket, struct weft_device **dev);

#endif
