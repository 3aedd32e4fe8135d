/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a script has opened, under the name that the script gives it. A name says by its beginning
 * what it is: cq0, ep1.
 */
#include <stdlib.h>
#include <string.h>
#include "script.h"

struct object *object_find(const char *name)
{
	for (size_t i = 0; i < OBJECTS; i++)
		if (stage.objects[i].name[0] && strcmp(stage.objects[i].name, name) == 0)
			return &stage.objects[i];
	return NULL;
}

struct object *object_of(const struct call *c, int idx)
{
	return idx < c->cnt ? object_find(c->words[idx]) : NULL;
}

struct object *object_new(const char *name, struct fid *fid)
{
	struct object *o = object_find(name);

	for (size_t i = 0; !o && i < OBJECTS; i++)
		if (!stage.objects[i].name[0])
			o = &stage.objects[i];
	if (!o)
		return NULL;
	memset(o, 0, sizeof(*o));
	strncpy(o->name, name, sizeof(o->name) - 1);
	o->fid = fid;
	return o;
}

void object_drop(struct object *o)
{
	if (!o->fid)
		fi_freeinfo(o->info);
	free(o->stash);
	memset(o, 0, sizeof(*o));
}

struct object *object_each(struct object *o, const char *prefix)
{
	size_t len = strlen(prefix);

	for (size_t i = o ? (size_t)(o - stage.objects) + 1 : 0; i < OBJECTS; i++)
		if (strncmp(stage.objects[i].name, prefix, len) == 0 &&
		    stage.objects[i].name[len] >= '0' && stage.objects[i].name[len] <= '9')
			return &stage.objects[i];
	return NULL;
}

bool address_of(const struct call *c, fi_addr_t *addr)
{
	const char *to = word_text(c, "to");
	uint64_t idx = to ? word_number(to) % ADDRESSES : 0;

	*addr = to ? stage.addresses[idx] : FI_ADDR_UNSPEC;
	if (to && word_text(c, "rx"))
		*addr = fi_rx_addr(*addr, (int)word_value(c, "rx", 0),
				   (int)word_value(c, "bits", 0));
	return !to || stage.known[idx] || word_text(c, "raw");
}

struct fid_ep *endpoint_of(const struct call *c)
{
	struct object *o = object_of(c, 1);

	if (!o || !o->fid || (!o->ready && !word_text(c, "raw")))
		return NULL;
	return (struct fid_ep *)o->fid;
}
