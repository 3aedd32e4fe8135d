/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Text and JSON of samples; report.h has the contract. Called by 'weft mem'. */
#include "report.h"
#include "follow.h"

#include <errno.h>

#define TEXT 40

/* The counters' names in JSON, by kind and index. */
static const char *const names[WEFT_MEM_PART_KINDS][WEFT_MEM_STATS_COUNTS] = {
	[WEFT_MEM_PART_ARENA] = {
		[WEFT_MEM_ARENA_CHUNKS] = "chunks",
		[WEFT_MEM_ARENA_CHUNK_BYTES] = "chunk_bytes",
		[WEFT_MEM_ARENA_RETIRED] = "retired",
		[WEFT_MEM_ARENA_RETIRED_BYTES] = "retired_bytes",
		[WEFT_MEM_ARENA_LIVE_BYTES] = "live_bytes",
		[WEFT_MEM_ARENA_QUARANTINED_BYTES] = "quarantined_bytes",
		[WEFT_MEM_ARENA_ALLOCATIONS] = "allocations",
		[WEFT_MEM_ARENA_FREES] = "frees",
		[WEFT_MEM_ARENA_PUNCHED] = "punched_bytes",
		[WEFT_MEM_ARENA_SPARED] = "spared",
	},
	[WEFT_MEM_PART_PINS] = {
		[WEFT_MEM_PINS_GRAINS] = "grains",
		[WEFT_MEM_PINS_OTHERS] = "others",
		[WEFT_MEM_PINS_PINNED] = "registered",
		[WEFT_MEM_PINS_EVICTED] = "evicted",
		[WEFT_MEM_PINS_REVOKED] = "revoked",
	},
	[WEFT_MEM_PART_CACHE] = {
		[WEFT_MEM_CACHE_HITS] = "hits",
		[WEFT_MEM_CACHE_MISSES] = "misses",
		[WEFT_MEM_CACHE_ONCE_REFUSED] = "once_refused",
		[WEFT_MEM_CACHE_ONCE_CHANGING] = "once_changing",
		[WEFT_MEM_CACHE_ONCE_REMOVED] = "once_removed",
		[WEFT_MEM_CACHE_ONCE_BUSY] = "once_busy",
		[WEFT_MEM_CACHE_ONCE_FULL] = "once_full",
		[WEFT_MEM_CACHE_ONCE_OTHER] = "once_other",
		[WEFT_MEM_CACHE_EVICTED] = "evicted",
		[WEFT_MEM_CACHE_CAUGHT] = "caught",
		[WEFT_MEM_CACHE_UNMAPPED] = "unmapped",
		[WEFT_MEM_CACHE_MOVED] = "moved",
		[WEFT_MEM_CACHE_REMOVED] = "removed",
		[WEFT_MEM_CACHE_MISSED] = "missed",
		[WEFT_MEM_CACHE_FORKED] = "forked",
		[WEFT_MEM_CACHE_BYTES] = "bytes",
		[WEFT_MEM_CACHE_ENTRIES] = "entries",
	},
	[WEFT_MEM_PART_SHM] = {
		[WEFT_MEM_SHM_KEYS] = "keys",
		[WEFT_MEM_SHM_LENT] = "lent",
		[WEFT_MEM_SHM_LENT_BYTES] = "lent_bytes",
		[WEFT_MEM_SHM_READ] = "read",
		[WEFT_MEM_SHM_READ_BYTES] = "read_bytes",
		[WEFT_MEM_SHM_REGIONS] = "regions",
	},
};

static unsigned long long arena(const struct sample *sample, enum weft_mem_arena_count idx)
{
	return sample_count(sample, WEFT_MEM_PART_ARENA, idx);
}

static unsigned long long pins(const struct sample *sample, enum weft_mem_pins_count idx)
{
	return sample_count(sample, WEFT_MEM_PART_PINS, idx);
}

