/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verbs of address vectors. Inserted addresses are those of the script's own endpoints; results
 * stay under a number, which transfers name.
 */
#include <string.h>
#include <rdma/fi_cm.h>
#include "script.h"

#define NAME_ROOM 512
#define PACKED	  4

/* insert AV EP to=NUMBER [cnt=] [flags=] [null=1]: the same endpoint's address cnt times */
static long run_insert(struct call *c)
{
	struct object *av = object_of(c, 1), *ep = object_of(c, 2);
	size_t len = NAME_ROOM, cnt = word_value(c, "cnt", 1);
	unsigned to = (unsigned)word_value(c, "to", 0);
	static char names[PACKED * NAME_ROOM];
	long ret;

	if (!av || !ep || !av->fid || !ep->fid || (!ep->ready && !word_text(c, "raw")))
		return RESULT_ABSENT;
	if (cnt > PACKED || to + cnt > ADDRESSES)
		return RESULT_WRONG;
	ret = fi_getname(ep->fid, names, &len);
	if (ret)
		return ret;
	for (size_t i = 1; i < cnt; i++)
		memcpy(names + i * len, names, len);
	ret = fi_av_insert((struct fid_av *)av->fid, names, cnt,
			   word_text(c, "null") ? NULL : &stage.addresses[to],
			   word_value(c, "flags", 0), NULL);
	for (long i = 0; i < ret; i++)
		stage.known[to + (unsigned)i] |= !word_text(c, "null");
	if (ret > 0 && word_text(c, "table") && !word_text(c, "null"))
		say(c, " as=%llu", (unsigned long long)stage.addresses[to]);
	return ret;
}

/* service AV node= service= to= flags= */
static long run_service(struct call *c)
{
	struct object *av = object_of(c, 1);
	unsigned to = (unsigned)word_value(c, "to", 0);

	if (!av || !av->fid)
		return RESULT_ABSENT;
	if (to >= ADDRESSES)
		return RESULT_WRONG;
	return fi_av_insertsvc((struct fid_av *)av->fid, word_text(c, "node"),
			       word_text(c, "service"), &stage.addresses[to],
			       word_value(c, "flags", 0), NULL);
}

/* remove AV from=NUMBER cnt= flags= */
static long run_remove(struct call *c)
{
	struct object *av = object_of(c, 1);
	unsigned from = (unsigned)word_value(c, "from", 0);
	size_t cnt = word_value(c, "cnt", 1);

	if (!av || !av->fid)
		return RESULT_ABSENT;
	if (from + cnt > ADDRESSES)
		return RESULT_WRONG;
	for (size_t i = 0; i < cnt; i++)
		if (!stage.known[from + i] && !word_text(c, "raw"))
			return RESULT_ABSENT;
	return fi_av_remove((struct fid_av *)av->fid, &stage.addresses[from], cnt,
			    word_value(c, "flags", 0));
}

/* lookup AV from=NUMBER len= EP: compares the address that is found with the endpoint's name */
static long run_lookup(struct call *c)
{
	struct object *av = object_of(c, 1), *ep = object_of(c, 2);
	unsigned from = (unsigned)word_value(c, "from", 0);
	char found[NAME_ROOM] = "", name[NAME_ROOM] = "";
	size_t len = word_value(c, "len", NAME_ROOM), name_len = NAME_ROOM;
	long ret;

	if (!av || !ep || !av->fid || !ep->fid || (!ep->ready && !word_text(c, "raw")))
		return RESULT_ABSENT;
	if (len > NAME_ROOM || from >= ADDRESSES)
		return RESULT_WRONG;
	if (!stage.known[from] && !word_text(c, "raw"))
		return RESULT_ABSENT;
	ret = fi_av_lookup((struct fid_av *)av->fid, stage.addresses[from], found, &len);
	if (ret == 0 && fi_getname(ep->fid, name, &name_len) == 0)
		say(c, " name=%s", len == name_len ? "whole" : "other");
	return ret;
}

/* straddr AV EP len=: how much text */
static long run_straddr(struct call *c)
{
	struct object *av = object_of(c, 1), *ep = object_of(c, 2);
	size_t len = word_value(c, "len", NAME_ROOM), name_len = NAME_ROOM;
	char text[NAME_ROOM] = "", name[NAME_ROOM];
	long ret;

	if (!av || !ep || !av->fid || !ep->fid || (!ep->ready && !word_text(c, "raw")))
		return RESULT_ABSENT;
	if (len > NAME_ROOM)
		return RESULT_WRONG;
	ret = fi_getname(ep->fid, name, &name_len);
	if (ret)
		return ret;
	if (!fi_av_straddr((struct fid_av *)av->fid, name, text, &len))
		return RESULT_WRONG;
	say(c, " begins=%.*s", (int)strcspn(text, ":"), text);
	return 0;
}

const struct verb address_verbs[] = {
	{ "insert", run_insert }, { "service", run_service }, { "remove", run_remove },
	{ "lookup", run_lookup }, { "straddr", run_straddr }, { NULL, NULL },
};
