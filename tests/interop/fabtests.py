#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""fabtests - libfabric's own functional tests, run on Weft and held against a table

usage: fabtests.py run BUILD PROVIDER SUITE MODE    run one suite, compare with the table
       fabtests.py log LIBRARY PROVIDER SUITE MODE FILE
                                                    run it over any libfabric, keep the log
       fabtests.py table FOLDER                     print the table made of such logs

FABTESTS names the folder that fabtests was installed into (its configure's --prefix). It is
no part of this repository; without it the test is skipped. SUITE is a set of its runner:
quick, all or threaded. MODE says how the two sides find each other: `plain` by node and
service, `E` by addresses that a socket beside the test exchanges (the runner's own -b,
which gives each test -E), `b` by such addresses, with the turns taken over the socket (-b).

The runner ends every process named fi_* when it tidies up, so it gets a host of its own.
No exclude file is used.

The table is docs/fabtests.md. A test whose verdict is not the table's fails this one, a
better verdict too: then the table is to be renewed. `time` and an empty cell are no verdict;
`either` stands in the table alone, for a test that passes or fails by chance.
"""
import os
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True

import mpi
from hosts import HERE, Hosts

TABLE = HERE.parent.parent / 'docs' / 'fabtests.md'
MODES = {'plain': [], 'E': ['-b'], 'b': ['-C', '-b', '-L', '-b']}
OURS = ('shm', 'tcp', 'link', 'udp')
THEIRS = ('shm', 'tcp', 'tcp;ofi_rxm', 'udp')

# The longest a single test may take, and a whole suite, in seconds.
TEST_SECONDS = {'quick': 60, 'all': 240, 'threaded': 120}
SUITE_SECONDS = {'quick': 1500, 'all': 4000, 'threaded': 800}

# A test that failed after so many seconds did not end in its time: no verdict of a loaded
# machine.
LONG = 20

# What the table says of a test that passes or fails by chance, and what that covers.
CHANCE = {'either': ('pass', 'FAIL')}

# Why a test does not pass here: found in its mode and name, first match counts.
REASONS = (
    (r'^[Eb] .*(-e msg|fi_msg(?! g00n13s)|fi_cm_data)',
     'requires connected (MSG) endpoints, which only tcp has of Weft, and a node: '
     'in this mode it knows no address to connect to'),
    (r'-e msg| fi_msg(?! g00n13s)| fi_cm_data',
     'requires connected (MSG) endpoints; of Weft only tcp has them'),
    (r'dgram(?! g00n13s)', 'requires datagram endpoints; of Weft only udp has them'),
    (r'^[Eb] fi_(shared_ctx|scalable_ep)',
     'inserts the dest_addr of fi_getinfo without having asked for a destination'),
    (r'^[Eb] fi_rdm_shared_av', 'uses the separate socket without having opened it'),
    (r' fi_av_test', 'requires socket addresses of the named provider; only tcp has them'),
    (r'^b fi_rdm_tagged_bw', 'leaves a posted receive behind, which the larger messages of its next size overrun'),
    (r'^b fi_rdm_atomic(?!.* -U).* -v',
     'reads the memory of the target after a completion that does not imply delivery; with -U it asks for delivery'),
    (r'_pingpong.* -k', 'requires FI_MSG_PREFIX, which no provider of Weft uses'),
)


def folder():
    """Where fabtests was installed, or a skip with the reason."""
    prefix = os.environ.get('FABTESTS')
    if not prefix:
        print('skip: FABTESTS does not name a folder with fabtests installed')
        sys.exit(mpi.SKIP)
    prefix = pathlib.Path(prefix).resolve()
    for part in ('bin/runfabtests.sh', 'bin/fi_rdm', 'share/fabtests/test_configs'):
        if not (prefix / part).exists():
            print(f'skip: FABTESTS: no {part} in {prefix}')
            sys.exit(mpi.SKIP)
    return prefix


def blocks(text):
    """The top-level { } groups of one of fabtests' configuration files."""
    depth, start = 0, 0
    for place, letter in enumerate(text):
        if letter == '{':
            if depth == 0:
                start = place
            depth += 1
        elif letter == '}':
            depth -= 1
            if depth == 0:
                yield text[start:place + 1]


def ubertest_config(prefix, provider, into):
    """A configuration for fi_ubertest: all that is asked of RDM endpoints of shm and tcp, and of
    the datagram endpoints of udp.

    fabtests has one for each provider that it knows, with the provider's name in it; what
    it asks of upstream's shm and tcp is asked of each provider of reliable endpoints here.
    """
    text = ''
    names, endpoints = (['udp'], 'FI_EP_DGRAM') if provider == 'udp' else (['shm', 'tcp'], 'FI_EP_RDM')
    for name in names:
        source = prefix / 'share/fabtests/test_configs' / name / 'all.test'
        for block in blocks(source.read_text()):
            if endpoints in block:
                text += re.sub(r'prov_name:[^,]*', f'prov_name: {provider}', block) + ',\n'
    path = pathlib.Path(into) / 'ubertest'
    path.write_text(text)
    return path


def run_suite(prefix, library, provider, suite, mode, config=True):
    """Run one suite of the runner on a host of its own; what it printed."""
    with Hosts(('a',), {'a': {'LD_LIBRARY_PATH': str(library)}}) as hosts, \
            tempfile.TemporaryDirectory() as work:
        # Anything excluded by name keeps the runner from taking its exclude files.
        command = [prefix / 'bin/runfabtests.sh', '-vv', '-p', prefix / 'bin',
                   '-T', TEST_SECONDS[suite], '-e', 'no such test', '-t', suite,
                   *MODES[mode]]
        if config:
            command += ['-u', ubertest_config(prefix, provider, work)]
        done = hosts['a'].run([*command, provider], SUITE_SECONDS[suite],
                              cwd=prefix / 'share/fabtests')
    if done.status is None:
        raise mpi.Failed(f'{suite} over {provider} did not end in '
                         f'{SUITE_SECONDS[suite]} s\n{done.text[-2000:]}')
    return done.text


def verdicts(log):
    """{test: (verdict, what it printed)} of a runner's log."""
    found = {}
    for part in re.split(r'^- name: ', log, flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition('\n')
        name = re.sub(r'\s*-p ".*?"', '', name).strip()
        result = re.search(r'^  result: (\w+)', rest, re.MULTILINE)
        took = re.search(r'^  time:   (\d+)', rest, re.MULTILINE)
        if result:
            verdict = {'Pass': 'pass', 'Fail': 'FAIL'}.get(result[1], 'not run')
            if verdict == 'FAIL' and took and int(took[1]) >= LONG:
                verdict = 'time'
            found[name] = (verdict, rest)
    return found


def read_table():
    """{(test, mode): {column: verdict}} of the committed table."""
    table, columns, mode = {}, None, None
    for line in TABLE.read_text().splitlines():
        heading = re.match(r'## .*\(mode (\w+)\)', line)
        if heading:
            mode, columns = heading[1], None
        elif line.startswith('|') and mode:
            cells = [cell.strip() for cell in line.strip('|').split('|')]
            if columns is None:
                columns = cells[1:]
            elif not set(cells[0]) <= set('-:'):
                table[cells[0].strip('`'), mode] = dict(zip(columns, cells[1:]))
    return table


def run(build, provider, suite, mode):
    """Run a suite on Weft; every verdict has to be the table's."""
    prefix = folder()
    library = pathlib.Path(build).resolve() / 'core'
    table = read_table()
    found = verdicts(run_suite(prefix, library, provider, suite, mode))
    if provider == 'udp':
        # RDM endpoints of that name are tcp's.
        found = {test: it for test, it in found.items() if 'dgram' in test}
    if not found:
        raise mpi.Failed('the runner named no test')
    wrong = 0
    for test, (verdict, text) in found.items():
        wanted = table.get((test, mode), {}).get(f'Weft {provider}')
        if verdict not in CHANCE.get(wanted, (wanted,)):
            # Where the table has no verdict, one that is good enough breaks no promise.
            wrong += bool(wanted and wanted != 'time') or verdict == 'FAIL'
            print(f'{test}: {verdict}, the table says {wanted or "nothing"}\n{text}')
    count = {name: sum(verdict == name for verdict, _ in found.values())
             for name in ('pass', 'FAIL', 'time', 'not run')}
    print(f'{provider} {suite} {mode}: {count}')
    if wrong:
        raise mpi.Failed(f'{wrong} of {len(found)} verdicts differ from {TABLE.name}')


def log(library, provider, suite, mode, path):
    """Run a suite over the libfabric in a folder, and keep what the runner printed."""
    library = pathlib.Path(library).resolve()
    text = run_suite(folder(), library, provider, suite, mode, provider in OURS)
    pathlib.Path(path).write_text(text)


def reason(test, mode):
    return next((why for pattern, why in REASONS if re.search(pattern, f'{mode} {test}')), '')


def table(logs):
    """Print the table of the logs in a folder, named SIDE-PROVIDER-SUITE-MODE.log.

    SIDE is weft or upstream; in PROVIDER a + stands for a semicolon. Where suites share a
    test, its worst verdict counts. What no log tells stays as the committed table has it.
    """
    worst = {'FAIL': 3, 'time': 2, 'not run': 1, 'pass': 0}
    names = ['upstream ' + name for name in THEIRS] + ['Weft ' + name for name in OURS]
    told = {}
    for path in sorted(pathlib.Path(logs).glob('*.log')):
        side, provider, _, mode = path.stem.split('-')
        column = ('Weft ' if side == 'weft' else 'upstream ') + provider.replace('+', ';')
        for test, (verdict, _) in verdicts(path.read_text(errors='replace')).items():
            row = told.setdefault((test, mode), {})
            if column not in row or worst[verdict] > worst[row[column]]:
                row[column] = verdict
    rows = read_table()
    for at, row in told.items():
        known = rows.setdefault(at, {})
        for column, verdict in row.items():
            if verdict not in CHANCE.get(known.get(column), ()):
                known[column] = verdict
    titles = {'plain': 'Addresses by node and service', 'E': 'Addresses exchanged beside',
              'b': 'Addresses exchanged and turns taken beside'}
    for mode in MODES:
        print(f'\n## {titles[mode]} (mode {mode})\n')
        print('| test |', ' | '.join(names), '| reason |')
        print('|---' * (len(names) + 2) + '|')
        for (test, at), cells in rows.items():
            if at != mode:
                continue
            row = [cells.get(name, '') for name in names]
            lost = [name for name, cell in zip(names, row) if name.startswith('Weft')
                    and cell in ('FAIL', 'either', 'time', 'not run')]
            why = reason(test, mode) if lost and lost != ['Weft udp'] else ''
            print(re.sub(r' +', ' ', f'| `{test}` | {" | ".join(row)} | {why} |'))


COMMANDS = {'run': run, 'log': log, 'table': table}

if __name__ == '__main__':
    if len(sys.argv) < 3 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    if sys.argv[1] == 'run':
        folder()
    sys.exit(mpi.main(COMMANDS[sys.argv[1]], *sys.argv[2:], on_hosts=sys.argv[1] != 'table'))
