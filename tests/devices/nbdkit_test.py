#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""nbdkit_test.py BUILD CASE - a borrowed device as an NBD disk, by nbdkit's plugin

CASE is one of the functions below. Each starts the controller, the lender and the server that it needs.
"""
import contextlib
import os
import pathlib
import random
import re
import subprocess
import sys

import nbd

import fio
import stand
from stand import check

sys.dont_write_bytecode = True

MIB = 1 << 20
BLOCK = 512


def command(s, *parameters):
    """nbdkit in the foreground, which leaves its files when it ends"""
    for name in ('nbd', 'nbd.pid'):
        (s.folder / name).unlink(missing_ok=True)
    return ['nbdkit', '-f', '--exit-with-parent', '-U', s.folder / 'nbd', '-P', s.folder / 'nbd.pid',
            s.build / 'devices' / 'nbdkit' / 'nbdkit-weft-plugin.so', f'lender={s.socket}', *parameters]


@contextlib.contextmanager
def server(s, *parameters):
    """nbdkit until it is ended; gives its socket"""
    errors = s.folder / 'nbdkit.err'
    with open(errors, 'wb') as out:
        it = subprocess.Popen(list(map(str, command(s, *parameters))), stdin=subprocess.DEVNULL, stdout=out,
                              stderr=out, env={**os.environ, **stand.library_env(s.build)})
    try:
        stand.wait_until('nbdkit', lambda: (s.folder / 'nbd.pid').exists() or it.poll() is not None)
        check(it.poll() is None, f'nbdkit ends with {it.poll()}: {errors.read_text()}')
        yield s.folder / 'nbd'
        it.terminate()
        status = it.wait(10)
        check(status == 0, f'nbdkit ends with {status}: {errors.read_text()}')
    finally:
        if it.poll() is None:
            it.kill()
            it.wait()


@contextlib.contextmanager
def connection(path):
    """A client, which sends what it is told; the server waits for its end"""
    client = nbd.NBD()
    client.set_strict_mode(0)
    client.connect_unix(str(path))
    yield client
    client.shutdown()


def refused(call, what):
    try:
        call()
    except nbd.Error as error:
        return error.errno
    raise stand.Failed(f'{what}: not refused')


def calls(build):
    """Every call of the protocol, and what the server says of its disk."""
    with stand.Stand(build) as s, server(s) as path, connection(path) as client:
        check(client.get_size() == 64 * MIB, f'{client.get_size()} bytes')
        check(client.get_block_size(nbd.SIZE_MINIMUM) in (512, 4096), 'block size')
        check(all((client.can_flush(), client.can_fua(), client.can_trim(), client.can_zero(),
                   client.can_multi_conn())), 'something is not supported')

        data = random.Random(1).randbytes(3 * MIB)
        client.pwrite(data, 5 * MIB)
        check(client.pread(len(data), 5 * MIB) == data, 'a long write is read otherwise')
        client.pwrite(data[:4096], 4096, nbd.CMD_FLAG_FUA)
        check(client.pread(4096, 4096) == data[:4096], 'a write with FUA is read otherwise')
        client.flush()

        client.zero(MIB, 5 * MIB)
        check(client.pread(MIB, 5 * MIB) == bytes(MIB), 'zeros are not zeros')
        client.trim(MIB, 6 * MIB, nbd.CMD_FLAG_FUA)
        check(client.pread(MIB, 6 * MIB) == bytes(MIB), 'what was trimmed is not zeros')
        check(client.pread(MIB, 7 * MIB) == data[2 * MIB:], 'what is behind it has changed')
        client.zero(64 * MIB, 0)
        check(client.pread(MIB, 7 * MIB) == bytes(MIB), 'the whole disk is not zeros')

        check(refused(lambda: client.pread(100, 0), 'part of a block') == 'EINVAL', 'part of a block: another errno')
        refused(lambda: client.pread(4096, 64 * MIB), 'beyond the end')


def connections(build):
    """Connections see each other's writes, and run side by side at depth."""
    with stand.Stand(build) as s, server(s, 'queues=3') as path:
        with connection(path) as first, connection(path) as second:
            data = os.urandom(64 << 10)
            first.pwrite(data, MIB)
            first.flush()
            check(second.pread(len(data), MIB) == data, 'another connection reads otherwise')
        jobs = fio.run_fio({}, '--ioengine=nbd', f'--uri=nbd+unix:///?socket={path}', '--name=verify', '--rw=randrw',
                           '--bs=4k', '--verify=crc32c', '--verify_fatal=1', '--iodepth=32', '--numjobs=3',
                           '--size=4m', '--offset_increment=4m', '--group_reporting')
        check(jobs[0] == 0 and jobs[1] and not jobs[1]['jobs'][0]['error'], f'fio: {jobs[2][-2000:]}')


def file_read_back(build):
    """What was written by the server is in the file behind the device."""
    with stand.Stand(build, stand.Controller(file='disk')) as s:
        data = os.urandom(MIB)
        with server(s) as socket, connection(socket) as client:
            client.pwrite(data, 9 * MIB)
            client.flush()
        with open(s.folder / 'disk', 'rb') as file:
            file.seek(9 * MIB)
            check(file.read(MIB) == data, 'the file has something else')
        # The lease was returned, so that the next server has the device.
        with server(s, 'shared=0') as socket, connection(socket) as client:
            check(client.pread(MIB, 9 * MIB) == data, 'the next server reads otherwise')


def errors(build):
    """A server that can't begin says why."""
    with stand.Stand(build) as s:
        for parameters, reason in ((('nsid=9',), 'queue pair'), (('device=none',), 'borrowing'), (('queues=0',), 'queues'),
                                   (('lender=/nonexistent',), 'no lender'), (('colour=red',), 'unknown')):
            done = subprocess.run(list(map(str, command(s, *parameters))), stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, timeout=20, check=False,
                                  env={**os.environ, **stand.library_env(s.build)})
            check(done.returncode and reason in done.stderr, f'{parameters}: {done.returncode}: {done.stderr}')
    root = pathlib.Path(__file__).resolve().parents[2]
    told = set(re.findall(r'^ *(\w+)=\S+ {2,}', subprocess.run(
        ['nbdkit', '--help', str(build / 'devices' / 'nbdkit' / 'nbdkit-weft-plugin.so')], text=True, check=True,
        capture_output=True, env={**os.environ, **stand.library_env(build)}).stdout, re.M))
    written = set(re.findall(r'^\.It Cm (\w+) Ns =', (root / 'docs' / 'man' / 'nbdkit-weft-plugin.1').read_text(), re.M))
    check(told and told == written, f'parameters: {sorted(told)} and in the page {sorted(written)}')


CASES = (calls, connections, file_read_back, errors)


if __name__ == '__main__':
    sys.exit(stand.run_case(CASES, *sys.argv[1:]))
