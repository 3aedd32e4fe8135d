#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""ends_test.py BUILD CASE - leases, borrowers, lenders and controllers end, in each way that there is

CASE is one of the functions below. Whoever has commands under way hears of the end within the bound that docs/devices.md
names, and some seconds for a machine that is busy; memory of what has ended is not written to; others go on.
"""
import contextlib
import errno
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import time

import stand
from driven import (DEVICE_ADDED, DEVICE_REMOVED, LEASE_ENDED, LENDER_BACK, LENDER_LOST, Driven, check)

sys.dont_write_bytecode = True

# A machine that is busy takes so much longer.
SLACK_S = stand.SLACK_S

# Leases that go on until something ends them: on such a machine a renewal may be late by seconds.
LEASE_MS = 12000
LEASE_S = LEASE_MS / 1000

# How long who asks a lender that is stopped waits.
ANSWER_S = 10

# Longer than the library waits for an answer.
ASKED_S = ANSWER_S + 2

# Descriptors of a lender that has few, and connections that are tried then
MANY = 160

SKIP = 77

ENDED = (-errno.ESTALE, -errno.ECANCELED)
HOWS = ('poll', 'sleep', 'wait', 'read')


class Others:
    """A borrower beside all that happens, in a part of the device that is its own. It goes on without an error."""

    def __init__(self, s, ms=20000):
        self.borrower = Driven(s)
        self.borrower.use(ms, 'own', first=8192, cnt=2048, depth=8)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.borrower.goes_on()
                self.borrower.ask('stop')
        finally:
            self.borrower.kill()


def lease_is_gone(s, lease, seconds=LEASE_S + SLACK_S):
    stand.wait_until(f'lease {lease} ends', lambda: lease not in [it['lease'] for it in s.leases()], seconds)


def reused(holder, borrower, do):
    """What was the borrower's is another's: nothing is written there while something is done."""
    holder.ask('fill', 0x5a)
    do()
    borrower.try_('state')
    holder.ask('check', 0x5a)


def mapped(process):
    """How many files of borrowers' memory a controller has mapped"""
    with open(f'/proc/{process.pid}/maps', encoding='utf-8') as maps:
        return sum('/memfd:weft-segment' in line for line in maps)


def returned(build):
    """With commands under way: when the call returns the memory is the program's."""
    with stand.Stand(build) as s, Others(s), Driven(s) as borrower:
        before = mapped(s.controllers[0])
        for _ in range(20):
            lease = int(borrower.ask('borrow', 10000, 1, 0)[0])
            borrower.ask('alloc')
            borrower.ask('window')
            borrower.ask('pair', 32, 0)
            borrower.ask('burst', 0, 512)
            borrower.ask('return')
            borrower.ask('fill', 0x5a)
            check(lease not in [it['lease'] for it in s.leases()], 'the lease is there')
            check(mapped(s.controllers[0]) == before, 'the controller has memory of a lease that was returned')
            borrower.ask('check', 0x5a)


def expired(build):
    """Leases that nobody renews: each way to wait ends."""
    with stand.Stand(build) as s, Others(s), contextlib.ExitStack() as all_:
        those = []
        for how in HOWS:
            holder, borrower = all_.enter_context(Driven(s)), all_.enter_context(Driven(s))
            holder.ask('alloc')
            segment = holder.ask('export')
            lease = borrower.use(LEASE_MS, how, kept=1, memory=('import', *segment))
            those.append((holder, borrower, lease))
        for holder, borrower, lease in those:
            borrower.fails(LEASE_S + SLACK_S, *ENDED)
            reused(holder, borrower, lambda borrower=borrower, lease=lease: borrower.hears(LEASE_ENDED, lease))
            lease_is_gone(s, lease)
            check(borrower.try_('renew', 1000)[0] == -errno.ESTALE, 'it is renewed')
            borrower.ask('return')


