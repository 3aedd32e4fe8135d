# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""libraries - run scripts on the two libraries, and read their transcripts

A script is a name and a list of lines. The program act carries it out, in a process of its own.
"""
import collections
import concurrent.futures
import os
import subprocess
import tempfile

# of the other library, which otherwise tries every network
THERE_PROVIDERS = 'tcp,net,sockets,shm,sm2,udp,ofi_rxm,ofi_rxd'

Script = collections.namedtuple('Script', 'name lines')
# result: '0', '-EINVAL', 'absent'; answer: the rest of the line; lines: the lines after it
Answer = collections.namedtuple('Answer', 'result answer lines')
# answers by index of the call; end: 'exit 0', 'signal 11', 'deadline'
Transcript = collections.namedtuple('Transcript', 'answers end')


class Library:
    """A libfabric at a path, and how its calls are reached."""

    def __init__(self, act, path, abi, here):
        self.act, self.path = os.path.abspath(act), os.path.abspath(path)
        self.abi, self.here = abi, here
        self.env = {k: v for k, v in os.environ.items() if not k.startswith('FI_')}
        if not here:
            self.env['FI_PROVIDER'] = THERE_PROVIDERS
        self.env['FI_LOG_LEVEL'] = 'none'

    def run(self, scripts, deadline_ms, loud=False):
        """Transcripts of the scripts, by their names."""
        if loud:
            self.env.pop('FI_LOG_LEVEL', None)
        text = ''.join(f'script {s.name}\n' + '\n'.join(s.lines) + '\nend\n' for s in scripts)
        with tempfile.TemporaryDirectory() as folder:  # some write where they crash
            done = subprocess.run([self.act, self.path, self.abi, str(deadline_ms)], input=text,
                                  stdout=subprocess.PIPE, cwd=folder,
                                  stderr=None if loud else subprocess.DEVNULL, env=self.env,
                                  encoding='utf-8', errors='replace', check=False,
                                  timeout=60 + len(scripts) * deadline_ms / 1000)
        found = read_transcripts(done.stdout)
        missing = [s.name for s in scripts if s.name not in found]
        if missing:
            raise RuntimeError(f'{self.path}: act ended with {done.returncode}, '
                               f'no transcript of {missing[0]}')
        return found

    def version(self):
        """The level of its interface, such as '1.17'."""
        found = self.run([Script('version', ['version'])], 60000)
        return found['version'].answers[0].answer.strip()


def read_transcripts(text):
    """Transcripts by the names of their scripts."""
    found = {}
    answers = {}
    name = idx = None
    for line in text.split('\n'):
        if line.startswith('script '):
            name, answers, idx = line[7:], {}, None
        elif line.startswith('end ') and name:
            found[name] = Transcript(answers, line[4:])
        elif line.startswith(' ') and idx is not None:
            answers[idx].lines.append(line.strip())
        elif line:
            number, _, rest = line.partition(' ')
            if not number.isdigit():
                continue  # a library that writes to stdout
            result, _, answer = rest.partition(' ')
            if idx is not None and int(number) <= idx:
                continue  # one that overwrites what is not its own
            idx = int(number)
            answers[idx] = Answer(result, answer, [])
    return found


def run_both(there, here, scripts_there, scripts_here, deadline_ms, jobs):
    """Transcripts of the scripts on each of the two, as two dictionaries."""
    work = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        for library, scripts in ((there, scripts_there), (here, scripts_here)):
            for at in range(0, len(scripts), 8):
                work.append((library, pool.submit(library.run, scripts[at:at + 8], deadline_ms)))
        found = {True: {}, False: {}}
        for library, future in work:
            found[library.here].update(future.result())
    return found[False], found[True]
