/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft devices borrow --disk': the keeper of a disk of this machine's kernel. It has the lease, and renews it; when
 * the kernel has no queue pair it ends the last one at the lender and asks for another, each second. The disk ends
 * with it.
 */
#define _GNU_SOURCE
#include "devices.h"
#include "kofi_blk.h"
#include "spec.h"
#include "weft.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/nvme.h>

#define NAMESPACE 1u
#define DEPTH	  128u
#define FAIL_S	  60u /* until requests fail, if nobody says */
#define AGAIN_MS  1000

/*
 * struct kept - a disk
 * @dev:     NULL: there is no lease
 * @session: of the last queue pair; @has_session: it was not ended at the lender
 * @file:    of the module's; @signals: SIGINT and SIGTERM
 */
struct kept {
	struct weft_lender *lender;
	struct weft_borrow_attr attr;
	struct weft_device *dev;
	struct weft_nvme_session session;
	bool has_session;
	int file, signals;
};

static uint32_t features_of(const struct nvme_id_ctrl *ctrl, const struct nvme_id_ns *ns)
{
	return (ctrl->vwc & NVME_VWC_PRESENT ? KOFI_BLK_CACHE : 0) |
	       (ctrl->oncs & NVME_ONCS_WRITE_ZEROES ? KOFI_BLK_WRITE_ZEROES : 0) |
	       (ctrl->oncs & NVME_ONCS_DSM ? KOFI_BLK_DEALLOCATE : 0) |
	       (ns->nsattr & 1 ? KOFI_BLK_READ_ONLY : 0);
}

/* What the device says of itself is what the disk is. */
static int describe(struct kept *k, unsigned fail_seconds, struct kofi_blk_add *add)
{
	const struct weft_device_info *info = weft_device_info(k->dev);
	struct weft_nvme_namespace space;
	static struct nvme_id_ctrl ctrl;
	static struct nvme_id_ns ns;
	int err = weft_nvme_identify(k->lender, info->id, 0, NVME_CNS_CONTROLLER, &ctrl);

	if (!err)
		err = weft_nvme_identify(k->lender, info->id, NAMESPACE, NVME_CNS_NAMESPACE,
					 &ns);
	if (!err)
		err = weft_nvme_namespace(k->dev, NAMESPACE, &space);
	if (err)
		return err;
	*add = (struct kofi_blk_add){
		.version = KOFI_BLK_VERSION,
		.nsid = NAMESPACE,
		.blocks = space.blocks,
		.block_size = space.block_size,
		.transfer_max = space.transfer_max - space.transfer_max % space.block_size,
		.depth = DEPTH,
		.features = features_of(&ctrl, &ns),
		.fail_ms = fail_seconds * 1000,
	};
	return 0;
}

/* The kernel knows no names. */
static void resolve(const char *host, char *peer, size_t room)
{
	struct addrinfo *found;

	peer[0] = '\0';
	if (!*host || getaddrinfo(host, NULL, NULL, &found))
		return;
	if (getnameinfo(found->ai_addr, found->ai_addrlen, peer, (socklen_t)room, NULL, 0,
			NI_NUMERICHOST))
		peer[0] = '\0';
	freeaddrinfo(found);
}

static int end_session(struct kept *k)
{
	int err = k->has_session ? weft_nvme_session_close(k->dev, k->session.id) : 0;

	/* It has ended with its lease, or the lender never had it. */
	if (err && err != -ESTALE && err != -ENOENT)
		return err;
	k->has_session = false;
	return err == -ESTALE ? err : 0;
}

/* Nothing of the last pair is under way at the device when the next one begins. */
static int connect_disk(struct kept *k)
{
	struct kofi_blk_pair pair = { .peer = "" };
	int err = end_session(k);

	if (!err)
		err = weft_nvme_session_open(k->dev, DEPTH, &k->session);
	if (err)
		return err;
	k->has_session = true;
	if (k->session.place_len != sizeof(pair.place))
		return -EOPNOTSUPP;
	memcpy(&pair.place, k->session.place, sizeof(pair.place));
	resolve(k->session.host, pair.peer, sizeof(pair.peer));
	return ioctl(k->file, KOFI_BLK_PAIR, &pair) ? -errno : 0;
}

