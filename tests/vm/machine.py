# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs a job: starts its machines, watches their consoles, collects what its commands left.

QEMU ends with this process however that ends, by the kernel's parent-death signal; what machines
share has no name outside their run.
"""
import dataclasses
import fcntl
import math
import os
import pathlib
import re
import selectors
import shlex
import shutil
import socket
import subprocess
import tempfile
import time

from initrd import initrd
from job import DebianModule, Module
from packages import Failed, Unavailable, command, own_arch

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent

# How a kernel says that it is broken.
TROUBLE = re.compile(rb'Kernel panic|Oops[: -]|kernel BUG at|BUG: |BUG \S+ \(|Internal error: |WARNING: CPU:|'
                     rb'Unable to handle kernel|general protection fault, |'
                     # of lockdep
                     rb'WARNING: (?:possible|suspicious|inconsistent|bad |Nested |held lock|lock held|\S+-safe -> )|'
                     rb'still has locks held|INFO: trying to register non-static key|'
                     # of kmemleak
                     rb'unreferenced object 0x')
# How long it may go on to say why.
TROUBLE_SECONDS = 3
# What of a console is printed.
TAIL = 6000
MACHINE_ENDED = 'its machine had ended'

# A processor's QEMU, its options and the kernel's. lpj: an emulated clock is no good for measuring.
QEMU = {
    'x86_64': (['qemu-system-x86_64', '-M', 'q35'],
               'console=ttyS0 no_timer_check lpj=10000000 mitigations=off'),
    'aarch64': (['qemu-system-aarch64', '-M', 'virt,gic-version=3'], 'console=ttyAMA0'),
}
# The best processor that is emulated, but what takes an emulator long: another level of page tables, pointers
# that are signed, and copies by `rep movsb`, which it carries out byte after byte.
CPU = {'x86_64': 'max,la57=off,erms=off', 'aarch64': 'neoverse-n1'}
# A warning is an error. A host that is busy is no deadlock of the machine.
KERNEL = 'loglevel=5 panic=-1 panic_on_warn=1 oops=panic nowatchdog net.ifnames=0'

# Of modules: a warning is an error, those of sparse too where that is installed. What a debugger needs would be most of
# their length, and of the time that they take.
MODULES = ['W=1', 'KCFLAGS=-Werror', 'DEBUG_CFLAGS=', *(['C=1', 'CF=-Wsparse-error'] if shutil.which('sparse') else [])]

CROSS = {'aarch64': ['ARCH=arm64', 'CROSS_COMPILE=aarch64-linux-gnu-']}

KVM_CREATE_VM = 0xae01


def kvm_usable(arch):
    """KVM for a processor of this machine's kind. Where neither module is there, /dev/kvm may be that
    of a host which can do less (nested, without VT-x or SVM)."""
    if arch != own_arch() or os.environ.get('WEFT_VM_ACCEL') == 'tcg':
        return False
    if arch == 'x86_64' and not any(pathlib.Path('/sys/module', name).is_dir()
                                    for name in ('kvm_intel', 'kvm_amd')):
        return False
    try:
        descriptor = os.open('/dev/kvm', os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.close(fcntl.ioctl(descriptor, KVM_CREATE_VM, 0))
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def patience(arch):
    """By how much bounds, which are for a processor of its own, are longer: an emulated one is slow, and
    has its share of a busy host. What waits for nothing that comes takes that much longer to be found."""
    if kvm_usable(arch):
        return 1
    return min(3 + os.getloadavg()[0] / len(os.sched_getaffinity(0)), 10)


@dataclasses.dataclass
class Outcome:
    """How a command ended: result is what meson's log calls it, OK, FAIL, TIMEOUT or SKIP. printed: its text is,
    also when it has passed."""
    name: str
    result: str
    seconds: float
    text: str
    printed: bool = False


@dataclasses.dataclass(frozen=True)
class Trouble:
    """Where on the console the kernel said it, and when that was read."""
    at: int
    since: float


@dataclasses.dataclass(frozen=True)
class End:
    """Why machines have ended; late: their time was up."""
    why: str
    late: bool


class Run:
    """The folder of one run of a job, and what its machines share. Use it in a `with`."""

    def __init__(self, job, keep=False):
        self.job = job
        self.keep = keep
        self.processes = []
        self.descriptors = []
        self.memories = {}
        self.wires = {}

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='weft-vm.'))
        return self

    def __exit__(self, *exc):
        self.kill()
        for descriptor in self.descriptors:
            os.close(descriptor)
        if self.keep:
            print(f'the folder of the run is {self.folder}')
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self):
        """End all of its machines."""
        for process in self.processes:
            process.kill()
            process.wait()

    def pattern(self, name, length):
        """A file of the run's folder in which every 16 bytes say where they are."""
        path = self.folder / name
        path.write_bytes(b''.join(b'%15d\n' % at for at in range(0, length, 16)))
        return path

    def module(self, described, arch, packages):
        """Build a job.Module, with the others of its folder, once; the path of its file."""
        if isinstance(described, DebianModule):
            built = packages.module(described.name, described.folder, described.option, arch)
            return pathlib.Path(shutil.copy(built, self.folder))
        folder = self.folder / f'{described.folder.replace("/", "-")}-{arch}'
        if not folder.exists():
            source = SOURCE
            if described.sources:
                source = self.folder / f'sources-{folder.name}'
                command([SOURCE / described.sources, source])
            shutil.copytree(source / described.folder, folder)
            options = [] if arch == own_arch() else CROSS[arch]
            # What modules that were built before export to this one.
            symbols = ' '.join(map(str, sorted(self.folder.glob(f'*-{arch}/Module.symvers'))))
            command(['make', '-s', f'-j{len(os.sched_getaffinity(0))}', '-C', packages.headers(arch), f'M={folder}',
                     f'WEFT={source}', f'KBUILD_EXTRA_SYMBOLS={symbols}', *MODULES, *options, 'modules'])
            check_patch(packages.headers(arch), sorted((source / described.folder).rglob('*.[ch]')))
        return folder / f'{described.name}.ko'

    def memory(self, name, length):
        """The path of memory that all devices of that name share."""
        if name not in self.memories:
            descriptor = os.memfd_create(f'weft-vm-{name}')
            os.ftruncate(descriptor, length)
            self.descriptors.append(descriptor)
            self.memories[name] = descriptor
        return f'/dev/fd/{self.memories[name]}'

    def wire_end(self, name):
        """A free end of a wire, and its number."""
        if name not in self.wires:
            ends = [end.detach() for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)]
            self.descriptors += ends
            self.wires[name] = list(enumerate(ends, 1))
        number, end = self.wires[name].pop(0)
        return end, number


