/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a context asks of a peer's server where the device has no one-sided operation, and the
 * answer: bytes of a message. Little-endian; what arrives is not trusted. Pure functions.
 *
 * A request: 0 magic  4 kind (1)  5 operation (1)  6 type (1)  7 bytes of the address (1)
 *	8 client  16 number  24 memory  32 addr  40 len  48 operand  56 compare
 *	64 address of the client, what is put
 * An answer: 0 magic  4 status  8 number  16 what was there  24 what is got
 */
#ifndef BTL_REQUEST_H
#define BTL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BTL_REQUEST_HEAD 64u
#define BTL_ANSWER_HEAD	 24u

enum btl_request_kind {
	BTL_REQUEST_PUT,
	BTL_REQUEST_GET,
	BTL_REQUEST_ATOMIC,
	BTL_REQUEST_KINDS
};

/*
 * struct btl_request
 * @client: the context that asks: 64 random bits
 * @number: the client's
 * @mem:    of the handle
 * @fi_op, @type, @operand, @compare: of an atomic: enum fi_op, enum fi_datatype
 * @addr:   the target's
 * @from:   the client's address; @data: what is put, @len bytes. In the message
 */
struct btl_request {
	enum btl_request_kind kind;
	uint32_t fi_op, type;
	uint64_t client, number;
	uint64_t mem, addr, len;
	uint64_t operand, compare;
	const unsigned char *from;
	uint32_t from_len;
	const unsigned char *data;
};

/*
 * struct btl_answer
 * @status: 0 or -FI_E*
 * @old:    what an atomic has found
 * @data:   what was got, @len bytes
 */
struct btl_answer {
	int status;
	uint64_t number;
	uint64_t old;
	const unsigned char *data;
	size_t len;
};

/*
 * btl_request_write - @out has room for the head, @from_len and, of a put, @len bytes
 * Returns how many.
 */
size_t btl_request_write(const struct btl_request *request, unsigned char *out);

/* btl_request_read - Returns whether the @len bytes at @in are a request; it refers to them */
bool btl_request_read(const unsigned char *in, size_t len, struct btl_request *request);

/* btl_answer_write - writes the head alone. Returns its bytes */
size_t btl_answer_write(const struct btl_answer *answer, unsigned char *out);

/* btl_answer_read - Returns whether the @len bytes at @in are an answer; it refers to them */
bool btl_answer_read(const unsigned char *in, size_t len, struct btl_answer *answer);

#endif
