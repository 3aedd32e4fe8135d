#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""ticket_test.py BUILD CASE - tickets that are forged, or shown again when their lease has ended

CASE is one of the functions below. What is forged has -EACCES and one line in the lender's log for each process that tries;
what is late has -ESTALE and no line, since who comes late has done nothing wrong. A borrower beside them goes on.
"""
import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
import types

import stand
from driven import LENDER_BACK, Driven, check

sys.dont_write_bytecode = True

FORGED = 'asks for a lease by its ticket: Permission denied'
TOKEN_BITS = 128


def parts(ticket):
    """device, lease, generation, token"""
    words = ticket.split('@')[0].split('.')
    check(len(words) == 4 and len(words[3]) * 4 == TOKEN_BITS, f'{ticket} has no token of {TOKEN_BITS} bits')
    return words


def with_token(ticket, token):
    return '.'.join([*parts(ticket)[:3], token])


def one_bit_off(ticket, bit):
    return with_token(ticket, f'{int(parts(ticket)[3], 16) ^ 1 << bit:0{TOKEN_BITS // 4}x}')


def kept(s, seconds=600):
    return s.weft_devices('borrow', '--shared', f'--for={seconds}')['ticket']


def log(s):
    return s.lender.errors.read_text(errors='replace').splitlines()


def logged(s, text, cnt):
    """There are so many lines with a text, and no more."""
    stand.wait_until(f'{cnt} lines: {text}', lambda: sum(text in line for line in log(s)) >= cnt)
    check(sum(text in line for line in log(s)) == cnt, f'{text}, not {cnt} times: {log(s)}')


def refused(borrower, ticket, error):
    borrower.ask('attach', ticket, result=-error)


def works(borrower, ticket):
    borrower.ask('attach', ticket)
    borrower.ask('renew', 600000)


def forged(build):
    """Each bit of a token that is another one, and tokens of other leases."""
    with stand.Stand(build) as s, Driven(s) as beside, Driven(s) as one, Driven(s) as other:
        beside.use(60000, 'own', first=8192, cnt=2048, depth=8)
        first, second = kept(s), kept(s)
        check(parts(first)[3] != parts(second)[3], 'two leases have one token')
        for bit in range(TOKEN_BITS):
            refused(one, one_bit_off(first, bit), errno.EACCES)
        logged(s, FORGED, 1)
        refused(other, with_token(first, parts(second)[3]), errno.EACCES)
        refused(other, with_token(second, parts(first)[3]), errno.EACCES)
        refused(other, with_token(first, '0' * 32), errno.EACCES)
        logged(s, FORGED, 2)
        # What names no lease that there is, and what is no ticket, is not a guess.
        device, lease, generation, token = parts(first)
        refused(other, f'{device}.{lease}.{int(generation) + 1}.{token}', errno.ESTALE)
        refused(other, f'{device}.{int(lease) + 20}.{generation}.{token}', errno.ESTALE)
        refused(other, f'{int(device, 16) ^ 1:016x}.{lease}.{generation}.{token}', errno.ENODEV)
        refused(other, f'{device}.{lease}.{generation}.{token[:16]}', errno.EINVAL)
        beside.goes_on()
        works(one, first)
        works(other, second)
        logged(s, FORGED, 2)
        check(len(log(s)) == 2, f'and more: {log(s)}')
        check(len(s.leases()) == 3, 'a lease has ended')
        beside.ask('stop')


def door(build):
    """From another host: each endpoint that guesses is logged once."""
    at = f'127.0.0.1:{stand.free_port()}'
    with stand.Stand(build, options=('--fabric=tcp', '--address=127.0.0.1', f'--port={at.split(":")[1]}')) as s, \
            Driven(s) as beside, Driven(s, name=at) as one, Driven(s, name=at) as other:
        beside.use(60000, 'own', first=8192, cnt=2048, depth=8)
        ticket = kept(s)
        for bit in range(0, TOKEN_BITS, 9):
            refused(one, one_bit_off(ticket, bit), errno.EACCES)
        logged(s, f'a borrower elsewhere {FORGED}', 1)
        refused(other, one_bit_off(ticket, 64), errno.EACCES)
        logged(s, f'a borrower elsewhere {FORGED}', 2)
        works(one, ticket)
        s.command('return', ticket)
        refused(other, ticket, errno.ESTALE)
        beside.goes_on()
        check(len(log(s)) == 2, f'and more: {log(s)}')
        beside.ask('stop')


def returned(build):
    """The ticket of a lease that was returned, also when there are later ones."""
    with stand.Stand(build) as s, Driven(s) as beside, Driven(s) as late:
        beside.use(60000, 'own', first=8192, cnt=2048, depth=8)
        ticket = kept(s)
        late.ask('attach', ticket)
        s.command('return', ticket)
        check(late.try_('renew', 600000)[0] == -errno.ESTALE, 'who has attached renews it')
        successors = [kept(s) for _ in range(3)]
        refused(late, ticket, errno.ESTALE)
        for command in ('return', 'renew', 'share'):
            status, _, errors = s.try_command(command, ticket)
            check(status == 1 and 'the lease has ended' in errors, f'{command}: {status}: {errors}')
        for successor in successors:
            works(late, successor)
        beside.goes_on()
        check(not log(s), f'{log(s)}')
        beside.ask('stop')


def restarted(build):
    """A lender that was killed and is back knows whose tickets are of leases that run, and believes no older journal."""
    with stand.Stand(build) as s, Driven(s) as beside, Driven(s) as one:
        beside.use(60000, 'own', first=8192, cnt=2048, depth=8)
        runs, ended, older = kept(s), kept(s), kept(s)
        s.command('return', ended)
        s.lender.kill()
        journals = s.folder / 'journals'
        shutil.copytree(s.state, journals)
        s.start_lender()
        beside.hears(LENDER_BACK)
        one.hears(LENDER_BACK)
        works(one, runs)
        refused(one, ended, errno.ESTALE)
        refused(one, one_bit_off(runs, 77), errno.EACCES)
        logged(s, FORGED, 1)
        s.command('return', older)
        s.lender.kill()
        # It says that the lease that was returned since is still lent.
        shutil.rmtree(s.state)
        shutil.copytree(journals, s.state)
        s.start_lender()
        for borrower in beside, one:
            stand.wait_until('the lender is back', lambda it=borrower: it.events().count((LENDER_BACK, 0)) == 2)
        refused(one, older, errno.ESTALE)
        works(one, runs)
        later = kept(s)
        check(parts(later)[1:] != parts(older)[1:], 'it is lent as it was')
        refused(one, with_token(later, parts(older)[3]), errno.EACCES)
        beside.goes_on()
        beside.ask('stop')


def old_journal(build):
    """A journal of another version: it is said that its leases end, and others are lent."""
    with stand.Stand(build) as s, Driven(s) as one:
        ticket = kept(s)
        s.lender.kill()
        path, = s.state.glob('leases-*.json')
        journal = json.loads(path.read_text())
        for lease in journal['leases']:
            lease['token'] = lease['token'][:16]
        path.write_text(json.dumps({**journal, 'version': 1}))
        s.start_lender()
        logged(s, 'is the journal of a lender of another version: leases that run will be ended', 1)
        one.hears(LENDER_BACK)
        refused(one, ticket, errno.ESTALE)
        works(one, kept(s))
        check(len(s.leases()) == 1, 'a lease of the old journal runs')


def old_version(build):
    """A borrower of another version is cut off, and it is said which one it speaks."""
    with stand.Stand(build) as s:
        done = subprocess.run([build / 'tests' / 'devices' / 'hostile_lender', s.socket, 'old_version'], check=False,
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        check(done.stdout == 'done\n', f'{done.stdout}{done.stderr}')
        logged(s, 'is cut off: it speaks version 1, and not 2', 1)
        check(len(log(s)) == 1, f'and more: {log(s)}')


# Queue pairs of the controller that the processes of a command share, and what the command's status is.
PAIRS, STATUS = 4, 7


def command(build):
    """What 'several' has run: processes with the command's lease and lender, until standard input ends."""
    s = types.SimpleNamespace(build=build, socket=os.environ['WEFT_LENDER'])
    ticket = os.environ['WEFT_TICKET']
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(Driven(s)) for _ in range(PAIRS)]
        for i, one in enumerate(many):
            one.ask('attach', ticket)
            one.use(0, 'own', first=2048 * i, cnt=2048, depth=8, lease='the ticket\'s')
        for one in many:
            one.goes_on()
        # One more than there are queue pairs for, which is said, and one that dies, whose pair it has then.
        with Driven(s) as late:
            for words in ('attach', ticket), ('alloc',), ('window',):
                late.ask(*words)
            late.ask('pair', 8, 0, result=-errno.ENOSPC)
            many[0].kill()
            stand.wait_until('a queue pair is free', lambda: late.try_('pair', 8, 0)[0] == 0)
        for one in many[1:]:
            one.goes_on()
        print(ticket, flush=True)
        sys.stdin.read()
        for one in many[1:]:
            one.goes_on()
    sys.exit(STATUS)