def controller_late(build):
    """It is stopped when the time of leases runs out, and goes on: what is under way is its own until then."""
    with stand.Stand(build) as s, contextlib.ExitStack() as all_:
        those = []
        for how in HOWS:
            holder, borrower = all_.enter_context(Driven(s)), all_.enter_context(Driven(s))
            holder.ask('alloc')
            segment = holder.ask('export')
            lease = borrower.use(600000, how, kept=1, memory=('import', *segment))
            those.append((holder, borrower, lease))
        # They end soon, one right behind the other: who does not hear of a controller for 10 s takes it for gone.
        for _, borrower, _ in those:
            borrower.ask('renew', LEASE_MS)
        stand.wait_until('little of the leases is left', lambda: min(it['seconds'] for it in s.leases()) < LEASE_S / 3,
                         LEASE_S + SLACK_S)
        s.controllers[0].signal(signal.SIGSTOP)
        try:
            for _, borrower, lease in those:
                borrower.hears(LEASE_ENDED, lease, LEASE_S + SLACK_S)
            early = [how for how, (_, borrower, _) in zip(HOWS, those) if borrower.state()[0]]
        finally:
            s.controllers[0].signal(signal.SIGCONT)
        check(not early, f'{early}: commands have ended that the controller is at')
        for holder, borrower, _ in those:
            borrower.fails(SLACK_S, *ENDED)
            reused(holder, borrower, lambda: None)
            borrower.ask('return')


def revoke(s, lease):
    name = s.weft_devices('list')['devices'][0]['name']
    done = subprocess.run([s.build / 'tools' / 'weft', 'devices', f'--lender={s.socket}', 'revoke', name, str(lease)],
                          check=False, capture_output=True, text=True, timeout=60,
                          env={**os.environ, **stand.library_env(s.build)})
    check(not done.returncode, f'revoke: {done.stderr}')


def revoked(build):
    """By the lender's user: once the tool returns nothing is written any more."""
    for how in HOWS:
        with stand.Stand(build) as s, Others(s), Driven(s) as holder, Driven(s) as borrower:
            holder.ask('alloc')
            segment = holder.ask('export')
            lease = borrower.use(20000, how, memory=('import', *segment))
            revoke(s, lease)
            borrower.fails(SLACK_S, *ENDED)
            reused(holder, borrower, lambda: borrower.hears(LEASE_ENDED, lease))
            borrower.ask('return')
            check(borrower.events().count((LEASE_ENDED, lease)) == 1, f'told twice: {borrower.heard}')


def borrower_stopped(build):
    """Past its lease, and continued: its memory is another's meanwhile, and stays so."""
    with stand.Stand(build) as s, Others(s), Driven(s) as holder, Driven(s) as borrower, Driven(s) as next_one:
        holder.ask('alloc')
        segment = holder.ask('export')
        lease = borrower.use(LEASE_MS, 'stream', memory=('import', *segment))
        before = mapped(s.controllers[0])
        borrower.stop_process()
        lease_is_gone(s, lease)
        # Its window and its queues are gone: the controller has neither mapped.
        check(mapped(s.controllers[0]) == before - 2, 'the controller still has its memory')
        next_one.use(20000, 'wait', memory=('import', *segment))
        next_one.ask('stop')
        # Its last commands are under way until then.
        next_one.ask('return')
        holder.ask('fill', 0x5a)
        borrower.signal(signal.SIGCONT)
        borrower.fails(SLACK_S, *ENDED)
        borrower.hears(LEASE_ENDED, lease)
        check(borrower.events().count((LEASE_ENDED, lease)) == 1, f'told twice: {borrower.heard}')
        holder.ask('check', 0x5a)
        # It may borrow again.
        borrower.ask('return')
        borrower.use(20000, 'wait')
        borrower.ask('stop')


def borrower_killed(build):
    """Its lease ends at once, however it waits."""
    with stand.Stand(build) as s, Others(s), Driven(s) as holder:
        holder.ask('alloc')
        segment = holder.ask('export')
        for how in (*HOWS, 'stream', 'call'):
            with Driven(s) as borrower:
                lease = borrower.use(20000, how, memory=('import', *segment))
                borrower.kill()
                lease_is_gone(s, lease)
                holder.ask('fill', 0x5a)
            holder.ask('check', 0x5a)
        check(not holder.events(), f'others hear of it: {holder.heard}')


