/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft devices --plot': a drawing of who holds what. Devices stand on the left, the leases on each to its right, a line
 * between them: full for an exclusive lease, dashed for a shared one.
 */
#define _GNU_SOURCE
#include "devices.h"
#include "svg.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH	   860
#define TOP	   56.0
#define ROW	   44.0 /* of a lease, or of a device without one */
#define BOX	   36.0
#define DEVICE_X   16.0
#define DEVICE_W   380.0
#define LEASE_X	   500.0
#define LEASE_W	   344.0
#define LEASES_MAX 1024u

static const char *const fills[] = {
	[WEFT_DEVICE_FREE] = "#e8f4ea",
	[WEFT_DEVICE_SHARED] = "#e6eefb",
	[WEFT_DEVICE_EXCLUSIVE] = "#fdeede",
	[WEFT_DEVICE_FAILED] = "#f6dede",
};

static void put_box(FILE *to, double x, double y, double w, const char *fill)
{
	fprintf(to,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" fill=\"%s\" "
		"stroke=\"#888\"/>\n",
		x, y, w, BOX, fill);
}

/* How much of a device's queue pairs is in use, as a bar along the bottom of its box. */
static void put_bar(FILE *to, double y, const struct weft_device_info *info)
{
	double used = info->queue_pairs ? (double)(info->queue_pairs - info->queue_pairs_free) /
						  info->queue_pairs
					: 0;

	fprintf(to,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"3\" fill=\"#1f6fb4\"/>\n",
		DEVICE_X + 2, y + BOX - 5, (DEVICE_W - 4) * used);
}

static void put_device(FILE *to, double y, const struct weft_device_info *info)
{
	char text[128];

	put_box(to, DEVICE_X, y, DEVICE_W,
		info->state < sizeof(fills) / sizeof(fills[0]) ? fills[info->state] : "white");
	svg_text(to, DEVICE_X + 8, y + 15, "class=\"heading\"", info->name);
	snprintf(text, sizeof(text), "%.1f GiB, %u of %u queue pairs in use, %s",
		 (double)info->blocks * info->block_size / (1 << 30),
		 info->queue_pairs - info->queue_pairs_free, info->queue_pairs, info->model);
	svg_text(to, DEVICE_X + 8, y + 28, "class=\"tick\"", text);
	put_bar(to, y, info);
}

/* The program of a process of this host, "" where it can't be seen. */
static void program_of(int pid, char name[32])
{
	char path[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(name, 32, file))
		*name = 0;
	name[strcspn(name, "\n")] = 0;
	if (file)
		fclose(file);
}

static void put_lease(FILE *to, double y, double device_y, const struct weft_lease_info *lease)
{
	bool shared = lease->flags & WEFT_BORROW_SHARED;
	const double line[4] = { DEVICE_X + DEVICE_W, device_y + BOX / 2, LEASE_X, y + BOX / 2 };
	char text[128], program[32];

	svg_line(to, line,
		 shared ? "stroke=\"#1f6fb4\" stroke-dasharray=\"5 3\"" : "stroke=\"#d9641e\"");
	put_box(to, LEASE_X, y, LEASE_W, "white");
	program_of(lease->pid, program);
	snprintf(text, sizeof(text), "lease %u: %s (%d), user %u", lease->lease, program,
		 lease->pid, lease->uid);
	svg_text(to, LEASE_X + 8, y + 15, "class=\"heading\"", text);
	snprintf(text, sizeof(text), "%s%s, %u queue pairs, %.1f s left",
		 shared ? "shared" : "exclusive", lease->kept ? ", kept" : "",
		 lease->queue_pairs, lease->ms / 1e3);
	svg_text(to, LEASE_X + 8, y + 28, "class=\"tick\"", text);
}

/* struct held - a device that is drawn, and its leases */
struct held {
	struct weft_device_info info;
	struct weft_lease_info leases[LEASES_MAX];
	size_t cnt;
};

static struct held *ask(const struct devices_options *opt, size_t *cnt, size_t *rows)
{
	struct weft_device_info *infos;
	size_t all = devices_all(opt, &infos), i;
	struct held *held = calloc(all + 1, sizeof(*held)), *one = held;
	int error;

	*rows = 0;
	if (!held)
		devices_fail("the drawing", -ENOMEM);
	for (i = 0; i < all; i++) {
		if (!devices_wanted(opt, &infos[i]))
			continue;
		one->info = infos[i];
		one->cnt = LEASES_MAX;
		error = weft_lease_list(opt->lender, infos[i].id, one->leases, &one->cnt);
		if (error)
			devices_fail(infos[i].name, error);
		*rows += one->cnt ? one->cnt : 1;
		one++;
	}
	*cnt = (size_t)(one - held);
	free(infos);
	return held;
}

int devices_plot(const struct devices_options *opt, const char *path)
{
	size_t cnt, rows, i, k;
	struct held *held = ask(opt, &cnt, &rows);
	double y = TOP;
	FILE *to = fopen(path, "we");

	if (!to)
		err(EXIT_FAILURE, "%s", path);
	svg_begin(to, WIDTH, (size_t)(TOP + ROW * (double)rows) + 16);
	svg_text(to, DEVICE_X, 24, "class=\"title\"", "Devices, and who has borrowed them");
	svg_text(to, DEVICE_X, 46, "class=\"tick\"", "device");
	svg_text(to, LEASE_X, 46, "class=\"tick\"", "lease: full line exclusive, dashed shared");
	for (i = 0; i < cnt; i++) {
		for (k = 0; k < held[i].cnt; k++)
			put_lease(to, y + ROW * (double)k, y, &held[i].leases[k]);
		put_device(to, y, &held[i].info);
		y += ROW * (double)(held[i].cnt ? held[i].cnt : 1);
	}
	svg_end(to);
	free(held);
	if (fclose(to))
		err(EXIT_FAILURE, "%s", path);
	return EXIT_SUCCESS;
}