def several(build):
    """A command whose processes share its lease; what is left of them when it ends has no lease any more."""
    with stand.Stand(build, stand.Controller(options=[f'--queues={PAIRS}'])) as s, Driven(s) as left:
        env = {**os.environ, **stand.library_env(s.build), 'WEFT_LENDER': '/nonexistent'}
        process = subprocess.Popen([s.build / 'tools' / 'weft', 'devices', f'--lender={s.socket}', 'borrow', '--',
                                    sys.executable, __file__, s.build, 'command'], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, env=env)
        try:
            ticket = process.stdout.readline().strip()
            check(ticket.count('.') >= 3, f'the command: {ticket}{process.stdout.read() if "failed" in ticket else ""}')
            leases = s.leases()
            check(len(leases) == 1 and leases[0]['pid'] == process.pid, f'not one lease, of the command: {leases}')
            left.ask('attach', ticket)
            for words in ('alloc',), ('window',):
                left.ask(*words)
            stand.wait_until('a queue pair is free', lambda: left.try_('pair', 8, 1)[0] == 0)
            left.ask('run', 'wait', 0, 512)
            left.goes_on()
            process.stdin.close()
            check(process.wait(30) == STATUS, f'its status is {process.returncode}')
            left.fails(10, -errno.ESTALE, -errno.ECANCELED)
            refused(left, ticket, errno.ESTALE)
            check(not s.leases() and not log(s), f'leases are left, or it is logged: {s.leases()} {log(s)}')
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


CASES = (command, several, forged, door, returned, restarted, old_journal, old_version)


if __name__ == '__main__':
    sys.exit(stand.run_case(CASES, *sys.argv[1:]))
