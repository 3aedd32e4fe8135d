/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* VFIO's system calls */
#define _GNU_SOURCE
#include "vfio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define INFO_MAX 65536u
#define PAGE	 4096u

static int fail(char *why, int error, const char *name, const char *what)
{
	snprintf(why, VFIO_WHY_MAX, "%s: %s: %s", name, what, strerror(error));
	return -error;
}

/* What a link below the function's folder in sysfs leads to: the last part of it. Returns 0 or a negative errno */
static int sysfs_link(const char *name, const char *link, char *to, size_t room)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *last;
	ssize_t len;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", name, link);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return -errno;
	target[len] = '\0';
	last = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
	if (strlen(last) >= room)
		return -ENAMETOOLONG;
	strcpy(to, last);
	return 0;
}

/* Whether the function is VFIO's; if not: why, and how it becomes that. */
static int driver_check(const char *name, char *why)
{
	char path[64], driver[64] = "no driver";

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", name);
	if (access(path, F_OK)) {
		snprintf(why, VFIO_WHY_MAX, "%s: there is no such PCI device", name);
		return -ENODEV;
	}
	if (!sysfs_link(name, "driver", driver, sizeof(driver)) && !strcmp(driver, "vfio-pci"))
		return 0;
	snprintf(why, VFIO_WHY_MAX,
		 "%s is with %s and not with vfio-pci, which gets it by:\n"
		 "  modprobe vfio-pci\n"
		 "  echo vfio-pci >%s/driver_override\n"
		 "  echo %s >%s/driver/unbind\n"
		 "  echo %s >/sys/bus/pci/drivers_probe",
		 name, driver, path, name, path, name);
	return -EBUSY;
}

static int group_open(struct vfio *v, char *why)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };
	char number[32], path[64];

	if (sysfs_link(v->name, "iommu_group", number, sizeof(number))) {
		snprintf(why, VFIO_WHY_MAX,
			 "%s has no IOMMU group: it needs an IOMMU that the kernel uses "
			 "(intel_iommu=on, or what the firmware calls VT-d, AMD-Vi or SMMU)",
			 v->name);
		return -ENOTSUP;
	}
	snprintf(path, sizeof(path), "/dev/vfio/%s", number);
	v->group = open(path, O_RDWR | O_CLOEXEC);
	if (v->group < 0)
		return fail(why, errno, path,
			    errno == EBUSY ? "the group is another process's"
					   : "the group can't be opened");
	if (ioctl(v->group, VFIO_GROUP_GET_STATUS, &status))
		return fail(why, errno, path, "VFIO_GROUP_GET_STATUS");
	if (status.flags & VFIO_GROUP_FLAGS_VIABLE)
		return 0;
	snprintf(why, VFIO_WHY_MAX,
		 "%s: other devices of its IOMMU group are with drivers of the kernel: "
		 "each of /sys/kernel/iommu_groups/%s/devices has to be with vfio-pci or none",
		 v->name, number);
	return -EBUSY;
}

static int container_open(struct vfio *v, char *why)
{
	v->container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	if (v->container < 0)
		return fail(why, errno, "/dev/vfio/vfio", "'modprobe vfio-pci' makes it");
	if (ioctl(v->container, VFIO_GET_API_VERSION) != VFIO_API_VERSION ||
	    ioctl(v->container, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) != 1) {
		snprintf(why, VFIO_WHY_MAX,
			 "/dev/vfio/vfio: there is no type 1 IOMMU: modprobe vfio_iommu_type1");
		return -ENOTSUP;
	}
	return 0;
}

/* Addresses are those that the kernel names; where it names none, those of 39 bits without the ones of interrupts. */
static void ranges_take(struct vfio *v, const struct vfio_iommu_type1_info *info)
{
	uint32_t at = info->flags & VFIO_IOMMU_INFO_CAPS ? info->cap_offset : 0;

	while (at && at <= INFO_MAX - sizeof(struct vfio_info_cap_header)) {
		const struct vfio_info_cap_header *head = (const void *)((const char *)info +
									 at);
		const struct vfio_iommu_type1_info_cap_iova_range *cap = (const void *)head;

		if (head->id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE)
			for (uint32_t i = 0; i < cap->nr_iovas && v->range_cnt < VFIO_RANGES;
			     i++)
				v->ranges[v->range_cnt++] = (struct vfio_range){
					cap->iova_ranges[i].start, cap->iova_ranges[i].end
				};
		at = head->next;
	}
	if (!v->range_cnt)
		v->ranges[v->range_cnt++] = (struct vfio_range){ 1ull << 32, (1ull << 39) - 1 };
}

