/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One libfabric endpoint that knows one peer: what a measurement sends
 * through. Opened on both sides at the same time; the addresses go over the out-of-band
 * channel. One thread; every wait has a deadline, so that a broken provider ends in
 * an error and not in a hang.
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
	/* local node to use, NULL: see channel_open */
	const char *source;
	/* never fi_inject, whatever the size */
	bool no_inject;
	enum fi_progress progress;
	/* for any one message */
	unsigned timeout_s;
};

/* What completes: each operation embeds one, and waits for its count. */
struct channel_op {
	/* first: it is the operation's context */
	struct fi_context2 context;
	/* which buffer */
	uint32_t slot;
	bool is_recv;
	/* posted, and not completed yet: operations complete in any order */
	bool busy;
};

/* A place to send from or receive into. */
struct channel_buf {
	void *addr;
	/* NULL where the provider needs none */
	struct fid_mr *mr;
	struct channel_op op;
	/* the caller's: which message it is for */
	uint64_t number;
};

/* At most this many receives may be posted at a time. */
#define CHANNEL_RX_LOG 256

/* A message that was received. */
struct channel_message {
	size_t len;
	uint32_t slot;
};

/* What the channel runs over, and how much of it there is. */
struct channel_limits {
	const char *provider;
	/* bytes */
	size_t max_message;
	/* operations under way; 0: not limited */
	size_t tx_size;
	size_t rx_size;
};

struct channel {
	struct channel_options opt;
	struct channel_limits limits;
	bool tagged;
	struct side *side;
	struct fi_info *info;
	struct endpoint end;
	fi_addr_t peer;
	/* 0 with no_inject */
	size_t inject_size;
	uint64_t next_key;
	/* completions seen, injected messages included */
	uint64_t tx_done;
	uint64_t rx_done;
	/* message n at n % CHANNEL_RX_LOG */
	struct channel_message rx_log[CHANNEL_RX_LOG];
};

/*
 * channel_hints - what to ask fi_getinfo for
 * @hints:  empty ones of fabric_info_create; takes strings of its own
 *
 * Returns 0 or a negative fi_errno.
 */
int channel_hints(struct fi_info *hints, const struct plan *plan,
		  const struct channel_options *opt);

/*
 * channel_open - open an endpoint and learn the peer's address
 * @plan:  what kind of messages, of which provider
 * @side:  borrowed until channel_close
 *
 * With no source given, a provider that speaks socket addresses uses the local
 * address of the out-of-band connection: the one that is known to reach the
 * peer. Both sides call it. Complains itself.
 * Returns 0 or a negative fi_errno, with nothing left open.
 */
int channel_open(struct channel *ch, const struct plan *plan, const struct channel_options *opt,
		 struct side *side);

void channel_close(struct channel *ch);

/* channel_describe - what a comparison says of the channel: provider, versions, library */
void channel_describe(const struct channel *ch, struct results_config *config);

/*
 * channel_buf_init - get a buffer ready
 * @addr:  borrowed until channel_buf_fini
 * @slot:  what the log of received messages calls it
 *
 * Registers it where the provider wants that. Returns 0 or a negative fi_errno.
 */
int channel_buf_init(struct channel *ch, struct channel_buf *buf, void *addr, size_t len,
		     uint32_t slot);

void channel_buf_fini(struct channel_buf *buf);

/*
 * channel_send - send to the peer, by inject where that is possible
 *
 * Progresses while the provider has no room. The buffer may be used again once its operation
 * is not busy. Returns 0 or a negative fi_errno.
 */
int channel_send(struct channel *ch, struct channel_buf *buf, size_t len);

/*
 * channel_recv - post a receive
 *
 * Returns 0 or a negative fi_errno.
 */
int channel_recv(struct channel *ch, struct channel_buf *buf, size_t len);

/*
 * channel_wait - progress until so many completions were seen
 * @tx:  value that tx_done must reach
 * @rx:  value that rx_done must reach
 *
 * Returns 0, -FI_ETIMEDOUT, or the error a completion brought.
 */
int channel_wait(struct channel *ch, uint64_t tx, uint64_t rx);

/*
 * channel_wait_op - progress until an operation has completed
 * @op:  one that was never posted has
 *
 * Returns as channel_wait.
 */
int channel_wait_op(struct channel *ch, const struct channel_op *op);

/* How long something has been waited for; zero at first, but for @endless. */
struct channel_patience {
	/* what the other side does takes long: only its end ends the wait */
	bool endless;
	unsigned spins;
	uint64_t give_up_ns;
};

/*
 * channel_turn - what a wait does once: take a completion, or find none
 * @patience:  of this wait
 *
 * Returns 0 or more, -FI_ETIMEDOUT when the wait has lasted too long, -FI_ESHUTDOWN when the
 * other side has gone, or the error a completion brought.
 */
int channel_turn(struct channel *ch, struct channel_patience *patience);

/* channel_idle_turn - the same without any call of the library: the wait is for what is not the channel's */
int channel_idle_turn(struct channel *ch, struct channel_patience *patience);

/*
 * channel_mr_reg - register memory in the way that the provider asks for
 * @access:  FI_SEND, FI_READ and the like
 * @mr:      set to the region, ready for use; the caller closes it
 *
 * Complains itself. Returns 0 or a negative fi_errno.
 */
int channel_mr_reg(struct channel *ch, void *mem, size_t len, uint64_t access,
		   struct fid_mr **mr);

#endif