def controller_killed(build):
    """All who wait have an error, and hear that lease and device are gone; the next controller is there for them."""
    with stand.Stand(build) as s:
        borrowers = {how: Driven(s) for how in (*HOWS, 'call')}
        try:
            leases = {how: borrower.use(20000, how) for how, borrower in borrowers.items()}
            s.controllers[0].kill()
            for how, borrower in borrowers.items():
                borrower.fails(SLACK_S, *ENDED, -errno.ENODEV)
                borrower.hears(LEASE_ENDED, leases[how])
                borrower.hears(DEVICE_REMOVED)
                check(borrower.events().count((LEASE_ENDED, leases[how])) == 1, f'told twice: {borrower.heard}')
                borrower.ask('return')
            s.restart_controller(0)
            for borrower in borrowers.values():
                borrower.hears(DEVICE_ADDED)
            borrowers['wait'].use(20000, 'wait')
            borrowers['wait'].ask('stop')
        finally:
            for borrower in borrowers.values():
                borrower.kill()


def controller_stopped(build):
    """For longer than the lease: nobody waits for it, and it is there again when it goes on."""
    with stand.Stand(build) as s:
        borrowers = {how: Driven(s) for how in (*HOWS, 'call')}
        try:
            leases = {how: borrower.use(LEASE_MS, how) for how, borrower in borrowers.items()}
            s.controllers[0].signal(signal.SIGSTOP)
            for how, borrower in borrowers.items():
                borrower.fails(LEASE_S + SLACK_S, *ENDED, -errno.ENODEV, -errno.ETIMEDOUT)
                borrower.hears(LEASE_ENDED, leases[how], LEASE_S + SLACK_S)
                borrower.ask('return')
            s.controllers[0].signal(signal.SIGCONT)
            for borrower in borrowers.values():
                borrower.hears(DEVICE_ADDED)
            borrowers['wait'].use(20000, 'wait')
            borrowers['wait'].ask('stop')
        finally:
            s.controllers[0].signal(signal.SIGCONT)
            for borrower in borrowers.values():
                borrower.kill()


def lender_stopped(build):
    """For less than the lease: nobody who uses the device sees it; who asks the lender has an answer, or -ETIMEDOUT."""
    with stand.Stand(build) as s:
        borrowers = [Driven(s) for _ in HOWS]
        with Driven(s) as asks:
            try:
                leases = [borrower.use(90000, how) for borrower, how in zip(borrowers, HOWS)]
                asks.use(90000, 'call')
                s.lender.signal(signal.SIGSTOP)
                asks.fails(ANSWER_S + SLACK_S, -errno.ETIMEDOUT)
                for borrower in borrowers:
                    borrower.goes_on()
                s.lender.signal(signal.SIGCONT)
                stand.wait_until('the lender answers', lambda: asks.try_('renew', 90000)[0] == 0)
                running = [it['lease'] for it in s.leases()]
                check(all(lease in running for lease in leases), f'{leases} were lent, {running} are')
                for borrower, lease in zip(borrowers, leases):
                    borrower.goes_on()
                    borrower.ask('stop')
                    check((LEASE_ENDED, lease) not in borrower.events(), 'its lease has ended')
            finally:
                s.lender.signal(signal.SIGCONT)
                for borrower in borrowers:
                    borrower.kill()


def weft_devices_to(s, out, *arguments):
    """The exit status of the tool, whose standard output is a file"""
    return subprocess.run([s.build / 'tools' / 'weft', 'devices', f'--lender={s.socket}', *arguments], stdout=out,
                          stderr=subprocess.DEVNULL, check=False, timeout=60,
                          env={**os.environ, **stand.library_env(s.build)}).returncode


def ticket_that_nobody_reads(build):
    """A lease of which nobody knows ends; what can't be printed is an error."""
    with stand.Stand(build) as s:
        for json in ([], ['--json']):
            reader, writer = os.pipe()
            os.close(reader)
            with open('/dev/full', 'wb') as full:
                for out in (full, writer):
                    check(weft_devices_to(s, out, *json, 'borrow') == 1, f'a ticket that is lost: {json} {out}')
                    check(not s.leases(), f'{s.leases()}')
                check(weft_devices_to(s, full, *json, 'list') == 1, f'a list that is lost: {json}')
            os.close(writer)


def connect_as(uid, path, ready, end):
    """A process of a user that connects until it can't, and keeps that."""
    child = os.fork()
    if child:
        return child
    os.setuid(uid)
    kept = []
    for _ in range(MANY):
        kept.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        if kept[-1].connect_ex(str(path)):
            break
    os.write(ready, b'.')
    os.read(end, 1)
    os._exit(0)


