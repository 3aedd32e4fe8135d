# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The files that the modules share with the library and its tests. Those of engine/ are kernel_sources of
# engine/meson.build, and beside them no file of kernel/ is one of the engine's: tests/freestanding compares the two.

kofi_engine = \
	engine/wire/auth.c \
	engine/wire/copy.c \
	engine/wire/wire.c \
	engine/domain/arming.c \
	engine/domain/channel.c \
	engine/domain/cntr.c \
	engine/domain/directions.c \
	engine/domain/events.c \
	engine/domain/forked.c \
	engine/domain/guard.c \
	engine/domain/no_call.c \
	engine/domain/refuse.c \
	engine/domain/registrar.c \
	engine/domain/spin.c \
	engine/domain/waits.c \
	engine/peer/accept.c \
	engine/peer/conns.c \
	engine/peer/control.c \
	engine/peer/credit.c \
	engine/peer/hello.c \
	engine/peer/lost.c \
	engine/peer/peer.c \
	engine/message/held.c \
	engine/message/in_order.c \
	engine/message/multi.c \
	engine/message/peek.c \
	engine/message/recv.c \
	engine/message/reorder.c \
	engine/message/rndv.c \
	engine/message/routed.c \
	engine/message/rxq.c \
	engine/message/send.c \
	engine/message/tx.c \
	engine/onesided/access.c \
	engine/onesided/ack.c \
	engine/onesided/answer.c \
	engine/onesided/atomic.c \
	engine/onesided/checked.c \
	engine/onesided/direct.c \
	engine/onesided/now.c \
	engine/onesided/quiet.c \
	engine/onesided/reach.c \
	engine/onesided/reply.c \
	engine/onesided/request.c \
	engine/onesided/rma.c \
	engine/onesided/target.c \
	engine/onesided/update.c \
	engine/progress/arm.c \
	engine/progress/arrive.c \
	engine/progress/auto.c \
	engine/progress/domain_ops.c \
	engine/progress/fail.c \
	engine/progress/flush.c \
	engine/progress/liveness.c \
	engine/progress/loop.c \
	engine/progress/progress.c \
	engine/progress/sleep.c \
	engine/progress/tasks.c \
	engine/object/av_fid.c \
	engine/object/av_insert.c \
	engine/object/cancel.c \
	engine/object/cm.c \
	engine/object/cntr_fid.c \
	engine/object/cq_fid.c \
	engine/object/cq_import.c \
	engine/object/ctx.c \
	engine/object/domain_fid.c \
	engine/object/domain_mrs.c \
	engine/object/ep_bind.c \
	engine/object/ep_close.c \
	engine/object/ep_early.c \
	engine/object/ep_enable.c \
	engine/object/ep_fid.c \
	engine/object/ep_names.c \
	engine/object/ep_wires.c \
	engine/object/eq_fid.c \
	engine/object/eq_watch.c \
	engine/object/fabric_fid.c \
	engine/object/mr_fid.c \
	engine/object/mr_reg.c \
	engine/object/nosys.c \
	engine/object/offer.c \
	engine/object/op_tables.c \
	engine/object/options.c \
	engine/object/pep_fid.c \
	engine/object/pep_request.c \
	engine/object/routes.c \
	engine/object/safe.c \
	engine/object/sep_close.c \
	engine/object/sep_fid.c \
	engine/object/srx_fid.c \
	engine/object/wait_obj.c

kofi_parts = \
	atomics/atomics.c \
	atomics/integer.c \
	atomics/nofloat.c \
	queues/cq.c \
	queues/eq.c \
	queues/match.c \
	tables/addr.c \
	tables/addr_text.c \
	tables/av.c \
	tables/mr.c \
	tables/pool.c \
	platform/processor/any/copies.c \
	info/answer.c \
	info/identity.c \
	info/info.c \
	info/limits.c \
	info/match.c \
	info/mr_mode.c \
	info/names.c \
	info/refuse.c \
	core/error.c

# What kofi_sockets is made of, beside the sources of kernel/sockets/ that include Linux' headers: the
# provider tcp, but for what is the library's (tcp.c, secret.c).
kofi_sockets = \
	kernel/sockets/sockets.c \
	providers/ip/address.c \
	providers/ip/format.c \
	providers/ip/iface.c \
	providers/ip/question.c \
	providers/tcp/admit.c \
	providers/tcp/bell.c \
	providers/tcp/carry.c \
	providers/tcp/conn.c \
	providers/tcp/control.c \
	providers/tcp/data.c \
	providers/tcp/flow.c \
	providers/tcp/getinfo.c \
	providers/tcp/greet.c \
	providers/tcp/hot.c \
	providers/tcp/hub.c \
	providers/tcp/idle.c \
	providers/tcp/lane.c \
	providers/tcp/ops.c \
	providers/tcp/options.c \
	providers/tcp/prove.c \
	providers/tcp/resume.c \
	providers/tcp/say.c \
	providers/tcp/session.c \
	providers/tcp/shown.c \
	providers/tcp/wire.c

# What kofi_loop is made of, beside kernel/loop/module.c.
kofi_loop = \
	kernel/loop/loop.c \
	kernel/loop/wire.c

# What kofi_ibverbs is made of, beside what includes Linux' headers.
kofi_ibverbs = \
	kernel/ibverbs/conn.c \
	kernel/ibverbs/connect.c \
	kernel/ibverbs/ibverbs.c \
	kernel/ibverbs/moves.c \
	kernel/ibverbs/take.c \
	kernel/ibverbs/wire.c

# What kofi_rds is made of, beside what includes Linux' headers: the provider rds, and addresses as kofi_sockets has them.
kofi_rds = \
	kernel/rds/rds.c \
	providers/rds/beat.c \
	providers/rds/conn.c \
	providers/rds/getinfo.c \
	providers/rds/moves.c \
	providers/rds/take.c \
	providers/rds/wire.c \
	providers/ip/address.c \
	providers/ip/format.c \
	providers/ip/iface.c \
	providers/ip/question.c
