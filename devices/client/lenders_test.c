/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of the lenders of a directory: what is told of them, and which is opened, and stays, for what is borrowed. The
 * directory is the test, which says what there is; the lenders are models.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "fake_use.h"
#include "lenders.h"
#include "load.h"

#define NODE   FAKE_LENDER_NODE
#define DEVICE FAKE_LENDER_DEVICE

int __wrap_directory_load(const struct directory_ops **ops);

/*
 * struct rig - a directory as a lender, and a lender that it may name
 * @use: of the model and of its own connection; events are told to @eq
 */
struct rig {
	struct fake_use *use;
	struct fake_eq eq;
	struct weft_lender *directory;
	char host[40];
};

/* Whom the library has told to listen; a lender that is there from the beginning, or NULL */
static struct directory_listener listener;
static const struct directory_lender *at_first;

static int follow_open(const char *urls, const struct directory_listener *to,
		       struct directory_follow **follow)
{
	listener = *to;
	if (at_first)
		listener.lender(listener.arg, at_first);
	*follow = (struct directory_follow *)&listener;
	return 0;
}

static void follow_close(struct directory_follow *follow)
{
	assert_ptr_equal(follow, &listener);
}

int __wrap_directory_load(const struct directory_ops **ops)
{
	static const struct directory_ops fake = { .version = DIRECTORY_VERSION,
						   .follow_open = follow_open,
						   .follow_close = follow_close };

	*ops = &fake;
	return 0;
}

static struct weft_device_info device(uint64_t id, uint32_t state)
{
	return (struct weft_device_info){ .id = id,
					  .node = NODE,
					  .name = "nvme-01020304-FAKE",
					  .device_class = WEFT_CLASS_NVME,
					  .state = state };
}

/* The model, as its directory has it: at its socket, of this host */
static struct directory_lender entry(struct rig *r, struct weft_device_info *devices,
				     uint32_t cnt)
{
	struct directory_lender e = { .node = NODE, .devices = devices, .device_cnt = cnt };

	strcpy(e.host, r->host);
	strcpy(e.socket, r->use->fake.path);
	return e;
}

static void say(const struct directory_lender *e)
{
	listener.lender(listener.arg, e);
}

static void open_directory(struct rig *r)
{
	struct weft_lender_attr attr = { .size = sizeof(attr), .eq = &r->eq.eq };

	assert_int_equal(weft_lender_open("http://directory:1", &attr, &r->directory), 0);
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	void *use;

	if (!r || fake_use_setup(&use))
		return -1;
	r->use = use;
	fake_eq_init(&r->eq);
	directory_host(r->host);
	at_first = NULL;
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;
	void *use = r->use;

	if (r->directory)
		assert_int_equal(weft_lender_close(r->directory), 0);
	free(r);
	return fake_use_teardown(&use);
}

static uint32_t told(struct rig *r, uint32_t kind)
{
	return fake_eq_count(&r->eq, kind, 0);
}

static void urls_are_a_directory_and_all_else_is_a_lender(void **state)
{
	unsetenv("WEFT_DIRECTORY");
	unsetenv("WEFT_LENDER");
	assert_null(directory_urls(NULL));
	assert_null(directory_urls("host:1"));
	assert_null(directory_urls("/a/socket"));
	assert_null(directory_urls("https:/x"));
	assert_string_equal(directory_urls("http://a,http://b"), "http://a,http://b");
	assert_string_equal(directory_urls("https://a"), "https://a");
	setenv("WEFT_DIRECTORY", "http://c", 1);
	assert_string_equal(directory_urls(NULL), "http://c");
	assert_string_equal(directory_urls(""), "http://c");
	assert_null(directory_urls("host"));
	setenv("WEFT_LENDER", "/a/socket", 1);
	assert_null(directory_urls(NULL));
	setenv("WEFT_LENDER", "http://d", 1);
	assert_string_equal(directory_urls(NULL), "http://d");
	unsetenv("WEFT_DIRECTORY");
	unsetenv("WEFT_LENDER");
}

static void what_is_there_at_first_is_no_event(void **state)
{
	struct rig *r = *state;
	struct weft_device_info info[2] = { device(DEVICE, WEFT_DEVICE_FREE) };
	struct directory_lender e = entry(r, info, 1);
	size_t cnt = 2;

	at_first = &e;
	open_directory(r);
	assert_int_equal(r->eq.cnt, 0);
	/* It is said again, as it was. */
	say(&e);
	assert_int_equal(r->eq.cnt, 0);
	assert_int_equal(weft_device_list(r->directory, info, &cnt), 0);
	assert_int_equal(cnt, 1);
	assert_int_equal(info[0].id, DEVICE);
}

