# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Charm++ (target ofi, simple PMI): megatest, each of its tests three times, on 1 to 4 processors.

It takes the first answer of fi_getinfo: FI_PROVIDER says which that is.
WEFT_PMI_LAUNCHER names the launcher: one that speaks PMI-1 and takes `-np N` (Hydra).
"""
import os

from compare import Test


class Client:
    providers = {
        'link': ('tcp;ofi_rxm', 'sockets'),
        'shm': ('shm',),
        'tcp': ('tcp', 'tcp;ofi_rxm'),
        'sockets': ('sockets',),
    }

    def __init__(self, built, ranks):
        self.folder = built / 'tests/charm++/megatest'
        self.libraries = []
        self.loads = self.folder / 'megatest'
        self.launcher = os.environ.get('WEFT_PMI_LAUNCHER', 'mpiexec.hydra')

    def test(self, provider, ranks):
        return Test(f'megatest-{ranks}', [self.launcher, '-np', ranks, self.loads],
                    {'FI_PROVIDER': provider}, self.folder, 600, 'All tests completed')

    def probe(self, provider):
        return self.test(provider, 2)

    def tests(self, provider):
        return [self.test(provider, ranks) for ranks in (1, 2, 3, 4)]
