#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""openmpi - Debian's Open MPI, unmodified, on Weft

usage: openmpi.py BUILD CASE [LAYOUT [PROVIDER or SETTING]]

A case is a function below; LAYOUT says where the ranks go, SETTING what a login has set (mpi.py).
"""
import pathlib
import re
import shutil
import sys

sys.dont_write_bytecode = True

import mpi
from hosts import HERE, Hosts, clean_env, run_bounded

MESSAGES = 500
# s, of operations on a process that has died
TIMEOUT = 8
LENGTH = 1009


def run_on_weft(build, layout, program, timeout, options=mpi.OVER_LIBFABRIC,
                truncates=False, files=None, env=None, one_sided=False):
    """A job whose every host has Weft; it has to end well.

    files: texts by name, in the folder where it runs; read back when it has ended.
    env: how the hosts have Weft, if not in place of their libfabric
    truncates, one_sided: see mpi.check_balance
    """
    env = env or mpi.weft_env(build)
    names = mpi.parse_layout(layout)
    with Hosts(names, {name: env for name in names}) as hosts:
        folder = hosts[next(iter(names))].tmp
        for name, text in (files or {}).items():
            (folder / name).write_text(text)
        job = mpi.mpirun(hosts, layout, program, timeout, options).check()
        for name in files or {}:
            files[name] = (folder / name).read_text()
    mpi.check_balance(job, truncates, one_sided)
    return job


def netpipe(build, layout, setting=None):
    """NetPIPE checks what arrives, then measures."""
    for program in (['NPopenmpi', '-i', '-u', '65536'],
                    ['NPopenmpi', '-u', '1048576', '-p', '0', '-n', '30', '-o', 'np.out']):
        with mpi.setting_env(build, setting) as env:
            job = run_on_weft(build, layout, program, 100, env=env)
        mpi.check_routes(job, layout)
        print(job.result.stdout[-400:], job.result.stderr[-900:], sep='\n')


def exchange(build, layout, setting=None):
    """Every way of sending, each byte checked (exchange.py)."""
    with mpi.setting_env(build, setting) as env:
        job = run_on_weft(build, layout, [HERE / 'exchange.py'], 150, truncates=True, env=env)
    mpi.check_routes(job, layout, self_sends=True)
    print(job.result.stdout, job.routes_text())


def windows(build, layout, provider, env=None, options=None, btl='ofi'):
    """One-sided operations of every kind, each byte checked (windows.py)."""
    options = options or mpi.over_btl_ofi(provider)
    job = run_on_weft(build, layout, [HERE / 'windows.py', 1, btl], 100, options, env=env,
                      one_sided=True)
    mpi.check_routes(job, layout, self_sends=',' in layout, provider=provider)
    # Who begins a put has sent it, and who begins a get received it, whatever the target counts.
    moved = sum(route.tx_bytes + route.rx_bytes for route in job.routes.values())
    least = 6 * (4 << 20) * sum(mpi.parse_layout(layout).values())
    if moved < least:
        raise mpi.Failed(f'{least} bytes expected, {moved} went over Weft:\n'
                         f'{job.routes_text()}')
    print(job.result.stdout, job.routes_text())


def transport(build, layout, provider):
    """The same by the component btl/weft."""
    windows(build, layout, provider, mpi.btl_env(build), mpi.over_btl_weft(build, provider),
            'weft')


def beside_vader(build, layout, provider):
    """The same where Open MPI has its own shared memory too: all ranks take one of the two."""
    windows(build, layout, provider, mpi.btl_env(build),
            mpi.over_btl_weft(build, provider, 'self,vader,weft'), 'weft')


def ob1(build, layout, provider):
    """pml/ob1 by the component btl/weft: NetPIPE, then every way of sending (exchange.py)."""
    programs = [[HERE / 'exchange.py', 1, 'ob1']]
    if sum(mpi.parse_layout(layout).values()) == 2:
        programs.insert(0, ['NPopenmpi', '-i', '-u', '200000'])
    for program in programs:
        job = run_on_weft(build, layout, program, 100, mpi.over_ob1(build, provider),
                          truncates=True, env=mpi.btl_env(build), one_sided=True)
        # What a rank sends to itself is btl/self's.
        mpi.check_routes(job, layout, provider=provider)
        print(job.result.stdout, job.routes_text())


def removed(build, layout, provider, words=''):
    """A rank is killed while another has operations on it, and is removed there (removed.c).

    words: what the program takes, and `stock` for the distribution's libfabric
    """
    words = words.split()
    env = mpi.btl_env(build)
    if 'stock' in words:
        words.remove('stock')
        env = mpi.stock_btl_env(build)
    if not env:
        print('skip: there is no libfabric.so.1 beside this one')
        sys.exit(mpi.SKIP)
    program = [pathlib.Path(build).resolve() / 'tests' / 'interop' / 'removed', TIMEOUT, *words]
    options = ('--enable-recovery', '--mca', 'btl_weft_timeout', str(TIMEOUT),
               *mpi.over_ob1(build, provider))
    with Hosts(['a'], {'a': env}) as hosts:
        job = mpi.mpirun(hosts, layout, program, 100, options)
    print(job.result.text)
    if 'each was told of once' not in job.result.stdout:
        raise mpi.Failed(f'the rank that is left has not ended well:\n{job.result.text}')
    lines = job.result.text.count('btl_weft_timeout)')
    if 'full' in words and lines != 2:
        raise mpi.Failed(f'{lines} lines say that operations were given up, not one for each '
                         f'of the two times:\n{job.result.text}')


def run_btl(build, layout):
    """`weft run --btl` puts all of it in place, on hosts that know nothing of Weft."""
    by = [pathlib.Path(build).resolve() / 'tools' / 'weft', 'run', '--btl', '--']
    report = {key: value for key, value in mpi.weft_env(build).items() if key.startswith('FI_')}
    names = mpi.parse_layout(layout)
    with Hosts(names, {name: report for name in names}) as hosts:
        job = mpi.mpirun(hosts, layout, [HERE / 'windows.py', 1, 'weft'], 100, (), by=by).check()
    mpi.check_balance(job, one_sided=True)
    mpi.check_routes(job, layout, self_sends=',' in layout)
    print(job.result.stdout, job.routes_text())


def hpcc(build, layout, setting=None):
    """The HPC Challenge benchmarks, small: each verifies its own results."""
    ranks = sum(mpi.parse_layout(layout).values())
    rows = 2 if ranks % 4 == 0 else 1
    asked = (HERE / 'hpccinf.txt').read_text()
    files = {'hpccinf.txt': asked.replace('ROWS', f'{rows:4}', 1)
             .replace('COLUMNS', f'{ranks // rows:7}', 1), 'hpccoutf.txt': ''}
    with mpi.setting_env(build, setting) as env:
        job = run_on_weft(build, layout, ['hpcc'], 100, files=files, env=env)
    mpi.check_routes(job, layout)
    text = files['hpccoutf.txt']
    bad = re.findall(r'.*FAILED.*|.*\(failed\).*|Node\(s\) with error [^0].*|'
                     r'.*[1-9] tests completed and failed.*|\w+_Errors=[^0].*|'
                     r'Error in line .*', text)
    good = ('Success=1', ' tests completed and passed residual checks',
            'MPIRandomAccess_Errors=0', 'MPIRandomAccess_LCG_Errors=0', '(passed)',
            'Solution Validates', 'MPIFFT_maxErr=')
    bad += [f'no line with {part!r}' for part in good if part not in text]
    if bad:
        raise mpi.Failed('\n'.join(bad) + f'\n{text[-6000:]}')
    print(f"{text.count('PASSED')} times PASSED", job.routes_text(), sep='\n')


LAMMPS = """
units		lj
atom_style	atomic
lattice		fcc 0.8442
region		box block 0 16 0 16 0 16
create_box	1 box
create_atoms	1 box
mass		1 1.0
velocity	all create 3.0 87287 loop geom
pair_style	lj/cut 2.5
pair_coeff	1 1 1.0 1.0 2.5
neighbor	0.3 bin
neigh_modify	every 5 delay 0 check no
fix		move all nve
fix		share all balance 10 1.0 shift xyz 5 1.01
run		40
write_dump	all custom dump.txt id x y z vx vy vz modify sort id format float %.17g
"""


def lammps(build, layout, _mem):
    """Atoms that move between ranks end where they do without the arena, to the last bit."""
    if not shutil.which('lmp'):
        print('skip: there is no lmp (package lammps)')
        sys.exit(mpi.SKIP)
    dumps = []
    for env in (mpi.weft_env(build), mpi.mem_env(build)):
        files = {'in.txt': LAMMPS, 'dump.txt': ''}
        job = run_on_weft(build, layout, ['lmp', '-in', 'in.txt', '-log', 'none'], 100,
                          files=files, env=env)
        mpi.check_routes(job, layout)
        dumps.append(files['dump.txt'])
    if dumps[0].count('\n') != 9 + 4 * 16 ** 3:
        raise mpi.Failed(f'not all atoms are there:\n{dumps[0][:1000]}')
    if dumps[0] != dumps[1]:
        raise mpi.Failed('some atoms are elsewhere with the arena')
    print(job.routes_text())


def bench(build, layout):
    """Each program of mpi4py.bench."""
    for program in (['helloworld'], ['ringtest', '-n', '65536', '-l', '20', '-s', '1']):
        job = run_on_weft(build, layout, ['python3', '-m', 'mpi4py.bench', *program], 60)
        mpi.check_routes(job, layout)
        print(job.result.stdout, job.routes_text(), sep='\n')


def mpi4py_suite(build):
    """The command of a rank of mpi4py's own tests, which are fetched."""
    folder = pathlib.Path(build).resolve() / 'interop' / 'mpi4py'
    fetched = run_bounded([HERE / 'fetch-mpi4py', folder], clean_env(), 300)
    if fetched.status == mpi.SKIP:
        print(fetched.stdout.strip())
        sys.exit(mpi.SKIP)
    if fetched.status != 0:
        raise mpi.Failed(f'fetch-mpi4py: {fetched.text}')
    return [HERE / 'mpi4py_suite.py', folder / 'test']


