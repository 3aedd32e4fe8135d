# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Debian's Open MPI on hosts of namespaces, over Weft or over the stock libfabric.

For the tests of this folder and the demo. A layout says where ranks go: `a:2` are two
on host a, `a:1,b:1` one on each of two.
"""
import contextlib
import os
import pathlib
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass, field

import hosts as hosts_module

SKIP = 77

# What a user gives to run on libfabric, and nothing else.
OVER_LIBFABRIC = ('--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi')

# One-sided operations by osc/rdma over btl/ofi, and all messages too: without mode 2 it
# carries none, and pml/ob1, which has no other btl then, ends with a null pointer.
def over_btl_ofi(provider):
    return ('--mca', 'osc', 'rdma', '--mca', 'btl', 'self,ofi', '--mca', 'btl_ofi_mode', '2',
            '--mca', 'btl_ofi_provider_include', provider)


def btl_weft(build, provider, btls='self,weft'):
    """The component of BUILD, found, and one-sided operations by osc/rdma over it."""
    folder = pathlib.Path(build).resolve() / 'btl' / 'openmpi'
    places = [str(folder), *map(str, sorted(pathlib.Path('/usr/lib').glob('*/openmpi/lib/openmpi3')))]
    return ('--mca', 'mca_base_component_path', ':'.join(places),
            '--mca', 'osc', 'rdma', '--mca', 'btl', btls,
            '--mca', 'btl_weft_provider', provider)


# One-sided operations by the component; messages by mtl/ofi, which wants a provider that reaches
# other hosts.
def over_btl_weft(build, provider, btls='self,weft'):
    messages = 'link' if provider == 'shm' else provider
    return (*OVER_LIBFABRIC, '--mca', 'mtl_ofi_provider_include', messages,
            *btl_weft(build, provider, btls))


# Messages by the component too.
def over_ob1(build, provider):
    return ('--mca', 'pml', 'ob1', *btl_weft(build, provider))


# More ranks than cores, and hosts that share them: nothing that bears on the transport.
ON_SHARED_CORES = ('--bind-to', 'none', '--oversubscribe', '--mca',
                   'mpi_yield_when_idle', '1')

ROUTE = re.compile(r'weft-routes: (?=\S)(.*)')


class Failed(Exception):
    """A test's finding; its text is all that is printed."""


def parse_layout(text):
    """'a:2,b:1' as {'a': 2, 'b': 1}."""
    return {name: int(ranks) for name, ranks in
            (part.split(':') for part in text.split(','))}


def weft_env(build):
    """What a login has set on a host where Weft is in the loader's path."""
    library = pathlib.Path(build).resolve() / 'core'
    if not (library / 'libfabric.so.1').exists():
        raise Failed(f'no libfabric.so.1 in {library}')
    return {'LD_LIBRARY_PATH': str(library),
            **{f'FI_{provider}_REPORT': '1' for provider in ('LINK', 'SHM', 'TCP')}}


def btl_env(build):
    """The same, with libweft-btl.so found too."""
    env = weft_env(build)
    return {**env, 'LD_LIBRARY_PATH':
            f"{env['LD_LIBRARY_PATH']}:{pathlib.Path(build).resolve() / 'btl'}"}


def stock_btl_env(build):
    """The libfabric of the distribution, and libweft-btl.so over it; None where there is none."""
    stock = sorted(pathlib.Path('/usr/lib').glob('*/libfabric.so.1'))
    return stock and {'LD_LIBRARY_PATH':
                      f"{stock[0].parent}:{pathlib.Path(build).resolve() / 'btl'}"}


def mem_env(build):
    """The same, with large allocations in the arena."""
    library = pathlib.Path(build).resolve() / 'mem' / 'preload' / 'libweft-mem.so'
    return {**weft_env(build), 'LD_PRELOAD': str(library)}


@contextlib.contextmanager
def setting_env(build, setting):
    """What a login has set on all hosts where Weft is in the loader's path, by name.

    None: nothing else; 'mem': large allocations in the arena; 'secret': one secret, of all hosts;
    'tls': the same, and TLS
    """
    if setting not in ('secret', 'tls'):
        yield mem_env(build) if setting == 'mem' else weft_env(build)
        return
    with tempfile.NamedTemporaryFile(prefix='weft-secret.') as file:  # of mode 0600
        file.write(os.urandom(32))
        file.flush()
        yield {**weft_env(build), 'FI_TCP_SECRET_FILE': file.name,
               'FI_TCP_TLS': '1' if setting == 'tls' else '0'}


