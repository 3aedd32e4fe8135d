/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs of devices of other hosts, at their owner: commands go to the controller as messages of an OFI provider, and
 * data goes from and to the program's memory by one-sided transfers (remote/wire.h). The queue pair's thread calls
 * everything but remote_forget(), which any thread may call: the pair's lock, which is the innermost, keeps both apart.
 */
#ifndef WEFT_DEVICES_CLIENT_REMOTE_H
#define WEFT_DEVICES_CLIENT_REMOTE_H

#include "client.h"
#include "spec.h"

struct remote_pair;
struct remote_place;
struct weft_nvme;

/*
 * remote_open - open what the queue pair of a remote device needs; its commands are there
 * @place: where the controller serves it, as the lender says
 * @flags: WEFT_NVME_*
 * Returns 0 or a negative errno, as weft_nvme_open(), and -EOPNOTSUPP: the provider or the controller can't do that.
 */
int remote_open(struct weft_nvme *qp, const struct remote_place *place, uint32_t flags);

/* remote_end - nothing comes any more, and memory of the program is no longer accessed */
void remote_end(struct weft_nvme *qp);

/* remote_close - free it. The lender has been asked to end the session */
void remote_close(struct weft_nvme *qp);

/* remote_submit - weft_nvme_submit() */
ssize_t remote_submit(struct weft_nvme *qp, const struct weft_nvme_command *commands,
		      size_t cnt);

/* remote_take - take what has ended: returns how many */
size_t remote_take(struct weft_nvme *qp, struct weft_nvme_completion *done, size_t cnt);

/* remote_ended - 0, or -errno: why nothing comes any more. @look: send something, for that to be found out */
int remote_ended(struct weft_nvme *qp, bool look);

/* remote_fd - readable when something may have ended, if remote_may_sleep() says so; -1: there is none */
int remote_fd(const struct weft_nvme *qp);
bool remote_may_sleep(struct weft_nvme *qp);

/* remote_forget - a window is gone: let the registrations of its memory go. Returns 0 or -ETIMEDOUT */
int remote_forget(struct weft_device *dev, const struct span *span);

#endif
