/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A hostile hand; scribble.h has the contract. */
#define _GNU_SOURCE /* mremap */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "scribble.h"

#define LINE	     64u
#define MEMFD	     "/memfd:"
#define FRONTS_EVERY 256u
#define LEN_MAX	     (64u << 20) /* of a region that is looked at */

static bool known(const struct scribble *s, uint64_t inode)
{
	for (int i = 0; i < s->cnt; i++)
		if (s->regions[i].inode == inode)
			return true;
	return false;
}

static void drop(struct scribble *s, int i)
{
	free(s->regions[i].before);
	munmap(s->regions[i].addr, s->regions[i].len);
	s->regions[i] = s->regions[--s->cnt];
}

/* The oldest may be of a connection that is no more. */
static void make_room(struct scribble *s)
{
	int oldest = 0;

	if (s->cnt < SCRIBBLE_REGIONS)
		return;
	for (int i = 1; i < s->cnt; i++)
		if (s->regions[oldest].found ||
		    (!s->regions[i].found && s->regions[i].inode < s->regions[oldest].inode))
			oldest = i;
	drop(s, oldest);
}

static void add(struct scribble *s, void *addr, size_t len, uint64_t inode, bool found)
{
	make_room(s);
	s->regions[s->cnt++] = (struct scribble_region){
		.addr = addr, .len = len / LINE * LINE, .inode = inode, .found = found
	};
}

/* Mappings of this process that others write, too. */
static int find_own(struct scribble *s)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to, inode;
	char line[512], mode[8];
	void *again;
	int cnt = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s %*x %*s %lu", &from, &to, mode, &inode) != 4 ||
		    strncmp(mode, "rw-s", 4) || !strstr(line, MEMFD) || to - from > LEN_MAX ||
		    known(s, inode))
			continue;
		/* Once more: the library lets it go when the connection ends. */
		again = mremap((void *)from, 0, to - from, MREMAP_MAYMOVE);
		if (again == MAP_FAILED)
			continue;
		add(s, again, to - from, inode, false);
		cnt++;
	}
	if (maps)
		fclose(maps);
	return cnt;
}

/* One descriptor of the victim. */
static int find_behind(struct scribble *s, const char *path)
{
	char target[256];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	struct stat st;
	void *addr;
	int fd;

	if (n < 0 || strncmp(target, MEMFD, strlen(MEMFD)))
		return 0;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 0;
	addr = MAP_FAILED;
	if (!fstat(fd, &st) && st.st_size > 0 && st.st_size <= LEN_MAX && !known(s, st.st_ino))
		addr = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (addr == MAP_FAILED)
		return 0;
	add(s, addr, (size_t)st.st_size, st.st_ino, true);
	return 1;
}

int scribble_find(struct scribble *s, pid_t victim)
{
	char path[64 + 256];
	struct dirent *e;
	int cnt = find_own(s);
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)victim);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)victim, e->d_name);
		cnt += find_behind(s, path);
	}
	if (dir)
		closedir(dir);
	return cnt;
}

void scribble_look(struct scribble *s)
{
	for (int i = 0; i < s->cnt; i++) {
		struct scribble_region *r = &s->regions[i];

		if (!r->before)
			r->before = malloc(r->len);
		if (r->before)
			memcpy(r->before, r->addr, r->len);
	}
}

void scribble_learn(struct scribble *s)
{
	for (int i = 0; i < s->cnt; i++) {
		struct scribble_region *r = &s->regions[i];

		for (size_t at = 0; r->before && at < r->len && r->hot_cnt < SCRIBBLE_HOT;
		     at += LINE)
			if (memcmp(r->before + at, r->addr + at, LINE))
				r->hot[r->hot_cnt++] = (uint32_t)(at / LINE);
	}
}

static uint64_t boundary(uint64_t *seed)
{
	static const uint64_t values[] = {
		0,	    1,		2,	   UINT8_MAX,  INT8_MAX,   UINT16_MAX,
		INT16_MAX,  UINT32_MAX, INT32_MAX, 1ull << 31, UINT64_MAX, INT64_MAX,
		1ull << 63, 4096,	16384,	   65536,      1 << 20,	   0xffffffff00000000u,
	};
	uint64_t value = values[seeded_below(seed, sizeof(values) / sizeof(values[0]))];

	switch (seeded_below(seed, 4)) {
	case 0:
		return 1ull << seeded_below(seed, 64);
	case 1:
		return value + seeded_below(seed, 5) - 2;
	default:
		return value;
	}
}

/* A number of 1, 2, 4 or 8 bytes, at its place. */
static void store(uint8_t *at, size_t len, uint64_t value)
{
	switch (len) {
	case 1:
		*(volatile uint8_t *)at = (uint8_t)value;
		break;
	case 2:
		*(volatile uint16_t *)at = (uint16_t)value;
		break;
	case 4:
		*(volatile uint32_t *)at = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)at = value;
	}
}