@dataclass
class Route:
    """What one endpoint, or several, sent and received over one wire."""
    tx_msgs: int = 0
    tx_bytes: int = 0
    rx_msgs: int = 0
    rx_bytes: int = 0

    def add(self, other):
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + int(getattr(other, name)))


@dataclass
class Job:
    """A finished mpirun: its result, and routes summed by (host, wire)."""
    command: list
    result: hosts_module.Result
    routes: dict = field(default_factory=dict)

    def wire(self, wire, host=None):
        """The sum of a wire over all hosts, or on one."""
        total = Route()
        for (at, name), route in self.routes.items():
            if name == wire and host in (None, at):
                total.add(route)
        return total

    def routes_text(self):
        return '\n'.join(f'{host} {wire}: {route}' for (host, wire), route
                         in sorted(self.routes.items())) or 'no routes reported'

    def check(self):
        """Raise Failed unless it ended well."""
        if self.result.status != 0:
            end = 'ran out of time' if self.result.status is None else \
                f'ended with {self.result.status}'
            raise Failed(f'{shlex.join(self.command)}\n{end}:\n'
                         f'{self.result.text[-6000:]}')
        return self


def parse_routes(text):
    """The reports in a job's stderr, summed by (host, wire)."""
    routes = {}
    for match in ROUTE.finditer(text):
        pairs = dict(pair.split('=', 1) for pair in match[1].split() if '=' in pair)
        try:
            route = Route(*(int(pairs[name]) for name in Route.__dataclass_fields__))
            key = (pairs['host'], pairs['wire'])
        except (KeyError, ValueError) as error:
            raise Failed(f'unreadable report: {match[0]}: {error!r}') from None
        routes.setdefault(key, Route()).add(route)
    return routes


def mpirun(hosts, layout, program, timeout, options=OVER_LIBFABRIC, shared_cores=True, by=()):
    """Run a program's ranks by layout; mpirun itself runs on the first host, started by `by`."""
    ranks = parse_layout(layout)
    first = next(iter(ranks))
    command = [*map(str, by), 'mpirun', *options, *(ON_SHARED_CORES if shared_cores else ()),
               '--host', layout, '-np', str(sum(ranks.values())), *map(str, program)]
    result = hosts[first].run(command, timeout, cwd=hosts[first].tmp)
    return Job(command, result, parse_routes(result.stderr))


def check_balance(job, truncates=False, one_sided=False):
    """Every message that was sent was received, on the wire it was sent on.

    truncates: the program receives some with less room than they need.
    one_sided: large reads and writes over shared memory may be done without their target, which
    counts none of them.
    """
    for name in {wire for _, wire in job.routes}:
        wire = job.wire(name)
        lost = wire.tx_bytes - wire.rx_bytes
        if one_sided and name == 'shm':
            if wire.rx_msgs > wire.tx_msgs:
                raise Failed(f'{name}: more was received than sent:\n{job.routes_text()}')
            continue
        if wire.tx_msgs != wire.rx_msgs or lost < 0 or (lost and not truncates):
            raise Failed(f'{name}: sent and received differ:\n{job.routes_text()}')


def check_routes(job, layout, self_sends=False, provider='link'):
    """Within a host everything went by shared memory, between hosts by TCP.

    self_sends: ranks send to themselves as well.
    provider: another one than link goes by one of them only.
    """
    ranks = parse_layout(layout)
    near, far = any(count > 1 for count in ranks.values()), len(ranks) > 1
    expected = {'shm': near and provider != 'tcp', 'tcp': far or (near and provider == 'tcp'),
                'self': self_sends}
    for name, used in expected.items():
        if bool(job.wire(name).tx_msgs) != used:
            raise Failed(f'{name} should {"" if used else "not "}have been used with '
                         f'{layout}:\n{job.routes_text()}')
    for host in ranks:
        if not any(at == host for at, _ in job.routes):
            raise Failed(f'no routes reported from host {host}:\n{job.routes_text()}')


def main(test, *args, on_hosts=True):
    """Run a test function as a program: 0, 1 with the finding, or 77 with the reason.

    on_hosts: the test makes hosts; an ordinary user's needs a user namespace then.
    """
    try:
        if on_hosts:
            hosts_module.become_root()
        test(*args)
    except hosts_module.Unavailable as error:
        print(f'skip: {error}')
        return SKIP
    except Failed as error:
        print(f'failed: {error}', file=sys.stderr)
        return 1
    return 0
