# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a job is made of. jobs.py describes the jobs in these words, machine.py runs them.

A device has a method options(run), which returns options of QEMU and takes what it needs from the
run (machine.Run): files, memory and wires that machines of a job share. Its `kernel` is what the
kernel's command line needs beside it.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Command:
    """A line of shell in a machine, in the folder tests/vm/inside; it passes by ending with 0, and is
    skipped by 77. It has its seconds, and more where the processor is emulated (machine.patience()). The line has $SOURCE, $BUILD (of this processor), $VM (the folder of the run, which
    all its machines share) and $MACHINE. One that `dies` passes when its machine ends before it does; what one says that has
    figures is printed."""
    name: str
    line: str
    seconds: int = 60
    dies: bool = False
    figures: bool = False


@dataclasses.dataclass(frozen=True)
class Tests:
    """Tests of meson, by suites and patterns of names, without those in cannot.txt."""
    suites: tuple
    names: tuple = ('*',)
    seconds: int = 120
    env: tuple = ()


@dataclasses.dataclass(frozen=True)
class Module:
    """A kernel module of ours: a folder of the sources with a Kbuild, in which it has this name. What
    else it is made of, it may name below $(WEFT). sources is a program that puts all of that, and no more, into
    a folder: the module is built from there."""
    name: str
    folder: str
    sources: str = ''


@dataclasses.dataclass(frozen=True)
class DebianModule(Module):
    """A module that Debian's kernel leaves out, built from a folder of Debian's sources of it (scripts/debian-module)."""
    option: str = ''


@dataclasses.dataclass(frozen=True)
class Machine:
    """One machine. memory is in MiB; modules, names or of the class Module, are loaded before the first
    command, without what they only recommend (softdep); kernel is added to the kernel's command line. counts: it is
    emulated, one processor at a time, and the processor's time stamp counts its instructions."""
    name: str = 'a'
    arch: str = 'x86_64'
    cpus: int = 2
    memory: int = 512
    devices: tuple = ()
    modules: tuple = ()
    kernel: str = ''
    commands: tuple = ()
    counts: bool = False


@dataclasses.dataclass(frozen=True)
class Job:
    """Machines that run at once. seconds, lengthened likewise, bound all of it, from the start of QEMU on. A job that is there
    to fail says how in wanted: the outcome of each command of its machine, the first of which loads modules; 'FAIL: text' is one whose
    output has that text. One that is
    debugging runs on the debugging kernel (scripts/debug-kernel), and only when it is named."""
    name: str
    seconds: int
    machines: tuple
    wanted: tuple = ()
    debugging: bool = False


@dataclasses.dataclass(frozen=True)
class Iommu:
    """VT-d, for a x86_64 machine; the kernel uses it for all devices that come after it."""
    kernel = 'intel_iommu=on'

    def options(self, _run):
        return ['-device', 'intel-iommu,intremap=on,caching-mode=on']


@dataclasses.dataclass(frozen=True)
class Nvme:
    """A NVMe device with a disk, and cmb MiB of its own memory. The disk begins as the file NAME.img of the run's folder, and what is
    written to it ends with the machine. One that stays is the same file for all machines that have it, of which one may use it
    at a time; what was flushed, and what had left the machine, is there when that has ended."""
    name: str
    mib: int = 1
    queues: int = 16
    cmb: int = 0
    stays: bool = False
    kernel = ''

    def options(self, run):
        cmb = f',cmb_size_mb={self.cmb}' if self.cmb else ''
        file = run.pattern(f'{self.name}.img', self.mib << 20)
        keeps = 'file.locking=off' if self.stays else 'snapshot=on'
        return ['-drive', f'file={file},if=none,id={self.name},format=raw,{keeps}',
                '-device', f'nvme,serial={self.name},drive={self.name},max_ioqpairs={self.queues}{cmb}']


@dataclasses.dataclass(frozen=True)
class Window:
    """ivshmem: memory that all machines with a window of this name have in a BAR."""
    name: str
    mib: int = 16
    kernel = ''

    def options(self, run):
        file = run.memory(self.name, self.mib << 20)
        return ['-object', f'memory-backend-file,id={self.name},size={self.mib}M,mem-path={file},'
                           'share=on',
                '-device', f'ivshmem-plain,memdev={self.name}']


@dataclasses.dataclass(frozen=True)
class Wire:
    """A network of the two machines with a wire of this name: virtio-net, with the module virtio_net."""
    name: str
    kernel = ''

    def options(self, run):
        end, number = run.wire_end(self.name)
        return ['-netdev', f'dgram,id={self.name},local.type=fd,local.str={end}',
                '-device', f'virtio-net-pci,netdev={self.name},mac=52:54:00:00:00:{number:02x}']