static unsigned long long cache(const struct sample *sample, enum weft_mem_cache_count idx)
{
	return sample_count(sample, WEFT_MEM_PART_CACHE, idx);
}

static unsigned long long shm(const struct sample *sample, enum weft_mem_shm_count idx)
{
	return sample_count(sample, WEFT_MEM_PART_SHM, idx);
}

static const char *bytes_format(unsigned long long bytes, char text[TEXT])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	snprintf(text, TEXT, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

/* Writes how many there are of something, whose plural has an s. */
static const char *cnt_format(unsigned long long cnt, const char *what, char text[TEXT])
{
	snprintf(text, TEXT, "%llu %s%s", cnt, what, cnt == 1 ? "" : "s");
	return text;
}

static void print_arena(FILE *to, const struct sample *s)
{
	char a[TEXT], b[TEXT], c[TEXT];

	fprintf(to, "  arena            %s, %s; retired: %llu, %s\n",
		cnt_format(arena(s, WEFT_MEM_ARENA_CHUNKS), "chunk", c),
		bytes_format(arena(s, WEFT_MEM_ARENA_CHUNK_BYTES), a),
		arena(s, WEFT_MEM_ARENA_RETIRED),
		bytes_format(arena(s, WEFT_MEM_ARENA_RETIRED_BYTES), b));
	fprintf(to, "    live           %s\n",
		bytes_format(arena(s, WEFT_MEM_ARENA_LIVE_BYTES), a));
	fprintf(to, "    quarantined    %s, freed and kept\n",
		bytes_format(arena(s, WEFT_MEM_ARENA_QUARANTINED_BYTES), a));
	fprintf(to, "    with pages     %s; in huge pages %s; swapped %s\n",
		bytes_format(s->backing.resident, a), bytes_format(s->backing.huge, b),
		bytes_format(s->backing.swapped, c));
	fprintf(to,
		"    so far         %s, %llu freed; %s lost their pages; "
		"%s in use kept them\n",
		cnt_format(arena(s, WEFT_MEM_ARENA_ALLOCATIONS), "allocation", b),
		arena(s, WEFT_MEM_ARENA_FREES),
		bytes_format(arena(s, WEFT_MEM_ARENA_PUNCHED), a),
		cnt_format(arena(s, WEFT_MEM_ARENA_SPARED), "range", c));
}

static void print_pins(FILE *to, const struct sample *s)
{
	char a[TEXT], b[TEXT];

	fprintf(to, "  devices          %u\n", s->parts[WEFT_MEM_PART_PINS]);
	fprintf(to,
		"    of the arena   %s, %s; so far %llu registered, %llu evicted, "
		"%llu revoked\n",
		cnt_format(pins(s, WEFT_MEM_PINS_GRAINS), "grain", b),
		bytes_format(s->pinned_bytes, a), pins(s, WEFT_MEM_PINS_PINNED),
		pins(s, WEFT_MEM_PINS_EVICTED), pins(s, WEFT_MEM_PINS_REVOKED));
	fprintf(to, "    other memory   %s in use\n",
		cnt_format(pins(s, WEFT_MEM_PINS_OTHERS), "range", a));
}

static void print_cache(FILE *to, const struct sample *s)
{
	char a[TEXT], b[TEXT];

	fprintf(to, "  cache            %s, %s\n",
		cnt_format(cache(s, WEFT_MEM_CACHE_ENTRIES), "registration", b),
		bytes_format(cache(s, WEFT_MEM_CACHE_BYTES), a));
	fprintf(to,
		"    so far         %llu hits, %llu misses, %llu stale hits caught, "
		"%llu evicted\n",
		cache(s, WEFT_MEM_CACHE_HITS), cache(s, WEFT_MEM_CACHE_MISSES),
		cache(s, WEFT_MEM_CACHE_CAUGHT), cache(s, WEFT_MEM_CACHE_EVICTED));
	fprintf(to,
		"    for one operation %llu: nothing tells of changes %llu, changing %llu, "
		"removed pages %llu, busy %llu, full %llu, other kinds of memory %llu\n",
		(unsigned long long)sample_once(s), cache(s, WEFT_MEM_CACHE_ONCE_REFUSED),
		cache(s, WEFT_MEM_CACHE_ONCE_CHANGING), cache(s, WEFT_MEM_CACHE_ONCE_REMOVED),
		cache(s, WEFT_MEM_CACHE_ONCE_BUSY), cache(s, WEFT_MEM_CACHE_ONCE_FULL),
		cache(s, WEFT_MEM_CACHE_ONCE_OTHER));
	fprintf(to,
		"    ended by       unmapping %llu, moving %llu, removing %llu, forks %llu; "
		"unseen %llu\n",
		cache(s, WEFT_MEM_CACHE_UNMAPPED), cache(s, WEFT_MEM_CACHE_MOVED),
		cache(s, WEFT_MEM_CACHE_REMOVED), cache(s, WEFT_MEM_CACHE_FORKED),
		cache(s, WEFT_MEM_CACHE_MISSED));
}

static void print_shm(FILE *to, const struct sample *s)
{
	char a[TEXT], b[TEXT], c[TEXT];

	fprintf(to, "  shared memory    %s, %llu of them with keys\n",
		cnt_format(shm(s, WEFT_MEM_SHM_REGIONS), "region", a),
		shm(s, WEFT_MEM_SHM_KEYS));
	fprintf(to, "    copied once    %s lent to peers, %s; %llu read from peers, %s\n",
		cnt_format(shm(s, WEFT_MEM_SHM_LENT), "message", c),
		bytes_format(shm(s, WEFT_MEM_SHM_LENT_BYTES), a), shm(s, WEFT_MEM_SHM_READ),
		bytes_format(shm(s, WEFT_MEM_SHM_READ_BYTES), b));
}

void report_process(FILE *to, const struct sample *sample)
{
	fprintf(to, "process %d, %s\n", (int)sample->pid, sample->command);
	if (sample->parts[WEFT_MEM_PART_ARENA])
		print_arena(to, sample);
	if (sample->parts[WEFT_MEM_PART_PINS])
		print_pins(to, sample);
	if (sample->parts[WEFT_MEM_PART_CACHE])
		print_cache(to, sample);
	if (sample->parts[WEFT_MEM_PART_SHM])
		print_shm(to, sample);
	if (sample->hidden)
		fprintf(to, "  and %u that the process had no room to show\n", sample->hidden);
}

/* The columns that lists and moments have. */
static void print_bytes(FILE *to, const struct sample *s)
{
	const unsigned long long values[] = {
		arena(s, WEFT_MEM_ARENA_LIVE_BYTES),
		arena(s, WEFT_MEM_ARENA_QUARANTINED_BYTES),
		s->backing.resident,
		s->backing.huge,
		s->pinned_bytes + cache(s, WEFT_MEM_CACHE_BYTES),
	};
	char text[TEXT];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		fprintf(to, " %11s", bytes_format(values[i], text));
}

void report_list(FILE *to, const struct sample *samples, size_t cnt)
{
	fprintf(to, "%8s %-16s %11s %11s %11s %11s %11s %10s %10s %7s\n", "pid", "command",
		"live", "quarantined", "pages", "huge", "registered", "hits", "misses",
		"caught");
	for (size_t i = 0; i < cnt; i++) {
		const struct sample *s = &samples[i];

		fprintf(to, "%8d %-16s", (int)s->pid, s->command);
		print_bytes(to, s);
		fprintf(to, " %10llu %10llu %7llu\n", cache(s, WEFT_MEM_CACHE_HITS),
			cache(s, WEFT_MEM_CACHE_MISSES), cache(s, WEFT_MEM_CACHE_CAUGHT));
	}
}

double report_rate(const struct sample *sample, const struct sample *last, uint64_t now,
		   uint64_t before)
{
	double seconds = last ? sample->at_s - last->at_s : 0;

	return seconds > 0 && now > before ? (double)(now - before) / seconds : 0;
}

void report_heading(FILE *to)
{
	fprintf(to, "%9s %-16s %11s %11s %11s %11s %11s %10s %10s %7s\n", "seconds", "command",
		"live", "quarantined", "pages", "huge", "registered", "hits/s", "misses/s",
		"caught");
}

static double cache_rate(const struct sample *s, const struct sample *last,
			 enum weft_mem_cache_count idx)
{
	return report_rate(s, last, cache(s, idx), last ? cache(last, idx) : 0);
}

void report_moment(FILE *to, const struct sample *sample, const struct sample *last)
{
	fprintf(to, "%9.2f %-16s", sample->at_s, sample->command);
	print_bytes(to, sample);
	fprintf(to, " %10.0f %10.0f %7llu\n", cache_rate(sample, last, WEFT_MEM_CACHE_HITS),
		cache_rate(sample, last, WEFT_MEM_CACHE_MISSES),
		cache(sample, WEFT_MEM_CACHE_CAUGHT));
	fflush(to);
}

/* What parts of one kind count; null where there are none. */
static json_t *part_object(const struct sample *s, enum weft_mem_part_kind kind)
{
	json_t *object;

	if (!s->parts[kind])
		return json_null();
	object = json_object();
	for (unsigned i = 0; i < WEFT_MEM_STATS_COUNTS; i++)
		if (names[kind][i])
			json_object_set_new(object, names[kind][i],
					    json_integer((json_int_t)s->counts[kind][i]));
	return object;
}

/* Adds a member to what may be null. */
static void member(json_t *object, const char *name, uint64_t value)
{
	if (json_is_object(object))
		json_object_set_new(object, name, json_integer((json_int_t)value));
}

/* A process chooses its own name, which need not be UTF-8. */
static json_t *command_string(const char *command)
{
	json_t *value = json_string(command);

	return value ? value : json_string("?");
}

json_t *report_object(const struct sample *s)
{
	json_t *of_arena = part_object(s, WEFT_MEM_PART_ARENA);
	json_t *of_pins = part_object(s, WEFT_MEM_PART_PINS);
	json_t *of_cache = part_object(s, WEFT_MEM_PART_CACHE);

	member(of_arena, "resident_bytes", s->backing.resident);
	member(of_arena, "huge_bytes", s->backing.huge);
	member(of_arena, "swapped_bytes", s->backing.swapped);
	member(of_pins, "devices", s->parts[WEFT_MEM_PART_PINS]);
	member(of_pins, "bytes", s->pinned_bytes);
	member(of_cache, "once", sample_once(s));
	return json_pack("{s:i, s:o, s:i, s:o, s:o, s:o, s:o, s:i}", "pid", (int)s->pid,
			 "command", command_string(s->command), "processes", (int)s->processes,
			 "arena", of_arena, "pins", of_pins, "cache", of_cache, "shm",
			 part_object(s, WEFT_MEM_PART_SHM), "hidden",
			 (int)(s->hidden & INT32_MAX));
}

int report_json(FILE *to, const struct mem_view *view, const struct sample *samples, size_t cnt,
		bool at)
{
	json_t *array = json_array(), *whole;
	char format[TEXT];
	int rc;

	snprintf(format, sizeof(format), "weft-%s", view->command);
	for (size_t i = 0; i < cnt; i++)
		json_array_append_new(array, view->object(&samples[i]));
	whole = json_pack("{s:s, s:i, s:o}", "format", format, "format_version", 1, "processes",
			  array);
	if (at && cnt)
		json_object_set_new(whole, "seconds", json_real(samples[0].at_s));
	rc = json_dumpf(whole, to, JSON_REAL_PRECISION(9));
	json_decref(whole);
	return rc || fputc('\n', to) == EOF || fflush(to) ? -EIO : 0;
}
