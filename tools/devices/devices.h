/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The commands of 'weft devices', each with what it is given. An error ends the process with a message.
 */
#ifndef WEFT_TOOLS_DEVICES_H
#define WEFT_TOOLS_DEVICES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <weft/device.h>

/*
 * struct devices_options - what was asked for
 * @lender_name: of --lender or --directory, or NULL
 * @operands: of the command of ours
 * @program:  what stands behind "--", NULL-terminated; NULL: nothing does
 * @disk:     a disk of the kernel is made of what is borrowed
 * @seconds:  of a lease; 0: the default
 * @fail_seconds: until a disk's requests fail; 0: the default
 * @plot:     a file for the drawing, or NULL
 * @eq:       events come there, with --watch; else NULL
 */
struct devices_options {
	struct weft_lender *lender;
	const char *lender_name;
	char **operands;
	int operand_cnt;
	char **program;
	bool json;
	bool watch;
	bool shared;
	bool disk;
	unsigned seconds;
	unsigned fail_seconds;
	const char *plot;
	struct fid_eq *eq;
	unsigned vendor;
	enum weft_device_class device_class;
};

int devices_list(const struct devices_options *opt);
int devices_leases(const struct devices_options *opt);
int devices_borrow(const struct devices_options *opt);
/* devices_borrow_disk - borrow, and keep a disk of the kernel (kofi_blk) until a signal. Returns an exit status */
int devices_borrow_disk(const struct devices_options *opt, const struct weft_borrow_attr *attr);

int devices_return(const struct devices_options *opt);
int devices_renew(const struct devices_options *opt);
int devices_share(const struct devices_options *opt);
int devices_revoke(const struct devices_options *opt);
int devices_id_ctrl(const struct devices_options *opt);
int devices_id_ns(const struct devices_options *opt);
int devices_smart_log(const struct devices_options *opt);
int devices_error_log(const struct devices_options *opt);

/* devices_plot - draw who holds what, into a file (SVG) */
int devices_plot(const struct devices_options *opt, const char *path);

/* devices_eq - an event queue for devices_watch(), which goes with the process */
struct fid_eq *devices_eq(void);

/* devices_watch - print what is there and what happens, until a signal */
int devices_watch(const struct devices_options *opt);

/* devices_state - a state (enum weft_device_state) as text */
const char *devices_state(uint32_t state);

/* devices_wanted - whether a device is of the class and vendor that were asked for */
bool devices_wanted(const struct devices_options *opt, const struct weft_device_info *info);

/* devices_all - out: what the lender has, owned (free()). Returns how many */
size_t devices_all(const struct devices_options *opt, struct weft_device_info **infos);

/* devices_find - the device that a text names: its name, the beginning of one, or its id */
struct weft_device_info devices_find(const struct devices_options *opt, const char *text);

/* devices_fail - end the process because a call has failed */
noreturn void devices_fail(const char *what, int err);

/* devices_fail_directory - the same for a directory that can't be opened */
noreturn void devices_fail_directory(const char *urls, int err);

#endif
