/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inside kofi's core: the providers that are registered, and what has a hold of them. Process context. */
#ifndef KOFI_CORE_H
#define KOFI_CORE_H

#include <linux/list.h>
#include <linux/types.h>

#include "kofi.h"

/* A registered provider. Owned by the registry, and by each hold. */
struct kofi_entry {
	struct list_head link;
	struct kofi_provider *provider;
	struct module *owner;
	/* Queries under way and open fabrics; each has a reference to @owner too. Registry's lock */
	unsigned int holds;
	/* Counters: times it was asked, gave an answer, and opened a fabric. Registry's lock */
	u64 queries, answered, fabrics;
};

/*
 * kofi_entry_next - hold the provider that was registered after @after
 * @after: held, and released by the call; NULL: begin
 * Returns it, held, or NULL. A provider whose module is being unloaded is passed over.
 */
struct kofi_entry *kofi_entry_next(struct kofi_entry *after);
/* kofi_entry_find - hold the provider with a name, ignoring case. Returns it, or NULL */
struct kofi_entry *kofi_entry_find(const char *name);
/* kofi_entry_put - release a hold */
void kofi_entry_put(struct kofi_entry *entry);
/* kofi_entry_asked, kofi_entry_opened - count what a held provider did */
void kofi_entry_asked(struct kofi_entry *entry, bool answered);
void kofi_entry_opened(struct kofi_entry *entry);
/* kofi_entries_show - a line for each provider, as docs/kofi.md says */
struct seq_file;
void kofi_entries_show(struct seq_file *file);

/* kofi_counters_open, kofi_counters_close - the folder of counters in debugfs; without it nothing else changes */
void kofi_counters_open(void);
void kofi_counters_close(void);

/* kofi_text_copy - a copy of a text that info_free() may free; NULL without memory. kofi_text_free - free it */
char *kofi_text_copy(const char *text);
void kofi_text_free(char *text);

/* kofi_complain - one line of the kernel's log, which is limited in rate; without a line feed. Any context */
void kofi_complain(const char *fmt, ...) __printf(1, 2);

#endif