static int ranges_ask(struct vfio *v)
{
	struct vfio_iommu_type1_info *info = calloc(1, INFO_MAX);
	int ret = 0;

	if (!info)
		return -ENOMEM;
	info->argsz = INFO_MAX;
	if (ioctl(v->container, VFIO_IOMMU_GET_INFO, info))
		ret = -errno;
	else if (info->flags & VFIO_IOMMU_INFO_PGSIZES && !(info->iova_pgsizes & PAGE))
		ret = -ENOTSUP;
	else
		ranges_take(v, info);
	free(info);
	return ret;
}

static int region_ask(struct vfio *v, uint32_t index, uint64_t *offset, uint64_t *len)
{
	struct vfio_region_info info = { .argsz = sizeof(info), .index = index };

	if (ioctl(v->device, VFIO_DEVICE_GET_REGION_INFO, &info))
		return -errno;
	*offset = info.offset;
	*len = info.size;
	return 0;
}

void *vfio_bar_map(struct vfio *v, uint32_t bar, uint64_t at, uint64_t len)
{
	uint64_t offset = 0, all = 0;
	void *mem;

	if (bar > VFIO_PCI_BAR5_REGION_INDEX || region_ask(v, bar, &offset, &all) || at > all ||
	    len > all - at)
		return NULL;
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, v->device,
		   (off_t)(offset + at));
	return mem == MAP_FAILED ? NULL : mem;
}

static int bar_map(struct vfio *v)
{
	int ret = region_ask(v, VFIO_PCI_BAR0_REGION_INDEX, &v->bar_offset, &v->bar_len);
	void *at;

	if (ret)
		return ret;
	at = mmap(NULL, v->bar_len, PROT_READ | PROT_WRITE, MAP_SHARED, v->device,
		  (off_t)v->bar_offset);
	if (at == MAP_FAILED)
		return -errno;
	v->bar = at;
	return 0;
}

static int irqs_set(struct vfio *v, uint32_t index, uint32_t start, const int *fds, uint32_t cnt)
{
	size_t len = sizeof(struct vfio_irq_set) + cnt * sizeof(int);
	struct vfio_irq_set *set = calloc(1, len);
	int ret;

	if (!set)
		return -ENOMEM;
	*set = (struct vfio_irq_set){ .argsz = (uint32_t)len,
				      .flags = VFIO_IRQ_SET_DATA_EVENTFD |
					       VFIO_IRQ_SET_ACTION_TRIGGER,
				      .index = index,
				      .start = start,
				      .count = cnt };
	memcpy(set->data, fds, cnt * sizeof(int));
	ret = ioctl(v->device, VFIO_DEVICE_SET_IRQS, set) ? -errno : 0;
	free(set);
	return ret;
}

static uint32_t irqs_cnt(const struct vfio *v, uint32_t index)
{
	struct vfio_irq_info info = { .argsz = sizeof(info), .index = index };

	return ioctl(v->device, VFIO_DEVICE_GET_IRQ_INFO, &info) ? 0 : info.count;
}

/* Not every function tells of errors, and older kernels don't ask for it back. */
static int alarm_open(struct vfio *v)
{
	v->alarm = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (v->alarm < 0)
		return -errno;
	if (irqs_cnt(v, VFIO_PCI_REQ_IRQ_INDEX))
		irqs_set(v, VFIO_PCI_REQ_IRQ_INDEX, 0, &v->alarm, 1);
	if (irqs_cnt(v, VFIO_PCI_ERR_IRQ_INDEX))
		irqs_set(v, VFIO_PCI_ERR_IRQ_INDEX, 0, &v->alarm, 1);
	return 0;
}

