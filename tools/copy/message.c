/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of a copy as bytes; message.h has the contract. Integers are little-endian, what is reserved or behind the
 * end of a text is zero, and that is checked.
 */
#include "message.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#define MAGIC	  0x79706377u /* "wcpy" */
#define VERSION	  1u
#define ERROR_MAX 4095u
#define MODE_BITS 0777u

/* As it travels. */
struct layout {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	/* a positive errno, or 0 */
	uint32_t error;
	uint32_t mode;
	uint64_t size;
	uint64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t reserved;
	uint64_t addr;
	uint64_t sum;
	unsigned char handle[WEFT_BTL_HANDLE_MAX];
	char text[COPY_TEXT_MAX];
};

static_assert(sizeof(struct layout) == COPY_MESSAGE_LEN, "a message is as long as it says");
static_assert(offsetof(struct layout, kind) == 6, "layout");
static_assert(offsetof(struct layout, error) == 8, "layout");
static_assert(offsetof(struct layout, mode) == 12, "layout");
static_assert(offsetof(struct layout, size) == 16, "layout");
static_assert(offsetof(struct layout, mtime_s) == 24, "layout");
static_assert(offsetof(struct layout, mtime_ns) == 32, "layout");
static_assert(offsetof(struct layout, addr) == 40, "layout");
static_assert(offsetof(struct layout, sum) == 48, "layout");
static_assert(offsetof(struct layout, handle) == 56, "layout");
static_assert(offsetof(struct layout, text) == 232, "layout");

void copy_message_write(const struct copy_message *message, unsigned char *out)
{
	struct layout wire = {
		.magic = htole32(MAGIC),
		.version = htole16(VERSION),
		.kind = htole16((uint16_t)message->kind),
		.error = htole32((uint32_t)-message->error),
		.mode = htole32(message->mode),
		.size = htole64(message->size),
		.mtime_s = htole64((uint64_t)message->mtime_s),
		.mtime_ns = htole32(message->mtime_ns),
		.addr = htole64(message->addr),
		.sum = htole64(message->sum),
	};

	memcpy(wire.handle, message->handle, sizeof(wire.handle));
	memcpy(wire.text, message->text, strnlen(message->text, sizeof(wire.text) - 1));
	memcpy(out, &wire, sizeof(wire));
}

/* Whether a text ends, with nothing behind its end. */
static bool text_ends(const char *text)
{
	size_t i = strnlen(text, COPY_TEXT_MAX);

	if (i == COPY_TEXT_MAX)
		return false;
	while (i < COPY_TEXT_MAX)
		if (text[i++])
			return false;
	return true;
}

int copy_message_read(const unsigned char *in, size_t len, struct copy_message *message)
{
	struct layout wire;
	struct copy_message got;

	if (len != sizeof(wire))
		return -EBADMSG;
	memcpy(&wire, in, sizeof(wire));
	if (le32toh(wire.magic) != MAGIC)
		return -EBADMSG;
	if (le16toh(wire.version) != VERSION)
		return -EPROTONOSUPPORT;
	if (le16toh(wire.kind) >= COPY_KINDS || le32toh(wire.error) > ERROR_MAX ||
	    wire.reserved || !text_ends(wire.text))
		return -EBADMSG;
	got = (struct copy_message){
		.kind = (enum copy_kind)le16toh(wire.kind),
		.error = -(int)le32toh(wire.error),
		.mode = le32toh(wire.mode),
		.size = le64toh(wire.size),
		.mtime_s = (int64_t)le64toh(wire.mtime_s),
		.mtime_ns = le32toh(wire.mtime_ns),
		.addr = le64toh(wire.addr),
		.sum = le64toh(wire.sum),
	};
	if (got.mode & ~MODE_BITS || got.size > INT64_MAX || got.mtime_ns > 999999999u)
		return -EBADMSG;
	memcpy(got.handle, wire.handle, sizeof(got.handle));
	memcpy(got.text, wire.text, sizeof(got.text));
	*message = got;
	return 0;
}

bool copy_name_is_plain(const char *name)
{
	return *name && strcmp(name, ".") && strcmp(name, "..") && !strchr(name, '/');
}

const char *copy_text_printable(const char *text, char *out)
{
	size_t i;

	for (i = 0; text[i] && i + 1 < COPY_TEXT_MAX; i++)
		out[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	out[i] = '\0';
	return out;
}
