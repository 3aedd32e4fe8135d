/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs a fuzz target as an ordinary test: over the files of its corpus, then over random
 * mutations of them and of each other.
 *
 * usage: replay CORPUS_FOLDER MUTATIONS [SEED]
 *
 * With FUZZ_KEEP=FILE in the environment each input is written there before it is tried, so
 * that one that crashes can be added to the corpus.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fuzz.h"

#define INPUT_MAX  4096
#define CORPUS_MAX 256

struct input {
	size_t len;
	uint8_t bytes[INPUT_MAX];
};

static struct input *corpus[CORPUS_MAX];
static size_t corpus_cnt;
static uint64_t sequence;

static uint32_t below(uint32_t n)
{
	sequence ^= sequence << 13;
	sequence ^= sequence >> 7;
	sequence ^= sequence << 17;
	return (uint32_t)((sequence * 0x2545f4914f6cdd1dull) >> 33) % n;
}

static void try(const struct input *in)
{
	const char *keep = getenv("FUZZ_KEEP");
	uint8_t *exact = malloc(in->len ? in->len : 1);

	if (!exact)
		abort();
	memcpy(exact, in->bytes, in->len);
	if (keep) {
		FILE *f = fopen(keep, "w");

		if (!f || fwrite(exact, 1, in->len, f) != in->len || fclose(f)) {
			perror(keep);
			exit(1);
		}
	}
	LLVMFuzzerTestOneInput(exact, in->len);
	free(exact);
}

static void corpus_add(const char *folder, const char *name)
{
	struct input *in;
	char path[1024];
	FILE *f;

	if (corpus_cnt == CORPUS_MAX)
		return;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	in = calloc(1, sizeof(*in));
	if (!f || !in) {
		perror(path);
		exit(1);
	}
	in->len = fread(in->bytes, 1, INPUT_MAX, f);
	fclose(f);
	corpus[corpus_cnt++] = in;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void corpus_load(const char *folder)
{
	struct dirent **names;
	int cnt = scandir(folder, &names, NULL, by_name);

	if (cnt < 0) {
		perror(folder);
		exit(1);
	}
	for (int i = 0; i < cnt; i++) {
		if (names[i]->d_name[0] != '.')
			corpus_add(folder, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

/* Put random bytes, or a piece of an input of the corpus, somewhere. */
static void splice(struct input *in)
{
	const struct input *from = corpus[below((uint32_t)corpus_cnt)];
	size_t len = 1 + below(64), at = below((uint32_t)in->len + 1);
	size_t src = from->len ? below((uint32_t)from->len) : 0;

	if (len > from->len - src)
		len = from->len - src;
	if (in->len + len > INPUT_MAX)
		return;
	memmove(in->bytes + at + len, in->bytes + at, in->len - at);
	memcpy(in->bytes + at, from->bytes + src, len);
	in->len += len;
}

static void leave_out(struct input *in, size_t at)
{
	size_t len = 1 + below(16);

	if (len > in->len - at)
		len = in->len - at;
	memmove(in->bytes + at, in->bytes + at + len, in->len - at - len);
	in->len -= len;
}

static void mutate(struct input *in)
{
	static const uint8_t edges[] = { 0, 1, 2, 0x7f, 0x80, 0xfe, 0xff };
	size_t at = in->len ? below((uint32_t)in->len) : 0;

	switch (in->len ? below(6) : 5) {
	case 0:
		in->bytes[at] ^= (uint8_t)(1u << below(8));
		break;
	case 1:
		in->bytes[at] = (uint8_t)below(256);
		break;
	case 2:
		in->bytes[at] = edges[below(sizeof(edges))];
		break;
	case 3:
		leave_out(in, at);
		break;
	case 4:
		splice(in);
		break;
	default:
		for (uint32_t n = 1 + below(200); n && in->len < INPUT_MAX; n--)
			in->bytes[in->len++] = (uint8_t)below(256);
	}
}

int main(int argc, char **argv)
{
	unsigned long cnt;

	if (argc < 3) {
		fprintf(stderr, "usage: %s CORPUS_FOLDER MUTATIONS [SEED]\n", argv[0]);
		return 2;
	}
	cnt = strtoul(argv[2], NULL, 0);
	sequence = argc > 3 ? strtoull(argv[3], NULL, 0) : 0x5eed;
	printf("corpus %s, %lu mutations, seed %llu\n", argv[1], cnt,
	       (unsigned long long)sequence);
	sequence |= 1;
	corpus_load(argv[1]);
	if (!corpus_cnt) {
		fprintf(stderr, "%s: no input\n", argv[1]);
		return 1;
	}
	for (size_t i = 0; i < corpus_cnt; i++)
		try(corpus[i]);
	for (unsigned long i = 0; i < cnt; i++) {
		struct input in = *corpus[below((uint32_t)corpus_cnt)];

		for (uint32_t n = 1 + below(12); n; n--)
			mutate(&in);
		try(&in);
	}
	for (size_t i = 0; i < corpus_cnt; i++)
		free(corpus[i]);
	return 0;
}
