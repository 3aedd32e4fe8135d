/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft devices list' and 'weft devices leases'.
 */
#define _GNU_SOURCE
#include "devices.h"
#include "json_names.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const states[] = {
	[WEFT_DEVICE_FREE] = "free",
	[WEFT_DEVICE_SHARED] = "shared",
	[WEFT_DEVICE_EXCLUSIVE] = "exclusive",
	[WEFT_DEVICE_FAILED] = "failed",
};

const char *devices_state(uint32_t state)
{
	return state < sizeof(states) / sizeof(states[0]) ? states[state] : "?";
}

static const char *class_name(uint32_t device_class)
{
	return device_class == WEFT_CLASS_NVME ? "nvme" : "?";
}

bool devices_wanted(const struct devices_options *opt, const struct weft_device_info *info)
{
	return (!opt->device_class || info->device_class == opt->device_class) &&
	       (!opt->vendor || info->vendor == opt->vendor);
}

size_t devices_all(const struct devices_options *opt, struct weft_device_info **out)
{
	struct weft_device_info *infos;
	size_t room = 64, cnt;
	int err;

	for (;; room = cnt) {
		infos = calloc(room, sizeof(*infos));
		if (!infos)
			devices_fail("the list of devices", -ENOMEM);
		cnt = room;
		err = weft_device_list(opt->lender, infos, &cnt);
		if (err != -FI_ETOOSMALL)
			break;
		free(infos);
	}
	if (err)
		devices_fail("the list of devices", err);
	*out = infos;
	return cnt;
}

struct weft_device_info devices_find(const struct devices_options *opt, const char *text)
{
	struct weft_device_info *infos, found = { 0 };
	size_t cnt = devices_all(opt, &infos), i, fitting = 0;
	char id[17];

	for (i = 0; i < cnt; i++) {
		snprintf(id, sizeof(id), "%016" PRIx64, infos[i].id);
		if (!strcmp(infos[i].name, text) || !strcmp(id, text)) {
			found = infos[i];
			fitting = 1;
			break;
		}
		if (!strncmp(infos[i].name, text, strlen(text))) {
			found = infos[i];
			fitting++;
		}
	}
	free(infos);
	if (fitting != 1)
		errx(EXIT_FAILURE, "%s: %s", text,
		     fitting ? "several devices have names that begin so"
			     : "no such device ('weft devices' lists them)");
	return found;
}

/* As lsblk has it: 1.5G */
static void size_text(uint64_t bytes, char text[16])
{
	static const char units[] = "BKMGTPE";
	double value = (double)bytes;
	unsigned unit = 0;

	while (value >= 1024 && unit < 6) {
		value /= 1024;
		unit++;
	}
	snprintf(text, 16, value >= 10 || value == (uint64_t)value ? "%.0f%c" : "%.1f%c", value,
		 units[unit]);
}

static json_t *device_json(const struct weft_device_info *info)
{
	char id[17], node[17];

	snprintf(id, sizeof(id), "%016" PRIx64, info->id);
	snprintf(node, sizeof(node), "%016" PRIx64, info->node);
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "id",
		id, "node", node, "name", info->name, "class", class_name(info->device_class),
		"state", devices_state(info->state), "model", json_name(info->model), "serial",
		json_name(info->serial), "provider", json_name(info->provider), "vendor",
		(json_int_t)info->vendor, "blocks", (json_int_t)info->blocks, "block_size",
		(json_int_t)info->block_size, "leases", (json_int_t)info->leases, "queue_pairs",
		(json_int_t)info->queue_pairs, "queue_pairs_free",
		(json_int_t)info->queue_pairs_free);
}

static int print_json(const char *name, json_t *array)
{
	json_t *root = json_pack("{s:o}", name, array);
	int bad = !root || json_dumpf(root, stdout, JSON_INDENT(2)) || printf("\n") < 0;

	json_decref(root);
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}

