/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints of a domain whose sockets ring one bell: a thread that sleeps is woken as long as any
 * of them is open.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>
#include "node.h"

static const char *provider;

static bool is_epoll(const char *number)
{
	char path[64], kind[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%.16s", number);
	return readlink(path, kind, sizeof(kind) - 1) > 0 && strstr(kind, "eventpoll");
}

/* How many epoll descriptors are watched by others. */
static int watched_sets(void)
{
	char path[64], line[256], number[32];
	DIR *dir = opendir("/proc/self/fdinfo");
	struct dirent *entry;
	int cnt = 0;
	FILE *file;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%.16s", entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file))
			cnt += sscanf(line, "tfd: %31s", number) == 1 && is_epoll(number);
		if (file)
			fclose(file);
	}
	closedir(dir);
	return cnt;
}

/*
 * Returns how many more are watched than @before after a call has slept, in which nothing arrives.
 * On a busy machine a call may end before it sleeps: other processes had the core for all of its
 * time.
 */
static int heard_asleep(struct node *node, int before)
{
	int heard = 0;

	for (int i = 0; !heard && i < 1000; i++) {
		assert_int_equal(fi_cq_sread(node->cq, &node->entry, 1, NULL, 5), -FI_EAGAIN);
		heard = watched_sets() - before;
	}
	return heard;
}

static void a_bell_of_several_stays_until_the_last_one_goes(void **state)
{
	struct node_attr attr = { .provider = provider, .cq_size = 64, .sleeps = true };
	struct stage *stage = stage_open(sizeof(*stage));
	struct node first, nodes[3];
	int before, heard;

	assert_int_equal(node_open(&first, stage, &attr), 0);
	before = watched_sets();
	heard = heard_asleep(&first, before);
	assert_true(heard > 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(node_open_in(&nodes[i], &first), 0);
	assert_int_equal(watched_sets(), before + heard);
	for (int i = 3; i--;) {
		node_close(&nodes[i]);
		assert_int_equal(watched_sets(), before + heard);
	}
	node_close(&first);
	assert_int_equal(watched_sets(), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bell_of_several_stays_until_the_last_one_goes),
	};

	if (argc < 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
