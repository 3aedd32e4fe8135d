# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""LCI: its ctest, without those tests that never reach libfabric (its process manager's)."""
import ctest


class Client:
    providers = {
        'link': ('tcp;ofi_rxm', 'sockets'),
        'shm': ('shm',),
        'tcp': ('tcp',),
        'tcp;ofi_rxm': ('tcp;ofi_rxm',),
        'sockets': ('sockets',),
    }

    def __init__(self, built, ranks):
        self.built = built
        self.libraries = [built / 'lib']
        self.loads = built / 'lib/liblci.so'

    def tests(self, provider):
        return ctest.tests(self.built, lambda name: 'lct_pmi' not in name,
                           {'LCI_ATTR_OFI_PROVIDER_NAME': provider}, 300)

    def probe(self, provider):
        return next(test for test in self.tests(provider) if test.name.endswith('hello_world'))
