#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""mpich - programs of an MPICH with the device ch4:ofi, on hosts that have Weft

usage: mpich.py BUILD LAYOUT SETTING PROGRAM [ARGUMENT]...

MPICH_OFI names the folder that MPICH was installed into (its configure's --prefix); it is no part of
this repository, and Debian's has another device. SETTING is plain, secret or tls, of all hosts.
PROGRAM is one that was built with it, or one of Debian's for MPICH, such as NPmpich2.
"""
import os
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True

import mpi
from hosts import LOGIN, Hosts

SECONDS = 1500


def libraries(prefix, folder):
    """The library path: MPICH's, and the name by which Debian's programs want it."""
    (folder / 'libmpich.so.12').symlink_to(prefix / 'lib' / 'libmpi.so.12')
    return f'{prefix / "lib"}:{folder}'


def run(build, layout, setting, program, *arguments):
    prefix = os.environ.get('MPICH_OFI')
    if not prefix:
        print('skip: MPICH_OFI names no MPICH')
        sys.exit(mpi.SKIP)
    if not shutil.which(program):
        print(f'skip: {program} is not installed')
        sys.exit(mpi.SKIP)
    prefix = pathlib.Path(prefix).resolve()
    ranks = mpi.parse_layout(layout)
    named = ','.join(f'{name}:{count}' for name, count in ranks.items())
    with mpi.setting_env(build, None if setting == 'plain' else setting) as env, \
            Hosts(ranks, {name: env for name in ranks}) as hosts:
        first = hosts[next(iter(ranks))]
        path = f"{env['LD_LIBRARY_PATH']}:{libraries(prefix, first.tmp)}"
        command = [prefix / 'bin/mpiexec', '-launcher', 'ssh', '-launcher-exec', LOGIN, '-hosts', named,
                   '-n', sum(ranks.values()), '-genv', 'LD_LIBRARY_PATH', path,
                   # Messages within a host by libfabric too
                   '-genv', 'MPIR_CVAR_NOLOCAL', 1, '-genv', 'FI_PROVIDER', 'link', program, *arguments]
        command = [str(word) for word in command]
        result = first.run(command, SECONDS, cwd=first.tmp)
    job = mpi.Job(command, result, mpi.parse_routes(result.stderr)).check()
    mpi.check_balance(job)
    print(job.result.stdout[-2000:], job.routes_text(), sep='\n')


if __name__ == '__main__':
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    sys.exit(mpi.main(run, *sys.argv[1:]))
