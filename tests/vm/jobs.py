# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The jobs: which machines, and what they run. job.py explains the words."""
import os

import kernel_jobs
from job import Command, Iommu, Job, Machine, Module, Nvme, Tests, Window, Wire

# The job 'kofi-blk' loads and unloads its modules so often.
BLK_ROUNDS = max(int(kernel_jobs.ROUNDS or 30) // 5, 5)

# Rounds of the job 'kofi-blk-rates'
RATE_ROUNDS = int(os.environ.get('WEFT_RATE_ROUNDS', '3'))

PINGPONG = '$BUILD/tools/weft pingpong --check --iterations=5 --sizes=8,4k,1M'

NVME = '$(./pci 1b36:0010)'
WINDOW = '/sys/bus/pci/devices/$(./pci 1af4:1110)/resource2'


def half_of_two(name, number, pingpong):
    """One of two machines that a network and a window join."""
    return Machine(name, memory=384, devices=(Wire('wire'), Window('window')), modules=('virtio_net',),
        commands=(
            Command('has an address', address(number + 1)),
            Command('writes and reads the window', f'./meet window && ./window {WINDOW} {number}'),
            Command('bounces messages', f'./meet pingpong && {PINGPONG} {pingpong}'),
        ))


BLK_MODULES = (Module('kofi', 'kernel', 'scripts/kofi-source'), Module('kofi_sockets', 'kernel'),
               Module('kofi_blk', 'kernel'))
LENDER = '/run/lent/lender'
# That of the other machine
FAR = '10.0.0.1'
# Its process, whose name is not that of its program
WATCHDOG = '\\$(grep -lx weft-nvmed-dog /proc/[0-9]*/comm | cut -d/ -f3)'


def address(number):
    return f'ip addr add 10.0.0.{number}/24 dev eth0 && ip link set eth0 up'


def write(seed, blocks, lender=LENDER):
    return f'$BUILD/tests/vm/borrow write {lender} $(({seed} * 8192)) {blocks} {seed}'


def borrowers(how, count, blocks, lender=LENDER):
    """Processes at once, each with blocks of its own. What fails, fails the line."""
    return (f'for n in $(seq {count}); do $BUILD/tests/vm/borrow {how} {lender} $((n * {blocks})) {blocks} $n '
            '& pids="$pids $!"; done; for pid in $pids; do wait $pid || exit 1; done')


def checks(count, blocks):
    """What those have written, in the file of the kernel's driver."""
    return (f'for n in $(seq {count}); do $BUILD/tests/vm/borrow check /dev/nvme0n1 '
            f'$((n * {blocks})) {blocks} $n || exit 1; done')


def fio(lender):
    """Where fio's engine could be built"""
    return ('[ -e $BUILD/devices/fio/weft_fio.so ] && command -v fio >/dev/null || exit 77; '
            f'fio --ioengine=external:$BUILD/devices/fio/weft_fio.so --lender={lender} --shared=1 --thread '
            '--name=verified --filename=nvme --offset=48M --size=2M --rw=randwrite --bs=4k --iodepth=8 '
            '--verify=crc32c --output-format=terse --terse-version=3')


JOBS = (
    # Each feature once, and a selection of tests: make check.
    Job('smoke', seconds=240, machines=(Machine(
        devices=(Iommu(), Nvme('disk')),
        modules=('nvme', 'vfio-pci', 'vfio_iommu_type1'),
        commands=(
            Command("the kernel's driver reads the disk", 'cmp $VM/disk.img /dev/nvme0n1'),
            Command('vfio-pci takes the device', f'./bind vfio-pci {NVME}'),
            Command('the device answers a process through the IOMMU',
                    f'$BUILD/tests/vm/identify {NVME} disk'),
            Command('a controller by VFIO, and a lender', f'./lent nvmed {NVME} && ./lent lender'),
            Command('three borrowers at once', borrowers('write', 3, 512)),
            Command("the kernel's driver reads what they have written",
                    f'./lent stop && ./bind nvme {NVME} && ./lent wait [ -b /dev/nvme0n1 ] && {checks(3, 512)}'),
            Command('messages over shm', f'{PINGPONG} --fork --provider=shm'),
            Command('messages over tcp', f'{PINGPONG} --fork --provider=tcp'),
            Tests(('unit',), ('sys-memfd', 'sys-pidfd', 'sys-process-vm', 'sys-uffd',
                              'sys-local-socket', 'shm', 'shm-inbox', 'shm-wire', 'shm-lent',
                              'shm-coop_copy', 'shm-fork', 'tcp-options', 'tcp-request', 'tcp-hub')),
        )),)),

    # A real controller that is lent, by VFIO.
    Job('mediated', seconds=300, machines=(Machine(
        devices=(Iommu(), Nvme('disk', mib=64, cmb=4)),
        modules=('nvme', 'vfio-pci', 'vfio_iommu_type1'),
        commands=(
            Command("the kernel's driver says what the device is",
                    'mkdir -p /run/lent && ./lent wait [ -b /dev/nvme0n1 ] && '
                    'cp /sys/class/nvme/nvme0/model /sys/class/nvme/nvme0/firmware_rev '
                    '/sys/class/nvme/nvme0/serial /run/lent'),
            Command('vfio-pci takes the device', f'./bind vfio-pci {NVME}'),
            Command('a controller by VFIO', f'./lent nvmed {NVME}'),
            Command('a lender', './lent lender'),
            Command('a borrower', borrowers('write', 1, 4096)),
            Command('three borrowers at once', borrowers('write', 3, 8192)),
            Command('fio verifies what it has written', fio(LENDER)),
            Command("blocks are copied by the device's own memory", f'$BUILD/tests/vm/borrow copy {LENDER} 90000 4096 3'),
            Command('the controller answers for itself', './reports'),
            Command('a hostile borrower, beside one that verifies',
                    f'(while [ ! -e /run/lent/done ]; do {write(4, 2048)} || exit 1; done) & writer=$!; '
                    f'$BUILD/tests/vm/hostile mediated {LENDER} && touch /run/lent/done && wait $writer', seconds=120),
            Command('a borrower is killed',
                    f'./held killed 80000 1024 5 "kill -9 \\$HOLDER" && {write(5, 1024)}'),
            Command('the lender is killed, and I/O goes on',
                    f'./held stays 80000 1024 6 "./lent kill lender; ./lent lender; {write(5, 1024)}"'),
            Command('somebody resets the device',
                    f'./held ends 80000 1024 7 "echo 1 >/sys/bus/pci/devices/{NVME}/reset" && ./lent wait {write(5, 1024)}'),
            Command('the controller is killed',
                    './held ends 80000 1024 8 "./lent kill nvmed" && '
                    f'./lent nvmed {NVME} && ./lent wait {write(5, 1024)}'),
            Command('the device is asked back',
                    f'./held ends 80000 1024 9 "./bind nvme {NVME}" && grep "asked back" /run/lent/nvmed.log'),
            Command("the kernel's driver reads the same bytes",
                    f'./lent stop; ./lent wait [ -b /dev/nvme0n1 ] && {checks(3, 8192)}'),
        )),)),

    # The same, with queue pairs of the controller itself for borrowers that are trusted.
    Job('direct', seconds=300, machines=(Machine(
        devices=(Iommu(), Nvme('disk', mib=64)),
        modules=('nvme', 'vfio-pci', 'vfio_iommu_type1'),
        commands=(
            Command('vfio-pci takes the device', f'./bind vfio-pci {NVME}'),
            Command('a controller by VFIO, and a lender', f'./lent nvmed {NVME} --direct && ./lent lender'),
            Command('a borrower', borrowers('write', 1, 4096)),
            Command('three borrowers at once', borrowers('write', 3, 8192)),
            Command('fio verifies what it has written', fio(LENDER)),
            Command('another user is refused',
                    f'! /usr/bin/setpriv --reuid=1000 --clear-groups {write(4, 8)} 2>/run/lent/why; '
                    'cat /run/lent/why; grep -q "Permission denied" /run/lent/why'),
            Command('a borrower is killed',
                    f'./held killed 80000 1024 5 "kill -9 \\$HOLDER" && {write(5, 1024)}'),
            Command('the lender is killed, and I/O goes on',
                    f'./held stays 80000 1024 6 "./lent kill lender; ./lent lender; {write(5, 1024)}"'),
            Command('a lease ends on time while the lender is stopped',
                    f'LEASE_MS=5000 ./held ends 80000 1024 6 "kill -STOP $(cat /run/lent/lender.pid)"; status=$?; '
                    f'kill -CONT $(cat /run/lent/lender.pid); [ $status -eq 0 ] && ./lent wait {write(5, 1024)}'),
            Command('a hostile borrower, beside others',
                    f'./held stays 80000 1024 6 "$BUILD/tests/vm/hostile direct {LENDER}" && {write(5, 1024)}', seconds=120),
            Command('a borrower resets the function, and others are told',
                    f'./held ends 80000 1024 6 "$BUILD/tests/vm/hostile reset {LENDER}" && '
                    f'./lent wait {write(5, 1024)}'),
            Command('a borrower disables the controller, and others are told',
                    f'./held ends 80000 1024 6 "$BUILD/tests/vm/hostile disable {LENDER}" && '
                    f'./lent wait {write(5, 1024)}'),
            Command('a lease is revoked',
                    f'./held ends 80000 1024 6 "./revoke" && {write(5, 1024)}'),
            Command('somebody resets the device',
                    f'./held ends 80000 1024 7 "echo 1 >/sys/bus/pci/devices/{NVME}/reset" && ./lent wait {write(5, 1024)}'),
            Command('the controller is killed, and its borrower is gone before the device is',
                    './held over 80000 1024 8 "./lent kill nvmed"'),
            Command("the kernel's driver reads the same bytes after that",
                    f'./lent wait ./bind nvme {NVME} && ./lent wait [ -b /dev/nvme0n1 ] && {checks(3, 8192)}'),
            Command('and borrowers write on',
                    f'./bind vfio-pci {NVME} && ./lent nvmed {NVME} --direct && ./lent wait {write(5, 1024)}'),
            Command('the watchdog is killed, and its borrower ended',
                    f'./held ends 80000 1024 9 "kill -9 {WATCHDOG}" && grep watchdog /run/lent/nvmed.log && '
                    f'! {write(5, 8)} 2>/run/lent/why; grep "No space" /run/lent/why'),
            Command("the kernel's driver reads the same bytes",
                    f'./lent stop; ./bind nvme {NVME} && ./lent wait [ -b /dev/nvme0n1 ] && {checks(3, 8192)}'),
        )),)),

    # The controller of one machine, used from another: what is asked of the lender goes over the network, queues and
    # data are in memory that both have.
    Job('bridge', seconds=240, machines=(
        Machine('a', memory=384, devices=(Iommu(), Nvme('disk', mib=64), Window('window'), Wire('wire')),
            modules=('nvme', 'vfio-pci', 'vfio_iommu_type1', 'virtio_net'),
            commands=(
                Command('has an address', address(1)),
                Command('vfio-pci takes the device', f'./bind vfio-pci {NVME}'),
                Command('a controller with a bridge, and a lender',
                        f'./lent nvmed {NVME} --bridge=$(./pci 1af4:1110) && '
                        './lent lender --fabric=tcp --address=10.0.0.1'),
                Command('a borrower of this machine', borrowers('write', 1, 4096)),
                Command('what commands take here', f'./meet lent && $BUILD/tests/vm/bridge {LENDER} && ./meet timed'),
                Command('serves the other machine', './meet used', seconds=120),
                Command('the controller is killed while it does', './meet holds && ./lent kill nvmed && ./meet ended'),
                Command("the kernel's driver reads what the other machine has written",
                        f'./lent wait ./bind nvme {NVME} && ./lent wait [ -b /dev/nvme0n1 ] && {checks(3, 4096)}'),
            )),
        Machine('b', memory=384, devices=(Window('window'), Wire('wire')), modules=('virtio_net',),
            commands=(
                Command('has an address', address(2)),
                Command('sees the device', f'./meet lent && $BUILD/tools/weft devices --lender={FAR} | grep -i nvme'),
                Command('three borrowers at once', f'./meet timed && {borrowers("write", 3, 4096, FAR)}'),
                Command('what commands take over the bridge', f'$BUILD/tests/vm/bridge {FAR}'),
                Command('fio verifies what it has written', fio(FAR)),
                Command('a borrower is killed, and another one goes on',
                        f'./held killed 80000 1024 5 "kill -9 \\$HOLDER" {FAR} && {write(5, 1024, FAR)}'),
                Command('the controller is killed, and who is at it is told',
                        f'./meet used && ./held ends 80000 1024 6 "./meet holds" {FAR}; status=$?; ./meet ended; '
                        'exit $status', seconds=120),
            )),
    )),

    # What asks most of the kernel, over that of Debian.
    Job('unit', seconds=900, machines=(Machine(
        commands=(
            Tests(('unit',), ('sys-*', 'shm*', 'tcp-*', 'no descriptor*')),
        )),)),

    Job('two', seconds=240, machines=(
        half_of_two('a', 0, '--provider=tcp --source=10.0.0.1 --timeout=50'),
        half_of_two('b', 1, '--provider=tcp --source=10.0.0.2 10.0.0.1'),
    )),

    # A module of ours, and what a bug of it comes to; a command that hangs.
    Job('module', seconds=120, machines=(Machine(
        modules=(Module('weft_vm', 'tests/vm/module'),),
        commands=(
            Command('hangs', 'sleep 1000', seconds=2),
            Command('asks the module', '[ $(cat /sys/module/weft_vm/parameters/cpus) = 2 ]'),
            Command('is a bug', 'echo 3 >/sys/module/weft_vm/parameters/cpus; sleep 1000', seconds=1000),
            Command('is not reached', 'true'),
        )),),
        wanted=('OK', 'TIMEOUT', 'OK', 'FAIL', 'FAIL')),

    *kernel_jobs.JOBS,

    # A device that another host lends over TCP is a disk of this one; the host is the same machine.
    Job('kofi-blk', seconds=420, machines=(Machine(
        memory=768,
        kernel='slub_debug=FZP,kmalloc-*',
        modules=('ext4', *BLK_MODULES),
        commands=(
            Command('a keeper and a controller that do wrong', '$BUILD/tests/vm/false_controller', seconds=120),
            Command('a controller over a file, and a lender', './disk lent'),
            Command('a keeper makes a disk', './disk keep --fail=20'),
            Command('what is written is read, and is in the file',
                    'dd if=/dev/urandom of=/run/disk/some bs=64k count=16 && '
                    'dd if=/run/disk/some of=/dev/kofiblk0 bs=64k oflag=direct && '
                    'dd if=/dev/kofiblk0 of=/run/disk/back bs=64k count=16 iflag=direct && '
                    'cmp /run/disk/some /run/disk/back && cmp -n 1048576 /run/disk/some /run/disk/backing'),
            Command('modules in use are not unloaded', './disk stays kofi_blk && ./disk stays kofi_sockets'),
            Command('a tree is copied, and read after it was mounted again', './disk tree'),
            Command('a disk in use is not removed',
                    'kill $(cat /run/disk/keeper.pid) && ./disk wait grep busy /run/disk/keeper.log && '
                    '[ -b /dev/kofiblk0 ]'),
            Command('the controller is killed and started again', './disk killed', seconds=120),
            Command('without one requests fail, and go on with the next', './disk gone', seconds=120),
            Command('the keeper is killed', './disk bereft'),
            Command('another keeper makes a disk', './disk wait ./disk keep --fail=300'),
            Command('fio verifies what it has written, also when the controller is killed', './disk verified', seconds=120),
            Command('a controller that says nothing is given up after 30 s', './disk silent', seconds=120),
            Command('a disk is removed, and its modules',
                    './disk end keeper && [ ! -e /dev/kofiblk0 ] && rmmod kofi_blk kofi_sockets kofi'),
            Command(f'{BLK_ROUNDS} rounds of loading, borrowing, returning and unloading leave nothing',
                    f'./disk rounds {BLK_ROUNDS}', seconds=30 + 6 * BLK_ROUNDS),
        )),)),

    # The machine that lends is gone from one moment to the next, while what the other one writes is flushed block by block.
    # Its disk is then lent again, by the other machine: what was flushed is there.
    Job('kofi-blk-lost', seconds=300, machines=(
        Machine('a', memory=384, devices=(Nvme('disk', mib=64, stays=True), Wire('wire')), modules=('nvme', 'virtio_net'),
            commands=(
                Command('has an address', address(1)),
                Command('a controller over its disk, and a lender',
                        'BACKING=/dev/nvme0n1 AT=10.0.0.1 WEFT_LENDER=10.0.0.1 ./disk lent && ./meet lent'),
                Command('is gone while the other one writes',
                        './meet writes && sleep 5 && echo b >/proc/sysrq-trigger; sleep 1000', seconds=120, dies=True),
            )),
        Machine('b', memory=384, devices=(Nvme('disk', mib=64, stays=True), Wire('wire')),
            modules=('virtio_net', *BLK_MODULES),
            commands=(
                Command('has an address', address(2)),
                Command('a keeper makes a disk', f'./meet lent && WEFT_LENDER={FAR} ./disk keep --fail=2'),
                Command('writes, and flushes each block, until the lender is gone',
                        './meet writes && ./flushed write /dev/kofiblk0 /run/flushed 7', seconds=120),
                Command('the disk is returned', './disk end keeper'),
                Command('lends the same disk itself',
                        'modprobe nvme && ./disk wait [ -b /dev/nvme0n1 ] && BACKING=/dev/nvme0n1 ./disk lent && ./disk keep'),
                Command('all that was flushed is there', './flushed compare /dev/kofiblk0 /run/flushed 7', seconds=120),
            )),
    )),

    # What such a disk does in a second, beside the kernel's own: figures, of which none fails.
    Job('kofi-blk-rates', seconds=90 + 50 * RATE_ROUNDS, machines=(Machine(
        memory=1024,
        modules=('nvmet-tcp', 'nvme-tcp', *BLK_MODULES),
        commands=(
            Command('a controller over a file, and a lender', './disk lent'),
            Command('a keeper makes a disk', './disk keep'),
            Command('reads and writes of 4 KiB',
                    f'command -v fio >/dev/null || exit 77; RATE_ROUNDS={RATE_ROUNDS} ./disk rates',
                    seconds=50 + 50 * RATE_ROUNDS, figures=True),
        )),)),

    # The same by what it costs: one processor, whose clock counts instructions, so that a second is 10^9 of them.
    Job('kofi-blk-cost', seconds=300, machines=(Machine(
        cpus=1, counts=True, memory=1024,
        modules=('nvmet-tcp', 'nvme-tcp', *BLK_MODULES),
        commands=(
            Command('a controller over a file, and a lender', './disk lent'),
            Command('a keeper makes a disk', './disk keep'),
            Command('what reads and writes of 4 KiB take',
                    'command -v fio >/dev/null || exit 77; RATE_ROUNDS=1 RATE_SECONDS=1 ./disk rates',
                    seconds=240, figures=True),
        )),)),

    # Another processor, emulated whole: what qemu-user can't do (tests/arm64/cannot.txt), and shm.
    Job('arm64', seconds=1800, machines=(Machine(arch='aarch64', memory=1024,
        commands=(
            Tests(('unit',), ('sys-*', 'shm*', 'mem-*', 'mem fork*', 'mem freed', 'accessible', 'mr_checks'),
                  seconds=300),
            Tests(('survive',), ('*shm*',), seconds=300, env=(('SURVIVE_ROUNDS', '5'),)),
            Tests(('stress',), ('*_shm*', '*over shm*'), seconds=300),
        )),)),
)

# The disk of the kernel, on the kernel that looks for errors
JOBS += tuple(kernel_jobs.debug(job) for job in JOBS if job.name == 'kofi-blk')
