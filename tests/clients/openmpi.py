# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Open MPI, as installed: the programs of its examples folder over mtl/ofi and over btl/ofi.

BUILT_FOLDER is the prefix; the examples are compiled in its folder `examples`.
"""
from compare import Test

EXAMPLES = ('hello_c', 'ring_c', 'connectivity_c', 'hello_sessions_c')

# Exclude lists name most providers: an include list of one is what lets it be tried.
MTL = ('--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi', '--mca', 'opal_common_ofi_provider_include')
BTL = ('--mca', 'pml', 'ob1', '--mca', 'btl', 'self,ofi', '--mca', 'btl_ofi_mode', '2',
       '--mca', 'osc', 'rdma', '--mca', 'opal_common_ofi_provider_include')
SHARED = ('--bind-to', 'none', '--oversubscribe', '--mca', 'mpi_yield_when_idle', '1',
          '--allow-run-as-root')


class Client:
    providers = {
        'link': ('tcp;ofi_rxm', 'sockets'),
        'shm': ('shm',),
        'tcp': ('tcp', 'tcp;ofi_rxm'),
        'tcp;ofi_rxm': ('tcp;ofi_rxm',),
        'sockets': ('sockets',),
    }

    def __init__(self, built, ranks):
        self.built = built
        self.ranks = ranks
        self.libraries = [built / 'lib']
        self.loads = built / 'lib/libopen-pal.so'

    def test(self, provider, over, flags, name):
        return Test(f'{over}-{name}', [self.built / 'bin/mpirun', *SHARED, *flags, provider,
                                       '-np', self.ranks, self.built / 'examples' / name])

    def over(self, provider):
        """mtl/ofi wants FI_REMOTE_COMM, which no shm has; btl/ofi refuses names with ofi_rxm."""
        return [each for each in (('mtl', MTL), ('btl', BTL))
                if (each[0], provider) not in (('mtl', 'shm'), ('btl', 'tcp;ofi_rxm'))]

    def probe(self, provider):
        return self.test(provider, *self.over(provider)[0], 'ring_c')

    def tests(self, provider):
        return [self.test(provider, *over, name) for over in self.over(provider)
                for name in EXAMPLES if (self.built / 'examples' / name).exists()]
