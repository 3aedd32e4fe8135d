#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""programs - Debian's fi_info, fi_pingpong and fi_strerror on Weft

usage: programs.py BUILD CASE [ARGUMENT]...
"""
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import mpi
from hosts import Hosts, clean_env, run_bounded

PINGPONG_PORT = '47592'


def run(build, *argv, timeout=30, **env):
    """A program that has to end with 0; its stdout."""
    done = run_bounded(argv, clean_env(**mpi.weft_env(build), **env), timeout)
    if done.status != 0:
        raise mpi.Failed(f'{" ".join(argv)}: {done.status}\n{done.text}')
    return done.stdout


def providers(listing):
    return re.findall(r'^provider: (\S+)', listing, re.MULTILINE)


def info(build):
    """fi_info: link first, then shm, then tcp; by name, by query, and what is absent."""
    names = providers(run(build, 'fi_info'))
    if not names or names[0] != 'link' or not {'shm', 'tcp'} <= set(names):
        raise mpi.Failed(f'fi_info lists {names}')
    order = [names.index(name) for name in ('link', 'shm', 'tcp')]
    if order != sorted(order):
        raise mpi.Failed(f'fi_info lists {names}')
    if not set(names[:names.index('lnx')]) <= {'link', 'shm', 'tcp', 'udp'}:
        raise mpi.Failed(f'fi_info lists {names}: names of others come last')
    for name, means in (('link', {'link'}), ('shm', {'shm'}), ('tcp', {'tcp', 'tcp;ofi_rxm'}),
                        ('ofi_rxm', {'tcp;ofi_rxm'}), ('sockets', {'sockets'})):
        found = set(providers(run(build, 'fi_info', '-p', name)))
        if found != means:
            raise mpi.Failed(f'fi_info -p {name} lists {found}')
    for query in (['-t', 'FI_EP_RDM'], ['-c', 'FI_TAGGED|FI_DIRECTED_RECV'],
                  ['-m', 'FI_CONTEXT|FI_CONTEXT2', '-t', 'FI_EP_RDM'], ['-l'], ['-e'],
                  ['--version']):
        print(run(build, 'fi_info', *query))
    absent = run_bounded(['fi_info', '-p', 'no-such-provider'],
                         clean_env(**mpi.weft_env(build)), 30)
    if absent.status == 0 or '-61' not in absent.text:
        raise mpi.Failed(f'fi_info -p no-such-provider: {absent.status} {absent.text}')


def verbose(build):
    """fi_info -v prints every structure, with a name for every bit."""
    text = run(build, 'fi_info', '-v')
    for part in ('fi_info:', 'fi_tx_attr:', 'fi_rx_attr:', 'fi_ep_attr:',
                 'fi_domain_attr:', 'fi_fabric_attr:'):
        if part not in text:
            raise mpi.Failed(f'fi_info -v prints no {part}')
    unknown = re.findall(r'.*Unknown.*', text)
    if unknown:
        raise mpi.Failed(f'fi_info -v has no name for {unknown[:3]}')
    print(text[:1500])


def strerror(build):
    """fi_strerror has a text of its own for each code of libfabric."""
    nothing = run(build, 'fi_strerror', '4000').strip()
    texts = {nothing: 4000}
    for code in (11, 22, 61, *range(257, 270)):
        text = run(build, 'fi_strerror', str(code)).strip()
        if not text or text in texts:
            raise mpi.Failed(f'fi_strerror {code}: {text!r}, as for {texts.get(text)}')
        texts[text] = code
        print(code, text)


def talk(env, provider, place='one', endpoints='rdm', client_env=None):
    """fi_pingpong over RDM, MSG or DGRAM endpoints, sizes up to its largest, data checked.

    The client on another host may have an environment of its own, and with it another libfabric.

    What server and client said, and what they left in the folders for shared names.
    """
    server_name, client_name = ('a', 'a') if place == 'one' else ('a', 'b')
    names = sorted({server_name, client_name})
    command = ['fi_pingpong', '-e', endpoints, '-p', provider, '-S', 'all', '-I', '10', '-c']
    envs = {server_name: env, client_name: client_env or env}
    with Hosts(names, envs) as hosts:
        server_host, client_host = hosts[server_name], hosts[client_name]
        log = (server_host.tmp / 'server.log').open('w+')
        server = server_host.popen(command, stdout=log, stderr=log)
        wait_for_listener(server_host, server, log)
        client = client_host.run([*command, hosts.address(server_name)], 60)
        try:
            status = server.wait(10)
        except subprocess.TimeoutExpired:
            status = None
        left = client_host.run(['ls', '-A', '/dev/shm'], 10).stdout.split()
        log.seek(0)
        said = log.read()
    print(client.stdout)
    if client.status != 0 or status != 0:
        raise mpi.Failed(f'client {client.status}, server {status}\n{client.text}\n{said}')
    return said, client.text, left


def pingpong(build, provider, place='one'):
    """Two processes over a provider of Weft; a link takes the wire that is right for the place."""
    said, answered, _left = talk(mpi.weft_env(build), provider, place)
    if provider != 'link':
        return
    routes = mpi.parse_routes(said + answered)
    wire = 'shm' if place == 'one' else 'tcp'
    used = {name for (_, name), route in routes.items() if route.tx_msgs}
    if used != {wire}:
        raise mpi.Failed(f'{wire} should have been used, not {used}: {routes}')


def connected(build, provider, place='one'):
    """The same over connected endpoints."""
    talk(mpi.weft_env(build), provider, place, 'msg')


def guarded(build, endpoints, setting):
    """The same between hosts whose processes have a secret (mpi.setting_env)."""
    with mpi.setting_env(build, setting) as env:
        talk(env, 'tcp', 'two', endpoints)


def datagrams(build, place='one', whose='ours'):
    """The same over datagrams; those of Debian's libfabric are the same (`theirs`)."""
    env = mpi.weft_env(build)
    other = {name: '' for name in env if name == 'LD_LIBRARY_PATH'} if whose == 'theirs' else None
    talk(env, 'udp', place, 'dgram', other)


def wait_for_listener(host, server, log, limit=15):
    """Until the server's control port is open."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if f':{PINGPONG_PORT} ' in host.run(['ss', '-ltnH'], 10).stdout:
            return
        if server.poll() is not None:
            break
        time.sleep(0.05)
    log.seek(0)
    raise mpi.Failed(f'fi_pingpong does not listen: {log.read()}')


CASES = {case.__name__: case
         for case in (info, verbose, strerror, pingpong, connected, guarded, datagrams)}

if __name__ == '__main__':
    case = CASES[sys.argv[2]]
    sys.exit(mpi.main(case, sys.argv[1], *sys.argv[3:],
                      on_hosts=case in (pingpong, connected, guarded, datagrams)))