def mpi4py(build, layout, setting=None):
    """mpi4py's own tests, all of them; windows by messages, and then by btl/ofi."""
    suite = mpi4py_suite(build)
    # A fence of osc/pt2pt takes long where there are more ranks than cores.
    few = sum(mpi.parse_layout(layout).values()) < 3
    with mpi.setting_env(build, setting) as env:
        job = run_on_weft(build, layout, [*suite, 'all' if few else 'messages'], 500,
                          (*mpi.OVER_LIBFABRIC, '--mca', 'osc', 'pt2pt'), truncates=True, env=env)
        mpi.check_routes(job, layout, self_sends=True)
        print(job.result.stdout, job.routes_text())
        job = run_on_weft(build, layout, [*suite, 'btl_ofi'], 100, mpi.over_btl_ofi('link'),
                          env=env, one_sided=True)
    mpi.check_routes(job, layout, self_sends=',' in layout)
    print(job.result.stdout, job.routes_text())


def mpi4py_some(build, layout, setting):
    """Those of messages between two ranks, and blocking one-sided ones by btl/ofi.

    All of them take minutes with TLS where other programs keep the cores busy.
    """
    suite = mpi4py_suite(build)
    with mpi.setting_env(build, setting) as env:
        for which, options in (('some', mpi.OVER_LIBFABRIC),
                               ('btl_ofi_some', mpi.over_btl_ofi('link'))):
            job = run_on_weft(build, layout, [*suite, which], 150, options, truncates=True,
                              env=env, one_sided=which == 'btl_ofi_some')
            mpi.check_routes(job, layout, self_sends=True)
            print(job.result.stdout, job.routes_text())


