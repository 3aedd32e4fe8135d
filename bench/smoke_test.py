#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""smoke_test.py BUILD CASE - 'make bench' measures and prints what it promises

CASE is 'bench', a run of bench/run with a round or two of each comparison, whose last table has to have
a figure beside every bar that was asked for; or 'table', what bench/table says of made-up figures.
Times mean nothing here.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77
HEADS = ('figure', 'ours', 'theirs', 'ratio', 'must', 'aim', 'met')


def run(command, **env):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, **env}, check=False)
    return done.returncode, done.stdout


def lines_of(text):
    """{figure: (ours, theirs, ratio, must, aim, met)} of the last table, cut at its head."""
    lines = text.splitlines()
    first = max(i for i, line in enumerate(lines) if line.split() == list(HEADS))
    starts = [lines[first].index(head) for head in HEADS]
    rows = {}
    for line in lines[first + 1:]:
        if not line:
            break
        cells = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None])]
        rows[cells[0]] = cells[1:]
    return rows


# What is compared with another libfabric, by its name in bench/run, and the rows of the table.
UPSTREAM = {'upstream-msg': ("tcp, MSG 8 B against upstream's MSG",),
            'upstream-cpu': ("tcp, processor time of a stream of 64 KiB against upstream's tcp",
                             "tcp, processor time of a stream of 1 MiB against upstream's tcp"),
            'upstream-calls': ("tcp, system calls of 8 B against upstream's tcp",
                               "tcp, system calls of 64 KiB against upstream's tcp")}
RAW = ('tcp, 8 B, polled, against raw sockets', 'tcp, 8 B, poll(2), against raw sockets that block',
       'tcp, 8 B, fi_cq_sread, against raw sockets that block', 'tcp, stream 1 MiB against a raw socket')


def can_trace():
    return shutil.which('strace') and not subprocess.run(['strace', '-qq', '-o', '/dev/null', 'true'],
                                                         stderr=subprocess.DEVNULL, check=False).returncode


def upstream(folder, stock):
    """The comparisons with upstream's tcp, with the stock library in its place. Returns rows without a figure."""
    status, text = run([str(HERE / 'run'), folder], ONLY=' '.join(UPSTREAM), ROUNDS='1', CALL_ROUNDS='1',
                       UPSTREAM_LIBFABRIC=f'/usr/lib/{stock}', MPICH_OFI='')
    print(text)
    rows = lines_of(text)
    wanted = [row for name, some in UPSTREAM.items() for row in some if name != 'upstream-calls' or can_trace()]
    return [row for row in wanted if rows[row][5] == '-'] + ([] if status in (0, 1) else [f'status {status}'])