static void lenders_and_devices_that_come_and_go_are_told_of_once(void **state)
{
	struct rig *r = *state;
	struct weft_device_info info[2] = { device(DEVICE, WEFT_DEVICE_FREE),
					    device(DEVICE + 1, WEFT_DEVICE_FAILED) };
	struct directory_lender e = entry(r, info, 2);

	open_directory(r);
	say(&e);
	say(&e);
	assert_int_equal(told(r, WEFT_EVENT_LENDER_ADDED), 1);
	/* One that has failed is not there. */
	assert_int_equal(told(r, WEFT_EVENT_DEVICE_ADDED), 1);
	info[0].state = WEFT_DEVICE_SHARED;
	info[1].state = WEFT_DEVICE_FREE;
	say(&e);
	assert_int_equal(told(r, WEFT_EVENT_DEVICE_CHANGED), 1);
	assert_int_equal(told(r, WEFT_EVENT_DEVICE_ADDED), 2);
	e.device_cnt = 1;
	say(&e);
	assert_int_equal(told(r, WEFT_EVENT_DEVICE_REMOVED), 1);
	listener.gone(listener.arg, NODE);
	listener.gone(listener.arg, NODE);
	listener.gone(listener.arg, NODE + 1);
	assert_int_equal(told(r, WEFT_EVENT_DEVICE_REMOVED), 2);
	assert_int_equal(told(r, WEFT_EVENT_LENDER_REMOVED), 1);
	say(&e);
	assert_int_equal(told(r, WEFT_EVENT_LENDER_ADDED), 2);
}

static void directory_that_is_lost_is_told_of_and_known_still(void **state)
{
	struct rig *r = *state;
	struct weft_device_info info = device(DEVICE, WEFT_DEVICE_FREE);
	struct directory_lender e = entry(r, &info, 1);
	size_t cnt = 0;

	at_first = &e;
	open_directory(r);
	listener.state(listener.arg, -ETIMEDOUT);
	assert_int_equal(told(r, WEFT_EVENT_DIRECTORY_LOST), 1);
	assert_int_equal(weft_device_list(r->directory, NULL, &cnt), -FI_ETOOSMALL);
	assert_int_equal(cnt, 1);
	listener.state(listener.arg, 0);
	assert_int_equal(told(r, WEFT_EVENT_DIRECTORY_BACK), 1);
}

static void lender_is_opened_for_what_is_borrowed_and_stays_for_it(void **state)
{
	struct rig *r = *state;
	struct weft_device_info info = device(DEVICE, WEFT_DEVICE_FREE);
	struct directory_lender e = entry(r, &info, 1);
	struct weft_device *dev;

	at_first = &e;
	open_directory(r);
	assert_int_equal(weft_device_borrow(r->directory, NULL, &dev), 0);
	assert_int_equal(weft_device_info(dev)->id, DEVICE);
	assert_int_equal(weft_lender_close(r->directory), -EBUSY);
	/* The directory has it no more: the lease goes on. */
	listener.gone(listener.arg, NODE);
	assert_int_equal(weft_device_share(dev), 0);
	assert_int_equal(weft_device_return(dev), 0);
	assert_int_equal(weft_device_borrow(r->directory, NULL, &dev), -ENODEV);
}

static void segment_is_exported_by_a_lender_of_this_host(void **state)
{
	struct rig *r = *state;
	struct directory_lender e = entry(r, NULL, 0);
	struct weft_segment *seg, *same;
	struct weft_address addr;

	open_directory(r);
	assert_int_equal(weft_segment_alloc(NULL, 4096, 0, &seg), 0);
	assert_int_equal(weft_segment_export(r->directory, seg, 0, &addr), -ENODEV);
	say(&e);
	assert_int_equal(weft_segment_export(r->directory, seg, 0, &addr), 0);
	assert_int_equal(addr.node, NODE);
	assert_int_equal(weft_segment_import(r->directory, &addr, &same), 0);
	addr.node++;
	assert_int_equal(weft_segment_import(r->directory, &addr, &same), -EHOSTUNREACH);
	assert_int_equal(weft_lender_close(r->directory), -EBUSY);
	assert_int_equal(weft_segment_free(same), 0);
	assert_int_equal(weft_segment_free(seg), 0);
}

