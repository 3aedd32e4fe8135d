#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""hostile_test.py BUILD - borrowers that do what they must not, beside one that checks each byte

Each case of hostile_lender.c and hostile_queue.c is a process of its own. What it does wrong has the error that is
specified, and its lines in the lender's log, each once; the borrower beside it goes on.
"""
import os
import pathlib
import re
import subprocess
import sys
import time

import stand
from driven import Driven, check

sys.dont_write_bytecode = True

RUNG = r'queue pair \d+ of lease \d+, process \d+ of user \d+, was rung with a value that it can.t have'
CLOSED = r'queue pair \d+ of lease \d+, process \d+ of user \d+, is in memory that it has closed'
CUT_OFF = r'process \d+ of user \d+ is cut off: what it sends is no request'


def asks(what, why):
    return f'process \\d+ of user \\d+ asks for {what}: {why}'


# By case: what is logged, each once; '?' before what may be; '*' before what may come more than once, within the limit.
QUEUE = {
    'prps': [],
    'lbas': [],
    'admin_commands': [],
    'wild_doorbells': [RUNG],
    'words_of_the_controller': [],
    'full_vector': [],
    'queue_memory_closed': [CLOSED],
    'everything_changes': ['?' + RUNG],
}
LENDER = {
    'forged_names': [asks(what, 'Permission denied') for what in (
        'a renewal', 'a lease to be shared', 'the end of a lease', 'a lease by its ticket', 'a window',
        'the end of a window', 'the end of a queue pair', 'a queue pair', 'memory of a device',
        'the end of memory of a device')],
    'foreign_things': [asks('the end of a queue pair', 'No such file or directory'),
                       asks('the end of a window', 'No such file or directory'),
                       asks('a queue pair', 'Invalid argument')],
    'admin_commands': [asks('an admin command', 'Operation not permitted')],
    'stale_addresses': [asks('a segment by its address', 'Stale file handle'),
                        asks('the end of an address', 'Permission denied')],
    'files_of_no_use': [asks('a window', 'Bad file descriptor')],
    'floods': [asks('a window', 'Invalid argument'), asks('a queue pair', 'Invalid argument'), '*' + CUT_OFF],
    'half_messages': ['*' + CUT_OFF],
    'everything': [],
    'never_reads': ['process \\d+ of user \\d+ is cut off: it takes no answer'],
}

# A lender writes no more lines in a second.
LINES_PER_S = 20


def logged(s, already):
    return s.lender.errors.read_text(errors='replace').splitlines()[already:]


def match(lines, wanted):
    """What is wrong with the lines, or None"""
    left = list(lines)
    for want in wanted:
        found = [line for line in left if re.search(want.lstrip('?*'), line)]
        if not found and want[0] not in '?*':
            return f'no line {want}'
        if len(found) > 1 and want[0] != '*':
            return f'more than one line {want}'
        left = [line for line in left if line not in found]
    return f'and {left}' if left else None


def attack(s, beside, program, case, wanted):
    seed = int.from_bytes(os.urandom(4), 'little')
    already = len(logged(s, 0))
    began = time.monotonic()
    what = f'{program} {case} {seed}'
    process = subprocess.Popen([s.build / 'tests' / 'devices' / program, s.socket, case,
                                *([str(seed)] if program == 'hostile_queue' else [])],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = process.stdout.readline()
        check(said == 'done\n', f'{what}: {said or "it has ended"}')
        stand.wait_until(f'{what}: lines', lambda: not (match(logged(s, already), wanted) or '').startswith('no line'))
        beside.goes_on()
        process.communicate(timeout=30)
        check(not process.returncode, f'{what}: status {process.returncode}')
    finally:
        process.kill()
        process.communicate()
    stand.wait_until(f'{what}: leases end', lambda: len(s.leases()) == 1)
    wrong = match(logged(s, already), wanted)
    check(not wrong, f'{what}: {wrong}')
    lines = len(logged(s, already))
    check(lines <= LINES_PER_S * (time.monotonic() - began + 2), f'{what}: {lines} lines')
    beside.goes_on()


def main(build):
    with stand.Stand(pathlib.Path(build), stand.Controller(options=['--queues=128'])) as s, Driven(s) as beside:
        beside.use(60000, 'own', first=8192, cnt=2048, depth=8)
        for program, cases in (('hostile_queue', QUEUE), ('hostile_lender', LENDER)):
            for case, wanted in cases.items():
                attack(s, beside, program, case, wanted)
                print(f'{program} {case}')
        beside.ask('stop')
        beside.ask('return')
        device = s.weft_devices('list')['devices'][0]
        check(device['queue_pairs_free'] == device['queue_pairs'], f'queue pairs are lost: {device}')


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
    except stand.Failed as why:
        sys.exit(f'{why}')