def bench(build):
    """One round; what is not installed has dashes."""
    stock = pathlib.Path(subprocess.run(['gcc', '-print-multiarch'], capture_output=True, text=True,
                                        check=True).stdout.strip())
    if not pathlib.Path('/usr/lib', stock, 'libfabric.so.1').exists() or os.cpu_count() < 2:
        print('skip: no stock libfabric.so.1, or one core')
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        # Results go beside the build: into one of our own, of links to the real one.
        for name in ('tools', 'core', 'mem', 'btl', 'devices'):
            pathlib.Path(folder, name).symlink_to(pathlib.Path(build, name).resolve())
        pathlib.Path(folder, 'bench').mkdir()
        for name in ('pipe', 'socket', 'registration', 'devices', 'remote'):
            pathlib.Path(folder, 'bench', name).symlink_to(pathlib.Path(build, 'bench', name).resolve())
        status, text = run([str(HERE / 'run'), folder],
                           ONLY='shm link refused raw raw-fd raw-sread core-shm pairs-shm passive-shm mem mem-turn mem-cold scale registration mpi '
                                'mpi-core mpi-allreduce mpi-mem mpi-fresh mpi-rma mpi-ob1 btl btl-threads '
                                'devices-read devices-fio devices-fair devices-remote',
                           ROUNDS='1', MPI_ROUNDS='1', MPI_SCALE='0.01', ENDPOINTS='20', DEVICE_ROUNDS='1',
                           DEVICE_SECONDS='0.2',
                           PEERS='20', IDLE_TIME='1', UPSTREAM_LIBFABRIC='', MPICH_OFI='')
        missed = upstream(folder, stock)
    print(text)
    rows = lines_of(text)
    absent = {'8 B against UCX posix,cma', "arena, fi_mr_reg and fi_close against upstream's shm",
              *(row for row in rows if row.startswith(('MPICH, link', 'tcp, ', 'registration ')) and row not in RAW or ', link, one core' in row
                or ', tcp, one core' in row or row.startswith('two pairs on two cores, tcp'))}
    if not shutil.which('mpicc.mpich'):
        absent.add('message rate 8 B against MPICH, UCX')
    if not shutil.which('mpicc.openmpi'):
        absent |= {row for row in rows if row.startswith(('Open MPI', 'MPI ', 'MPI_')) or ' of 2 ranks, ' in row}
    elif not pathlib.Path(build, 'btl', 'openmpi', 'mca_btl_weft.so').exists():
        absent |= {row for row in rows if row.startswith(('MPI ', 'MPI_'))}
    elif not shutil.which('mpicc.mpich') and not rows['Open MPI, link, 8 B'][1].endswith('vader'):
        print('failed: Open MPI is compared with something that is not here')
        return 1
    if not pathlib.Path(build, 'devices', 'fio', 'weft_fio.so').exists():
        absent |= {row for row in rows if row.startswith('device, ') and ('4 KiB depth' in row or 'a large one' in row)}
    for program in ('nbdkit', 'qemu-nbd'):
        if not shutil.which(program):
            absent |= {row for row in rows if row.startswith('device, ') and f'{program}, ' in row}
    if not shutil.which('nbdkit'):
        absent.add('device, 4 KiB depth 32')
    if not pathlib.Path(build, 'bench', 'devices', 'weft-device-latency').exists():
        absent |= {row for row in rows if row.startswith('device, ')}
    wrong = [row for row, cells in rows.items() if (cells[5] == '-') != (row in absent)]
    # Who may register how much differs from machine to machine.
    wrong = [row for row in wrong if not row.startswith('registration ')]
    wrong += missed
    print(f'failed: {wrong}' if wrong or status not in (0, 1) else f'{len(rows)} lines')
    return 1 if wrong or status not in (0, 1) or len(rows) < 30 else 0


def figure(test, size, unit, ours, theirs):
    return {'test': test, 'size': size, 'unit': unit, 'raw_ns': {'median': 50},
            'a': {'median': ours[1], 'samples': ours}, 'a2': ours,
            'b': {'median': theirs[1], 'samples': theirs}}


