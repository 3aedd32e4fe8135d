/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Log pages. Those of a device behind the controller are passed on, with what the controller adds to them. */
#include "logs.h"

#include <string.h>

#include "identify.h"
#include "nvme/lease.h"
#include "nvmed.h"

#define ROOM_KELVIN	295
#define UNIT		512000u
#define NS_PER_HOUR	3600000000000ull
#define NS_PER_MS	1000000u
#define SMART_READ_ONLY (1u << 3)
#define PAGE_LEN_MAX	((NVME_LEASES + 1) * sizeof(struct nvme_lease_log))

static_assert(sizeof(struct nvme_error_log) * ERROR_LOG_ENTRIES <= PAGE_LEN_MAX,
	      "the largest page");

void errors_add(struct nvmed *c, const struct nvme_error_log *entry)
{
	struct nvme_error_log *e = &c->errors.entries[++c->errors.cnt % ERROR_LOG_ENTRIES];

	*e = *entry;
	e->count = c->errors.cnt;
}

/* A page of the device's own; zeros where it has none. Returns an NVMe status */
static int device_log(struct nvmed *c, uint8_t id, void *page, uint32_t len)
{
	const struct backend_ops *ops = c->backend->ops;

	memset(page, 0, len);
	return ops->log ? ops->log(c->backend, id, page, len) : 0;
}

/*
 * Errors that the device has logged since the last look join those of the controller, with numbers of that. Which of its
 * queues they are of says nothing here. A device that does not answer now is asked again another time.
 */
static void errors_import(struct nvmed *c)
{
	static struct nvme_error_log log[ERROR_LOG_ENTRIES];
	/* A device may have room for fewer entries, and refuse to tell of more than that. */
	int status = device_log(c, NVME_LOG_ERROR, log, sizeof(log[0]));
	uint64_t newest = log[0].count;

	if (status || newest <= c->errors.device_cnt)
		return;
	if (device_log(c, NVME_LOG_ERROR, log, sizeof(log)))
		status = device_log(c, NVME_LOG_ERROR, log, sizeof(log[0]));
	for (uint32_t i = ERROR_LOG_ENTRIES; !status && i--;) {
		if (log[i].count <= c->errors.device_cnt)
			continue;
		log[i].sq_id = 0;
		errors_add(c, &log[i]);
	}
	if (!status)
		c->errors.device_cnt = newest;
}

/* The newest first */
static int page_errors(struct nvmed *c, uint8_t *page, uint64_t *len)
{
	struct nvme_error_log *to = (struct nvme_error_log *)page;
	uint64_t cnt;

	errors_import(c);
	cnt = c->errors.cnt < ERROR_LOG_ENTRIES ? c->errors.cnt : ERROR_LOG_ENTRIES;
	*len = sizeof(*to) * ERROR_LOG_ENTRIES;
	memset(page, 0, *len);
	for (uint64_t i = 0; i < cnt; i++)
		to[i] = c->errors.entries[(c->errors.cnt - i) % ERROR_LOG_ENTRIES];
	return 0;
}

/* Of a device: what it says, but for errors, of which there is one log. */
static int page_smart_device(struct nvmed *c, struct nvme_smart_log *log)
{
	int status = device_log(c, NVME_LOG_SMART, log, sizeof(*log));

	errors_import(c);
	if (c->config.read_only)
		log->critical_warning |= SMART_READ_ONLY;
	log->error_log_entries[0] = c->errors.cnt;
	return status;
}

static int page_smart(struct nvmed *c, uint8_t *page, uint64_t *len)
{
	struct nvme_smart_log log = {
		.temperature = { ROOM_KELVIN & 0xff, ROOM_KELVIN >> 8 },
		.spare = 100,
		.spare_threshold = 10,
		.data_units_read = { (c->stats.read_bytes + UNIT - 1) / UNIT },
		.data_units_written = { (c->stats.written_bytes + UNIT - 1) / UNIT },
		.host_reads = { c->stats.reads },
		.host_writes = { c->stats.writes },
		.power_cycles = { 1 },
		.power_on_hours = { (c->now - c->started) / NS_PER_HOUR },
		.unsafe_shutdowns = { c->stats.unsafe_shutdowns },
		.media_errors = { c->stats.media_errors },
		.error_log_entries = { c->errors.cnt },
	};
	int status = 0;

	if (c->config.read_only)
		log.critical_warning = SMART_READ_ONLY;
	if (c->backend->ops->log)
		status = page_smart_device(c, &log);
	memcpy(page, &log, sizeof(log));
	*len = sizeof(log);
	return status;
}

static int page_firmware(struct nvmed *c, uint8_t *page, uint64_t *len)
{
	struct nvme_firmware_log log = { .afi = 1 };

	identify_firmware(c, log.frs[0]);
	memcpy(page, &log, sizeof(log));
	*len = sizeof(log);
	return 0;
}

static uint32_t remaining_ms(const struct nvmed *c, const struct lease *lease)
{
	return lease->deadline > c->now ? (uint32_t)((lease->deadline - c->now) / NS_PER_MS) : 0;
}

static int page_leases(struct nvmed *c, uint8_t *page, uint64_t *len)
{
	struct nvme_lease_log *to = (struct nvme_lease_log *)page;

	nvmed_clock(c);
	for (uint32_t i = 1; i <= NVME_LEASES; i++) {
		const struct lease *lease = &c->leases.each[i];

		if (lease->state == LEASE_NONE)
			continue;
		*to++ = (struct nvme_lease_log){ .lease = i,
						 .generation = lease->generation,
						 .remaining_ms = remaining_ms(c, lease),
						 .queue_pairs = lease->sq_cnt,
						 .commands = lease->commands,
						 .bytes = lease->bytes };
	}
	memset(to++, 0, sizeof(*to));
	*len = (uint64_t)((uint8_t *)to - page);
	return 0;
}

int log_page(struct nvmed *c, const struct command *cmd, uint8_t *page, uint64_t room,
	     uint64_t *len)
{
	static uint8_t whole[PAGE_LEN_MAX];
	const struct nvme_sqe *sqe = &cmd->sqe;
	uint64_t dwords = (sqe->cdw10 >> 16 | (uint64_t)(sqe->cdw11 & 0xffff) << 16) + 1;
	uint64_t offset = sqe->cdw12 | (uint64_t)sqe->cdw13 << 32;
	uint64_t have;
	int status;

	if (sqe->nsid && sqe->nsid != UINT32_MAX)
		return sqe->nsid == NVMED_NSID ? NVME_SC_INVALID_FIELD
					       : NVME_SC_INVALID_NAMESPACE;
	switch (sqe->cdw10 & 0xff) {
	case NVME_LOG_ERROR:
		status = page_errors(c, whole, &have);
		break;
	case NVME_LOG_SMART:
		status = page_smart(c, whole, &have);
		break;
	case NVME_LOG_FIRMWARE:
		status = page_firmware(c, whole, &have);
		break;
	case NVME_LOG_LEASES:
		status = page_leases(c, whole, &have);
		break;
	default:
		return NVME_SC_INVALID_LOG_PAGE;
	}
	if (status)
		return status;
	if (offset & 3 || offset > have || dwords * 4 > room)
		return NVME_SC_INVALID_FIELD;
	*len = dwords * 4;
	memset(page, 0, *len);
	memcpy(page, whole + offset, *len < have - offset ? *len : have - offset);
	if (!(sqe->cdw10 & NVME_LOG_RETAIN))
		events_read(c, sqe->cdw10 & 0xff);
	return 0;
}
