# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A client's tests over two libraries, and the table of where they differ.

`run` is the program; a client's file defines `Client(built, ranks)` with

  providers       our provider's name: those of the other libfabric that it is compared
                  with, best first
  loads           a file that was linked with libfabric.so.1, or dlopens into such a process;
                  None: the client opens libfabric.so.1 itself, by that name
  libraries       folders that have to be in the loader's path beside libfabric's
  probe(p)        a Test that passes if the client starts over provider p at all
  tests(p)        the list of Tests over provider p
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / 'interop'))   # behind this folder: names recur there

from hosts import clean_env, run_bounded

PASS, FAIL, TIME, SKIPPED = 'pass', 'FAIL', 'time', 'skip'


class Unusable(Exception):
    """What was given can't be compared; the text says why."""


@dataclass
class Test:
    """One test of a client: passes if its command ends with status 0.

    expect: a regular expression that its output has to match as well
    """
    name: str
    argv: list
    env: dict = field(default_factory=dict)
    cwd: object = None
    timeout: int = 120
    expect: str = ''


def loader_env(client, library):
    folders = [library, *client.libraries]
    return {'LD_LIBRARY_PATH': ':'.join(map(str, folders))}


def check_library(client, library):
    """The loader has to take libfabric.so.1 from `library`, or nothing is compared."""
    if client.loads is None:
        return
    done = subprocess.run(['ldd', client.loads], env=clean_env(**loader_env(client, library)),
                          capture_output=True, text=True, check=False)
    taken = re.search(r'libfabric\.so\.1 => (\S+)', done.stdout)
    if not taken:
        raise Unusable(f'{client.loads} does not load libfabric.so.1: {done.stdout}{done.stderr}')
    folder = pathlib.Path(taken[1]).parent.resolve()
    if folder != pathlib.Path(library).resolve():
        raise Unusable(f'{client.loads} loads {taken[1]}, whatever LD_LIBRARY_PATH says')


class Runner:
    """Runs tests over one library."""

    def __init__(self, client, library, title, logs):
        check_library(client, library)
        self.env = loader_env(client, library)
        self.title = title
        self.logs = pathlib.Path(logs) if logs else None

    def verdict(self, test, provider):
        done = run_bounded([str(each) for each in test.argv],
                           clean_env(**{**self.env, **test.env}), test.timeout, test.cwd)
        if done.status is None:
            result = TIME
        elif done.status == 77:
            result = SKIPPED
        elif done.status != 0 or not re.search(test.expect, done.text):
            result = FAIL
        else:
            result = PASS
        if result in (FAIL, TIME) and self.logs:
            self.logs.mkdir(parents=True, exist_ok=True)
            name = re.sub(r'[^\w.-]', '_', f'{self.title}-{provider}-{test.name}')
            (self.logs / name).write_text(f'{test.argv}\nstatus {done.status}\n{done.text}')
        return result

    def run(self, tests, provider):
        results = {}
        began = time.monotonic()
        for test in tests:
            results[test.name] = self.verdict(test, provider)
        passed = sum(result == PASS for result in results.values())
        print(f'  {self.title} {provider}: {passed} of {len(results)} passed, '
              f'{time.monotonic() - began:.0f} s', flush=True)
        return results


def selected(tests, pattern):
    return [test for test in tests if re.search(pattern, test.name)]


def baseline(client, runner, names, pattern, known):
    """What passes there: over the first of `names` that the client starts with."""
    for name in names:
        if name not in known and runner and runner.verdict(client.probe(name), name) == PASS:
            known[name] = runner.run(selected(client.tests(name), pattern), name)
        if name in known:
            return name, known[name]
    return None, {}


def differing(there, here):
    return [name for name, result in here.items()
            if there.get(name) == PASS and result not in (PASS, SKIPPED)]


def compare_provider(client, runners, provider, args, known):
    """One row of the table, and the names that pass there and not here."""
    upstream, weft = runners
    name, there = baseline(client, upstream, client.providers[provider], args.tests, known)
    tests = selected(client.tests(provider), args.tests)
    here = weft.run(tests, provider)
    again = differing(there, here)
    if again:   # a busy machine is no difference: once more, by themselves
        here.update(weft.run([test for test in tests if test.name in again], provider))
    worse = differing(there, here)
    better = [each for each in here if here[each] == PASS and there.get(each) != PASS]
    failing = [each for each in here if here[each] in (FAIL, TIME) and each not in worse]
    def count(results):
        return f'{sum(r == PASS for r in results.values())} of {len(results)}'

    def named(title, names):
        return f'{title}: {" ".join(sorted(names)[:12])}{" ..." if len(names) > 12 else ""}'
    notes = [named(*each) for each in (('only there', worse), ('only here', better),
                                       ('in neither', failing)) if each[1]]
    row = (provider, name or '-', count(there) if name else 'does not start', count(here),
           '; '.join(notes) if name else 'nothing to compare with; '
           + (named('failing here', failing) if failing else 'none fails here'))
    return row, worse


def load(path):
    return json.loads(pathlib.Path(path).read_text()) if path else {}


def run(client, there, here, args):
    known = load(args.against)
    upstream = None if args.against else Runner(client, there, 'there', args.logs)
    weft = Runner(client, here, 'here', args.logs)
    wanted = args.provider or list(client.providers)
    unknown = set(wanted) - set(client.providers)
    if unknown:
        raise Unusable(f'providers {sorted(unknown)}: the client has {list(client.providers)}')
    rows, worse = [], []
    for provider in wanted:
        row, names = compare_provider(client, (upstream, weft), provider, args, known)
        rows.append(row)
        worse += [f'{provider}: {name}' for name in names]
        if args.save:
            pathlib.Path(args.save).write_text(json.dumps(known, indent=1))
    print(f'\n{args.name}, {args.ranks} ranks; {os.uname().nodename}, '
          f'{time.strftime("%-d %B %Y")}\n')
    print('| provider | compared with | passed there | passed here | difference |')
    print('|---|---|---|---|---|')
    for row in rows:
        print('| ' + ' | '.join(row) + ' |')
    for each in worse:
        print(f'passes there and not here: {each}')
    return 1 if worse else 0
