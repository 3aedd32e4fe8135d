/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Drawing samples over time; picture.h has the contract. */
#include "picture.h"
#include "svg.h"

#include <math.h>

#define WIDTH	 760
#define HEADER_H 40
#define PANEL_H	 260
#define LEFT	 72 /* room around a panel's axes */
#define RIGHT	 24
#define TOP	 44
#define BOTTOM	 36
#define TICKS	 5
#define CURVES	 4 /* of a panel, at most */
#define MIB	 1048576.0

static const char *const colors[CURVES] = { "#1f6fb4", "#d9641e", "#6a6a6a", "#2c8a3d" };

/* The panels, and their lines. */
static const struct panel {
	const char *heading;
	/* what a unit has */
	double scale;
	/* values count up: they are drawn for each second */
	bool rate;
	/* only where there are devices */
	bool devices;
	unsigned cnt;
	struct {
		enum picture_value value;
		const char *name;
	} lines[CURVES];
} panels[] = {
	{ "the arena, MiB",
	  MIB,
	  false,
	  false,
	  4,
	  { { PICTURE_LIVE, "live" },
	    { PICTURE_QUARANTINED, "quarantined" },
	    { PICTURE_PAGES, "with pages" },
	    { PICTURE_HUGE, "in huge pages" } } },
	{ "registered with devices, MiB",
	  MIB,
	  false,
	  true,
	  2,
	  { { PICTURE_PINNED, "of the arena" }, { PICTURE_CACHED, "other memory" } } },
	{ "the cache of registrations, each second",
	  1,
	  true,
	  true,
	  3,
	  { { PICTURE_HITS, "hits" },
	    { PICTURE_MISSES, "misses" },
	    { PICTURE_ONCE, "for one operation" } } },
};

#define PANELS (sizeof(panels) / sizeof(panels[0]))

/* A panel's place and ranges. */
struct axes {
	double top;
	double x_min, x_max;
	double y_max;
};

static struct picture_point point_of(const struct sample *s)
{
	const uint64_t *arena = s->counts[WEFT_MEM_PART_ARENA];
	const uint64_t *cache = s->counts[WEFT_MEM_PART_CACHE];

	return (struct picture_point){
		.at_s = s->at_s,
		.values = {
			[PICTURE_LIVE] = (double)arena[WEFT_MEM_ARENA_LIVE_BYTES],
			[PICTURE_QUARANTINED] = (double)arena[WEFT_MEM_ARENA_QUARANTINED_BYTES],
			[PICTURE_PAGES] = (double)s->backing.resident,
			[PICTURE_HUGE] = (double)s->backing.huge,
			[PICTURE_PINNED] = (double)s->pinned_bytes,
			[PICTURE_CACHED] = (double)cache[WEFT_MEM_CACHE_BYTES],
			[PICTURE_HITS] = (double)cache[WEFT_MEM_CACHE_HITS],
			[PICTURE_MISSES] = (double)cache[WEFT_MEM_CACHE_MISSES],
			[PICTURE_ONCE] = (double)sample_once(s),
		},
	};
}

/* Leaves every second point out, and from now on every second sample more. */
static void thin_out(struct picture *picture)
{
	for (size_t i = 0; i < PICTURE_POINTS / 2; i++)
		picture->points[i] = picture->points[2 * i];
	picture->cnt = PICTURE_POINTS / 2;
	picture->stride *= 2;
}

void picture_add(struct picture *picture, const struct sample *sample)
{
	if (!picture->stride)
		picture->stride = 1;
	if (sample->parts[WEFT_MEM_PART_PINS] || sample->parts[WEFT_MEM_PART_CACHE])
		picture->devices = true;
	if (picture->skip) {
		picture->skip--;
		return;
	}
	if (picture->cnt == PICTURE_POINTS)
		thin_out(picture);
	picture->points[picture->cnt++] = point_of(sample);
	picture->skip = picture->stride - 1;
}

/* Returns what a line shows at a point. */
static double value_at(const struct picture *picture, const struct panel *panel,
		       enum picture_value value, size_t i)
{
	const struct picture_point *now = &picture->points[i], *last;
	double seconds, grown;

	if (!panel->rate)
		return now->values[value] / panel->scale;
	if (!i)
		return 0;
	last = now - 1;
	seconds = now->at_s - last->at_s;
	grown = now->values[value] - last->values[value];
	return seconds > 0 && grown > 0 ? grown / seconds / panel->scale : 0;
}

