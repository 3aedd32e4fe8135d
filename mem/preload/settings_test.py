#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""settings_test.py LIBRARY - a setting of libweft-mem.so that is not understood is said to be ignored, once"""
import os
import subprocess
import sys

BYTES = 'a number of bytes, and K, M or G after it for multiples of 1024'
SECONDS = 'a number of seconds'
BAD = {
    'FI_MEM_MIN': (BYTES, ['abc', '64KiB', '1.5M', '', '-1', '50%', ' 1', '1KM']),
    'FI_MEM_LIMIT': (BYTES, ['abc', '1.5M', '', '-1', '50%', 'x' * 300]),
    'FI_MEM_DECAY': (SECONDS, ['abc', '', '-1', '10s', '1.5']),
}
GOOD = {
    'FI_MEM_MIN': ['1', '64K', '64k', '1M', '99999999999999999999'],
    'FI_MEM_LIMIT': ['0', '1G', '17179869183G'],
    'FI_MEM_DECAY': ['0', '20', '100000', '99999999999999999999'],
}
# It allocates a block of this length, so that the heap begins.
PROGRAM = ['dd', 'if=/dev/zero', 'of=/dev/null', 'bs=8M', 'count=1', 'status=none']


def said(library, name, value):
    done = subprocess.run(PROGRAM, env=dict(os.environ, LD_PRELOAD=library, **{name: value}),
                          capture_output=True, text=True, check=True)
    return done.stderr


def main(library):
    wrong = []
    for name, (takes, values) in BAD.items():
        for value in values:
            line = f'weft: {name}={value[:64]} is ignored: it takes {takes}\n'
            if (found := said(library, name, value)) != line:
                wrong.append(f'{name}={value}: {found!r}, not {line!r}')
    for name, values in GOOD.items():
        for value in values:
            if found := said(library, name, value):
                wrong.append(f'{name}={value}: {found!r}')
    print('\n'.join(wrong) or 'all settings')
    return 1 if wrong else 0


sys.exit(main(sys.argv[1]))
