# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Sandia OpenSHMEM: the tests of its submodule tests-sos, under a PMI launcher.

WEFT_PMI_LAUNCHER names the launcher: one that speaks PMI-1 and takes `-np N` (Hydra). All
processes have their memory at the same addresses, which remote virtual addressing needs.
"""
import os
import subprocess

from compare import Test

SUITES = ('unit', 'shmemx', 'spec-example', 'apps')

# The data segment's symmetric heap of every rank; the default of 512 MiB is more than
# small machines have for four.
ENV = {'SHMEM_SYMMETRIC_SIZE': '128M'}


class Client:
    providers = {
        'link': ('tcp;ofi_rxm', 'sockets'),
        'shm': ('shm', 'tcp;ofi_rxm', 'sockets'),
        'tcp': ('tcp', 'tcp;ofi_rxm', 'sockets'),
    }

    def __init__(self, built, ranks):
        self.folder = built / 'modules/tests-sos/test'
        self.ranks = ranks
        self.libraries = [built / 'src/.libs']
        self.loads = built / 'src/.libs/libsma.so'
        self.launcher = os.environ.get('WEFT_PMI_LAUNCHER', 'mpiexec.hydra')

    def names(self, suite):
        """Those that the suite's own `make check` runs in this configuration."""
        done = subprocess.run(['make', '-s', '--no-print-directory', '-C', self.folder / suite,
                               '--eval=weft-tests: ; @echo $(TESTS)', 'weft-tests'],
                              capture_output=True, text=True, check=True)
        return done.stdout.split()

    def test(self, provider, suite, name):
        folder = self.folder / suite
        program = folder / '.libs' / name
        if not program.exists():
            program = folder / name
        return Test(f'{suite}/{name}',
                    ['setarch', '-R', self.launcher, '-np', self.ranks, program],
                    {**ENV, 'SHMEM_OFI_PROVIDER': provider}, folder)

    def probe(self, provider):
        return self.test(provider, 'unit', 'hello')

    def tests(self, provider):
        return [self.test(provider, suite, name)
                for suite in SUITES for name in self.names(suite)]
