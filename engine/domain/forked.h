/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domains and forks. The thread that forks holds every domain of its process meanwhile: no other thread is in one
 * when it is copied, and the child, which has no other thread, finds each as it is between two calls. So
 * it can close what it has inherited.
 */
#ifndef WEFT_FORKED_H
#define WEFT_FORKED_H

#include "endpoint.h"

/*
 * engine_forked_open - forks hold the domain from now on
 * engine_forked_close - not any more; it is about to be freed
 * Without the domain held.
 */
void engine_forked_open(struct engine_domain *domain);
void engine_forked_close(struct engine_domain *domain);

/*
 * engine_left - whether this is the child of a fork that could not wait for the end of a call of another thread
 * @subsys, @call: as engine_refuse()
 * Nothing of the domain can be used or closed here: that thread has it for ever, and may have changed a part
 * of something. Any thread, without the domain.
 * Returns 0, or -FI_EOPBADSTATE, which the log explains.
 */
int engine_left(const struct engine_domain *domain, enum fi_log_subsys subsys, const char *call);

#endif