def mpi4py_ob1(build, layout, provider):
    """mpi4py's own tests, all of them, by pml/ob1 and osc/rdma over the component btl/weft."""
    job = run_on_weft(build, layout, [*mpi4py_suite(build), 'ob1'], 170,
                      mpi.over_ob1(build, provider), truncates=True, env=mpi.btl_env(build),
                      one_sided=True)
    mpi.check_routes(job, layout, self_sends=True, provider=provider)
    print(job.result.stdout, job.routes_text())


def steady(build, layout, _mem):
    """Memory that is allocated for each message costs no system call in the arena, and some without."""
    program = pathlib.Path(build).resolve() / 'interop' / 'fresh'
    program.parent.mkdir(parents=True, exist_ok=True)
    source = HERE.parent.parent / 'bench' / 'mpi' / 'fresh.c'
    built = run_bounded(['mpicc.openmpi', '-O2', '-o', program, source], clean_env(), 60)
    if built.status != 0:
        raise mpi.Failed(f'mpicc: {built.text}')
    job = run_on_weft(build, layout, [program, '0.2', 'steady'], 100, env=mpi.mem_env(build))
    print(job.result.stdout, job.routes_text())
    faults = re.findall(r'^faults (\d+) ([\d.]+)$', job.result.stdout, re.M)
    if len(faults) != 4 or any(float(count) >= 1 for _, count in faults):
        raise mpi.Failed(f'page faults of each message: {faults}')
    with Hosts(('a',), {'a': mpi.weft_env(build)}) as hosts:
        job = mpi.mpirun(hosts, layout, [program, '0.2', 'steady'], 100)
    if job.result.status == 0 or 'steady: begins' not in job.result.stdout:
        raise mpi.Failed(f'without the library nothing was forbidden:\n{job.result.text}')


