# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""aws-ofi-nccl, the build for Neuron (no GPU needed): its plugin, called as NCCL would.

Its own functional tests need a GPU; nccl_net.py is ours. Its protocol RDMA finds no provider
without EFA's hardware in any libfabric, SENDRECV does. It leaves the loopback interface out by
itself: OFI_NCCL_EXCLUDE_TCP_IF names none instead.
"""
import pathlib
import sys

import nccl_net
from compare import Test

DRIVER = pathlib.Path(nccl_net.__file__).resolve()


class Client:
    providers = {
        'link': ('tcp;ofi_rxm', 'sockets'),
        'shm': ('shm',),
        'tcp': ('tcp',),
        'tcp;ofi_rxm': ('tcp;ofi_rxm',),
        'sockets': ('sockets',),
    }

    def __init__(self, built, ranks):
        self.libraries = []
        self.loads = next(path for path in sorted(built.rglob('libnccl-net*.so'))
                          + sorted(built.rglob('libnccom-net*.so')) if path.is_file())

    def test(self, provider, case):
        return Test(case, [sys.executable, DRIVER, self.loads, case],
                    {'FI_PROVIDER': provider, 'OFI_NCCL_PROTOCOL': 'SENDRECV',
                     'OFI_NCCL_EXCLUDE_TCP_IF': 'none'}, timeout=180)

    def probe(self, provider):
        return self.test(provider, 'small')

    def tests(self, provider):
        return [self.test(provider, case) for case in nccl_net.CASES]
