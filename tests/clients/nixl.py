# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""NIXL with its plugin LIBFABRIC and its Python module, between two agents with memory of the host.

Its own tests of the plugin need a GPU or EFA; nixl_agent.py is ours. NIXL looks for `tcp`, then for
`sockets`, and knows no other name of ours. WEFT_NIXL_LIBRARIES has folders that it loads from besides:
a plugin that was built beside CUDA needs some libcuda.so.1.
"""
import os
import pathlib
import sys

import nixl_agent
from compare import Test

DRIVER = pathlib.Path(nixl_agent.__file__).resolve()


class Client:
    providers = {name: (name,) for name in ('tcp', 'sockets')}

    def __init__(self, built, ranks):
        self.libraries = os.environ.get('WEFT_NIXL_LIBRARIES', '').split(':')
        self.plugins = built / 'src/plugins/libfabric'
        self.loads = self.plugins / 'libplugin_LIBFABRIC.so'
        self.bindings = built / 'src/bindings/python'

    def test(self, provider, case):
        return Test(case, [sys.executable, DRIVER, self.bindings, case],
                    {'FI_PROVIDER': provider, 'NIXL_PLUGIN_DIR': str(self.plugins)}, timeout=180)

    def probe(self, provider):
        return self.test(provider, 'small')

    def tests(self, provider):
        return [self.test(provider, case) for case in nixl_agent.CASES]