def users_have_connections_each(build):
    """One that has all that one may takes none away from others."""
    if os.geteuid():
        print('only root is several users')
        sys.exit(SKIP)
    with stand.Stand(build, prefix=['prlimit', f'--nofile={MANY}']) as s:
        os.chmod(s.folder, 0o755)
        os.chmod(s.socket, 0o666)
        ready, end = os.pipe(), os.pipe()
        children = [connect_as(uid, s.socket, ready[1], end[0]) for uid in (65533, 65534)]
        for _ in children:
            os.read(ready[0], 1)
        with Driven(s) as borrower:
            borrower.use(60000, 'own')
            borrower.ask('stop')
            borrower.ask('return')
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def borrower_without_descriptors(build):
    """Queue pairs that it can't have are nobody's: none is left of those whose descriptors did not fit."""
    with stand.Stand(build) as s, Driven(s) as borrower:
        borrower.ask('borrow', 60000, 1, 0)
        borrower.ask('alloc')
        borrower.ask('window')
        pid = borrower.popen.pid
        limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        there = max(map(int, os.listdir(f'/proc/{pid}/fd'))) + 1
        refused = 0
        for room in range(16):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (there + room, limit[1]))
            for _ in range(8):
                if borrower.try_('pair', 4, 0)[0]:
                    refused += 1
                else:
                    borrower.ask('unpair')
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
        check(refused, 'none was refused')
        borrower.ask('pair', 4, 0)
        lease = s.leases()[0]
        check(lease['queue_pairs'] == 1, f'{lease}')
        borrower.ask('unpair')
        borrower.ask('return')


