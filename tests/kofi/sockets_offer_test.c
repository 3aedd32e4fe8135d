/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What kofi_sockets offers, in user space: the provider tcp with what kernel/sockets/sockets.c says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <rdma/fi_errno.h>
#include "kofi_sockets.h"
#include "tcp.h"

#define LACKED (FI_COLLECTIVE | FI_TRIGGER)

static int ask(enum fi_ep_type type, uint64_t caps, struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	assert_non_null(hints);
	hints->caps = caps;
	hints->ep_attr->type = type;
	ret = tcp_getinfo(FI_VERSION(1, 18), "127.0.0.1", NULL, 0, hints, info);
	fi_freeinfo(hints);
	return ret;
}

static void what_the_kernel_lacks_is_not_offered(void **state)
{
	static const enum fi_ep_type types[] = { FI_EP_UNSPEC, FI_EP_RDM, FI_EP_MSG };
	struct fi_info *info;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		assert_int_equal(ask(types[i], FI_MSG | FI_TRIGGER, &info), -FI_ENODATA);
		assert_int_equal(ask(types[i], FI_MSG | FI_COLLECTIVE, &info), -FI_ENODATA);
		assert_int_equal(ask(types[i], 0, &info), 0);
		for (const struct fi_info *each = info; each; each = each->next)
			assert_false((each->caps | each->tx_attr->caps | each->rx_attr->caps) &
				     LACKED);
		kofi_sockets_freeinfo(info);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_kernel_lacks_is_not_offered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
