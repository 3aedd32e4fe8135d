#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""defects - does the comparison find what it is for?

usage: defects.py --act ACT --here LIBRARY

A sequence and a query are run on one library; then a defect is put into one transcript at a time:
each has to be found, as the kind that it is, and an undamaged transcript has none.
"""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import compare
import queries
from libraries import Answer, Library, Script, Transcript

LINES = '''timing quiet=200
getinfo inf0 api=1.9 prov=shm ep.type=FI_EP_RDM caps=FI_MSG say=first
fabric fab0 inf0
domain dom0 fab0 inf0
av av0 dom0 type=FI_AV_TABLE
cq cq0 dom0 format=FI_CQ_FORMAT_TAGGED
cntr cntr0 dom0
ep ep0 dom0 inf0
bind ep0 av0
bind ep0 cq0 flags=FI_TRANSMIT|FI_RECV
bind ep0 cntr0 flags=FI_SEND
enable ep0
insert av0 ep0 to=0
recv ep0 ctx=1 len=16
send ep0 to=0 ctx=2 len=16
drain
close ep0'''.split('\n')
ENABLE, INSERT, DRAIN = (next(i for i, x in enumerate(LINES) if x.startswith(w))
                         for w in ('enable', 'insert', 'drain'))


def changed(transcript, idx, result=None, lines=None):
    """A transcript in which one call says something else."""
    old = transcript.answers[idx]
    answers = dict(transcript.answers)
    answers[idx] = Answer(result or old.result, old.answer, old.lines if lines is None else lines)
    return Transcript(answers, transcript.end)


def sequence_defects(good):
    """Pairs of a damaged transcript and the kind of difference that it is."""
    came = good.answers[DRAIN].lines
    received = next(x for x in came if 'ctx=1' in x.split())
    counted = next(x for x in came if x.startswith('cntr0'))

    def drained(*lines):
        return changed(good, DRAIN, lines=list(lines))
    rest = [x for x in came if x != received]
    yield changed(good, ENABLE, '-EINVAL'), 'refuses'
    yield changed(good, INSERT, '2'), 'answers'
    yield drained(*rest), 'loses'
    yield drained(*came, received), 'adds'
    yield drained(*rest, received.replace('len=16', 'len=15')), 'reports'
    yield drained(*rest, received.split(' hash=')[0] + ' hash=0x1'), 'reports'
    yield drained(*rest, 'cq0 error ctx=1 err=-EIO flags=0x402 len=0 olen=0'), 'reports'
    yield drained(*(x for x in came if x != counted), 'cntr0 value=0 errors=0'), 'loses'
    yield drained(*(x for x in came if x != counted), 'cntr0 value=1 errors=1'), 'reports'
    short = {i: a for i, a in good.answers.items() if i < DRAIN}
    yield Transcript(short, 'signal 11'), 'crashes'
    yield Transcript(short, 'deadline'), 'hangs'


def query_defects(good):
    """The same of an answer of fi_getinfo."""
    line = good.lines[0]
    fields = dict(x.split('=', 1) for x in line.split())

    def answer(key, value):
        return Answer('0', '', [line.replace(f' {key}={fields[key]} ', f' {key}={value} ')])
    yield Answer('-ENODATA', '', []), 'refuses'
    yield Answer('0', '', []), 'misses'
    yield answer('tx.inject', '0x1'), 'less'
    yield answer('caps', '0x2'), 'less'
    yield answer('mode', '0x1'), 'asks'
    yield answer('ep.protocol', '0x63'), 'answers'
    yield answer('dom.av_type', '0x1'), 'fails'
    yield None, 'crashes'


def main():
    """Damage, compare, and say what was not found."""
    options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    library = Library(options['--act'], options['--here'], '1.3', True)
    good = library.run([Script('good', LINES)], 60000)['good']
    wrong = [] if good.end == 'exit 0' and not compare.compare(LINES, good, good, 'shm') else \
        [f'an undamaged sequence: {good}']
    for bad, kind in sequence_defects(good):
        kinds = [d.kind for d in compare.compare(LINES, good, bad, 'shm')]
        if kind not in kinds:
            wrong.append(f'sequence: {kind} not found, but {kinds}')
    client = {'name': 'test', 'checks': ['dom.av_type = FI_AV_TABLE'],
              'hints': {'ep.type': 'FI_EP_RDM', 'caps': 'FI_MSG|FI_RMA',
                        'dom.av_type': 'FI_AV_TABLE'}}
    query = queries.Query(client, 'shm', '1.9', [])
    value_of = queries.values(library, ['FI_AV_TABLE', 'FI_MSG|FI_RMA']).__getitem__
    asked = library.run([Script('query', [query.line('1.9')])], 60000)['query'].answers[0]
    if queries.compare_answers(query, asked, asked, value_of):
        wrong.append('an undamaged answer')
    for bad, kind in query_defects(asked):
        kinds = [d.kind for d in queries.compare_answers(query, asked, bad, value_of)]
        if kind not in kinds:
            wrong.append(f'query: {kind} not found, but {kinds}')
    print('\n'.join(wrong) or 'all defects are found')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
