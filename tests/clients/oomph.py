# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""oomph: those of its ctest that run over libfabric, with each kind of endpoint that it has.

It names one provider, chosen when it was configured (OOMPH_LIBFABRIC_PROVIDER): tcp, for which it asks for
tcp;ofi_rxm, or sockets. The MPI that starts its tests must not use libfabric itself: Open MPI is told so here.
"""
import re

import ctest
from compare import Test

NAMES = {'tcp': 'tcp;ofi_rxm'}
KINDS = ('single', 'multiple', 'threadlocal', 'scalableTx')
MPI = {'OMPI_MCA_pml': 'ob1', 'OMPI_MCA_btl': 'self,vader', 'OMPI_MCA_rmaps_base_oversubscribe': '1',
       'OMPI_MCA_hwloc_base_binding_policy': 'none', 'OMPI_MCA_mpi_yield_when_idle': '1',
       'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}


class Client:
    def __init__(self, built, ranks):
        self.built = built
        self.libraries = []
        self.loads = next(built.glob('**/liboomph_libfabric.so'))
        chosen = re.search(r'^OOMPH_LIBFABRIC_PROVIDER:\w+=(.*)$',
                           (built / 'CMakeCache.txt').read_text(), re.MULTILINE)[1]
        name = NAMES.get(chosen, chosen)
        self.providers = {name: (name,)}

    def probe(self, provider):
        return next(test for test in self.tests(provider) if 'single/test_locality' in test.name)

    def tests(self, provider):
        return [Test(f'{kind}/{name}', command, {**MPI, 'LIBFABRIC_ENDPOINT_TYPE': kind},
                     self.built, 120)
                for kind in KINDS for name, command in ctest.listed(self.built)
                if name.endswith('_libfabric')]
