/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the sources of wait_weak.c refer to and its threads do not call. */
#include <stdlib.h>

#define NOT_CALLED(name) \
	void name(void); \
	void name(void)  \
	{                \
		abort(); \
	}

NOT_CALLED(engine_cntr_watch)
NOT_CALLED(engine_cq_import)
NOT_CALLED(engine_cq_import_check)
NOT_CALLED(engine_cq_import_end)
NOT_CALLED(engine_domain_idle)
NOT_CALLED(engine_early_part)
NOT_CALLED(engine_left)
NOT_CALLED(engine_no_bind)
NOT_CALLED(engine_no_ops_open)
NOT_CALLED(engine_no_ops_set)
NOT_CALLED(engine_no_tostr)
NOT_CALLED(engine_poll_forget)
NOT_CALLED(engine_refuse)
NOT_CALLED(engine_refuse_value)
NOT_CALLED(engine_set_put)
NOT_CALLED(engine_single_more)
NOT_CALLED(engine_sleeper_end)
NOT_CALLED(engine_sleeper_init)
NOT_CALLED(engine_sleeper_wait)
NOT_CALLED(engine_strerror)
NOT_CALLED(engine_wait_forget)
NOT_CALLED(engine_wait_obj_join)
NOT_CALLED(engine_wait_obj_leave_set)
NOT_CALLED(engine_wait_wake)
NOT_CALLED(engine_waitset_get_wait)
NOT_CALLED(platform_bell_close)
NOT_CALLED(platform_descriptor_renew)
NOT_CALLED(platform_poll_set_close)
NOT_CALLED(platform_poll_set_remove)
NOT_CALLED(platform_timer_close)
NOT_CALLED(platform_timer_open)
NOT_CALLED(fi_log)
NOT_CALLED(fi_log_enabled)
NOT_CALLED(fi_strerror)
NOT_CALLED(platform_membarrier)
NOT_CALLED(platform_yield)
