/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of ordered ranges, against an array that says for each address whose it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "interval.h"
#include "seeded.h"

#define ADDRS  1024
#define NODES  200
#define ROUNDS 200000

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	return (uint32_t)seeded_below(&seed, n);
}

/* Who has each address: index of the node plus one. */
static uint16_t model[ADDRS];
static struct interval nodes[NODES];
static bool in[NODES];

static uint16_t model_first(uint32_t start, uint32_t end)
{
	for (uint32_t a = start; a < end; a++) {
		if (model[a])
			return model[a];
	}
	return 0;
}

static void fill(const struct interval *node, uint16_t value)
{
	for (uintptr_t a = node->start; a < node->end; a++)
		model[a] = value;
}

static void check(const struct intervals *tree)
{
	uint32_t start = below(ADDRS), end = start + 1 + below(ADDRS - start);
	struct interval *found = intervals_first(tree, start, end);
	uint16_t expected = model_first(start, end);
	uint16_t last = 0;

	assert_ptr_equal(found, expected ? &nodes[expected - 1] : NULL);
	expected = model_first(start, ADDRS);
	assert_ptr_equal(intervals_after(tree, start), expected ? &nodes[expected - 1] : NULL);
	for (uint32_t a = 0; a < ADDRS; a++)
		last = model[a] ? model[a] : last;
	assert_ptr_equal(intervals_last(tree), last ? &nodes[last - 1] : NULL);
}

static void ranges_are_found_as_in_the_model(void **state)
{
	struct intervals tree = { 0 };

	seed = platform_now_ns();
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t n = below(NODES);

		if (in[n]) {
			intervals_remove(&tree, &nodes[n]);
			fill(&nodes[n], 0);
			in[n] = false;
		} else {
			uint32_t start = below(ADDRS - 16), end = start + 1 + below(15);

			if (!model_first(start, end)) {
				nodes[n] = (struct interval){ .start = start, .end = end };
				intervals_insert(&tree, &nodes[n]);
				fill(&nodes[n], (uint16_t)(n + 1));
				in[n] = true;
			}
		}
		if (i % 8 == 0)
			check(&tree);
	}
}

static uint32_t height(const struct interval *node)
{
	uint32_t left, right;

	if (!node)
		return 0;
	left = height(node->left);
	right = height(node->right);
	return 1 + (left > right ? left : right);
}

static void ranges_in_order_make_no_list(void **state)
{
	static struct interval many[65536];
	struct intervals tree = { 0 };

	for (uint32_t i = 0; i < 65536; i++) {
		many[i] = (struct interval){ .start = 2 * i, .end = 2 * i + 1 };
		intervals_insert(&tree, &many[i]);
	}
	assert_in_range(height(tree.root), 16, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_found_as_in_the_model),
		cmocka_unit_test(ranges_in_order_make_no_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