static void spoil_word(uint8_t *line, uint64_t *seed)
{
	size_t len = (size_t)1 << seeded_below(seed, 4);
	uint8_t *at = line + seeded_below(seed, LINE / len) * len;
	uint64_t value = 0;

	memcpy(&value, at, len);
	switch (seeded_below(seed, 5)) {
	case 0:
		value = seeded_random(seed);
		break;
	case 1:
		value ^= 1ull << seeded_below(seed, 8 * len);
		break;
	case 2:
		value += seeded_below(seed, 129) - 64;
		break;
	default:
		value = boundary(seed);
	}
	store(at, len, value);
}

static uint32_t count_of(const struct scribble_region *r, size_t line)
{
	return *(volatile uint32_t *)(r->addr + line * LINE + LINE - 8);
}

/* Returns true if this is a line of a ring, and the last one that was published there. */
static bool is_front(const struct scribble_region *r, size_t line)
{
	uint32_t count = count_of(r, line);

	return count > 2 && count_of(r, line - 1) == count - 1 &&
	       count_of(r, line - 2) == count - 2 && count_of(r, line + 1) != count + 1;
}

static void find_fronts(struct scribble_region *r)
{
	r->front_cnt = 0;
	for (size_t i = 2; i + 1 < r->len / LINE && r->front_cnt < SCRIBBLE_FRONTS; i++)
		if (is_front(r, i))
			r->fronts[r->front_cnt++] = (uint32_t)i;
}

/* A front that was known, where it is by now; or 0. */
static size_t some_front(struct scribble_region *r, uint64_t *seed)
{
	uint32_t *front;

	/* To look through all of it takes longer than all else: seldom. */
	if (!r->wait--) {
		r->wait = FRONTS_EVERY;
		find_fronts(r);
	}
	if (!r->front_cnt)
		return 0;
	front = &r->fronts[seeded_below(seed, r->front_cnt)];
	while (*front + 2 < r->len / LINE && count_of(r, *front + 1) == count_of(r, *front) + 1)
		++*front;
	return is_front(r, *front) ? *front : 0;
}

/*
 * Acts as a ring's producer, with a former line: its bytes, some of them changed, and then the word
 * that publishes it as the next one.
 */
static void publish_next(struct scribble *s, struct scribble_region *r)
{
	uint64_t line[LINE / 8], *seed = &s->seed;
	size_t front = some_front(r, seed), back;

	if (!front || front + 1 >= r->len / LINE)
		return;
	back = seeded_below(seed, seeded_below(seed, 2) ? 4 : 64);
	memcpy(line, r->addr + (front - (back < front ? back : 0)) * LINE, LINE);
	for (uint64_t i = seeded_below(seed, 4); i; i--)
		spoil_word((uint8_t *)line, seed);
	memcpy(r->addr + (front + 1) * LINE, line, LINE - 8);
	store(r->addr + (front + 1) * LINE + LINE - 8, 8,
	      (line[LINE / 8 - 1] & ~(uint64_t)UINT32_MAX) | (count_of(r, front) + 1));
	s->forged++;
}

static size_t some_line(const struct scribble_region *r, uint64_t *seed)
{
	size_t lines = r->len / LINE, at = seeded_below(seed, lines);

	if (r->hot_cnt && seeded_below(seed, 4))
		at = r->hot[seeded_below(seed, r->hot_cnt)] + seeded_below(seed, 3);
	return at < lines ? at : lines - 1;
}

static void spoil_line(struct scribble *s, struct scribble_region *r)
{
	uint64_t *seed = &s->seed;
	size_t at = some_line(r, seed), from = some_line(r, seed);
	uint8_t *line = r->addr + at * LINE;

	switch (seeded_below(seed, 16)) {
	case 0:
		memset(line, 0, LINE);
		break;
	case 1:
		for (size_t i = 0; i < LINE; i += 8)
			store(line + i, 8, seeded_random(seed));
		break;
	case 2:
		memmove(line, r->addr + from * LINE, LINE);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		publish_next(s, r);
		break;
	default:
		spoil_word(line, seed);
	}
}

/* So that there can be another connection to be spoilt. */
static void mend(struct scribble *s)
{
	for (int i = 0; i < s->cnt; i++)
		if (s->regions[i].found && s->regions[i].before)
			memcpy(s->regions[i].addr, s->regions[i].before, s->regions[i].len);
}

void scribble_once(struct scribble *s)
{
	uint64_t times = 1ull << seeded_below(&s->seed, 4);

	if (!seeded_below(&s->seed, 64))
		mend(s);

	if (!s->cnt)
		return;
	while (times--)
		spoil_line(s, &s->regions[seeded_below(&s->seed, (uint64_t)s->cnt)]);
}

void scribble_forget(struct scribble *s)
{
	while (s->cnt)
		drop(s, 0);
}
