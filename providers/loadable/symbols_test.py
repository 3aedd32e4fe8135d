#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""symbols_test - what a loadable provider shows to a core, and what it asks of it

usage: symbols_test.py FILE

So that a libfabric of any age can load it: one symbol to be found by, none of the core's that
is newer than FABRIC_1.0, nothing but the core and the C library needed, no folder to look for
them in (the process has its libfabric already), and no way to unload the code under a thread.
"""
import re
import subprocess
import sys

OF_THE_CORE = {'fi_log', 'fi_log_enabled', 'fi_param_define', 'fi_param_get', 'fi_strerror',
               'fi_version'}
NEEDED = re.compile(r'libfabric\.so\.1|libc\.so\.6|ld-linux-.*')


def output(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def findings(file):
    symbols = [line.split() for line in output('nm', '--dynamic', file).splitlines()]
    defined = [words[2] for words in symbols if words[-2] not in 'UwWv']
    if defined != ['fi_prov_ini']:
        yield f'exported: {defined}'
    wanted = {words[-1] for words in symbols
              if words[-2] == 'U' and '@GLIBC_' not in words[-1]}
    if not wanted <= {f'{name}@FABRIC_1.0' for name in OF_THE_CORE}:
        yield f'asked of the core: {sorted(wanted)}'

    dynamic = output('readelf', '--dynamic', '--wide', file)
    needed = set(re.findall(r'\(NEEDED\).*\[(.*)\]', dynamic))
    if not {'libfabric.so.1', 'libc.so.6'} <= needed or \
            not all(NEEDED.fullmatch(name) for name in needed):
        yield f'needed: {sorted(needed)}'
    for tag in ('RPATH', 'RUNPATH', 'TEXTREL'):
        if f'({tag})' in dynamic:
            yield f'it has a {tag}'
    if not re.search(r'\(FLAGS_1\).*\bNODELETE\b', dynamic):
        yield 'dlclose would unmap it'


def main(file):
    found = list(findings(file))
    for finding in found:
        print(finding, file=sys.stderr)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
