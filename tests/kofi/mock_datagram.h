/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sockets of kofi_rds within a machine (mock_datagram.c), for tests of what is above them. */
#ifndef WEFT_MOCK_DATAGRAM_H
#define WEFT_MOCK_DATAGRAM_H

#include <stdbool.h>
#include "datagram.h"

/* So often a send finds no room; 0: never, but where there is none */
extern _Atomic unsigned int mock_refuses_one_in;
/* What is sent is lost */
extern _Atomic bool mock_loses_all;
/* Others may not make more conns */
extern _Atomic bool mock_is_full;

#endif
