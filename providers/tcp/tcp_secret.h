/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The secret by which processes know each other: its file, and the keys that follow from it.
 */
#ifndef WEFT_TCP_SECRET_H
#define WEFT_TCP_SECRET_H

#include "tcp_crypto.h"

#define TCP_SECRET_MIN 16u   /* bytes of a secret's file */
#define TCP_SECRET_MAX 4096u /* the same */

struct tcp_secret {
	const struct tcp_crypto *crypto;
	/* Of the proof (prove.c) */
	uint8_t key[TCP_KEY_LEN];
	/* NULL: the lanes are proved, and not encrypted */
	struct tcp_tls_context *tls;
};

/*
 * tcp_secret_create - what the settings say of the secret
 * @out: out: owned, or NULL if there is no secret
 * @why: out: what is wrong
 *
 * The file is read each time. Any thread. Returns 0, -FI_EACCES, -FI_EMFILE, -FI_ENFILE, -FI_ENOMEM or
 * -FI_EIO. -FI_EACCES: the settings ask for a secret or for TLS, and there is no secret. The file can't be
 * read, belongs to neither us nor root, is open to others or has a wrong length; or TLS is asked for without
 * a file; or this Weft was built without OpenSSL.
 */
int tcp_secret_create(struct tcp_secret **out, char *why, size_t why_len);

/* tcp_secret_free - forget the keys. Lanes that are up keep their own; NULL is allowed */
void tcp_secret_free(struct tcp_secret *secret);

#endif