def table(build):
    """The better of two libraries counts; times and rates are compared each in their way."""
    def comparison(who, *figures):
        return {'b': {'libfabric': '2.6', 'build': who}, 'figures': list(figures)}

    made_up = {
        'shm': comparison('1.17.0',
                          figure('latency', 8, 'us', [0.10, 0.11, 0.12], [0.30, 0.33, 0.36]),
                          figure('latency', 1024, 'us', [0.3, 0.4, 0.5], [0.6, 0.5, 0.4]),
                          figure('rate', 8, 'M/s', [30, 31, 32], [10, 10, 10]),
                          figure('atomic', 8, 'us', [0.2, 0.231, 0.4], [1, 1, 1])),
        'upstream-shm': comparison('2.7',
                                   figure('latency', 8, 'us', [0.10, 0.11, 0.12], [0.20, 0.22, 0.24]),
                                   figure('rate', 8, 'M/s', [30, 31, 32], [25, 24.8, 24])),
        'link': comparison('', figure('latency', 8, 'us', [0.110, 0.120, 0.130],
                                      [0.100, 0.112, 0.120])),
        'registration-user': {'figures': [{'size': 4096, 'arena': [50, 40, 45], 'pages_huge': [],
                                           'pages_4k': [500, 1200, 1170]}]},
        'scale-shm': {'peers': 7, 'idle_one_ns': [10, 20, 30], 'idle_many_ns': [12.2, 24.4, 36.6],
                      'endpoint_bytes': {'private': 1024, 'shared': 3072},
                      'pair_bytes': {'private': 65536, 'shared': 1024}},
        'raw': {'b': {'libfabric': None, 'build': 'socket, polled'},
                'figures': [figure('latency', 8, 'us', [4, 4.4, 5], [4, 4, 4]),
                            figure('bandwidth', 1 << 20, 'MB/s', [900, 960, 1100], [1000, 1000, 1000])]},
        'upstream-cpu': comparison('2.7', figure('cpu', 65536, 'ms/GB', [400, 450, 500], [500, 600, 500])),
        'upstream-tcp': comparison('2.7', figure('rate', 8, 'M/s', [4, 4, 4], [0.5, 0.4, 0.4])),
        'upstream-calls': {'ways': [{'name': name, 'figures': [{'test': 'calls', 'size': 8, 'samples': calls}]}
                                    for name, calls in (('weft', [3, 3.5, 4]), ('upstream', [5, 5, 5]))]},
        'mpi': {'ways': [{'name': name, 'figures': [{'test': 'latency', 'size': 8, 'samples': us}]}
                         for name, us in (('Open MPI, link', [1, 2, 3]), ('Open MPI, vader', [2, 3, 4]),
                                          ('MPICH, UCX', [1.5, 2.5, 3.5]))]},
        'mpi-rma': {'ways': [{'name': name, 'figures': [{'test': 'put', 'size': 8, 'samples': us},
                                                        {'test': 'puts', 'size': 262144, 'samples': rates}]}
                             for name, us, rates in (
                                 ('Open MPI, btl/weft', [0.4, 0.5, 0.6], [1, 1, 1]),
                                 ('Open MPI, btl/weft, mem', [1, 1, 1], [2, 4, 6]),
                                 ('Open MPI, btl/ofi, libfabric', [2, 2, 2], [1.1, 1.2, 1.3]),
                                 ('Open MPI, btl/ofi, upstream', [0.8, 1, 1.2], [0.9, 1, 1.1]))]},
        'devices-read': {'ways': [{'name': name, 'figures': [{'test': test, 'size': size, 'samples': us}
                                                             for test, size, us in figures]}
                                  for name, figures in (
                                      ('owner', [('read', 4096, [1, 1.01, 1.02])]),
                                      ('another process', [('read', 4096, [1.01, 1.02, 1.03])]),
                                      ('another process, again', [('read', 4096, [1.05, 1.02, 1.0])]),
                                      ('in namespaces', [('read', 4096, [2, 2, 2])]),
                                      ('floor', [('memcpy', 4096, [0.4, 0.5, 0.6]), ('line', 64, [0.2, 0.2, 0.2])]))]},
        'devices-fio': {'ways': [{'name': name, 'figures': [{'test': 'iops32', 'size': 4096, 'samples': rates}]}
                                 for name, rates in (('weft, memory', [700, 800, 900]),
                                                     ('nbdkit, memory', [150, 160, 170]))]},
        'devices-fair': {'ways': [{'name': name, 'figures': [{'test': 'iops', 'size': 4096, 'samples': rates},
                                                             {'test': 'p99', 'size': 4096, 'samples': us}]}
                                  for name, rates, us in (('30 equal, memory', [10, 10, 10], [1, 1, 1]),
                                                          ('29 beside a large one, memory', [7, 8.5, 9], [4, 6, 7]))]},
        'btl-threads': comparison('', figure('puts1', 8, 'M/s', [10, 11, 12], [1, 1, 1]),
                                  figure('puts2', 8, 'M/s', [17, 22, 24], [1, 1, 1])),
    }
    expected = {
        '8 B, tagged, one way': ['0.11 us', '0.22 us libfabric 2.7', '0.500', '0.75', '', 'must'],
        '8 B against the raw cache line': ['0.11 us', '0.050 us raw line', '2.20', '', '2.5', 'aim'],
        '1 KiB': ['0.4 us', '0.5 us libfabric 1.17.0', '0.800', '0.75', '0.5', 'no'],
        'message rate 8 B': ['31 M/s', '24.8 M/s libfabric 2.7', '1.250', '1.5 times', '', 'no'],
        'message rate 8 B, itself': ['31 M/s', '-', '-', '', '30 M/s', 'aim'],
        'fetch-add against an 8 B round trip': ['0.231 us', '0.22 us our round trip', '1.050', '1.1',
                                                '', 'must'],
        '8 B, link less shm alone': ['0.12 us', '0.112 us shm alone', '+10.0 ns', '10 ns', '', 'must'],
        'idle call, shm, 7 peers against 1': ['24.4 ns', '20.0 ns 1 peer', '1.220', '1.2', '', 'no'],
        'an endpoint at creation, shm': ['4.0 KiB', '-', '-', '256 KiB', '', 'must'],
        'a pair before it grows, shm': ['65.0 KiB', '-', '-', '64 KiB', '', 'no'],
        'registration 4 KiB, 4 KiB pages, ordinary user': ['45 ns', '1170 ns device', '26.0', '25 times', '',
                                                           'must'],
        'registration 4 KiB, 4 KiB pages, tuned host': ['-', '-', '-', '25 times', '', '-'],
        'tcp, 8 B, polled, against raw sockets': ['4.4 us', '4 us socket, polled', '1.100', '1.1', '1.05', 'must'],
        'tcp, stream 1 MiB against a raw socket': ['960 MB/s', '1000 MB/s socket, polled', '0.960', '0.95 times', '',
                                                   'must'],
        "tcp, processor time of a stream of 64 KiB against upstream's tcp": ['450 ms/GB', '600 ms/GB libfabric 2.7',
                                                                             '0.800', '0.9', '', 'must'],
        "tcp, message rate 8 B against upstream's tcp": ['4 M/s', '0.4 M/s libfabric 2.7', '10.000', '10 times', '',
                                                         'must'],
        "tcp, RMA write 8 B against upstream's tcp": ['-', '-', '-', '0.95', '0.8', '-'],
        "tcp, system calls of 8 B against upstream's tcp": ['3.5 calls', '5 calls upstream', '0.700', '1', '', 'must'],
        'Open MPI, link, 8 B': ['2 us', '2.5 us MPICH, UCX', '0.800', '1', '0.7', 'must'],
        'MPI put 8 B against btl/ofi': ['0.5 us', '1 us Open MPI, btl/ofi, upstream', '0.500', '0.5', '', 'must'],
        'MPI rate of puts 256 KiB, mem': ['4 M/s', '1.2 M/s Open MPI, btl/ofi, libfabric', '3.333', '2 times', '',
                                          'must'],
        'MPI put 8 B against vader': ['-', '-', '-', '1', '', '-'],
        'btl, puts of two threads against one': ['22 M/s', '11 M/s one thread', '2.000', '1.6 times', '', 'must'],
        'device, read 4 KiB, less memcpy and two lines': ['1.02 us', '0.9 us memcpy, lines', '+0.120 us', '2 us', '',
                                                          'must'],
        'device, another process against the owner': ['1.02 us', '1.01 us owner, A/A 0.97..1.04', '1.010', '1', '', 'must'],
        'device, a process in namespaces against the owner': ['2 us', '1.01 us owner, A/A 0.97..1.04', '1.980', '1', '',
                                                              'no'],
        'device, 4 KiB depth 32': ['800 k/s', '160 k/s nbdkit, memory', '5.000', '800 k/s', '', 'must'],
        'device, least of 29 beside a large one, memory': ['8.5 k/s', '10 k/s 30 equal, memory', '0.850', '0.8 times', '',
                                                           'must'],
        'device, p99 beside a large one, memory': ['6 us', '1 us 30 equal, memory', '6.000', '5', '', 'no'],
        'device, file, 4 KiB depth 1, against io_uring': ['-', '-', '-', '0.85 times', '', '-'],
        'MPICH, link, 8 B': ['-', '-', '-', '1', '0.7', '-'],
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, whole in made_up.items():
            pathlib.Path(folder, f'{name}.json').write_text(json.dumps(whole))
        status, text = run([str(HERE / 'table'), folder])
    print(text)
    rows = lines_of(text)
    wrong = [f'{row}: {rows.get(row)}, not {cells}' for row, cells in expected.items()
             if rows.get(row) != cells]
    print('\n'.join(wrong) or 'as expected')
    return 1 if wrong or status else 0


if __name__ == '__main__':
    sys.exit({'bench': bench, 'table': table}[sys.argv[2]](sys.argv[1]))
