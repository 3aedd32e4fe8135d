/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses of the shm provider in the format of programs (FI_ADDR_STR): "fi_shm://", followed by
 * the text of tables/addr_text.h for an endpoint, by the name of a service, or by nothing for an
 * address that names no endpoint. Called by the engine and by getinfo, on any thread.
 */
#ifndef WEFT_SHM_ADDRESS_H
#define WEFT_SHM_ADDRESS_H

#include "addr.h"

#define PSHM_PREFIX   "fi_shm://"
#define PSHM_ADDR_LEN 64u /* bytes of the longest one, or more */

/* Slots of struct engine_family, see there. */
int pshm_addr_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		   size_t why_len);
int pshm_bind_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		   size_t why_len);
size_t pshm_addr_write(const struct weft_addr *addr, void *out);
size_t pshm_addr_str(const void *addr, size_t len, char *buf, size_t buf_len);

/*
 * pshm_addr_given - returns true if the node that a program names is an address as programs see it
 * @str: the program says that its addresses are strings
 */
bool pshm_addr_given(const char *node, bool str);

#endif
