/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Links of kofi_ibverbs within a process (mock_link.c), for tests of what is above them. */
#ifndef WEFT_MOCK_LINK_H
#define WEFT_MOCK_LINK_H

#include "link.h"

/* A message does not give keys up: their receiver does. */
extern bool mock_keeps_keys;
/* Writes from now on end no earlier than by mock_writes_end(): their memory is read until then. */
extern bool mock_holds_writes;
void mock_writes_end(void);

/* kofi_ibverbs_begin, kofi_ibverbs_end - in the place of kib_begin() and kib_end(): no port is left */
void kofi_ibverbs_begin(void);
void kofi_ibverbs_end(void);

#endif