static int borrow(struct kept *k)
{
	return k->dev ? 0 : weft_device_borrow(k->lender, &k->attr, &k->dev);
}

static void give_back(struct kept *k)
{
	if (k->dev)
		weft_device_return(k->dev);
	k->dev = NULL;
	k->has_session = false;
}

/* The disk has no queue pair: try to give it another one. */
static void reconnect(struct kept *k, const char *name)
{
	static int told;
	int err = borrow(k);

	if (!err)
		err = connect_disk(k);
	if (err == -ESTALE)
		give_back(k);
	if (!err)
		warnx("%s: connected again", name);
	else if (err != told)
		warnx("%s: %s", name, strerror(-err));
	told = err;
}

/* Returns true once the disk is gone. */
static bool remove_disk(struct kept *k, const char *name)
{
	struct signalfd_siginfo info;

	if (read(k->signals, &info, sizeof(info)) != sizeof(info))
		return false;
	if (!ioctl(k->file, KOFI_BLK_REMOVE))
		return true;
	warn("%s", name);
	return false;
}

static void keep(struct kept *k, const char *name)
{
	for (;;) {
		struct pollfd on[] = {
			{ .fd = k->signals, .events = POLLIN },
			{ .fd = k->file, .events = POLLIN },
		};
		bool wanted;

		if (poll(on, 2, -1) < 0 && errno != EINTR)
			err(EXIT_FAILURE, "poll");
		wanted = on[1].revents;
		if (wanted)
			reconnect(k, name);
		/* What fails is tried again after a while, in which signals are heard. */
		if (wanted)
			poll(on, 1, AGAIN_MS);
		if (on[0].revents && remove_disk(k, name))
			return;
	}
}

static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		err(EXIT_FAILURE, "sigprocmask");
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		err(EXIT_FAILURE, "signalfd");
	return fd;
}

static void make_disk(struct kept *k, const struct devices_options *opt, char *name, size_t room)
{
	const char *device = weft_device_info(k->dev)->name;
	struct kofi_blk_add add;
	int ret = describe(k, opt->fail_seconds ? opt->fail_seconds : FAIL_S, &add);

	if (ret)
		devices_fail(device, ret);
	if (ioctl(k->file, KOFI_BLK_ADD, &add))
		devices_fail(device, -errno);
	snprintf(name, room, "/dev/kofiblk%u", add.number);
	ret = connect_disk(k);
	if (ret == -EOPNOTSUPP)
		errx(EXIT_FAILURE,
		     "%s: a disk is of a device of another host, whose provider the kernel has",
		     device);
	if (ret)
		devices_fail(device, ret);
}

/*
 * What the disk is written back for must not wait for the disk: memory of this process, and what the kernel
 * allocates for it while it connects. Without the privilege for that it may, until requests fail.
 */
static void need_no_disk(void)
{
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}

int devices_borrow_disk(const struct devices_options *opt, const struct weft_borrow_attr *attr)
{
	struct kept k = {
		.lender = opt->lender,
		.attr = *attr,
		.session = { .size = sizeof(k.session) },
	};
	char name[32], *device;
	int ret;

	k.file = open(KOFI_BLK_FILE, O_RDWR | O_CLOEXEC);
	if (k.file < 0)
		err(EXIT_FAILURE, "%s (is the kernel's module kofi_blk loaded?)", KOFI_BLK_FILE);
	need_no_disk();
	k.attr.keep = 0;
	/* Nobody else is to wait long for the lease of a keeper that was killed. */
	k.attr.ms = opt->seconds * 1000;
	ret = borrow(&k);
	if (ret)
		devices_fail(attr->name ? attr->name : "a device", ret);
	/* It is this device that is borrowed again. */
	device = strdup(weft_device_info(k.dev)->name);
	if (!device)
		devices_fail("a device", -ENOMEM);
	k.attr.name = device;
	k.signals = open_signals();
	make_disk(&k, opt, name, sizeof(name));
	printf("%s\n", name);
	if (fflush(stdout))
		err(EXIT_FAILURE, "standard output");
	keep(&k, name);
	end_session(&k);
	give_back(&k);
	weft_lender_close(opt->lender);
	free(device);
	return EXIT_SUCCESS;
}