static int device_open(struct vfio *v, char *why)
{
	uint64_t len;
	int ret;

	if (ioctl(v->group, VFIO_GROUP_SET_CONTAINER, &v->container))
		return fail(why, errno, v->name, "VFIO_GROUP_SET_CONTAINER");
	if (ioctl(v->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU))
		return fail(why, errno, v->name,
			    errno == EPERM ? "the IOMMU does not keep interrupts apart"
					   : "VFIO_SET_IOMMU");
	ret = ranges_ask(v);
	if (ret)
		return fail(why, -ret, v->name, "VFIO_IOMMU_GET_INFO");
	v->device = ioctl(v->group, VFIO_GROUP_GET_DEVICE_FD, v->name);
	if (v->device < 0)
		return fail(why, errno, v->name, "VFIO_GROUP_GET_DEVICE_FD");
	ret = region_ask(v, VFIO_PCI_CONFIG_REGION_INDEX, &v->config, &len);
	if (!ret)
		ret = alarm_open(v);
	if (!ret)
		ret = bar_map(v);
	if (!ret)
		ret = vfio_may_access(v, true);
	if (ret)
		return fail(why, -ret, v->name, "its BAR 0 and configuration");
	v->vectors = irqs_cnt(v, VFIO_PCI_MSIX_IRQ_INDEX);
	return 0;
}

int vfio_open(struct vfio *v, const char *address, char *why)
{
	int ret;

	*v = (struct vfio){ .container = -1, .group = -1, .device = -1, .alarm = -1 };
	if (strlen(address) != 7 && strlen(address) != 12) {
		snprintf(why, VFIO_WHY_MAX, "%.64s: no address as 0000:01:00.0", address);
		return -EINVAL;
	}
	snprintf(v->name, sizeof(v->name), "%s%s", strlen(address) == 7 ? "0000:" : "", address);
	ret = driver_check(v->name, why);
	if (!ret)
		ret = container_open(v, why);
	if (!ret)
		ret = group_open(v, why);
	if (!ret)
		ret = device_open(v, why);
	if (ret)
		vfio_close(v);
	return ret;
}

static void descriptor_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

void vfio_close(struct vfio *v)
{
	if (v->bar)
		munmap(v->bar, v->bar_len);
	descriptor_close(v->device);
	descriptor_close(v->group);
	descriptor_close(v->container);
	descriptor_close(v->alarm);
}

int vfio_map(struct vfio *v, uint64_t addr, void *mem, uint64_t len, uint32_t access)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = (access & VFIO_READS ? VFIO_DMA_MAP_FLAG_READ : 0) |
			 (access & VFIO_WRITES ? VFIO_DMA_MAP_FLAG_WRITE : 0),
		.vaddr = (uintptr_t)mem,
		.iova = addr,
		.size = len,
	};

	return ioctl(v->container, VFIO_IOMMU_MAP_DMA, &map) ? -errno : 0;
}

int vfio_unmap(struct vfio *v, uint64_t addr, uint64_t len)
{
	struct vfio_iommu_type1_dma_unmap unmap = { .argsz = sizeof(unmap),
						    .iova = addr,
						    .size = len };

	if (ioctl(v->container, VFIO_IOMMU_UNMAP_DMA, &unmap))
		return -errno;
	return unmap.size == len ? 0 : -ENOENT;
}

int vfio_interrupts(struct vfio *v, const int *fds, uint32_t cnt)
{
	return irqs_set(v, VFIO_PCI_MSIX_IRQ_INDEX, 0, fds, cnt);
}

int vfio_interrupt(struct vfio *v, uint32_t vector, int fd)
{
	return irqs_set(v, VFIO_PCI_MSIX_IRQ_INDEX, vector, &fd, 1);
}

int vfio_reset(struct vfio *v)
{
	return ioctl(v->device, VFIO_DEVICE_RESET) ? -errno : 0;
}

int vfio_may_access(struct vfio *v, bool may)
{
	off_t at = (off_t)(v->config + PCI_COMMAND);
	uint16_t command;

	if (pread(v->device, &command, sizeof(command), at) != sizeof(command))
		return -EIO;
	command |= PCI_COMMAND_MEMORY;
	if (may)
		command |= PCI_COMMAND_MASTER;
	else
		command &= (uint16_t)~PCI_COMMAND_MASTER;
	return pwrite(v->device, &command, sizeof(command), at) == sizeof(command) ? 0 : -EIO;
}