static struct axes axes_of(const struct picture *picture, const struct panel *panel, double top)
{
	struct axes a = { .top = top };

	if (picture->cnt) {
		a.x_min = picture->points[0].at_s;
		a.x_max = picture->points[picture->cnt - 1].at_s;
	}
	for (unsigned line = 0; line < panel->cnt; line++)
		for (size_t i = 0; i < picture->cnt; i++)
			a.y_max = fmax(a.y_max,
				       value_at(picture, panel, panel->lines[line].value, i));
	/* never an empty range */
	if (a.x_max <= a.x_min)
		a.x_max = a.x_min + 1;
	if (a.y_max <= 0)
		a.y_max = 1;
	return a;
}

static double x_of(const struct axes *a, double at_s)
{
	return LEFT + (at_s - a->x_min) / (a->x_max - a->x_min) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct axes *a, double value)
{
	return a->top + (1 - value / a->y_max) * (PANEL_H - TOP - BOTTOM);
}

/* Returns 1, 2 or 5 of a decade: about TICKS of them are in a range. */
static double step_of(double range)
{
	double least = range / TICKS, decade = pow(10, floor(log10(least)));

	if (least <= decade)
		return decade;
	if (least <= 2 * decade)
		return 2 * decade;
	return least <= 5 * decade ? 5 * decade : 10 * decade;
}

static void put_axes(FILE *to, const struct axes *a)
{
	double right = WIDTH - RIGHT, bottom = a->top + PANEL_H - TOP - BOTTOM, step, at;
	char text[32];

	step = step_of(a->y_max);
	for (int i = 0; (at = i * step) <= a->y_max; i++) {
		svg_line(to, (double[]){ LEFT, y_of(a, at), right, y_of(a, at) },
			 i ? "class=\"grid\"" : "class=\"decade\"");
		snprintf(text, sizeof(text), "%.6g", at);
		svg_text(to, LEFT - 6, y_of(a, at) + 4, "class=\"tick\" text-anchor=\"end\"",
			 text);
	}
	step = step_of(a->x_max - a->x_min);
	for (double i = ceil(a->x_min / step); (at = i * step) <= a->x_max; i++) {
		svg_line(to, (double[]){ x_of(a, at), a->top, x_of(a, at), bottom },
			 "class=\"grid\"");
		snprintf(text, sizeof(text), "%.6g s", at);
		svg_text(to, x_of(a, at), bottom + 16, "class=\"tick\" text-anchor=\"middle\"",
			 text);
	}
}

static void put_curve(FILE *to, const struct picture *picture, const struct panel *panel,
		      const struct axes *a, unsigned line)
{
	double x = LEFT + 150 * line;

	fprintf(to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"4\" fill=\"%s\"/>\n", x,
		a->top - 12, colors[line]);
	svg_text(to, x + 18, a->top - 6, "class=\"tick\"", panel->lines[line].name);
	fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
		colors[line]);
	for (size_t i = 0; i < picture->cnt; i++)
		fprintf(to, "%.1f,%.1f ", x_of(a, picture->points[i].at_s),
			y_of(a, value_at(picture, panel, panel->lines[line].value, i)));
	fputs("\"/>\n", to);
}

static void put_panel(FILE *to, const struct picture *picture, const struct panel *panel,
		      double top)
{
	struct axes a = axes_of(picture, panel, top + TOP);

	svg_text(to, LEFT, a.top - 22, "class=\"heading\"", panel->heading);
	put_axes(to, &a);
	for (unsigned line = 0; line < panel->cnt; line++)
		put_curve(to, picture, panel, &a, line);
}

void picture_print(FILE *to, const struct picture *picture, const char *title)
{
	size_t cnt = 0;

	/* those that need devices are the last */
	while (cnt < PANELS && (picture->devices || !panels[cnt].devices))
		cnt++;
	svg_begin(to, WIDTH, HEADER_H + cnt * PANEL_H);
	svg_text(to, 16, 26, "class=\"title\"", title);
	for (size_t i = 0; i < cnt; i++)
		put_panel(to, picture, &panels[i], HEADER_H + (double)(i * PANEL_H));
	svg_end(to);
}
