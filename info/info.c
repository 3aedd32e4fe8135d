/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of struct fi_info: layouts of all versions, allocation, deep copy, release.
 *
 * Called by fi_dupinfo and fi_freeinfo, which every program uses, and by providers while
 * they answer a query; on the caller's thread.
 */
#include <stdlib.h>
#include <string.h>

#include "info.h"

/* Zeroed room behind every structure for a core whose structures are longer than ours. */
#define INFO_SLACK 64
/* No address and no key is longer; a larger length is an uninitialized field. */
#define INFO_BYTES_MAX (1 << 20)

#define END_OF(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))
#define INFO_END(field)	    END_OF(struct fi_info, field)
#define TX_END(field)	    END_OF(struct fi_tx_attr, field)
#define RX_END(field)	    END_OF(struct fi_rx_attr, field)
#define EP_END(field)	    END_OF(struct fi_ep_attr, field)
#define DOMAIN_END(field)   END_OF(struct fi_domain_attr, field)
#define FABRIC_END(field)   END_OF(struct fi_fabric_attr, field)

static const struct info_layout layouts[INFO_ABI_CNT] = {
	[INFO_ABI_1_0] = {
		INFO_END(fabric_attr), TX_END(rma_iov_limit), RX_END(iov_limit),
		EP_END(rx_ctx_cnt), DOMAIN_END(max_ep_srx_ctx), FABRIC_END(prov_version),
	},
	[INFO_ABI_1_1] = {
		INFO_END(fabric_attr), TX_END(rma_iov_limit), RX_END(iov_limit),
		EP_END(auth_key), DOMAIN_END(mr_cnt), FABRIC_END(api_version),
	},
	[INFO_ABI_1_2] = {
		INFO_END(nic), TX_END(rma_iov_limit), RX_END(iov_limit),
		EP_END(auth_key), DOMAIN_END(mr_cnt), FABRIC_END(api_version),
	},
	[INFO_ABI_1_3] = {
		INFO_END(nic), TX_END(tclass), RX_END(iov_limit),
		EP_END(auth_key), DOMAIN_END(tclass), FABRIC_END(api_version),
	},
	[INFO_ABI_1_7] = {
		INFO_END(nic), TX_END(tclass), RX_END(iov_limit),
		EP_END(auth_key), DOMAIN_END(max_ep_auth_key), FABRIC_END(api_version),
	},
	[INFO_ABI_1_8] = {
		INFO_END(nic), TX_END(tclass), RX_END(iov_limit),
		EP_END(auth_key), DOMAIN_END(max_group_id), FABRIC_END(api_version),
	},
	[INFO_ABI_1_9] = {
		INFO_END(nic), TX_END(tclass), RX_END(iov_limit),
		EP_END(auth_key), DOMAIN_END(max_err_cntr_value), FABRIC_END(api_version),
	},
	[INFO_ABI_1_10] = {
		sizeof(struct fi_info), sizeof(struct fi_tx_attr), sizeof(struct fi_rx_attr),
		sizeof(struct fi_ep_attr), sizeof(struct fi_domain_attr),
		sizeof(struct fi_fabric_attr),
	},
};

/* The library version that first used each layout. */
static const uint32_t layout_since[INFO_ABI_CNT] = {
	[INFO_ABI_1_0] = FI_VERSION(1, 0),  [INFO_ABI_1_1] = FI_VERSION(1, 5),
	[INFO_ABI_1_2] = FI_VERSION(1, 7),  [INFO_ABI_1_3] = FI_VERSION(1, 9),
	[INFO_ABI_1_7] = FI_VERSION(1, 20), [INFO_ABI_1_8] = FI_VERSION(2, 0),
	[INFO_ABI_1_9] = FI_VERSION(2, 5),  [INFO_ABI_1_10] = FI_VERSION(2, 7),
};

const struct info_layout *info_layout_of(enum info_abi abi)
{
	return &layouts[abi < INFO_ABI_CNT ? abi : INFO_ABI_CNT - 1];
}

