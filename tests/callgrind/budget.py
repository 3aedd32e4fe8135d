#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""budget - what the calls of an 8-byte message, and of a write and an addition, may cost

usage: budget.py PATH PROVIDER [auto]

PATH is the program path.c. callgrind counts the instructions inside measured_send() and its
like, each function of the library apart for each chain of its callers; objdump says which of them were
indirect calls. Fails above a ceiling, or when a lock was taken: the endpoints are FI_THREAD_DOMAIN. Automatic
progress costs nothing.
"""
import collections
import functools
import os
import re
import subprocess
import sys
import tempfile

MEASURED = 100  # calls in path.c
# Valgrind runs one thread at a time: that of a domain may find the program asleep, on a busy machine mostly.
TRIES = 20
CALLERS = 30  # more than there are between a function and main()

# provider: call: (instructions, indirect calls), ceilings
BUDGETS = {
    'link': {'measured_send': (107, 2), 'measured_inject': (96, 2), 'measured_post': (88, 1),
             'measured_senddata': (114, 2), 'measured_injectdata': (108, 2),
             'measured_read': (333, 3), 'measured_idle': (117, 2),
             'measured_write': (220, 2), 'measured_delivered': (278, 2),
             'measured_written': (361, 3), 'measured_stored': (395, 2),
             'measured_add': (323, 2), 'measured_added': (572, 4),
             'measured_fetch': (430, 2), 'measured_fetched': (706, 5)},
    'shm': {'measured_send': (106, 1), 'measured_inject': (98, 1), 'measured_post': (88, 1),
            'measured_senddata': (114, 1), 'measured_injectdata': (106, 1),
            'measured_read': (333, 3), 'measured_idle': (117, 2),
            'measured_write': (220, 2), 'measured_delivered': (278, 2),
            'measured_written': (361, 3), 'measured_stored': (395, 2),
            'measured_add': (323, 2), 'measured_added': (572, 4),
            'measured_fetch': (430, 2), 'measured_fetched': (706, 5)},
}
LOCKS = re.compile(r'pthread_(mutex|spin|rwlock)|futex|lll_lock')


def collect(program, words, folder):
    """Run under callgrind, collecting inside all that is measured. Returns the profile's path."""
    out = os.path.join(folder, 'profile')
    subprocess.run(['valgrind', '-q', '--tool=callgrind', '--dump-instr=yes', '--compress-pos=no',
                    '--compress-strings=no', f'--separate-callers={CALLERS}',
                    *(f'--toggle-collect={function}' for function in BUDGETS['link']),
                    f'--callgrind-out-file={out}', program, *words],
                   check=True, stdout=subprocess.DEVNULL)
    return out


class Call:
    """What a measured call did: executions by (object, address), and the functions that it ran."""

    def __init__(self):
        self.counts = collections.Counter()
        self.functions = set()

    def instructions(self):
        """Of one call."""
        return sum(self.counts.values()) / MEASURED


def executed(profile):
    """{measured function: Call} of a profile. A function there has its callers behind it: name'caller'caller."""
    calls = collections.defaultdict(Call)
    place = call = None
    inclusive = False
    with open(profile, encoding='utf-8') as lines:
        for line in lines:
            if line.startswith('ob='):
                place = line[3:].strip()
            elif line.startswith('fn='):
                name, *callers = line[3:].strip().split("'")
                call = calls[next((x for x in (name, *callers) if x in BUDGETS['link']), None)]
                call.functions.add(name)
            elif line.startswith('calls='):
                inclusive = True  # the next line is the cost of what was called
            elif line.startswith('0x'):
                if not inclusive:
                    address, _, cost = line.split()
                    call.counts[place, int(address, 16)] += int(cost)
                inclusive = False
    return calls


@functools.lru_cache(maxsize=None)
def indirect_calls(path):
    """Addresses of calls and tail calls through a pointer, but for those of the PLT."""
    text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', path], check=True,
                          capture_output=True, text=True).stdout
    found = set()
    plt = False
    for line in text.splitlines():
        section = re.match(r'Disassembly of section (\S+):', line)
        if section:
            plt = section.group(1).startswith('.plt')
        hit = re.match(r'\s*([0-9a-f]+):\s+(?:bnd )?(?:call|jmp)q?\s+\*', line)
        if hit and not plt:
            found.add(int(hit.group(1), 16))
    return found


def measure(program, words, budget):
    """{measured function: Call}; with automatic progress the first one of each below its ceiling."""
    found = {}
    for _ in range(TRIES if 'auto' in words else 1):
        with tempfile.TemporaryDirectory() as folder:
            calls = executed(collect(program, words, folder))
        if calls[None].instructions():
            raise ValueError(f'not inside what is measured: {sorted(calls[None].functions)}')
        found.update((function, calls[function]) for function, (ceiling, _) in budget.items()
                     if function not in found or found[function].instructions() > ceiling)
        if all(found[function].instructions() <= ceiling
               for function, (ceiling, _) in budget.items()):
            break
    return found


def main(program, provider, *mode):
    failed = False
    words = (provider, *mode)
    budget = BUDGETS[provider]
    for function, call in measure(program, words, budget).items():
        ceiling, calls = budget[function]
        instructions = call.instructions()
        indirect = sum(cost for (place, address), cost in call.counts.items()
                       if place and os.path.exists(place) and
                       address in indirect_calls(place)) / MEASURED
        locks = sorted(name for name in call.functions if LOCKS.search(name))
        print(f'{" ".join(words)} {function}: '
              f'{instructions:.1f} instructions (at most {ceiling}), '
              f'{indirect:.2f} indirect calls (at most {calls})'
              + (f', locks: {locks}' if locks else ''))
        failed |= instructions > ceiling or round(indirect) > calls or bool(locks)
        failed |= not instructions or not indirect
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
