#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""fio_test.py BUILD CASE - fio's jobs on borrowed devices, by its external engine

CASE is one of the functions below. Each starts the controller and the lender that it needs.
"""
import pathlib
import re
import signal
import subprocess
import sys

import fio
import stand
from stand import check

sys.dont_write_bytecode = True

MIB = 1 << 20
VERIFY = ('--rw=randrw', '--bs=4k', '--verify=crc32c', '--verify_fatal=1', '--group_reporting')


def verified(s, *options, jobs=1, size=8 * MIB):
    """A verified mix of reads and writes, each job in a part of its own"""
    done = fio.jobs(s, '--name=verify', *VERIFY, f'--numjobs={jobs}', f'--size={size}',
                    f'--offset_increment={size}', *options)[0]
    # Half of it is read in the mix, the rest was written and is read again.
    check(done['read']['io_bytes'] >= jobs * size, f'verified {done["read"]["io_bytes"]} bytes')
    return done


def memory_verify(build):
    """One job at depth 32, and one that begins in batches and waits for several."""
    with stand.Stand(build) as s:
        verified(s, '--iodepth=32')
        verified(s, '--iodepth=32', '--iodepth_batch=8', '--iodepth_batch_complete_min=4')
        verified(s, '--iodepth=1', size=MIB)


def memory_shared(build):
    """Four processes share the device."""
    with stand.Stand(build) as s:
        verified(s, '--iodepth=32', '--shared=1', jobs=4)


def memory_threads(build):
    """Four threads have one lease."""
    with stand.Stand(build) as s:
        verified(s, '--iodepth=32', '--thread', jobs=4)


def file_verify(build):
    """A file is behind the device, and has what was written afterwards."""
    with stand.Stand(build, stand.Controller(file='disk')) as s:
        verified(s, '--iodepth=32')
        verified(s, '--iodepth=32', '--shared=1', jobs=4)
        fio.jobs(s, '--name=fill', '--rw=write', '--bs=64k', '--size=1m', '--offset=32m', '--buffer_pattern=0xa5',
                 '--end_fsync=1')
        with open(s.folder / 'disk', 'rb') as file:
            file.seek(32 * MIB)
            check(file.read(MIB) == b'\xa5' * MIB, 'the file has something else')


def blocking(build):
    """Jobs that sleep until the device interrupts."""
    with stand.Stand(build) as s:
        verified(s, '--iodepth=32', '--blocking=1', '--shared=1', jobs=4, size=2 * MIB)
        job = fio.jobs(s, '--name=idle', '--rw=randread', '--bs=4k', '--blocking=1', '--rate_iops=500',
                       '--rate_process=poisson', '--number_ios=1000')[0]
        check(job['read']['total_ios'] > 100, f'{job["read"]["total_ios"]} reads')


def other_calls(build):
    """Trims leave zeros; flushes; writes to the medium; blocks of every size."""
    with stand.Stand(build) as s:
        fio.jobs(s, '--name=fill', '--rw=write', '--bs=1m', '--size=8m', '--buffer_pattern=0x5a')
        fio.jobs(s, '--name=trim', '--rw=randtrim', '--bs=4k', '--size=4m', '--iodepth=16')
        fio.jobs(s, '--name=zeros', '--rw=read', '--bs=64k', '--size=4m', '--verify=pattern',
                 '--verify_pattern=0', '--do_verify=1', '--verify_only=0')
        fio.jobs(s, '--name=sync', '--rw=randwrite', '--bs=4k', '--size=2m', '--iodepth=8', '--fsync=4', '--sync=1')
        verified(s, '--iodepth=16', '--bsrange=512-64k', '--bs_unaligned=0', '--blockalign=512')


def errors(build):
    """What does not fit is refused with an errno and a reason."""
    with stand.Stand(build) as s:
        for options, errno in ((('--bs=100',), 22), (('--bs=4k', '--nsid=7'), 19), (('--bs=4k', '--device=none'), 19),
                               (('--bs=4k', '--nrfiles=2'), 22), (('--bs=64m', '--size=64m'), 22)):
            status, _, said = fio.on_device(s, '--name=wrong', '--rw=randread', *options)
            check(status and f'err={errno}/' in said and 'weft: ' in said, f'{options}: status {status}:\n{said}')
    status, _, said = fio.run_fio(stand.library_env(s.build), fio.engine(s.build), '--lender=/nonexistent/lender',
                                  '--name=nobody', '--rw=randread')
    check(status and 'looking for the device' in said, f'no lender: status {status}:\n{said}')


def ticket(build):
    """Processes use a lease that was borrowed before, and leave it as it is."""
    with stand.Stand(build) as s:
        it = s.weft_devices('borrow')['ticket']
        verified(s, '--iodepth=32', f'--ticket={it}', jobs=4, size=MIB)
        status, _, said = fio.on_device(s, '--name=other', '--rw=randread', '--runtime=1', '--time_based')
        check(status and 'busy' in said, f'another borrower: status {status}:\n{said}')
        verified(s, '--iodepth=32', f'--ticket={it}', size=MIB)
        check(len(s.leases()) == 1, 'the lease has gone')


def exclusive(build):
    """Processes that do not share are told how they would."""
    with stand.Stand(build) as s:
        status, _, said = fio.on_device(s, '--name=alone', '--rw=randread', '--numjobs=2', '--runtime=30', '--time_based',
                                        '--exitall_on_error')
        check(status and 'shared=1' in said, f'status {status}:\n{said}')
        verified(s, '--iodepth=4', size=MIB)


def lease_ends(build):
    """The lender is killed: I/O goes on until the lease ends, and then fails; nothing hangs."""
    with stand.Stand(build) as s:
        command = ['fio', fio.engine(s.build), f'--lender={s.socket}', '--name=lost', '--rw=randread', '--bs=4k',
                   '--iodepth=32', '--time_based', '--runtime=120', '--lease_ms=12000', '--output-format=terse',
                   '--clocksource=clock_gettime']
        for _ in range(fio.TRIES):
            job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True, text=True,
                                   env={**stand.os.environ, **stand.library_env(s.build)})
            stand.wait_until('a read', lambda job=job: job.poll() is not None or s.reads() > 0)
            if job.poll() is None:
                break
            # On a machine with much to do fio ends a job that has not begun.
            said = job.communicate()[0]
            check('failed to start' in said, f'status {job.returncode}:\n{said[-2000:]}')
        s.lender.signal(signal.SIGKILL)
        try:
            said = job.communicate(timeout=12 + 30)[0]
        except subprocess.TimeoutExpired:
            job.kill()
            job.communicate()
            raise stand.Failed('fio hangs after its lease has ended') from None
        check(job.returncode and re.search(r'err=(116|125)/', said), f'status {job.returncode}:\n{said[-2000:]}')


def documented(build):
    """weft-fio(1) has the engine's options, and no others."""
    root = pathlib.Path(__file__).resolve().parents[2]
    shown = subprocess.run(['fio', f'--enghelp={build / "devices" / "fio" / "weft_fio.so"}'], text=True, check=True,
                           stdout=subprocess.PIPE, env={**stand.os.environ, **stand.library_env(build)}).stdout
    told = set(re.findall(r'^(\w+) +:', shown, re.M))
    written = set(re.findall(r'^\.It Cm (\w+) Ns =', (root / 'docs' / 'man' / 'weft-fio.1').read_text(), re.M))
    check(told and told == written, f'{sorted(told)} and in the page {sorted(written)}')


CASES = (memory_verify, memory_shared, memory_threads, file_verify, blocking, other_calls, errors, ticket, exclusive,
         lease_ends, documented)


if __name__ == '__main__':
    sys.exit(stand.run_case(CASES, *sys.argv[1:]))
