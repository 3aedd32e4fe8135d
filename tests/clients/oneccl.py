# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""oneCCL (transport ofi): the examples of its folder examples/cpu, each in BUILT_FOLDER/examples/cpu.

They tell each other their addresses by an MPI, which WEFT_MPI_LAUNCHER starts (default: mpirun); that
has to be one that does not use libfabric itself: Open MPI is told so here.
"""
import os

from compare import Test

EXAMPLES = ('cpu_allgather', 'cpu_allgatherv', 'cpu_allreduce', 'cpu_allreduce_bf16', 'cpu_broadcast')
# oneCCL counts the ranks of a host by itself only under Intel's own launcher.
RANK = 'CCL_LOCAL_RANK=${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID} exec "$0"'


class Client:
    providers = {
        'link': ('tcp;ofi_rxm', 'sockets'),
        'tcp': ('tcp', 'tcp;ofi_rxm'),
        'tcp;ofi_rxm': ('tcp;ofi_rxm',),
        'sockets': ('sockets',),
    }
    loads = None

    def __init__(self, built, ranks):
        self.folder = built / 'examples/cpu'
        self.libraries = [built / 'src', built / 'lib']
        self.ranks = ranks
        self.launcher = os.environ.get('WEFT_MPI_LAUNCHER', 'mpirun')

    def test(self, provider, name):
        return Test(name, [self.launcher, '-np', self.ranks, 'sh', '-c', RANK, self.folder / f'{name}_test'],
                    {'FI_PROVIDER': provider, 'CCL_ATL_TRANSPORT': 'ofi', 'CCL_LOG_LEVEL': 'info',
                     'CCL_PROCESS_LAUNCHER': 'none', 'CCL_LOCAL_SIZE': str(self.ranks),
                     'OMPI_MCA_pml': 'ob1', 'OMPI_MCA_btl': 'self,vader',
                     'OMPI_MCA_rmaps_base_oversubscribe': '1', 'OMPI_MCA_hwloc_base_binding_policy': 'none',
                     'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'},
                    expect=r'(?s)libfabric version.*PASSED')

    def probe(self, provider):
        return self.test(provider, 'cpu_allreduce')

    def tests(self, provider):
        return [self.test(provider, name) for name in EXAMPLES
                if (self.folder / f'{name}_test').exists()]
