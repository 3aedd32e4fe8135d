#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""loadable - Weft's shm inside the libfabric that Debian has, found by FI_PROVIDER_PATH

usage: loadable.py BUILD CASE VERSION

VERSION is the provider's, as fi_info prints it. Nothing of Weft is in the loader's path.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True

import mpi
import openmpi
import programs
from hosts import clean_env, run_bounded


def path_env(build):
    """What a user of Debian's libfabric sets to have Weft's shm in it."""
    folder = pathlib.Path(build).resolve() / 'providers' / 'loadable'
    if not (folder / 'libshm-fi.so').exists():
        raise mpi.Failed(f'no libshm-fi.so in {folder}')
    return {'FI_PROVIDER_PATH': str(folder), 'FI_SHM_REPORT': '1'}


def fi_info(*options, **env):
    return run_bounded(['fi_info', *options], clean_env(**env), 30)


def versions(listing):
    """[(provider, version)] in the order of a listing, which is that of the choice."""
    return re.findall(r'^(?:provider: )?(\w+):?\n(?:    \w+: \S+\n)*?    version: (\S+)',
                      listing, re.MULTILINE)


def info(build, version):
    """Ours is used, by its version; without the path, or with it empty, theirs is."""
    env = path_env(build)
    there = [of for name, of in versions(fi_info('-l', **env).stdout) if name == 'shm']
    if len(there) != 2 or there[0] != version:
        raise mpi.Failed(f'there are shm {there}, ours {version} should be the first of two')
    for path in ('', '@'):
        env['FI_PROVIDER_PATH'] = path + path_env(build)['FI_PROVIDER_PATH']
        asked = fi_info('-p', 'shm', **env)
        if versions(asked.stdout) != [('shm', version)]:
            raise mpi.Failed(f'fi_info -p shm: {asked.text}')
    print(asked.stdout)
    verbose = fi_info('-p', 'shm', '-v', FI_LOG_LEVEL='info', **env)
    if f'registering provider: shm ({version})' not in verbose.stderr:
        raise mpi.Failed(f'it was not registered: {verbose.stderr}')
    if verbose.status != 0 or 'fi_domain_attr:' not in verbose.stdout:
        raise mpi.Failed(f'fi_info -v: {verbose.text}')
    own = fi_info('-p', 'shm').stdout
    if not own or version in own:
        raise mpi.Failed(f'without a path: {own}')
    none = fi_info('-p', 'shm', FI_PROVIDER='^shm', **env)
    if none.status == 0:
        raise mpi.Failed(f'FI_PROVIDER=^shm: {none.text}')


def pingpong(build, _version):
    """fi_pingpong between two processes, both of them by our wire; nothing is left."""
    said, answered, left = programs.talk(path_env(build), 'shm')
    for side, text in (('server', said), ('client', answered)):
        sent = {wire: route.tx_msgs for (_, wire), route in mpi.parse_routes(text).items()}
        if not sent.get('shm') or sent.get('self'):
            raise mpi.Failed(f'the {side} sent over {sent}\n{text}')
    if left:
        raise mpi.Failed(f'left in /dev/shm: {left}')


def windows(build, _version):
    """Open MPI's messages and one-sided operations by its btl/ofi, each byte checked."""
    openmpi.windows(build, 'a:2', 'shm', path_env(build))


def test(case, build, version):
    stock = fi_info('--version')
    if stock.status != 0 or 'Weft' in stock.stdout:
        print(f'skip: no stock libfabric is installed: {stock.text}')
        sys.exit(mpi.SKIP)
    case(build, version)


CASES = {case.__name__: case for case in (info, pingpong, windows)}

if __name__ == '__main__':
    chosen = CASES[sys.argv[2]]
    sys.exit(mpi.main(test, chosen, sys.argv[1], sys.argv[3], on_hosts=chosen is not info))