const struct info_layout *info_layout_of_core(uint32_t core_version)
{
	int abi = INFO_ABI_CNT - 1;

	while (abi > 0 && core_version < layout_since[abi])
		abi--;
	return &layouts[abi];
}

/* A zeroed copy of the first @len bytes of @src (NULL: of nothing), in room for @full. */
static void *part_copy(const void *src, size_t len, size_t full)
{
	void *part = calloc(1, full + INFO_SLACK);

	if (part && src)
		memcpy(part, src, len < full ? len : full);
	return part;
}

/* Copies the @len bytes at @src to a new *dst. Without bytes or a source there is no copy. */
static bool bytes_copy(void *dst, const void *src, size_t len)
{
	void *copy = NULL;

	if (src && len) {
		copy = len <= INFO_BYTES_MAX ? malloc(len) : NULL;
		if (!copy)
			return false;
		memcpy(copy, src, len);
	}
	memcpy(dst, &copy, sizeof(copy));
	return true;
}

static bool string_copy(char **dst, const char *src)
{
	*dst = src ? strdup(src) : NULL;
	return *dst || !src;
}

struct fi_info *info_alloc(void)
{
	struct fi_info *info = part_copy(NULL, 0, sizeof(*info));

	if (!info)
		return NULL;
	info->tx_attr = part_copy(NULL, 0, sizeof(*info->tx_attr));
	info->rx_attr = part_copy(NULL, 0, sizeof(*info->rx_attr));
	info->ep_attr = part_copy(NULL, 0, sizeof(*info->ep_attr));
	info->domain_attr = part_copy(NULL, 0, sizeof(*info->domain_attr));
	info->fabric_attr = part_copy(NULL, 0, sizeof(*info->fabric_attr));
	if (info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr &&
	    info->fabric_attr)
		return info;
	info_free(info);
	return NULL;
}

static bool ep_attr_copy(struct fi_ep_attr **dst, const struct fi_ep_attr *src, size_t len)
{
	struct fi_ep_attr *attr;
	const uint8_t *key;

	if (!src)
		return true;
	attr = *dst = part_copy(src, len, sizeof(*attr));
	if (!attr)
		return false;
	key = attr->auth_key;
	attr->auth_key = NULL;
	return bytes_copy(&attr->auth_key, key, attr->auth_key_size);
}

static bool domain_attr_copy(struct fi_domain_attr **dst, const struct fi_domain_attr *src,
			     size_t len)
{
	struct fi_domain_attr *attr;
	const uint8_t *key;
	const char *name;

	if (!src)
		return true;
	attr = *dst = part_copy(src, len, sizeof(*attr));
	if (!attr)
		return false;
	key = attr->auth_key;
	name = attr->name;
	attr->auth_key = NULL;
	attr->name = NULL;
	return bytes_copy(&attr->auth_key, key, attr->auth_key_size) &&
	       string_copy(&attr->name, name);
}

static bool fabric_attr_copy(struct fi_fabric_attr **dst, const struct fi_fabric_attr *src,
			     size_t len)
{
	struct fi_fabric_attr *attr;
	const char *name, *prov_name;

	if (!src)
		return true;
	attr = *dst = part_copy(src, len, sizeof(*attr));
	if (!attr)
		return false;
	name = attr->name;
	prov_name = attr->prov_name;
	attr->name = NULL;
	attr->prov_name = NULL;
	return string_copy(&attr->name, name) && string_copy(&attr->prov_name, prov_name);
}

/* A nic is copied by its own FI_DUP operation; without one it is left out. */
static bool nic_copy(struct fid_nic **dst, struct fid_nic *src)
{
	struct fid_nic *copy = NULL;
	int err;

	if (!src || !FI_CHECK_OP(src->fid.ops, struct fi_ops, control))
		return true;
	err = src->fid.ops->control(&src->fid, FI_DUP, &copy);
	if (err)
		return err == -FI_ENOSYS;
	*dst = copy;
	return true;
}

