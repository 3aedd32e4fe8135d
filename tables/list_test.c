/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the list. */
#include <setjmp.h>
#include <stdarg.h>
#include "list.h"
#include <cmocka.h>

struct item {
	int value;
	struct list node;
};

static void expect(const struct list *head, const int *values, size_t cnt)
{
	const struct list *node = head->next;

	for (size_t i = 0; i < cnt; i++, node = node->next) {
		assert_ptr_not_equal(node, head);
		assert_int_equal(container_of(node, struct item, node)->value, values[i]);
		assert_ptr_equal(node->next->prev, node);
	}
	assert_ptr_equal(node, head);
}

static void list_keeps_the_order_of_pushes(void **state)
{
	struct item items[] = { { .value = 1 }, { .value = 2 }, { .value = 3 } };
	struct list head;

	list_init(&head);
	assert_true(list_empty(&head));
	assert_null(list_pop(&head));
	for (int i = 0; i < 3; i++)
		list_add_tail(&head, &items[i].node);
	expect(&head, (int[]){ 1, 2, 3 }, 3);
	assert_ptr_equal(list_pop(&head), &items[0].node);
	list_insert_after(&items[1].node, &items[0].node);
	expect(&head, (int[]){ 2, 1, 3 }, 3);
}

static void removed_node_is_a_list_of_its_own(void **state)
{
	struct item items[] = { { .value = 1 }, { .value = 2 } };
	struct list head;

	list_init(&head);
	list_add_tail(&head, &items[0].node);
	list_add_tail(&head, &items[1].node);
	list_remove(&items[0].node);
	assert_true(list_empty(&items[0].node));
	list_remove(&items[0].node); /* harmless */
	expect(&head, (int[]){ 2 }, 1);
}

static void walk_survives_removal_of_the_current_node(void **state)
{
	struct item items[] = { { .value = 1 }, { .value = 2 }, { .value = 3 }, { .value = 4 } };
	struct list head, *node, *after;

	list_init(&head);
	for (int i = 0; i < 4; i++)
		list_add_tail(&head, &items[i].node);
	list_for_each(node, after, &head) {
		if (container_of(node, struct item, node)->value % 2)
			list_remove(node);
	}
	expect(&head, (int[]){ 2, 4 }, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_keeps_the_order_of_pushes),
		cmocka_unit_test(removed_node_is_a_list_of_its_own),
		cmocka_unit_test(walk_survives_removal_of_the_current_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
