/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What kofi.ko exports of the files that it shares with the library: to providers over the engine. By name alone, since
 * their headers are not Linux'. Types are checked where a provider includes those headers.
 */
#include <linux/export.h>
#include <linux/mutex.h>

#include "kofi.h"

EXPORT_SYMBOL_GPL(fi_strerror);
EXPORT_SYMBOL_GPL(fi_version);

#define SHARED(name)            \
	extern void name(void); \
	EXPORT_SYMBOL_GPL(name)

SHARED(addr_valid);
SHARED(copy_from_iov);
SHARED(copy_local_to_iov);
SHARED(copy_wide);
SHARED(cq_room);
SHARED(engine_cntr_reached);
SHARED(engine_conn_awaited);
SHARED(engine_conn_busy);
SHARED(engine_conn_down);
SHARED(engine_conn_refused);
SHARED(engine_conn_request);
SHARED(engine_conn_up);
SHARED(engine_credit_take);
SHARED(engine_fabric_open);
SHARED(engine_offered);
SHARED(engine_packet);
SHARED(engine_payload_done);
SHARED(engine_routed_msg_ops);
SHARED(engine_routed_tagged_ops);
SHARED(engine_rx_offer);
SHARED(engine_send_slow);
SHARED(engine_tx_new);
SHARED(engine_tx_offer);
SHARED(engine_wire_tinject);
SHARED(engine_wire_tinjectdata);
SHARED(engine_wire_tsend);
SHARED(engine_wire_tsenddata);
SHARED(engine_wire_wake);
SHARED(fi_log);
SHARED(fi_log_enabled);
SHARED(hello_check);
SHARED(hello_data_check);
SHARED(info_answer);
SHARED(info_append);
SHARED(info_dup_between);
SHARED(info_free);
SHARED(info_identity_of);
SHARED(info_layout_of_core);
SHARED(info_refusal);
SHARED(info_refuse);
SHARED(iov_len);
SHARED(iov_slice);
SHARED(platform_alloc);
SHARED(platform_forks);
SHARED(platform_free);
SHARED(platform_hold_unwatch);
SHARED(platform_hold_watch);
SHARED(platform_lock);
SHARED(platform_lock_fini);
SHARED(platform_lock_init_class);
SHARED(platform_now_ns);
SHARED(platform_random);
SHARED(platform_sleep);
SHARED(platform_thread_start);
SHARED(platform_thread_stop);
SHARED(platform_trylock);
SHARED(platform_unlock);
SHARED(platform_yield);
SHARED(strerror);

/* Protects the registration of wires. Engines look them up without it. */
static DEFINE_MUTEX(wires_lock);

int wire_register(const struct wire_provider *wire);
void wire_unregister(const struct wire_provider *wire);

int kofi_wire_register(const struct wire_provider *wire)
{
	int ret;

	mutex_lock(&wires_lock);
	ret = wire_register(wire);
	mutex_unlock(&wires_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_wire_register);

void kofi_wire_unregister(const struct wire_provider *wire)
{
	mutex_lock(&wires_lock);
	wire_unregister(wire);
	mutex_unlock(&wires_lock);
}
EXPORT_SYMBOL_GPL(kofi_wire_unregister);
