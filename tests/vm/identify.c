/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * identify - a NVMe device tells its serial number to a program that has it through VFIO
 *
 * usage: identify ADDRESS SERIAL
 *
 * What a driver in a process stands on: the device's registers in a mapping, and memory that the
 * device reads its command from, and writes its answer to, through the IOMMU. The device is bound to
 * vfio-pci. Exits with 0 when the serial number is SERIAL. One thread.
 * Source: Linux's Documentation/driver-api/vfio.rst; NVM Express Base Specification 2.0, sections 3.1.3
 * (registers), 3.5.1 (initialization) and 5.17 (Identify).
 */
#define _GNU_SOURCE
#include <assert.h>
#include <endian.h>
#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/vfio.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE_LEN 4096
/* Where the device sees our memory: not where a wrong address would lead by chance. */
#define IOVA		 UINT64_C(0x7700000000)
#define DEADLINE_SECONDS 30

/* The registers of a controller, and the bits of them that are used here. */
enum {
	REG_VERSION = 0x08,
	REG_CONFIG = 0x14,
	REG_STATUS = 0x1c,
	REG_ADMIN_LENS = 0x24,
	REG_ADMIN_SUBMISSION = 0x28,
	REG_ADMIN_COMPLETION = 0x30,
	REG_ADMIN_TAIL = 0x1000,

	CONFIG_ENABLE = 1 | 6 << 16 | 4 << 20, /* entries of 64 and of 16 bytes */
	STATUS_READY = 1,
	STATUS_FATAL = 2,
	ADMIN_ENTRIES = 2,
	OPCODE_IDENTIFY = 6,
	IDENTIFY_CONTROLLER = 1,
	PCI_COMMAND = 4,
	PCI_COMMAND_MEMORY = 2,
	PCI_COMMAND_MASTER = 4,
};

struct command {
	uint32_t opcode_and_id;
	uint32_t namespace_id;
	uint64_t reserved;
	uint64_t metadata;
	uint64_t data[2];
	uint32_t words[6];
};
static_assert(sizeof(struct command) == 64, "NVMe's submission queue entry");
static_assert(offsetof(struct command, words) == 40, "CDW10");

struct completion {
	uint32_t result[2];
	uint16_t head;
	uint16_t queue;
	uint16_t command;
	uint16_t status; /* bit 0 is the phase */
};
static_assert(sizeof(struct completion) == 16, "NVMe's completion queue entry");

/* A page each. */
struct shared {
	_Alignas(PAGE_LEN) struct command commands[ADMIN_ENTRIES];
	_Alignas(PAGE_LEN) struct completion completions[ADMIN_ENTRIES];
	_Alignas(PAGE_LEN) char answer[PAGE_LEN];
};

struct device {
	int container;
	int group;
	int fd;
	volatile unsigned char *regs;
};

static uint32_t read32(struct device *device, int reg)
{
	return le32toh(*(volatile uint32_t *)(device->regs + reg));
}

static void write32(struct device *device, int reg, uint32_t value)
{
	*(volatile uint32_t *)(device->regs + reg) = htole32(value);
}

static void write64(struct device *device, int reg, uint64_t value)
{
	write32(device, reg, (uint32_t)value);
	write32(device, reg + 4, (uint32_t)(value >> 32));
}

static int group_open(const char *address)
{
	char path[PATH_MAX], link[PATH_MAX];
	struct vfio_group_status status = { .argsz = sizeof(status) };
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group", address);
	len = readlink(path, link, sizeof(link) - 1);
	if (len < 0)
		err(1, "%s", path);
	link[len] = '\0';
	snprintf(path, sizeof(path), "/dev/vfio/%s", strrchr(link, '/') + 1);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, VFIO_GROUP_GET_STATUS, &status))
		err(1, "%s", path);
	if (!(status.flags & VFIO_GROUP_FLAGS_VIABLE))
		errx(1, "%s: another device of the group has a driver of the kernel's", path);
	return fd;
}

static void *region_map(struct device *device, unsigned int index)
{
	struct vfio_region_info region = { .argsz = sizeof(region), .index = index };
	void *addr;

	if (ioctl(device->fd, VFIO_DEVICE_GET_REGION_INFO, &region))
		err(1, "VFIO_DEVICE_GET_REGION_INFO");
	addr = mmap(NULL, region.size, PROT_READ | PROT_WRITE, MAP_SHARED, device->fd,
		    (off_t)region.offset);
	if (addr == MAP_FAILED)
		err(1, "mapping of region %u", index);
	return addr;
}

