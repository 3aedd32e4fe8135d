/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft devices --watch': the devices that are there, and what happens to them and to their lenders from then on, a line
 * each.
 */
#define _GNU_SOURCE
#include "devices.h"
#include "fabric.h"
#include "json_names.h"
#include "libfabric.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {
	[WEFT_EVENT_DEVICE_ADDED] = "device-added",
	[WEFT_EVENT_DEVICE_REMOVED] = "device-removed",
	[WEFT_EVENT_LEASE_ENDED] = "lease-ended",
	[WEFT_EVENT_LENDER_LOST] = "lender-lost",
	[WEFT_EVENT_LENDER_BACK] = "lender-back",
	[WEFT_EVENT_DEVICE_CHANGED] = "device-changed",
	[WEFT_EVENT_LENDER_ADDED] = "lender-added",
	[WEFT_EVENT_LENDER_REMOVED] = "lender-removed",
	[WEFT_EVENT_DIRECTORY_LOST] = "directory-lost",
	[WEFT_EVENT_DIRECTORY_BACK] = "directory-back",
};

/* struct seen - the devices as they were when something happened last: one that has gone is named by it */
struct seen {
	struct weft_device_info *infos;
	size_t cnt;
};

/* An event queue is a fabric's; events of devices have nothing to do with which one. */
struct fid_eq *devices_eq(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE };
	struct fid_fabric *fabric;
	struct fi_info *info;
	struct fid_eq *eq;
	int ret = fabric_getinfo(TOOLS_API_VERSION, NULL, NULL, 0, NULL, &info);

	if (!ret)
		ret = fabric_open(info->fabric_attr, &fabric);
	if (!ret)
		ret = fi_eq_open(fabric, &attr, &eq, NULL);
	if (ret)
		errx(EXIT_FAILURE, "--watch needs an event queue of libfabric: %s",
		     fi_strerror(-ret));
	return eq;
}

static const struct weft_device_info *find(const struct seen *seen, uint64_t id)
{
	size_t i;

	for (i = 0; i < seen->cnt; i++)
		if (seen->infos[i].id == id)
			return &seen->infos[i];
	return NULL;
}

static void put_id(json_t *root, const char *name, uint64_t id)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, id);
	if (id)
		json_object_set_new(root, name, json_string(text));
}

static void put_json(const char *what, const struct weft_event *event,
		     const struct weft_device_info *info, bool there)
{
	json_t *root = json_pack("{s:s}", "event", what);

	put_id(root, "node", event->node);
	put_id(root, "id", event->device);
	if (info)
		json_object_set_new(root, "name", json_name(info->name));
	if (there) {
		json_object_set_new(root, "state", json_string(devices_state(info->state)));
		json_object_set_new(root, "leases", json_integer(info->leases));
	}
	if (event->lease)
		json_object_set_new(root, "lease", json_integer(event->lease));
	json_dumpf(root, stdout, JSON_COMPACT);
	printf("\n");
	json_decref(root);
}

static void put_text(const char *what, const struct weft_event *event,
		     const struct weft_device_info *info, bool there)
{
	printf("%-14s", what);
	if (info)
		printf(" %-36s%s%s", info->name, there ? " " : "",
		       there ? devices_state(info->state) : "");
	else if (event->device)
		printf(" %016" PRIx64, event->device);
	else if (event->node)
		printf(" %016" PRIx64, event->node);
	if (event->lease)
		printf(" lease %u", event->lease);
	printf("\n");
}

/* A line, for which its reader waits. @info: of the device, or NULL; @there: it still is */
static void put(const struct devices_options *opt, const char *what,
		const struct weft_event *event, const struct weft_device_info *info, bool there)
{
	if (opt->json)
		put_json(what, event, info, there);
	else
		put_text(what, event, info, there);
	if (fflush(stdout))
		err(EXIT_FAILURE, "standard output");
}

static void put_all(const struct devices_options *opt, const struct seen *seen)
{
	size_t i;

	for (i = 0; i < seen->cnt; i++) {
		struct weft_event event = { .node = seen->infos[i].node,
					    .device = seen->infos[i].id };

		if (devices_wanted(opt, &seen->infos[i]))
			put(opt, "device", &event, &seen->infos[i], true);
	}
}

/* A lender that is lost can't be asked: what was seen of it is kept. */
static void look(const struct devices_options *opt, struct seen *seen)
{
	struct seen now = { .cnt = seen->cnt + 64 };
	int error;

	do {
		free(now.infos);
		now.infos = calloc(now.cnt, sizeof(*now.infos));
		if (!now.infos)
			devices_fail("the list of devices", -ENOMEM);
		error = weft_device_list(opt->lender, now.infos, &now.cnt);
	} while (error == -FI_ETOOSMALL);
	if (error) {
		free(now.infos);
		return;
	}
	free(seen->infos);
	*seen = now;
}

static void take(const struct devices_options *opt, const struct weft_event *event,
		 struct seen *seen)
{
	const struct weft_device_info *was = find(seen, event->device), *is;
	struct weft_device_info gone;
	bool there;

	if (was)
		gone = *was;
	look(opt, seen);
	is = find(seen, event->device);
	there = is;
	if (!is && was)
		is = &gone;
	if (is && !devices_wanted(opt, is))
		return;
	put(opt, event->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[event->kind] : "?",
	    event, is, there);
}

int devices_watch(const struct devices_options *opt)
{
	struct seen seen = { 0 };
	struct weft_event event;
	uint32_t number;
	ssize_t n;

	look(opt, &seen);
	put_all(opt, &seen);
	for (;;) {
		n = fi_eq_sread(opt->eq, &number, &event, sizeof(event), -1, 0);
		if (n == sizeof(event) && number == WEFT_DEVICE_EVENT)
			take(opt, &event, &seen);
		else if (n < 0 && n != -FI_EAGAIN && n != -FI_EINTR)
			errx(EXIT_FAILURE, "the event queue: %s", fi_strerror((int)-n));
	}
}