int devices_list(const struct devices_options *opt)
{
	struct weft_device_info *infos;
	size_t cnt = devices_all(opt, &infos), i;
	json_t *array = opt->json ? json_array() : NULL;

	if (!opt->json)
		printf("%-36s %-6s %-10s %8s %6s %7s  %-8s %s\n", "NAME", "CLASS", "STATE",
		       "SIZE", "LEASES", "QUEUES", "REMOTE", "MODEL");
	for (i = 0; i < cnt; i++) {
		const struct weft_device_info *info = &infos[i];
		char size[16];

		if (!devices_wanted(opt, info))
			continue;
		if (opt->json) {
			json_array_append_new(array, device_json(info));
			continue;
		}
		size_text(info->blocks * info->block_size, size);
		printf("%-36s %-6s %-10s %8s %6u %3u/%-3u  %-8s %s\n", info->name,
		       class_name(info->device_class), devices_state(info->state), size,
		       info->leases, info->queue_pairs - info->queue_pairs_free,
		       info->queue_pairs, *info->provider ? info->provider : "-", info->model);
	}
	free(infos);
	return opt->json ? print_json("devices", array) : EXIT_SUCCESS;
}

static json_t *lease_json(const struct weft_device_info *info,
			  const struct weft_lease_info *lease)
{
	return json_pack("{s:s, s:I, s:I, s:f, s:b, s:b, s:I, s:I, s:I}", "device", info->name,
			 "lease", (json_int_t)lease->lease, "generation",
			 (json_int_t)lease->generation, "seconds", lease->ms / 1e3, "shared",
			 !!(lease->flags & WEFT_BORROW_SHARED), "kept", !!lease->kept,
			 "queue_pairs", (json_int_t)lease->queue_pairs, "pid",
			 (json_int_t)lease->pid, "uid", (json_int_t)lease->uid);
}

static int print_leases(const struct devices_options *opt, const struct weft_device_info *info,
			json_t *array)
{
	static struct weft_lease_info leases[1024];
	size_t cnt = sizeof(leases) / sizeof(leases[0]), i;
	int err = weft_lease_list(opt->lender, info->id, leases, &cnt);

	if (err)
		return err;
	for (i = 0; i < cnt; i++) {
		const struct weft_lease_info *lease = &leases[i];

		if (opt->json)
			json_array_append_new(array, lease_json(info, lease));
		else
			printf("%-36s %6u %-10s %8.1f %6u %8d %8u\n", info->name, lease->lease,
			       lease->flags & WEFT_BORROW_SHARED ? "shared" : "exclusive",
			       lease->ms / 1e3, lease->queue_pairs, lease->pid, lease->uid);
	}
	return 0;
}

/* Of all devices; a lender of a directory that does not answer is not to hide the others. */
static int print_all_leases(const struct devices_options *opt, json_t *array)
{
	struct weft_device_info *infos;
	size_t cnt = devices_all(opt, &infos), i;
	int status = EXIT_SUCCESS;

	for (i = 0; i < cnt; i++) {
		int err = devices_wanted(opt, &infos[i]) ? print_leases(opt, &infos[i], array)
							 : 0;

		if (err) {
			warnx("%s: %s", infos[i].name, strerror(-err));
			status = EXIT_FAILURE;
		}
	}
	free(infos);
	return status;
}

int devices_leases(const struct devices_options *opt)
{
	json_t *array = opt->json ? json_array() : NULL;
	struct weft_device_info one;
	int status = EXIT_SUCCESS, err;

	if (!opt->json)
		printf("%-36s %6s %-10s %8s %6s %8s %8s\n", "DEVICE", "LEASE", "MODE",
		       "SECONDS", "QUEUES", "PID", "UID");
	if (opt->operand_cnt) {
		one = devices_find(opt, opt->operands[0]);
		err = print_leases(opt, &one, array);
		if (err)
			devices_fail(one.name, err);
	} else {
		status = print_all_leases(opt, array);
	}
	if (opt->json && print_json("leases", array))
		return EXIT_FAILURE;
	return status;
}
