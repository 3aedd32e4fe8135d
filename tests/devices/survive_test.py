#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""survive_test.py BUILD PROGRAM BEHIND [ROUNDS] - borrowers are killed at depth 32, and nobody else is harmed

BEHIND is what the controller has: memory, or a file. ROUNDS is also what WEFT_SURVIVE_ROUNDS says. Once all is over the
controller and the lender have as many descriptors, threads and mappings as before, and not more memory.
"""
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time

import stand

sys.dont_write_bytecode = True

# About 10 s on two processors with nothing else to do.
ROUNDS = 300

# What a process may have grown by, whatever the number of rounds: its allocator does not give all back.
GROWTH_KIB = 16 << 10


def threads_of(pid):
    """How many threads a process has of its own: the kernel's workers of an io_uring come and go as it likes."""
    cnt = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        # A thread may have ended meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            cnt += not pathlib.Path(f'/proc/{pid}/task/{task}/comm').read_text(encoding='utf-8').startswith('iou-')
    return cnt


class Resources:
    """What a process has"""

    def __init__(self, pid):
        self.descriptors = len(os.listdir(f'/proc/{pid}/fd'))
        status = open(f'/proc/{pid}/status', encoding='ascii').read()
        self.threads = threads_of(pid)
        self.anonymous_kib = int(re.search(r'^RssAnon:\s+(\d+)', status, re.M)[1])
        with open(f'/proc/{pid}/maps', encoding='utf-8') as maps:
            self.mappings = sum('/memfd:' in line for line in maps)

    def counted(self):
        return self.descriptors, self.threads, self.mappings


def all_of(s):
    # The lender closes what watchers have left when the next one comes, which asking for leases does.
    if s.leases():
        raise stand.Failed('there are leases')
    return [Resources(process.pid) for process in (*s.controllers, s.lender)]


def counted(s):
    return [it.counted() for it in all_of(s)]


def run(s, program, rounds):
    seed = int.from_bytes(os.urandom(4), 'little')
    done = subprocess.run([program, s.socket, str(rounds), str(seed)], text=True, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60 + rounds,
                          env={**os.environ, **stand.library_env(s.build)})
    if done.returncode:
        raise stand.Failed(f'seed {seed}: {done.stdout}\n{s.lender.text()}\n{s.controllers[0].text()}')
    return done.stdout


def keeps_freed(s):
    """Whether the controller is built so that freed memory is kept for a while"""
    return b'__asan_init' in (s.build / 'devices' / 'nvmed' / 'weft-nvmed').read_bytes()


def killed(s, program, rounds):
    # The first rounds have each process make what it keeps.
    run(s, program, 4)
    stand.wait_until('leases end', lambda: not s.leases())
    stand.wait_until('nothing more ends', lambda: counted(s) == counted(s))
    before = all_of(s)
    began = time.monotonic()
    print(run(s, program, rounds), end='')
    print(f'{time.monotonic() - began:.1f} s')
    stand.wait_until('leases end', lambda: not s.leases())
    device = s.weft_devices('list')['devices'][0]
    if device['queue_pairs_free'] != device['queue_pairs']:
        raise stand.Failed(f'queue pairs are lost: {device}')
    want, now = [it.counted() for it in before], []

    # What a process was about to close then may be among what it had.
    def none_more():
        now[:] = counted(s)
        return all(cnt <= most for is_, had in zip(now, want) for cnt, most in zip(is_, had))

    try:
        stand.wait_until('no more than before', none_more)
    except stand.Failed as why:
        raise stand.Failed(f'descriptors, threads and mappings, {want} before, {now} after: {why}') from None
    for old, new in zip(before, all_of(s)):
        if new.anonymous_kib > old.anonymous_kib + GROWTH_KIB and not keeps_freed(s):
            raise stand.Failed(f'{old.anonymous_kib} KiB of memory before, {new.anonymous_kib} after')


def main(build, program, behind, rounds=None):
    rounds = int(rounds or os.environ.get('WEFT_SURVIVE_ROUNDS') or ROUNDS)
    with stand.Stand(build, stand.Controller(file='disk' if behind == 'file' else None)) as s:
        killed(s, program, rounds)


try:
    main(*sys.argv[1:])
except stand.Failed as why:
    sys.exit(f'{why}')
