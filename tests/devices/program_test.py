#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""program_test.py BUILD PROGRAM - run a program that borrows, on two controllers that have memory of their own"""
import os
import subprocess
import sys

import stand

sys.dont_write_bytecode = True

SECONDS = 60


def main(build, program):
    controllers = [stand.Controller(options=['--cmb=4M']) for _ in range(2)]
    with stand.Stand(build, *controllers) as s:
        return subprocess.run([program, s.socket], timeout=SECONDS, check=False,
                              env={**os.environ, **stand.library_env(s.build)}).returncode


try:
    sys.exit(main(*sys.argv[1:]))
except stand.Failed as why:
    sys.exit(f'{why}')
