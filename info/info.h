/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * struct fi_info: allocate, duplicate, free; decide whether a provider's offer meets an
 * application's hints, and build the answer.
 *
 * Used by core/ behind fi_dupinfo and fi_freeinfo, and by every provider inside its
 * getinfo. Needs nothing but include/ and, at run time, three functions of whatever
 * libfabric it runs in: fi_version, fi_log and fi_log_enabled, all FABRIC_1.0. So a
 * provider that links this folder loads into a stock libfabric as well.
 *
 * For the same reason such a provider calls info_alloc, info_dup and info_free where a program
 * calls fi_allocinfo, fi_dupinfo and fi_freeinfo: those are bound at newer versions.
 *
 * All functions may be called from any thread at any time; nothing here keeps state.
 *
 * Which fields may be read
 *
 * The structures grew at their ends over the years, so a pointer that someone else
 * allocated may be shorter than the type says. The rules:
 *  - info_alloc, info_dup and info_answer return whole structures, whatever they were given.
 *  - In our own core every fi_info is whole: fi_dupinfo and fi_getinfo return whole ones at
 *    every symbol version, with zeros in the fields an old program does not know. So a
 *    program built for an old version may pass them on to fi_domain or fi_endpoint.
 *  - A provider that an older stock libfabric loads sees fi_infos that
 *    end where that library's structures end. Fields newer than ABI 1.3 (1.9 of the
 *    library) are there only if INFO_HAS_* below says so, or after
 *    info_dup(info, info_layout_of_core(fi_version())).
 *  - Whether the application knows a field, or only the library does, follows from the API
 *    version it asked for: the version argument of getinfo, later fabric_attr->api_version
 *    and fid_fabric.api_version.
 */
#ifndef WEFT_INFO_H
#define WEFT_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include "identity.h"

/* The two registration modes of API versions before 1.5, by value: the public names warn. */
#define INFO_MR_BASIC	 (1 << 0)
#define INFO_MR_SCALABLE (1 << 1)
/* The mode bit of API versions before 1.5 that FI_MR_LOCAL replaced. */
#define INFO_MODE_LOCAL_MR (1ULL << 55)

/* Bytes of a refusal's text with its NUL; longer ones are truncated. */
#define INFO_REASON_MAX 256

/* Bytes of an address that info_dup_between() takes */
#define INFO_ADDRESS_MAX 64

struct weft_addr;

/*
 * Length of each structure at some ABI level: bytes up to the end of the last field, without padding.
 */
struct info_layout {
	size_t info;
	size_t tx_attr;
	size_t rx_attr;
	size_t ep_attr;
	size_t domain_attr;
	size_t fabric_attr;
};

/* The levels at which a structure grew, named like the symbol versions. */
enum info_abi {
	INFO_ABI_1_0,
	INFO_ABI_1_1,  /* api_version, authorization keys, domain caps, mr_cnt; API 1.5 */
	INFO_ABI_1_2,  /* nic; API 1.7 */
	INFO_ABI_1_3,  /* tclass; API 1.9 */
	INFO_ABI_1_7,  /* max_ep_auth_key; API 1.20 */
	INFO_ABI_1_8,  /* max_group_id; API 2.0 */
	INFO_ABI_1_9,  /* max_cntr_value, max_err_cntr_value; API 2.5 */
	INFO_ABI_1_10, /* xpu_ctx, max_xpu_ctx_cnt; API 2.7, provisional */
	INFO_ABI_CNT
};

/* True if a structure of this layout contains a field. */
#define INFO_REACHES(len, type, field) \
	((len) >= offsetof(type, field) + sizeof(((type *)0)->field))
#define INFO_HAS_EP(layout, field) INFO_REACHES((layout)->ep_attr, struct fi_ep_attr, field)
#define INFO_HAS_TX(layout, field) INFO_REACHES((layout)->tx_attr, struct fi_tx_attr, field)
#define INFO_HAS_DOMAIN(layout, field) \
	INFO_REACHES((layout)->domain_attr, struct fi_domain_attr, field)

/*
 * info_layout_of - the sizes that belong to a level
 *
 * Returns a constant; INFO_ABI_CNT and above give the newest.
 */
const struct info_layout *info_layout_of(enum info_abi abi);

/*
 * info_layout_of_core - the sizes that a libfabric of some version uses
 * @core_version: what its fi_version() returns
 */
const struct info_layout *info_layout_of_core(uint32_t core_version);

/*
 * info_alloc - a zeroed fi_info with all its attribute structures
 *
 * Returns owned memory for info_free or fi_freeinfo, or NULL.
 * Every structure is followed by some zeroed room, so that a core newer than this code
 * reads zeros past our last field.
 */
struct fi_info *info_alloc(void);

/*
 * info_dup - a deep copy of one fi_info, next excepted
 * @info:   what to copy, of the size that @layout says; NULL gives info_alloc()
 * @layout: NULL for the newest
 *
 * Fields beyond the layout are zero in the copy. The handle is copied as a pointer. The
 * nic is duplicated by its own FI_DUP and left out where that is not supported.
 * Returns owned memory, or NULL: none is left, or an address or key claims over a MiB.
 */
struct fi_info *info_dup(const struct fi_info *info, const struct info_layout *layout);

