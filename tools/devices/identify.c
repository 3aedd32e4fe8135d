/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft devices id-ctrl', 'id-ns', 'smart-log' and 'error-log', with the names that nvme-cli prints.
 */
#define _GNU_SOURCE
#include "arguments.h"
#include "devices.h"
#include "json_names.h"
#include "spec.h"

#include <err.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/nvme.h>

/* Entries of the error log that are asked for: a page of them */
#define ERRORS (NVME_PAGE / sizeof(struct nvme_error_log))

/* What is printed, a line or a member each. */
static void put(json_t *root, const char *name, uint64_t value)
{
	if (root)
		json_object_set_new(root, name, json_integer((json_int_t)value));
	else
		printf("%-20s: %llu\n", name, (unsigned long long)value);
}

static void put_hex(json_t *root, const char *name, uint64_t value)
{
	if (root)
		json_object_set_new(root, name, json_integer((json_int_t)value));
	else
		printf("%-20s: 0x%llx\n", name, (unsigned long long)value);
}

static void put_text(json_t *root, const char *name, const char *text, size_t len)
{
	char copy[257];

	if (len > sizeof(copy) - 1)
		len = sizeof(copy) - 1;
	memcpy(copy, text, len);
	copy[len] = 0;
	len = strlen(copy);
	while (len && copy[len - 1] == ' ')
		copy[--len] = 0;
	if (root)
		json_object_set_new(root, name, json_name(copy));
	else
		printf("%-20s: %s\n", name, copy);
}

static int end(json_t *root)
{
	if (root) {
		json_dumpf(root, stdout, JSON_INDENT(2));
		printf("\n");
	}
	json_decref(root);
	return EXIT_SUCCESS;
}

int devices_id_ctrl(const struct devices_options *opt)
{
	struct weft_device_info info = devices_find(opt, opt->operands[0]);
	json_t *root = opt->json ? json_object() : NULL;
	struct nvme_id_ctrl id;
	int err = weft_nvme_identify(opt->lender, info.id, 0, NVME_CNS_CONTROLLER, &id);

	if (err)
		devices_fail(info.name, err);
	put_hex(root, "vid", id.vid);
	put_hex(root, "ssvid", id.ssvid);
	put_text(root, "sn", id.sn, sizeof(id.sn));
	put_text(root, "mn", id.mn, sizeof(id.mn));
	put_text(root, "fr", id.fr, sizeof(id.fr));
	put(root, "mdts", id.mdts);
	put_hex(root, "cntlid", id.cntlid);
	put_hex(root, "ver", id.ver);
	put_hex(root, "oaes", id.oaes);
	put(root, "cntrltype", id.cntrltype);
	put_hex(root, "oacs", id.oacs);
	put(root, "acl", id.acl);
	put(root, "aerl", id.aerl);
	put_hex(root, "lpa", id.lpa);
	put(root, "elpe", id.elpe);
	put_hex(root, "sqes", id.sqes);
	put_hex(root, "cqes", id.cqes);
	put(root, "nn", id.nn);
	put_hex(root, "oncs", id.oncs);
	put_hex(root, "vwc", id.vwc);
	put_hex(root, "sgls", id.sgls);
	put_text(root, "subnqn", id.subnqn, sizeof(id.subnqn));
	return end(root);
}

int devices_id_ns(const struct devices_options *opt)
{
	struct weft_device_info info = devices_find(opt, opt->operands[0]);
	json_t *root = opt->json ? json_object() : NULL;
	uint32_t nsid = opt->operand_cnt > 1
				? (uint32_t)argument_number(opt->operands[1], "namespace", 1,
							    UINT32_MAX - 1)
				: 1;
	struct nvme_id_ns ns;
	int err;

	err = weft_nvme_identify(opt->lender, info.id, nsid, NVME_CNS_NAMESPACE, &ns);
	if (err)
		devices_fail(info.name, err);
	if (!ns.nsze)
		errx(EXIT_FAILURE, "%s has no namespace %u", info.name, nsid);
	put(root, "nsze", ns.nsze);
	put(root, "ncap", ns.ncap);
	put(root, "nuse", ns.nuse);
	put_hex(root, "nsfeat", ns.nsfeat);
	put(root, "nlbaf", ns.nlbaf);
	put_hex(root, "flbas", ns.flbas);
	put(root, "lbads", ns.lbaf[ns.flbas & 0xf].lbads);
	put(root, "noiob", ns.noiob);
	return end(root);
}

int devices_smart_log(const struct devices_options *opt)
{
	struct weft_device_info info = devices_find(opt, opt->operands[0]);
	json_t *root = opt->json ? json_object() : NULL;
	struct nvme_smart_log log;
	int err = weft_nvme_log(opt->lender, info.id, NVME_LOG_SMART, &log, sizeof(log));

	if (err)
		devices_fail(info.name, err);
	put_hex(root, "critical_warning", log.critical_warning);
	put(root, "temperature", log.temperature[0] | log.temperature[1] << 8);
	put(root, "available_spare", log.spare);
	put(root, "percentage_used", log.used);
	put(root, "data_units_read", log.data_units_read[0]);
	put(root, "data_units_written", log.data_units_written[0]);
	put(root, "host_read_commands", log.host_reads[0]);
	put(root, "host_write_commands", log.host_writes[0]);
	put(root, "power_on_hours", log.power_on_hours[0]);
	put(root, "unsafe_shutdowns", log.unsafe_shutdowns[0]);
	put(root, "media_errors", log.media_errors[0]);
	put(root, "num_err_log_entries", log.error_log_entries[0]);
	return end(root);
}

static void put_error(json_t *root, const struct nvme_error_log *e)
{
	put(root, "error_count", e->count);
	put(root, "sqid", e->sq_id);
	put_hex(root, "cmdid", e->cid);
	put_hex(root, "status_field", e->status >> 1);
	put(root, "phase_tag", e->status & 1);
	put_hex(root, "parm_err_loc", e->location);
	put(root, "lba", e->lba);
	put(root, "nsid", e->nsid);
}

int devices_error_log(const struct devices_options *opt)
{
	struct weft_device_info info = devices_find(opt, opt->operands[0]);
	json_t *root = opt->json ? json_object() : NULL;
	json_t *entries = root ? json_array() : NULL;
	struct nvme_error_log log[ERRORS];
	int err = weft_nvme_log(opt->lender, info.id, NVME_LOG_ERROR, log, sizeof(log));

	if (err)
		devices_fail(info.name, err);
	/* The newest is the first one; what has no number is none. */
	for (size_t i = 0; i < ERRORS && log[i].count; i++) {
		json_t *entry = root ? json_object() : NULL;

		if (!root && i)
			printf("\n");
		put_error(entry, &log[i]);
		if (entry)
			json_array_append_new(entries, entry);
	}
	if (root)
		json_object_set_new(root, "errors", entries);
	return end(root);
}