def routes(build, layout):
    """A known number of messages: each took shared memory within, TCP between hosts."""
    job = run_on_weft(build, layout, [HERE / 'counted.py', MESSAGES, LENGTH], 100)
    mpi.check_routes(job, layout)
    ranks = mpi.parse_layout(layout)
    total = sum(ranks.values())
    for host, here in ranks.items():
        pairs = {'shm': here * (here - 1), 'tcp': here * (total - here)}
        for wire, count in pairs.items():
            route = job.wire(wire, host)
            # Open MPI's own messages, in starting and ending, come on top.
            low, high = count * MESSAGES, count * (MESSAGES + 60)
            low_bytes = low * LENGTH
            if not (low <= route.tx_msgs <= high and low_bytes <= route.tx_bytes and
                    low <= route.rx_msgs <= high and low_bytes <= route.rx_bytes):
                raise mpi.Failed(f'{host}: {low} to {high} messages over {wire} expected:\n'
                                 f'{job.routes_text()}')
    print(job.routes_text())


def defaults(build, layout):
    """What is taken without parameters (docs/openmpi.md).

    A plain mpirun of Debian never looks at libfabric: its openmpi-mca-params.conf says
    `mtl = ^ofi`. With the MTL allowed, pml/cm has its priority, 25, and beats ob1's 20.
    """
    program = [HERE / 'counted.py', MESSAGES, LENGTH]
    job = run_on_weft(build, layout, program, 100, ())
    if job.routes:
        raise mpi.Failed(f'a plain mpirun ran on Weft:\n{job.routes_text()}')
    job = run_on_weft(build, layout, program, 100, ('--mca', 'mtl', 'ofi'))
    mpi.check_routes(job, layout)
    print(job.routes_text())


def one_host_only(build, _layout=None):
    """Weft on host a, the stock libfabric on b: an error that names b, and no hang."""
    with Hosts(('a', 'b'), {'a': mpi.weft_env(build)}) as hosts:
        other = hosts.address('b')
        job = mpi.mpirun(hosts, 'a:1,b:1', [HERE / 'counted.py', 10, 10], 60)
    print(' '.join(job.command), job.result.text, sep='\n')
    if job.result.status is None:
        raise mpi.Failed('the ranks hang')
    if job.result.status == 0:
        raise mpi.Failed('the ranks ended without an error')
    if not re.search(rf'no Weft runs on host {re.escape(other)}\b', job.result.text):
        raise mpi.Failed(f'no line names the host {other}')


def secrets_differ(build, _layout=None):
    """Two hosts with secrets of their own: an error that says so, and no hang."""
    with mpi.setting_env(build, 'secret') as one, mpi.setting_env(build, 'secret') as other, \
            Hosts(('a', 'b'), {'a': one, 'b': other}) as hosts:
        job = mpi.mpirun(hosts, 'a:1,b:1', [HERE / 'counted.py', 10, 10], 60)
    print(' '.join(job.command), job.result.text, sep='\n')
    if not job.result.status:
        raise mpi.Failed('the ranks hang' if job.result.status is None else
                         'the ranks ended without an error')
    if 'the secrets differ' not in job.result.text:
        raise mpi.Failed('no line says that the secrets differ')


CASES = {case.__name__: case for case in
         (netpipe, exchange, windows, transport, beside_vader, ob1, removed, run_btl, hpcc, lammps, bench, mpi4py, mpi4py_some,
          mpi4py_ob1, steady, routes, defaults, one_host_only,
          secrets_differ)}

if __name__ == '__main__':
    sys.exit(mpi.main(CASES[sys.argv[2]], sys.argv[1], *sys.argv[3:]))
