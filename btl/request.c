/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Writing and reading requests and answers. */
#include <limits.h>
#include <string.h>
#include "bytes.h"
#include "request.h"

#define REQUEST_MAGIC 0x31514257u /* WBQ1 */
#define ANSWER_MAGIC  0x31414257u /* WBA1 */

size_t btl_request_write(const struct btl_request *request, unsigned char *out)
{
	size_t at = BTL_REQUEST_HEAD + request->from_len;

	btl_bytes_put(out, REQUEST_MAGIC, 4);
	btl_bytes_put(out + 4, request->kind, 1);
	btl_bytes_put(out + 5, request->fi_op, 1);
	btl_bytes_put(out + 6, request->type, 1);
	btl_bytes_put(out + 7, request->from_len, 1);
	btl_bytes_put(out + 8, request->client, 8);
	btl_bytes_put(out + 16, request->number, 8);
	btl_bytes_put(out + 24, request->mem, 8);
	btl_bytes_put(out + 32, request->addr, 8);
	btl_bytes_put(out + 40, request->len, 8);
	btl_bytes_put(out + 48, request->operand, 8);
	btl_bytes_put(out + 56, request->compare, 8);
	memcpy(out + BTL_REQUEST_HEAD, request->from, request->from_len);
	if (request->kind != BTL_REQUEST_PUT)
		return at;
	memcpy(out + at, request->data, request->len);
	return at + request->len;
}

bool btl_request_read(const unsigned char *in, size_t len, struct btl_request *request)
{
	size_t left;

	if (len < BTL_REQUEST_HEAD || btl_bytes_get(in, 4) != REQUEST_MAGIC ||
	    in[4] >= BTL_REQUEST_KINDS || !in[7] || len - BTL_REQUEST_HEAD < in[7])
		return false;
	*request = (struct btl_request){
		.kind = (enum btl_request_kind)in[4],
		.fi_op = in[5],
		.type = in[6],
		.client = btl_bytes_get(in + 8, 8),
		.number = btl_bytes_get(in + 16, 8),
		.mem = btl_bytes_get(in + 24, 8),
		.addr = btl_bytes_get(in + 32, 8),
		.len = btl_bytes_get(in + 40, 8),
		.operand = btl_bytes_get(in + 48, 8),
		.compare = btl_bytes_get(in + 56, 8),
		.from = in + BTL_REQUEST_HEAD,
		.from_len = in[7],
		.data = in + BTL_REQUEST_HEAD + in[7],
	};
	left = len - BTL_REQUEST_HEAD - in[7];
	return left == (request->kind == BTL_REQUEST_PUT ? request->len : 0);
}

size_t btl_answer_write(const struct btl_answer *answer, unsigned char *out)
{
	btl_bytes_put(out, ANSWER_MAGIC, 4);
	btl_bytes_put(out + 4, (uint64_t)-answer->status, 4);
	btl_bytes_put(out + 8, answer->number, 8);
	btl_bytes_put(out + 16, answer->old, 8);
	return BTL_ANSWER_HEAD;
}

bool btl_answer_read(const unsigned char *in, size_t len, struct btl_answer *answer)
{
	if (len < BTL_ANSWER_HEAD || btl_bytes_get(in, 4) != ANSWER_MAGIC ||
	    btl_bytes_get(in + 4, 4) > INT_MAX)
		return false;
	*answer = (struct btl_answer){
		.status = -(int)btl_bytes_get(in + 4, 4),
		.number = btl_bytes_get(in + 8, 8),
		.old = btl_bytes_get(in + 16, 8),
		.data = in + BTL_ANSWER_HEAD,
		.len = len - BTL_ANSWER_HEAD,
	};
	return true;
}
