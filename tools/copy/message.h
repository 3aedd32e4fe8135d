/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the two sides of a copy tell each other over the control connection: messages of one length, exchanged in
 * pairs (oob_exchange), so that each side always knows which kind comes next:
 *
 *	sender     receiver
 *	HELLO      HELLO      the provider that each was given
 *	READY      READY      both have opened their transports
 *	(nothing)  (the name of the receiver's transport)
 *
 *	FILE       READY      for each file: its name, size, mode and time
 *	READY      WINDOW     memory for its first bytes
 *	WRITTEN    WINDOW     for each window: its sum, and memory for the window after the next one
 *	READY      VERDICT    the file is in its place, or why not
 *
 *	END        READY
 *
 * A message with an error in it ends the file, on both sides, and the next one begins. The order of the receiver's
 * windows lets it check one while the next is written. Nothing here calls libfabric.
 */
#ifndef WEFT_TOOLS_COPY_MESSAGE_H
#define WEFT_TOOLS_COPY_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/btl.h>

#define COPY_MESSAGE_LEN 488u
/* with the zero byte; of a name of a file too, which has at most 255 bytes */
#define COPY_TEXT_MAX 256u

enum copy_kind {
	COPY_HELLO,
	COPY_READY,
	COPY_FILE,
	COPY_WINDOW,
	COPY_WRITTEN,
	COPY_VERDICT,
	COPY_END,
	COPY_KINDS,
};

/*
 * struct copy_message - a message; what a kind does not use is zero
 * @error:  0, or a negative errno: what failed is in @text
 * @mode:   permissions, of FILE
 * @size:   bytes, of FILE and WINDOW; 0 of WINDOW: there are no more
 * @mtime_s, @mtime_ns: when FILE was changed
 * @addr:   of WINDOW, as its handle names it
 * @sum:    of WRITTEN, copy_sum_end()
 * @handle: of WINDOW
 * @text:   HELLO: the provider; FILE: the name; else why @error
 */
struct copy_message {
	enum copy_kind kind;
	int error;
	uint32_t mode;
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint64_t addr;
	uint64_t sum;
	unsigned char handle[WEFT_BTL_HANDLE_MAX];
	char text[COPY_TEXT_MAX];
};

/*
 * copy_message_write - put a message into bytes
 * @out: COPY_MESSAGE_LEN bytes
 */
void copy_message_write(const struct copy_message *message, unsigned char *out);

/*
 * copy_message_read - take a message out of bytes
 * @in, @len: not trusted
 *
 * What is returned has a text that ends, a size that is an off_t, a fraction of a second, and permissions alone in its mode.
 * Returns 0, -EPROTONOSUPPORT for another version, or -EBADMSG; @message is untouched then.
 */
int copy_message_read(const unsigned char *in, size_t len, struct copy_message *message);

/*
 * copy_name_is_plain - returns true if a name is one of a file in the directory, and nothing else
 * @name: not trusted
 */
bool copy_name_is_plain(const char *name);

/*
 * copy_text_printable - a text of a peer, for a terminal: control characters become '?'
 * @out: COPY_TEXT_MAX bytes
 * Returns @out.
 */
const char *copy_text_printable(const char *text, char *out);

#endif