/*
 * info_dup_between - info_dup, with addresses of the caller's and without the handle
 * @write:     writes an address as programs have it and returns its bytes, at most INFO_ADDRESS_MAX; 0 is a failure
 * @src, @dest: what it is given for src_addr and dest_addr; NULL: as in @info
 *
 * Returns owned memory, or NULL: as info_dup, or an address could not be written.
 */
struct fi_info *info_dup_between(const struct fi_info *info, const struct info_layout *layout,
				 size_t (*write)(const struct weft_addr *addr, void *out),
				 const struct weft_addr *src, const struct weft_addr *dest);

/*
 * info_free - free a list of fi_infos with everything in them
 * @info: takes the list; NULL is allowed
 */
void info_free(struct fi_info *info);

/*
 * info_refusal - why an offer does not meet the hints
 * @prov:        names the provider in the sentence
 * @offer:       everything the provider can do, see info_answer
 * @hints:       of the layout of the running core; NULL asks for anything
 * @api_version: what the application gave to fi_getinfo
 * @why:         receives the reason, untouched if there is none; NULL if not wanted
 * @len:         bytes of @why
 *
 * Returns 0 when the offer meets the hints, else -FI_ENODATA and in @why one sentence
 * without subject or full stop: 'asks for FI_RMA, which shm does not offer'.
 * Source: fi_getinfo(3), fi_domain(3), fi_endpoint(3), fi_mr(3).
 */
int info_refusal(const struct fi_provider *prov, const struct fi_info *offer,
		 const struct fi_info *hints, uint32_t api_version, char *why, size_t len);

/*
 * info_match - info_refusal, with the reason logged
 *
 * The log line is of level FI_LOG_INFO and subsystem FI_LOG_CORE; Weft's core captures it as
 * the reason of this provider; a stock one prints it or passes it to an imported logger.
 * Returns 0 or -FI_ENODATA.
 */
int info_match(const struct fi_provider *prov, const struct fi_info *offer,
	       const struct fi_info *hints, uint32_t api_version);

/*
 * info_refuse - log why a provider refuses, as info_match does
 * @fmt: a sentence as info_refusal writes it
 *
 * For refusals that only the provider can decide on (addresses, devices). Returns -FI_ENODATA, which
 * its getinfo can return.
 */
int info_refuse(const struct fi_provider *prov, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * info_answer - match, and build the fi_info to return from getinfo
 * @offer: the provider's whole offer, usually a static const template
 * @as:    the identity that the query asks for; NULL: the provider's own name with the offer's defaults
 * @out:   receives one owned fi_info; untouched on error
 *
 * The offer states the most that the provider can do, and the least that it needs:
 *  - caps, tx_attr->caps, rx_attr->caps, domain_attr->caps: everything offered, modifiers
 *    (FI_SEND, FI_READ, ...) included.
 *  - mode, in info, tx_attr, rx_attr and domain_attr: the modes that the application must support.
 *  - addr_format: one concrete format, or FI_FORMAT_UNSPEC for a format of the provider's
 *    own, which then meets no hint that names a format.
 *  - mr_mode: the bits the application has to honour, and INFO_MR_BASIC and
 *    INFO_MR_SCALABLE for each old mode in which the provider can work.
 *  - op_flags: every flag that may become a default. The answer has those that were asked for.
 *  - threading, progress, resource_mgmt: the best the provider can do: FI_THREAD_SAFE
 *    includes all others, FI_PROGRESS_AUTO includes manual, FI_RM_ENABLED disabled.
 *  - av_type: FI_AV_UNSPEC for both.
 *  - numbers: the maximum; the counter limits may be 0 for 'no limit stated'. For numbers that only
 *    memory limits, the default: the sizes of contexts, and the numbers of queues, endpoints,
 *    contexts of a domain, counters and regions.
 *    tx_ctx_cnt and rx_ctx_cnt of ep_attr are the default, the maximum is in domain_attr.
 *  - fabric_attr->name and domain_attr->name: compared with the hints, ignoring case, if
 *    not NULL, and copied. fabric_attr->prov_name is ignored: the core sets it.
 *
 * The answer has what was asked for, else the offer's value. Primary
 * capabilities only if asked for (all if none was named), modifiers implied by them, and
 * secondary ones that cost nothing (FI_SOURCE, FI_SOURCE_ERR, FI_RMA_EVENT and, which older
 * programs do not know, FI_TAGGED_MULTI_RECV and FI_RMA_PMEM only if asked
 * for). Unspecified progress is answered as the identity says,
 * FI_PROGRESS_MANUAL without one. Requested sizes become the
 * answered sizes for tx_attr and rx_attr, as programs expect, and numbers that only memory
 * limits are never less than what was asked for. The contexts per endpoint are as many as were asked for, else
 * as the identity says, since programs that see several use several. prov_name stays NULL, as a stock core
 * requires. Names and addresses are copied from the offer; the provider may replace them, with free and
 * strdup or malloc.
 *
 * Returns 0, -FI_ENODATA (logged as by info_match) or -FI_ENOMEM.
 */
int info_answer(const struct fi_provider *prov, const struct fi_info *offer,
		const struct info_identity *as, const struct fi_info *hints,
		uint32_t api_version, struct fi_info **out);

/*
 * info_append - add an answer at the end of a list
 * @head: the list, *head is NULL when empty
 * @info: takes it and the list that follows it
 */
void info_append(struct fi_info **head, struct fi_info *info);

#endif /* WEFT_INFO_H */
