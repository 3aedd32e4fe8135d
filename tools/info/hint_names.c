/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of constants; hint_names.h has the contract. Called by 'weft info'
 * while it reads its options.
 */
#include "hint_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include <rdma/fabric.h>

struct name {
	const char *text;
	uint64_t value;
};

#define COLUMNS 80

/* A value is converted to its name by adding "FI_" to the spelling of its constant, and back. */
/* clang-format off */
#define NAME(symbol) { #symbol, FI_##symbol }
/* clang-format on */

static const struct name caps[] = {
	NAME(MSG),
	NAME(RMA),
	NAME(TAGGED),
	NAME(ATOMIC),
	NAME(MULTICAST),
	NAME(COLLECTIVE),
	NAME(READ),
	NAME(WRITE),
	NAME(RECV),
	NAME(SEND),
	NAME(REMOTE_READ),
	NAME(REMOTE_WRITE),
	NAME(MULTI_RECV),
	NAME(REMOTE_CQ_DATA),
	NAME(TRIGGER),
	NAME(FENCE),
	NAME(VARIABLE_MSG),
	NAME(RMA_PMEM),
	NAME(SOURCE_ERR),
	NAME(LOCAL_COMM),
	NAME(REMOTE_COMM),
	NAME(SHARED_AV),
	NAME(RMA_EVENT),
	NAME(SOURCE),
	NAME(NAMED_RX_CTX),
	NAME(DIRECTED_RECV),
	NAME(HMEM),
	NAME(AV_USER_ID),
	NAME(PEER),
	NAME(XPU),
	NAME(TAGGED_DIRECTED_RECV),
	NAME(TAGGED_MULTI_RECV),
	NAME(EXACT_DIRECTED_RECV),
	{ 0 },
};

static const struct name modes[] = {
	NAME(CONTEXT),	       NAME(MSG_PREFIX), NAME(ASYNC_IOV),
	NAME(RX_CQ_DATA),      NAME(LOCAL_MR),	 NAME(NOTIFY_FLAGS_ONLY),
	NAME(RESTRICTED_COMP), NAME(CONTEXT2),	 { 0 },
};

static const struct name ep_types[] = {
	NAME(EP_UNSPEC),      NAME(EP_MSG),
	NAME(EP_DGRAM),	      NAME(EP_RDM),
	{ "MSG", FI_EP_MSG }, { "DGRAM", FI_EP_DGRAM },
	{ "RDM", FI_EP_RDM }, { 0 },
};

static const struct name addr_formats[] = {
	NAME(FORMAT_UNSPEC),
	NAME(SOCKADDR),
	NAME(SOCKADDR_IN),
	NAME(SOCKADDR_IN6),
	NAME(SOCKADDR_IB),
	NAME(ADDR_STR),
	{ 0 },
};

static const struct {
	const struct name *names;
	bool bits;
} kinds[] = {
	[HINT_CAPS] = { caps, true },
	[HINT_MODE] = { modes, true },
	[HINT_EP_TYPE] = { ep_types, false },
	[HINT_ADDR_FORMAT] = { addr_formats, false },
};

static int find(const struct name *names, const char *word, size_t len, uint64_t *value)
{
	if (len > 3 && !strncasecmp(word, "FI_", 3)) {
		word += 3;
		len -= 3;
	}
	for (; names->text; names++)
		if (strlen(names->text) == len && !strncasecmp(names->text, word, len)) {
			*value = names->value;
			return 0;
		}
	return -EINVAL;
}

int hint_parse(enum hint_kind kind, const char *text, uint64_t *value)
{
	uint64_t got = 0, one;
	size_t len;

	for (;;) {
		len = strcspn(text, "|,");
		if (find(kinds[kind].names, text, len, &one))
			return -EINVAL;
		got |= one;
		if (!text[len])
			break;
		if (!kinds[kind].bits)
			return -EINVAL;
		text += len + 1;
	}
	*value = got;
	return 0;
}

/* Returns true for a second name of a constant. */
static bool is_alias(const struct name *names, const struct name *name)
{
	while (names->value != name->value)
		names++;
	return names != name;
}

void hint_names_print(FILE *to, enum hint_kind kind)
{
	const struct name *name;
	size_t column = 0;

	for (name = kinds[kind].names; name->text; name++) {
		size_t len = strlen(" FI_") + strlen(name->text);

		if (is_alias(kinds[kind].names, name))
			continue;
		if (column && column + len > COLUMNS) {
			fputc('\n', to);
			column = 0;
		}
		column += (size_t)fprintf(to, " FI_%s", name->text);
	}
	fputc('\n', to);
}