def check_patch(headers, sources):
    """No errors by the kernel's own checker of sources, where there is one: the debugging kernel has it, Debian's
    headers have not. Its warnings are matters of style, of which this project has its own."""
    checker = headers / 'scripts' / 'checkpatch.pl'
    if not checker.exists() or not shutil.which('perl'):
        return
    said = subprocess.run(['perl', checker, '--no-tree', '--terse', '--no-summary', '--file', *sources],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    errors = [line for line in said.stdout.splitlines() if ' ERROR: ' in line]
    if errors or not said.stdout and said.returncode:
        raise Failed('\n'.join(['checkpatch finds errors:', *errors, said.stderr]))


def inside(module, run):
    """What a machine calls a module: a file of the run's folder has another path there."""
    return str(module) if isinstance(module, str) else f'/run/vm/{module.relative_to(run.folder)}'


class Guest:
    """A machine while it runs."""

    def __init__(self, run, machine, commands):
        self.machine = machine
        self.commands = commands    # of the class Command; number 0 loads the modules
        self.folder = run.folder / machine.name
        self.console = b''
        self.trouble = None
        self.process = None
        self.told = set()

    def write_job(self, run, build, packages, shell):
        """What inside/main reads."""
        self.folder.mkdir()
        modules = [run.module(module, self.machine.arch, packages) if isinstance(module, Module)
                   else module for module in self.machine.modules]
        own = self.machine.arch == own_arch()
        lines = [f'own={"yes" if own else "no"}',
                 f'export SOURCE={shlex.quote(str(SOURCE))} BUILD={shlex.quote(str(build))}',
                 shlex.join(['load', '0', *(inside(module, run) for module in modules)])]
        if shell:
            lines.append('shell')
            lines.append('return')
        patient = patience(self.machine.arch)
        for number, command in enumerate(self.commands[1:], 1):
            seconds = math.ceil(command.seconds * patient)
            lines.append(f'run {number} {seconds} {shlex.quote(str(HERE / "inside"))} '
                         f'{shlex.quote(command.line)}')
        (self.folder / 'job').write_text('\n'.join(lines) + '\n')

    def settings(self, kernel):
        own = 'yes' if self.machine.arch == own_arch() else 'no'
        named = {'machine': self.machine.name, 'main': HERE / 'inside' / 'main', 'own': own,
                 'release': kernel.release, 'modules': kernel.modules}
        return ''.join(f'{name}={shlex.quote(str(value))}\n' for name, value in named.items())

    def command_line(self, run, packages):
        """QEMU's, with its initrd in the machine's folder."""
        machine = self.machine
        options, kernel_options = QEMU[machine.arch]
        if not shutil.which(options[0]):
            raise Unavailable(f'{options[0]} is not installed')
        kernel = packages.kernel(machine.arch)
        busybox = packages.unpacked('busybox-static', machine.arch) / 'bin' / 'busybox'
        first = self.folder / 'initrd'
        first.write_bytes(initrd(kernel.modules, busybox, HERE / 'init', self.settings(kernel)))
        if machine.counts:
            accelerator = ['-accel', 'tcg,thread=single', '-icount', 'shift=0', '-cpu', CPU[machine.arch]]
        elif kvm_usable(machine.arch):
            # An IOMMU that remaps interrupts wants the chip for them in QEMU.
            chip = ',kernel-irqchip=split' if machine.arch == 'x86_64' else ''
            accelerator = ['-accel', f'kvm{chip}', '-cpu', 'host']
        else:
            accelerator = ['-accel', 'tcg,thread=multi', '-cpu', CPU[machine.arch]]
        # An IOMMU is for the devices behind it.
        devices = sorted(machine.devices, key=lambda device: not device.kernel)
        append = [KERNEL, kernel_options, machine.kernel, *(device.kernel for device in devices)]
        return [*options, *accelerator, '-smp', str(machine.cpus), '-m', str(machine.memory),
                '-nodefaults', '-no-user-config', '-no-reboot', '-nographic',
                '-kernel', str(kernel.image), '-initrd', str(first),
                '-append', ' '.join(filter(None, append)),
                '-virtfs', 'local,path=/,mount_tag=host,security_model=none,readonly=on,'
                           'multidevs=remap',
                '-virtfs', f'local,path={run.folder},mount_tag=run,security_model=none',
                *(option for device in devices for option in device.options(run))]

    def start(self, argv, run, shell):
        """Start QEMU; with a shell its console is this terminal."""
        plumbing = {} if shell else {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE,
                                     'stderr': subprocess.STDOUT}
        self.process = subprocess.Popen(
            ['setpriv', '--pdeathsig', 'KILL', '--', *argv, '-serial', 'mon:stdio' if shell else 'stdio'],
            pass_fds=run.descriptors, **plumbing)
        run.processes.append(self.process)
        if not shell:
            os.set_blocking(self.process.stdout.fileno(), False)

    def read_console(self):
        """Take what the console said; False at its end."""
        try:
            said = os.read(self.process.stdout.fileno(), 65536)
        except BlockingIOError:
            return True
        # What was cut by the last read is found now.
        begin = max(len(self.console) - 100, 0)
        self.console += said
        found = None if self.trouble else TROUBLE.search(self.console, begin)
        if found:
            self.trouble = Trouble(found.start(), time.monotonic())
        return bool(said)

    def new_outcomes(self):
        """Those of commands that have ended since the last call."""
        for number, command in enumerate(self.commands):
            status = self.folder / f'{number}.status'
            if number in self.told or not status.exists():
                continue
            self.told.add(number)
            how, since, now = status.read_text().split()
            result = {'0': 'OK', '77': 'SKIP', 'timeout': 'TIMEOUT'}.get(how, 'FAIL')
            text = self.output(number)
            if result in {'FAIL', 'TIMEOUT'}:
                text += f'\nstatus {how}'
            yield Outcome(command.name, result, float(now) - float(since), text, command.figures)

    def unfinished(self, end):
        """The outcomes of commands that did not end: the first of them was running."""
        left = [number for number in range(len(self.commands)) if number not in self.told]
        if left and self.commands[left[0]].dies and end.why == MACHINE_ENDED:
            yield Outcome(self.commands[left.pop(0)].name, 'OK', 0, '')
        for number in left:
            text = f'did not end: {end.why}' if number == left[0] else 'was not reached'
            yield Outcome(self.commands[number].name, 'TIMEOUT' if end.late else 'FAIL', 0,
                          f'{self.output(number)}\n{text}')

    def console_text(self):
        """The end of what the console said, or where trouble began."""
        begin = max(self.trouble.at - TAIL // 4 if self.trouble else len(self.console) - TAIL, 0)
        return self.console[begin:begin + TAIL].decode(errors='replace').strip()

    def output(self, number):
        file = self.folder / f'{number}.out'
        return file.read_text(errors='replace') if file.exists() else ''


def watch(guests, seconds, report):
    """Until all machines have ended: an End. Trouble of one ends all."""
    deadline = time.monotonic() + seconds
    end = None
    with selectors.DefaultSelector() as selector:
        for guest in guests:
            selector.register(guest.process.stdout, selectors.EVENT_READ, guest)
        while selector.get_map():
            for key, _ in selector.select(0.1):
                if not key.data.read_console():
                    selector.unregister(key.fileobj)
            for guest in guests:
                for outcome in guest.new_outcomes():
                    report(guest, outcome)
            end = end or reason_to_end(guests, deadline, seconds)
            if end:
                for guest in guests:
                    guest.process.kill()
    for guest in guests:
        guest.process.wait()
        for outcome in guest.new_outcomes():
            report(guest, outcome)
        end = end or trouble_of(guest)
    return end or End(MACHINE_ENDED, False)


def trouble_of(guest):
    if not guest.trouble:
        return None
    # All of the line, whose end may have been read later.
    line = guest.console[guest.trouble.at:].split(b'\r', 1)[0]
    return End(f'kernel of {guest.machine.name}: {line.decode(errors="replace")}', False)


def reason_to_end(guests, deadline, seconds):
    """The End of a job that is to be ended."""
    now = time.monotonic()
    if now > deadline:
        return End(f'the job took longer than {seconds} s', True)
    for guest in guests:
        if guest.trouble and (now > guest.trouble.since + TROUBLE_SECONDS or
                              guest.process.poll() is not None):
            return trouble_of(guest)
    return None