/* Let the device read and write memory by itself. */
static void bus_master(struct device *device)
{
	struct vfio_region_info config = { .argsz = sizeof(config),
					   .index = VFIO_PCI_CONFIG_REGION_INDEX };
	uint16_t word;

	if (ioctl(device->fd, VFIO_DEVICE_GET_REGION_INFO, &config) ||
	    pread(device->fd, &word, sizeof(word), (off_t)config.offset + PCI_COMMAND) !=
		    sizeof(word))
		err(1, "PCI configuration");
	word |= htole16(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	if (pwrite(device->fd, &word, sizeof(word), (off_t)config.offset + PCI_COMMAND) !=
	    sizeof(word))
		err(1, "PCI configuration");
}

static void device_open(struct device *device, const char *address)
{
	device->container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	if (device->container < 0)
		err(1, "/dev/vfio/vfio");
	device->group = group_open(address);
	if (ioctl(device->group, VFIO_GROUP_SET_CONTAINER, &device->container) ||
	    ioctl(device->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU))
		err(1, "VFIO_SET_IOMMU");
	device->fd = ioctl(device->group, VFIO_GROUP_GET_DEVICE_FD, address);
	if (device->fd < 0)
		err(1, "VFIO_GROUP_GET_DEVICE_FD");
	bus_master(device);
	device->regs = region_map(device, VFIO_PCI_BAR0_REGION_INDEX);
}

static struct shared *shared_map(struct device *device)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)shared,
		.iova = IOVA,
		.size = sizeof(*shared),
	};

	if (shared == MAP_FAILED)
		err(1, "mmap");
	if (ioctl(device->container, VFIO_IOMMU_MAP_DMA, &map))
		err(1, "VFIO_IOMMU_MAP_DMA");
	return shared;
}

static void deadline_check(const char *what)
{
	static time_t deadline;
	time_t now = time(NULL);

	if (!deadline)
		deadline = now + DEADLINE_SECONDS;
	if (now > deadline)
		errx(1, "%s: nothing within %d s", what, DEADLINE_SECONDS);
}

static void status_wait(struct device *device, uint32_t ready)
{
	for (;;) {
		uint32_t status = read32(device, REG_STATUS);

		if (status & STATUS_FATAL)
			errx(1, "the controller reports a fatal error");
		if ((status & STATUS_READY) == ready)
			return;
		deadline_check("the controller's status");
	}
}

/* Start the controller with our admin queues, and have it identify itself. */
static void identify(struct device *device, struct shared *shared)
{
	volatile uint16_t *status = &shared->completions[0].status;

	write32(device, REG_CONFIG, 0);
	status_wait(device, 0);
	write32(device, REG_ADMIN_LENS, (ADMIN_ENTRIES - 1) | (ADMIN_ENTRIES - 1) << 16);
	write64(device, REG_ADMIN_SUBMISSION, IOVA + offsetof(struct shared, commands));
	write64(device, REG_ADMIN_COMPLETION, IOVA + offsetof(struct shared, completions));
	write32(device, REG_CONFIG, CONFIG_ENABLE);
	status_wait(device, STATUS_READY);

	shared->commands[0].opcode_and_id = htole32(OPCODE_IDENTIFY);
	shared->commands[0].data[0] = htole64(IOVA + offsetof(struct shared, answer));
	shared->commands[0].words[0] = htole32(IDENTIFY_CONTROLLER);
	/* F:identify.commands  the command before the doorbell, after which the device reads it */
	atomic_thread_fence(memory_order_seq_cst);
	write32(device, REG_ADMIN_TAIL, 1);
	while (!(le16toh(*status) & 1))
		deadline_check("the completion");
	/* A:identify.completions  the status before the answer, which the device wrote first */
	atomic_thread_fence(memory_order_acquire);
	if (le16toh(*status) >> 1)
		errx(1, "Identify failed with status %#x", le16toh(*status) >> 1);
}

int main(int argc, char **argv)
{
	struct device device;
	struct shared *shared;
	uint32_t version;
	size_t len;

	if (argc != 3)
		errx(2, "usage: identify ADDRESS SERIAL");
	device_open(&device, argv[1]);
	shared = shared_map(&device);
	identify(&device, shared);
	version = read32(&device, REG_VERSION);
	/* 20 bytes, filled up with blanks */
	len = strlen(argv[2]);
	printf("NVMe %u.%u, serial number '%.20s'\n", version >> 16, version >> 8 & 0xff,
	       shared->answer + 4);
	return len > 20 || memcmp(shared->answer + 4, argv[2], len) ||
	       shared->answer[4 + len] != ' ';
}
