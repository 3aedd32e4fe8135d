# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""MPICH (ch4:ofi): tests of its test/mpi, which were compiled in the build folder.

All messages go through libfabric, those inside the host too, unless WEFT_MPICH_NOLOCAL is 0.
WEFT_MPICH_SUITES names other folders of test/mpi, WEFT_MPICH_RANKS the most ranks of a test. What a test
runs with stands in the testlist of its folder: a name, ranks, then key=value.
"""
import os
import re

from compare import Test

SUITES = ('pt2pt rma coll comm topo datatype group attr init info errhan errors part session threads '
          'mpi_t')

# What a line of a testlist may ask for that is left out here: an expected failure, an output
# that is judged otherwise, gigabytes.
LEFT_OUT = ('xfail', 'init', 'resultTest', 'mem')


class Client:
    providers = {
        'link': ('tcp;ofi_rxm', 'sockets'),
        'shm': ('shm',),
        'tcp': ('tcp', 'tcp;ofi_rxm'),
        'tcp;ofi_rxm': ('tcp;ofi_rxm',),
        'sockets': ('sockets',),
    }

    def __init__(self, built, ranks):
        self.folder = built / 'test/mpi'
        self.libraries = [built / 'lib/.libs']
        self.loads = built / 'lib/.libs/libmpi.so'
        self.launcher = built / 'src/pm/hydra/mpiexec.hydra'
        self.most_ranks = int(os.environ.get('WEFT_MPICH_RANKS', '4'))
        self.nolocal = os.environ.get('WEFT_MPICH_NOLOCAL', '1')

    def test(self, provider, suite, line, names):
        """A line of a testlist; None where the program isn't built or needs more than that."""
        name, ranks, *rest = line.split()
        program = self.folder / suite / '.libs' / name
        if not program.exists():
            program = self.folder / suite / name
        options = [option.split('=', 1) for option in rest if '=' in option]
        if (not program.exists() or int(ranks) > self.most_ranks
                or any(key in LEFT_OUT for key, _ in options)):
            return None
        env = dict(value.split('=', 1) for key, value in options if key == 'env')
        title = f'{suite}/{name}-{ranks}'
        names[title] = names.get(title, 0) + 1
        if names[title] > 1:
            title += f'-{names[title]}'
        return Test(title, [self.launcher, '-np', ranks, program,
                            *(value for key, value in options if key == 'arg')],
                    {'FI_PROVIDER': provider, 'MPIR_CVAR_NOLOCAL': self.nolocal, **env},
                    self.folder / suite, 120, 'No Errors')

    def probe(self, provider):
        return self.test(provider, 'pt2pt', 'sendrecv2 2', {})

    def testlist(self, suite):
        """The lines of a folder's testlist, which configure writes or the source folder has."""
        folder = self.folder / suite
        if not (folder / 'testlist').exists():
            makefile = (folder / 'Makefile').read_text()
            folder /= re.search(r'^srcdir *= *(.*)$', makefile, re.MULTILINE)[1]
        return (folder / 'testlist').read_text().splitlines()

    def lines(self, suite):
        """Each test of a folder and of those that its testlist names, as (folder, line)."""
        for line in self.testlist(suite):
            if re.match(r'\w+ \d+', line):
                yield suite, line
            elif re.fullmatch(r'\w+', line.strip()) and self.built(f'{suite}/{line.strip()}'):
                yield from self.lines(f'{suite}/{line.strip()}')

    def built(self, suite):
        return (self.folder / suite / 'Makefile').exists()

    def tests(self, provider):
        names = {}
        found = [self.test(provider, *line, names)
                 for suite in os.environ.get('WEFT_MPICH_SUITES', SUITES).split()
                 for line in self.lines(suite)]
        return [test for test in found if test]
