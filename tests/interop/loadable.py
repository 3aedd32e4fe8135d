#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""loadable - Weft's shm, tcp or udp inside the libfabric that Debian has, found by FI_PROVIDER_PATH

usage: loadable.py BUILD PROVIDER CASE VERSION

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


def path_env(build, provider):
    """What a user of Debian's libfabric sets to have Weft's provider in it."""
    folder = pathlib.Path(build).resolve() / 'providers' / 'loadable'
    if not (folder / f'lib{provider}-fi.so').exists():
        raise mpi.Failed(f'no lib{provider}-fi.so in {folder}')
    return {'FI_PROVIDER_PATH': str(folder), f'FI_{provider.upper()}_REPORT': '1'}


# What else has to be set for endpoints of our own: over tcp and udp there are theirs too.
ALONE = {'shm': {}, 'tcp': {'FI_PROVIDER': '^ofi_rxm'}, 'udp': {'FI_PROVIDER': '^ofi_rxd'}}


def fi_info(*options, **env):
    return run_bounded(['fi_info', *options], clean_env(**env), 30)


def versions(listing):
    """[(provider, version)] in the order of a listing, which is that of the choice."""
    return re.findall(r'^(?:provider: )?(\w+):?\n(?:    \w+: \S+\n)*?    version: (\S+)',
                      listing, re.MULTILINE)


def info(build, provider, version):
    """Ours is used, by its version; without the path, or with it empty, theirs is."""
    env = {**path_env(build, provider), **ALONE[provider]}
    there = [of for name, of in versions(fi_info('-l', **env).stdout) if name == provider]
    if len(there) != 2 or there[0] != version:
        raise mpi.Failed(f'there are {provider} {there}, ours {version} should be the first of two')
    for path in ('', '@'):
        env['FI_PROVIDER_PATH'] = path + path_env(build, provider)['FI_PROVIDER_PATH']
        asked = fi_info('-p', provider, **env)
        if set(versions(asked.stdout)) != {(provider, version)}:
            raise mpi.Failed(f'fi_info -p {provider}: {asked.text}')
    print(asked.stdout)
    verbose = fi_info('-p', provider, '-v', FI_LOG_LEVEL='info', **env)
    if f'registering provider: {provider} ({version})' not in verbose.stderr:
        raise mpi.Failed(f'it was not registered: {verbose.stderr}')
    if verbose.status != 0 or 'fi_domain_attr:' not in verbose.stdout:
        raise mpi.Failed(f'fi_info -v: {verbose.text}')
    own = fi_info('-p', provider).stdout
    if not own or version in own:
        raise mpi.Failed(f'without a path: {own}')
    none = fi_info('-p', provider, **{**env, 'FI_PROVIDER': f'^{provider}'})
    if none.status == 0:
        raise mpi.Failed(f'FI_PROVIDER=^{provider}: {none.text}')


def talk(build, provider, name, endpoints, env):
    """fi_pingpong between two processes, both of them by our wire; nothing is left."""
    said, answered, left = programs.talk({**path_env(build, provider), **env}, name,
                                         endpoints=endpoints)
    for side, text in (('server', said), ('client', answered)):
        sent = {wire: route.tx_msgs for (_, wire), route in mpi.parse_routes(text).items()}
        if not sent.get(provider) or sent.get('self'):
            raise mpi.Failed(f'the {side} sent over {sent}\n{text}')
    if left:
        raise mpi.Failed(f'left in /dev/shm: {left}')


def pingpong(build, provider, _version):
    """RDM endpoints of the provider itself."""
    talk(build, provider, provider, 'rdm', ALONE[provider])


def msg(build, provider, _version):
    """Connected endpoints."""
    talk(build, provider, provider, 'msg', {})


def rxm(build, provider, _version):
    """RDM endpoints of that libfabric's ofi_rxm, over connected ones of ours."""
    talk(build, provider, f'{provider};ofi_rxm', 'rdm', {})


def dgram(build, provider, version):
    """Datagram endpoints, which report no routes: the provider is the one that was registered."""
    env = {**path_env(build, provider), **ALONE[provider], 'FI_LOG_LEVEL': 'info'}
    for text in programs.talk(env, provider, endpoints='dgram')[:2]:
        if f'registering provider: {provider} ({version})' not in text:
            raise mpi.Failed(f'it was not registered: {text}')


def windows(build, provider, _version):
    """Open MPI's messages and one-sided operations by its btl/ofi, each byte checked."""
    openmpi.windows(build, 'a:2', provider, path_env(build, provider))


def test(case, build, provider, version):
    stock = fi_info('--version')
    if stock.status != 0 or 'Weft' in stock.stdout:
        print(f'skip: no stock libfabric is installed: {stock.text}')
        sys.exit(mpi.SKIP)
    case(build, provider, version)


CASES = {case.__name__: case for case in (info, pingpong, msg, rxm, dgram, windows)}

if __name__ == '__main__':
    chosen = CASES[sys.argv[3]]
    sys.exit(mpi.main(test, chosen, sys.argv[1], sys.argv[2], sys.argv[4],
                      on_hosts=chosen is not info))
