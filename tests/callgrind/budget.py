#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""budget - what the calls of an 8-byte message, and of a write and an addition, may cost

usage: budget.py PATH PROVIDER [auto]

PATH is the program path.c. callgrind counts the instructions inside measured_send() and its
like; objdump says which of them were indirect calls. Fails above a ceiling, or
when a lock was taken: the endpoints are FI_THREAD_DOMAIN. Automatic progress costs
nothing.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

MEASURED = 100  # calls in path.c
# Valgrind runs one thread at a time: that of a domain may find the program asleep, on a busy machine mostly.
TRIES = 20

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


def collect(program, words, function, folder):
    """Run under callgrind, collecting inside the function. Returns the profile's path."""
    out = os.path.join(folder, function)
    subprocess.run(['valgrind', '-q', '--tool=callgrind', '--dump-instr=yes', '--compress-pos=no',
                    '--compress-strings=no', f'--toggle-collect={function}',
                    f'--callgrind-out-file={out}', program, *words],
                   check=True, stdout=subprocess.DEVNULL)
    return out


def executed(profile):
    """Executions by (object, address), and the names of the functions."""
    counts = collections.Counter()
    functions = set()
    place = None
    inclusive = False
    with open(profile, encoding='utf-8') as lines:
        for line in lines:
            if line.startswith('ob='):
                place = line[3:].strip()
            elif line.startswith('fn='):
                functions.add(line[3:].strip())
            elif line.startswith('calls='):
                inclusive = True  # the next line is the cost of what was called
            elif line.startswith('0x'):
                if not inclusive:
                    address, _, cost = line.split()
                    counts[place, int(address, 16)] += int(cost)
                inclusive = False
    return counts, functions


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


def measure(program, words, function, folder, ceiling):
    """executed(), and instructions of one call."""
    for _ in range(TRIES if 'auto' in words else 1):
        counts, functions = executed(collect(program, words, function, folder))
        instructions = sum(counts.values()) / MEASURED
        if instructions <= ceiling:
            break
    return counts, functions, instructions


def main(program, provider, *mode):
    failed = False
    words = (provider, *mode)
    with tempfile.TemporaryDirectory() as folder:
        for function, (ceiling, calls) in BUDGETS[provider].items():
            counts, functions, instructions = measure(program, words, function, folder,
                                                      ceiling)
            indirect = 0
            for place in {place for place, _ in counts}:
                if place and os.path.exists(place):
                    jumps = indirect_calls(place)
                    indirect += sum(cost for (ob, address), cost in counts.items()
                                    if ob == place and address in jumps)
            indirect /= MEASURED
            locks = sorted(name for name in functions if LOCKS.search(name))
            print(f'{" ".join(words)} {function}: '
                  f'{instructions:.1f} instructions (at most {ceiling}), '
                  f'{indirect:.2f} indirect calls (at most {calls})'
                  + (f', locks: {locks}' if locks else ''))
            failed |= instructions > ceiling or round(indirect) > calls or bool(locks)
            failed |= not instructions or not indirect
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
