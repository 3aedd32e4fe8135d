/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lender that is registered, by a thread of its own: a lease of etcd's, which is kept alive, and a key that ends with
 * it. directory.h has the contract of these calls.
 */
#ifndef WEFT_DEVICES_DIRECTORY_REGISTRATION_H
#define WEFT_DEVICES_DIRECTORY_REGISTRATION_H

#include "directory.h"

/* How long a registration is there after its lender has died, at most; it is kept alive every third of that. */
#define REGISTRATION_S 6u

/* How often it changes at most. */
#define REGISTRATION_CHANGE_MS 500u

int registration_open(const char *urls, void (*tell)(const char *line),
		      struct directory_registration **registration);
int registration_set(struct directory_registration *registration,
		     const struct directory_lender *lender);
void registration_close(struct directory_registration *registration);

#endif
