/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Providers for the unit tests of this folder: they count their calls, record the arguments, and
 * return what the test has set. Tests only; set by one thread, called by any.
 */
#ifndef WEFT_CORE_FAKE_PROVIDER_H
#define WEFT_CORE_FAKE_PROVIDER_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include "identity.h"

#define FAKE_CNT 4

struct fake {
	struct fi_provider prov;
	atomic_int asked;
	int cleaned;
	int opened;
	int closed;

	/* error of getinfo, 0 to answer */
	int refuses;
	/* logged before refusing */
	const char *reason;
	/* answers without attributes */
	bool incomplete;
	/* answers with no fi_info at all */
	bool empty;
	/* name it works over, put into the answer */
	const char *over;
	uint32_t addr_format;
	/* of the fabric's close */
	int close_result;

	/* prov_name of the last hints */
	char hinted_name[64];
	/* prov_name given to fabric() */
	char fabric_prov_name[64];
	uint32_t version;
	uint64_t flags;
};

extern struct fake fakes[FAKE_CNT];

/*
 * fake_setup, fake_teardown - for cmocka: a core without providers, no settings, no logger
 */
int fake_setup(void **state);
int fake_teardown(void **state);

/*
 * fake_register - make fakes[slot] a provider and register it
 * @version: major part of its version
 */
struct fake *fake_register(int slot, const char *name, unsigned int version);

/*
 * fake_register_named - the same, under several names, of which the first is its own
 */
struct fake *fake_register_named(int slot, const struct info_identity *identities,
				 unsigned int version);

/* Names of ours, as the built-in providers have them. */
extern const struct info_identity fake_tcp[], fake_shm[], fake_link[];

/*
 * fake_log_lines - import a logger for INFO and below, and clear what it has received
 * fake_log_has - returns true if it has received a message that contains this text
 * fake_log_cnt - returns the number of messages that contain it
 */
void fake_log_lines(void);
bool fake_log_has(const char *text);
int fake_log_cnt(const char *text);

#endif /* WEFT_CORE_FAKE_PROVIDER_H */
