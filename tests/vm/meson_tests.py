# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests of a build folder as commands of a machine: the same programs that meson runs, with the
arguments and the environment that it gives them.
"""
import fnmatch
import json
import pathlib
import shlex

from job import Command
from packages import Failed

HERE = pathlib.Path(__file__).resolve().parent


def cannot(arch):
    """{test: reason} of those that can't run in a machine of a processor (cannot.txt)."""
    reasons = {}
    for line in (HERE / 'cannot.txt').read_text(encoding='utf-8').splitlines():
        if line and not line.startswith('#'):
            arches, name, reason = line.split(': ', 2)
            if arch in arches.split():
                reasons[name] = reason
    return reasons


def known_tests(build):
    """meson's description of all tests of a build folder."""
    file = build / 'meson-info' / 'intro-tests.json'
    if not file.exists():
        raise Failed(f'{build} is no build folder')
    return json.loads(file.read_text())


def as_command(test, seconds, env):
    """A test of meson's as a command; its name is the test's."""
    words = [f'{name}={value}' for name, value in {**test['env'], **dict(env)}.items()]
    folder = shlex.quote(test['workdir']) if test['workdir'] else '$BUILD'
    return Command(test['name'], f'cd {folder} && {shlex.join(["env", *words, *test["cmd"]])}', seconds)


def commands_of(tests, build, arch):
    """The commands of a job.Tests, and {name: reason} of what it leaves out."""
    reasons, commands, left = cannot(arch), [], {}
    known = known_tests(build)
    gone = reasons.keys() - {test['name'] for test in known}
    if gone:
        raise Failed(f'cannot.txt names what is no test of {build}: {", ".join(sorted(gone))}')
    for test in known:
        suites = {suite.split(':')[-1] for suite in test['suite']}
        if not suites & set(tests.suites) or \
                not any(fnmatch.fnmatchcase(test['name'], name) for name in tests.names):
            continue
        if test['name'] in reasons:
            left[test['name']] = reasons[test['name']]
        else:
            commands.append(as_command(test, tests.seconds, tests.env))
    if not commands:
        raise Failed(f'no test of {build} is in {tests.suites} and has a name like {tests.names}')
    return commands, left
