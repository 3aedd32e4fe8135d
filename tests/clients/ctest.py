# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The tests of a client that were registered with CTest, as lists of name and command."""
import json
import subprocess

from compare import Test


def listed(built):
    done = subprocess.run(['ctest', '--show-only=json-v1'], cwd=built, text=True,
                          capture_output=True, check=True)
    return [(test['name'], test['command']) for test in json.loads(done.stdout)['tests']
            if 'command' in test]


def tests(built, chosen, env=None, timeout=180):
    return [Test(name, command, dict(env or {}), built, timeout)
            for name, command in listed(built) if chosen(name)]