/* At the socket of the one that was meant is another one by now; or it is elsewhere, and has no address. */
static void lender_that_is_not_the_one_that_was_meant_is_not_used(void **state)
{
	struct rig *r = *state;
	struct weft_device_info info = device(DEVICE, WEFT_DEVICE_FREE);
	struct directory_lender e = entry(r, &info, 1);
	struct weft_lender *lender;
	struct directory *d;

	assert_int_equal(directory_open("http://directory:1", NULL, &d), 0);
	e.node++;
	say(&e);
	assert_int_equal(directory_hold_device(d, DEVICE, &lender), -ETIMEDOUT);
	strcpy(e.socket, "/nowhere/at/all");
	say(&e);
	assert_int_equal(directory_hold_device(d, DEVICE, &lender), -ETIMEDOUT);
	strcpy(e.host, "elsewhere");
	say(&e);
	assert_int_equal(directory_hold_device(d, DEVICE, &lender), -EHOSTUNREACH);
	assert_int_equal(directory_hold_node(d, NODE + 1, &lender), -EHOSTUNREACH);
	assert_int_equal(directory_hold_node(d, NODE, &lender), -ENODEV);
	assert_int_equal(directory_hold_here(d, &lender), -ENODEV);
	assert_int_equal(directory_close(d), 0);
}

/* Whoever says it first: the lender, over its connection, or the directory. */
static void device_that_both_say_has_gone_is_told_of_once(void **state)
{
	struct rig *r = *state;
	struct weft_device_info info[2] = { device(DEVICE, WEFT_DEVICE_FREE),
					    device(DEVICE + 1, WEFT_DEVICE_FREE) };
	struct directory_lender e = entry(r, info, 2);
	struct weft_device *dev;

	at_first = &e;
	open_directory(r);
	assert_int_equal(weft_device_borrow(r->directory, NULL, &dev), 0);
	FAKE_USE_UNTIL(fake_lender_asked(&r->use->fake, LEASE_WATCH) == 2);
	fake_lender_tell(&r->use->fake, WEFT_EVENT_DEVICE_REMOVED, DEVICE + 1, 0);
	FAKE_USE_UNTIL(told(r, WEFT_EVENT_DEVICE_REMOVED) == 1);
	info[1].state = WEFT_DEVICE_FAILED;
	say(&e);
	assert_int_equal(told(r, WEFT_EVENT_DEVICE_REMOVED), 1);
	info[1].state = WEFT_DEVICE_FREE;
	say(&e);
	fake_lender_tell(&r->use->fake, WEFT_EVENT_DEVICE_ADDED, DEVICE + 1, 0);
	/* What is behind it has been heard, and so has it. */
	fake_lender_tell(&r->use->fake, WEFT_EVENT_LEASE_ENDED, DEVICE, weft_device_lease(dev));
	FAKE_USE_UNTIL(fake_eq_count(&r->eq, WEFT_EVENT_LEASE_ENDED, weft_device_lease(dev)));
	assert_int_equal(told(r, WEFT_EVENT_DEVICE_ADDED), 1);
	assert_int_equal(weft_device_return(dev), 0);
}

static void lender_that_was_started_elsewhere_is_found_there(void **state)
{
	struct rig *r = *state;
	struct weft_device_info info = device(DEVICE, WEFT_DEVICE_FREE);
	struct directory_lender e = entry(r, &info, 1);
	struct weft_device *dev;
	char moved[64];

	at_first = &e;
	open_directory(r);
	assert_int_equal(weft_device_borrow(r->directory, NULL, &dev), 0);
	/* Its socket has another name when it is back. */
	fake_lender_vanish(&r->use->fake);
	snprintf(moved, sizeof(moved), "%s/m", r->use->fake.folder);
	strcpy(r->use->fake.path, moved);
	strcpy(e.socket, moved);
	fake_lender_return(&r->use->fake);
	say(&e);
	FAKE_USE_UNTIL(fake_lender_asked(&r->use->fake, LEASE_ATTACH));
	FAKE_USE_UNTIL(!weft_device_share(dev));
	assert_int_equal(weft_device_return(dev), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(urls_are_a_directory_and_all_else_is_a_lender),
		TEST(what_is_there_at_first_is_no_event),
		TEST(lenders_and_devices_that_come_and_go_are_told_of_once),
		TEST(directory_that_is_lost_is_told_of_and_known_still),
		TEST(lender_is_opened_for_what_is_borrowed_and_stays_for_it),
		TEST(segment_is_exported_by_a_lender_of_this_host),
		TEST(lender_that_is_not_the_one_that_was_meant_is_not_used),
		TEST(device_that_both_say_has_gone_is_told_of_once),
		TEST(lender_that_was_started_elsewhere_is_found_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
