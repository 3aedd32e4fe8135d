/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A channel: one libfabric endpoint with one peer, through which a measurement sends. Both sides
 * open it at the same time and exchange addresses out of band. One thread; every wait has a
 * deadline, so that a broken provider causes an error and not a hang.
 */
#ifndef WEFT_TOOLS_CHANNEL_H
#define WEFT_TOOLS_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "endpoint.h"
#include "plan.h"
#include "results.h"

struct channel_options {
	/* NULL: any */
	const char *domain;
	/* local node to use; NULL: see channel_open() */
	const char *source;
	/* never fi_inject, whatever the size */
	bool no_inject;
	/* buffers are the provider's registered memory, not malloc's */
	bool mem;
	enum fi_progress progress;
	/* longest wait for one message */
	unsigned timeout_s;
};

/* An operation in flight; its completion finds it by the context. */
struct channel_op {
	/* first member: the context of the operation */
	struct fi_context2 context;
	/* slot of its buffer, see channel_buf_init() */
	uint32_t slot;
	bool is_recv;
	/* posted and not completed; operations complete in any order */
	bool busy;
	/* channel_cancel() waits for its end */
	bool cancelled;
};

/* A buffer to send from or to receive into. */
struct channel_buf {
	void *addr;
	/* NULL if the provider needs no registration */
	struct fid_mr *mr;
	struct channel_op op;
	/* number of the message it is used for; the caller's */
	uint64_t number;
};

/* At most this many receives may be posted at a time. */
#define CHANNEL_RX_LOG 256

/* A message that was received. */
struct channel_message {
	size_t len;
	uint32_t slot;
};

/* The provider and its limits. */
struct channel_limits {
	const char *provider;
	/* bytes of the longest message */
	size_t max_message;
	/* operations in flight in each direction; 0: no limit */
	size_t tx_size;
	size_t rx_size;
};

struct channel {
	struct channel_options opt;
	struct channel_limits limits;
	bool tagged;
	enum plan_wait wait;
	/* of the queue, with PLAN_WAIT_FD; the library's */
	int wait_fd;
	struct side *side;
	struct fi_info *info;
	struct endpoint end;
	fi_addr_t peer;
	/* channel_options.mem */
	bool mem;
	/* 0 with no_inject */
	size_t inject_size;
	uint64_t next_key;
	/* completions taken, injected messages included */
	uint64_t tx_done;
	uint64_t rx_done;
	/* message n at n % CHANNEL_RX_LOG */
	struct channel_message rx_log[CHANNEL_RX_LOG];
};

/*
 * channel_hints - fill in the hints for fi_getinfo
 * @hints:  empty, from fabric_info_create; gets copies of all strings
 *
 * Returns 0 or a negative fi_errno.
 */
int channel_hints(struct fi_info *hints, const struct plan *plan,
		  const struct channel_options *opt);

/*
 * channel_open - open an endpoint and learn the peer's address
 * @plan:  kind of messages, and the provider
 * @side:  borrowed until channel_close
 *
 * If opt->source is NULL, a provider with socket addresses uses the local address of the out-of-band
 * connection, which is known to reach the peer. Both sides call it. Prints the reason of a failure.
 * Returns 0 or a negative fi_errno, with nothing left open.
 */
int channel_open(struct channel *ch, const struct plan *plan, const struct channel_options *opt,
		 struct side *side);

void channel_close(struct channel *ch);

/* channel_describe - provider, versions and library file of the channel */
void channel_describe(const struct channel *ch, struct results_config *config);

/*
 * channel_buf_init - prepare a buffer
 * @addr:  borrowed until channel_buf_fini
 * @slot:  its number in channel.rx_log
 *
 * Registers it if the provider requires that. Returns 0 or a negative fi_errno.
 */
int channel_buf_init(struct channel *ch, struct channel_buf *buf, void *addr, size_t len,
		     uint32_t slot);

void channel_buf_fini(struct channel_buf *buf);

/*
 * channel_send - send to the peer, with fi_inject if possible
 *
 * Makes progress while the provider returns -FI_EAGAIN. The buffer may be reused when op.busy is false. Returns 0 or a negative fi_errno.
 */
int channel_send(struct channel *ch, struct channel_buf *buf, size_t len);

/*
 * channel_recv - post a receive
 *
 * Returns 0 or a negative fi_errno.
 */
int channel_recv(struct channel *ch, struct channel_buf *buf, size_t len);

/*
 * channel_cancel - end a receive that is posted; returns when it has completed, with a message or without
 *
 * Returns as channel_wait.
 */
int channel_cancel(struct channel *ch, struct channel_buf *buf);

/*
 * channel_wait - make progress until tx_done >= @tx and rx_done >= @rx
 *
 * Returns 0, -FI_ETIMEDOUT, or the error of a completion.
 */
int channel_wait(struct channel *ch, uint64_t tx, uint64_t rx);

/*
 * channel_wait_op - make progress until an operation is not busy
 *
 * Returns as channel_wait.
 */
int channel_wait_op(struct channel *ch, const struct channel_op *op);

/* The deadline of one wait. Zeroed at its begin, except @endless. */
struct channel_deadline {
	/* no deadline: the wait ends only with a completion or with the other side */
	bool endless;
	unsigned spins;
	uint64_t give_up_ns;
};

/*
 * channel_turn - one step of a wait: take a completion, if there is one
 * @deadline:  of this wait
 *
 * Returns 0 or more, -FI_ETIMEDOUT after the deadline, -FI_ESHUTDOWN if the other side has ended, or the error of a completion.
 */
int channel_turn(struct channel *ch, struct channel_deadline *deadline);

/* channel_idle_turn - channel_turn() without a call of libfabric, for waits on something else than the channel */
int channel_idle_turn(struct channel *ch, struct channel_deadline *deadline);

/*
 * channel_mr_reg - register memory as the provider's mr_mode requires
 * @access:  FI_SEND, FI_READ, ...
 * @mr:      set to the region, ready for use; the caller closes it
 *
 * Prints the reason of a failure. Returns 0 or a negative fi_errno.
 */
int channel_mr_reg(struct channel *ch, void *mem, size_t len, uint64_t access,
		   struct fid_mr **mr);

#endif