/* Copies what @src refers to. Returns false without memory, with what was copied in @dup. */
static bool members_copy(struct fi_info *dup, const struct fi_info *src,
			 const struct info_layout *layout)
{
	if (!bytes_copy(&dup->src_addr, src->src_addr, src->src_addrlen) ||
	    !bytes_copy(&dup->dest_addr, src->dest_addr, src->dest_addrlen))
		return false;
	if (src->tx_attr) {
		dup->tx_attr = part_copy(src->tx_attr, layout->tx_attr, sizeof(*dup->tx_attr));
		if (!dup->tx_attr)
			return false;
	}
	if (src->rx_attr) {
		dup->rx_attr = part_copy(src->rx_attr, layout->rx_attr, sizeof(*dup->rx_attr));
		if (!dup->rx_attr)
			return false;
	}
	return ep_attr_copy(&dup->ep_attr, src->ep_attr, layout->ep_attr) &&
	       domain_attr_copy(&dup->domain_attr, src->domain_attr, layout->domain_attr) &&
	       fabric_attr_copy(&dup->fabric_attr, src->fabric_attr, layout->fabric_attr) &&
	       nic_copy(&dup->nic, src->nic);
}

struct fi_info *info_dup(const struct fi_info *info, const struct info_layout *layout)
{
	struct fi_info src = { 0 };
	struct fi_info *dup;

	if (!info)
		return info_alloc();
	if (!layout)
		layout = info_layout_of(INFO_ABI_1_10);

	memcpy(&src, info, layout->info < sizeof(src) ? layout->info : sizeof(src));
	dup = part_copy(NULL, 0, sizeof(*dup));
	if (!dup)
		return NULL;
	dup->caps = src.caps;
	dup->mode = src.mode;
	dup->addr_format = src.addr_format;
	dup->handle = src.handle;
	dup->src_addrlen = src.src_addrlen;
	dup->dest_addrlen = src.dest_addrlen;
	if (members_copy(dup, &src, layout))
		return dup;
	info_free(dup);
	return NULL;
}

/* Replaces the address *@bytes by @addr. Returns false if it can't be written, or without memory. */
static bool address_replace(void **bytes, size_t *len,
			    size_t (*write)(const struct weft_addr *addr, void *out),
			    const struct weft_addr *addr)
{
	uint8_t written[INFO_ADDRESS_MAX];

	free(*bytes);
	*bytes = NULL;
	*len = write(addr, written);
	return *len && bytes_copy(bytes, written, *len);
}

struct fi_info *info_dup_between(const struct fi_info *info, const struct info_layout *layout,
				 size_t (*write)(const struct weft_addr *addr, void *out),
				 const struct weft_addr *src, const struct weft_addr *dest)
{
	struct fi_info *dup = info_dup(info, layout);

	if (!dup)
		return NULL;
	dup->handle = NULL;
	if ((!src || address_replace(&dup->src_addr, &dup->src_addrlen, write, src)) &&
	    (!dest || address_replace(&dup->dest_addr, &dup->dest_addrlen, write, dest)))
		return dup;
	info_free(dup);
	return NULL;
}

void info_free(struct fi_info *info)
{
	struct fi_info *next;

	for (; info; info = next) {
		next = info->next;
		free(info->src_addr);
		free(info->dest_addr);
		free(info->tx_attr);
		free(info->rx_attr);
		if (info->ep_attr)
			free(info->ep_attr->auth_key);
		free(info->ep_attr);
		if (info->domain_attr) {
			free(info->domain_attr->auth_key);
			free(info->domain_attr->name);
		}
		free(info->domain_attr);
		if (info->fabric_attr) {
			free(info->fabric_attr->name);
			free(info->fabric_attr->prov_name);
		}
		free(info->fabric_attr);
		if (info->nic && FI_CHECK_OP(info->nic->fid.ops, struct fi_ops, close))
			fi_close(&info->nic->fid);
		free(info);
	}
}

void info_append(struct fi_info **head, struct fi_info *info)
{
	while (*head)
		head = &(*head)->next;
	*head = info;
}