def listens(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        return not one.connect_ex(str(path))


def lender_without_standard_files(build):
    """What it logs is not written to its controller, or wherever else."""
    with stand.Stand(build, lends=False) as s:
        command = [s.build / 'tools' / 'weft', 'lend', f'--socket={s.socket}', f'--state={s.state}', *s.slots]
        with subprocess.Popen(['sh', '-c', 'exec "$0" "$@" <&- >&- 2>&-', *map(str, command)],
                              env={**os.environ, **stand.library_env(s.build)}) as lender:
            try:
                stand.wait_until('it listens', lambda: listens(s.socket))
                with Driven(s) as borrower:
                    borrower.use(60000, 'own')
                    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
                        stranger.settimeout(stand.END_S)
                        stranger.connect(str(s.socket))
                        stranger.send(b'no request')
                        check(not stranger.recv(1), 'it is taken for a request')
                    borrower.goes_on()
                    borrower.ask('stop')
                    borrower.ask('return')
                    check(not borrower.events(), f'{borrower.heard}')
            finally:
                lender.terminate()
                status = lender.wait(stand.END_S)
        check(not status, f'it ends with {status}')


def lender_back_and_stopped(build):
    """The next one is asked for the leases and does not answer in time: they go on when it does, for it has them."""
    with stand.Stand(build) as s, Driven(s) as borrower:
        borrower.use(60000, 'read')
        s.lender.kill()
        borrower.hears(LENDER_LOST)
        s.start_lender()
        s.lender.signal(signal.SIGSTOP)
        over = time.monotonic() + ASKED_S
        stand.wait_until('nobody waits for its answer any more', lambda: time.monotonic() > over)
        s.lender.signal(signal.SIGCONT)
        borrower.hears(LENDER_BACK)
        check(len(s.leases()) == 1, f'{s.leases()}')
        borrower.goes_on()
        check(LEASE_ENDED not in [kind for kind, _ in borrower.events()], f'{borrower.heard}')
        borrower.ask('stop')
        borrower.ask('return')


def lender_killed_and_back(build):
    """The next one has the leases: they go on for longer than they would have without it."""
    with stand.Stand(build) as s, Driven(s) as kept:
        ticket_lease = int(kept.ask('borrow', 600000, 1, 1)[0])
        borrowers = [Driven(s) for _ in HOWS]
        try:
            # Of one that was just renewed two thirds are left at least, within which the next lender has to be there.
            leases = [borrower.use(2 * LEASE_MS, how) for borrower, how in zip(borrowers, HOWS)]
            over = time.monotonic() + 2 * LEASE_S + 0.5
            s.lender.kill()
            for borrower in borrowers:
                borrower.hears(LENDER_LOST)
            s.start_lender()
            for borrower in borrowers:
                borrower.hears(LENDER_BACK)
            running = [it['lease'] for it in s.leases()]
            check(all(lease in running for lease in [*leases, ticket_lease]), f'{leases} were lent, {running} are')
            stand.wait_until('the time that they had has passed', lambda: time.monotonic() > over, 2 * LEASE_S + 1)
            for borrower in borrowers:
                borrower.goes_on()
                borrower.ask('stop')
                check(LEASE_ENDED not in [kind for kind, _ in borrower.events()], f'{borrower.heard}')
                borrower.ask('return')
        finally:
            for borrower in borrowers:
                borrower.kill()
        kept.ask('return')
        stand.wait_until('leases end', lambda: not s.leases())


def lender_never_back(build):
    """Leases end at their time, each at its own, and all who have them hear of it."""
    with stand.Stand(build) as s:
        early = [Driven(s) for _ in HOWS]
        with Driven(s) as late:
            try:
                leases = [borrower.use(LEASE_MS, how) for borrower, how in zip(early, HOWS)]
                late_lease = late.use(3 * LEASE_MS, 'own', first=8192, cnt=2048, depth=8)
                s.lender.kill()
                for borrower, lease in zip(early, leases):
                    borrower.fails(LEASE_S + SLACK_S, *ENDED)
                    borrower.hears(LENDER_LOST)
                    borrower.hears(LEASE_ENDED, lease)
                    check(borrower.try_('unwindow')[0] == 0, 'the window of a lease that has ended is not closed')
                    borrower.ask('fill', 0x5a)
                late.goes_on()
                late.fails(3 * LEASE_S + SLACK_S, *ENDED)
                late.hears(LEASE_ENDED, late_lease)
                for borrower in early:
                    borrower.ask('check', 0x5a)
                    borrower.ask('return')
            finally:
                for borrower in early:
                    borrower.kill()


def events(build):
    """Each event of a lender comes from its cause, once, and names lease, device and node; others hear only what is theirs."""
    with stand.Stand(build, stand.Controller(), stand.Controller()) as s, Driven(s) as one, Driven(s) as other:
        listed = s.weft_devices('list')['devices']
        devices, node = [int(it['id'], 16) for it in listed], int(listed[0]['node'], 16)
        lease = int(one.ask('borrow', 500, 1, 1)[0])
        others_lease = int(other.ask('borrow', 60000, 1, 0)[0])
        one.hears(LEASE_ENDED, lease)
        one.ask('return')
        revoked_lease = int(one.ask('borrow', 60000, 1, 0)[0])
        revoke(s, revoked_lease)
        one.hears(LEASE_ENDED, revoked_lease)
        one.ask('return')
        one.ask('borrow', 60000, 1, 0)
        one.ask('return')
        for kind, cause in ((DEVICE_REMOVED, s.controllers[1].kill), (DEVICE_ADDED, lambda: s.restart_controller(1)),
                            (LENDER_LOST, s.lender.kill), (LENDER_BACK, s.start_lender)):
            cause()
            one.hears(kind)
            other.hears(kind)
        s.controllers[0].kill()
        both = [(DEVICE_REMOVED, 0, devices[1], node), (DEVICE_ADDED, 0, devices[1], node), (LENDER_LOST, 0, 0, node),
                (LENDER_BACK, 0, 0, node)]
        last = (DEVICE_REMOVED, 0, devices[0], node)
        for borrower in (one, other):
            stand.wait_until('the last event', lambda who=borrower: who.events() and who.told[-1] == last)
        check(one.told == [(LEASE_ENDED, lease, devices[0], node), (LEASE_ENDED, revoked_lease, devices[0], node), *both,
                           last], f'one has heard {one.told}')
        check(other.told == [*both, (LEASE_ENDED, others_lease, devices[0], node), last],
              f'the other one has heard {other.told}')


CASES = (events, returned, expired, revoked, borrower_stopped, borrower_killed, controller_killed, controller_late,
         controller_stopped, lender_stopped, lender_killed_and_back, lender_back_and_stopped, lender_never_back,
         lender_without_standard_files, ticket_that_nobody_reads, users_have_connections_each, borrower_without_descriptors)


def main(build, case):
    try:
        {it.__name__: it for it in CASES}[case](pathlib.Path(build).resolve())
    except stand.Failed as why:
        sys.exit(f'{case}: {why}')


if __name__ == '__main__':
    main(*sys.argv[1:])
