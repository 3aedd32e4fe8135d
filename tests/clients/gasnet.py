# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""GASNet-EX, ofi-conduit: the tests that its `make run-tests` runs, one at a time.

The tests of one threading mode have been built (target tests-seq or tests-par of the conduit), for a
list of providers that has the names below. GASNet-EX has no shared memory of its own then
(--disable-pshm), or nothing would use libfabric. Its spawner ssh starts processes of this host itself.
"""
import re
import subprocess

from compare import Test

# Its make ends with status 0 in any case: errors are in the output.
PASSED = r'(?s)\A(?!.*(?:ERROR|fatal signal)).*TESTS COMPLETE'


class Client:
    providers = {
        'link': ('tcp;ofi_rxm', 'sockets'),
        'shm': ('shm', 'sockets'),
        'tcp': ('tcp', 'tcp;ofi_rxm'),
        'tcp;ofi_rxm': ('tcp;ofi_rxm',),
        'sockets': ('sockets',),
    }

    def __init__(self, built, ranks):
        self.folder = built / 'ofi-conduit'
        self.ranks = ranks
        self.libraries = []
        self.loads = self.folder / 'testgasnet'

    def names(self):
        """Those that were built and that its `make run-tests` does not leave out."""
        chosen = '$(filter-out $(testprograms_err) $(testprograms_nongasnet),$(testprograms))'
        done = subprocess.run(['make', '-s', '-C', self.folder, '-f', '../tests/Makefile',
                               f'--eval=weft-tests: ; @echo {chosen}', 'weft-tests'],
                              capture_output=True, text=True, check=True)
        names = re.findall(r'\btest\w+', done.stdout)
        return [name for name in dict.fromkeys(names) if (self.folder / name).exists()]

    def test(self, provider, name):
        return Test(name, ['make', '-s', '-C', self.folder, 'run-tests', f'TESTS={name}',
                           f'TEST_NODES={self.ranks}'],
                    {'FI_PROVIDER': provider, 'GASNET_OFI_SPAWNER': 'ssh', 'GASNET_QUIET': '1',
                     'GASNET_SSH_SERVERS': '127.0.0.1', 'GASNET_MASTERIP': '127.0.0.1'},
                    self.folder, 300, PASSED)

    def probe(self, provider):
        return self.test(provider, 'testenv')

    def tests(self, provider):
        return [self.test(provider, name) for name in self.names()]
