# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Mercury: those of its ctest that run over libfabric, one at a time.

It is built with NA_OFI_TESTING_PROTOCOL "tcp;sockets;tcp_rxm;shm".
"""
import ctest


class Client:
    providers = {name: (name,) for name in ('tcp', 'sockets', 'tcp_rxm', 'shm')}

    def __init__(self, built, ranks):
        self.built = built
        self.libraries = [built / 'bin']
        self.loads = built / 'bin/libna.so'

    def tests(self, provider):
        longer = [f'_ofi_{name}' for name in self.providers if name.startswith(provider + '_')]
        return ctest.tests(self.built, lambda name: f'_ofi_{provider}' in name
                           and not any(each in name for each in longer))

    def probe(self, provider):
        return next(test for test in self.tests(provider) if test.name.endswith(provider))
