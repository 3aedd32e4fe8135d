/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command line of weft-nvmed. A bad one ends the process, with a message and exit status 2. */
#ifndef WEFT_NVMED_OPTIONS_H
#define WEFT_NVMED_OPTIONS_H

#include <stdint.h>

#include "nvmed.h"

/*
 * struct options
 * @memory: bytes of a namespace in memory; 0: it is in @file, or of the controller at @vfio
 * @deadline_ms: how long a command of that may take
 * @direct: borrowers have queue pairs of that
 * @fabric: serve borrowers of other hosts, over @provider (NULL: the default one) at @address (NULL: any)
 * @bridge: serve those of another machine, by memory that both have (bar_open()); NULL: not
 */
struct options {
	const char *slot;
	const char *file;
	const char *vfio;
	uint32_t deadline_ms;
	bool direct;
	uint64_t memory;
	bool fabric;
	const char *provider;
	const char *address;
	const char *bridge;
	struct nvmed_config config;
};

/* options_parse - out: what the command line says, and defaults */
void options_parse(struct options *opt, int argc, char **argv);

#endif
