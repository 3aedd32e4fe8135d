# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""compare - what two libraries answered differently to one sequence

A difference has a kind and one line of text, its signature, which has no numbers of objects in
it: that is what the lists of known differences match. After one the objects of its call, and what
those meet later, are no longer compared: one cause is one difference.
"""
import collections
import re

Difference = collections.namedtuple('Difference', 'kind signature idx')

# What a program acts on: one of these on one side alone is a difference.
TELLING = {'-EAGAIN', '-EAVAIL', '-ENODATA', '-ETOOSMALL', '-ETRUNC', '-ECANCELED', '-ENOMSG'}

# Kinds that fail unless they are known; the others are counted.
HARMFUL = ('refuses', 'answers', 'loses', 'adds', 'reports', 'crashes', 'hangs', 'code')
COUNTED = ('accepts', 'other-code', 'there-crashes', 'there-hangs')

# Arguments that make two calls two causes; buffers, contexts and the like don't.
KEPT = ('flags', 'opt', 'cmd', 'format', 'wait', 'access', 'attr', 'buf', 'type', 'op', 'kind',
        'events', 'level', 'do', 'of', 'null', 'base')


def ok(result):
    """Whether a call did what it was asked to."""
    return not result.startswith('-')


def kind_of(word):
    """The kind of the object of that name: cq of cq0."""
    return word.rstrip('0123456789')


def shape(line):
    """A call without what tells two of its kind apart."""
    kept = []
    for word in line.split():
        key, equals, value = word.partition('=')
        if not equals:
            kept.append(kind_of(word) or word)
        elif key in KEPT and value != '0' or key == 'len' and value in ('0', '1', '4'):
            kept.append(word)
    return ' '.join(kept)


def named(line):
    """Names of the objects in a call."""
    return {w for w in line.split()[1:] if '=' not in w and not w.isdigit()}


def compare_results(there, here):
    """The kind of a difference in a call's result, or None."""
    if there == here or 'absent' in (there, here):
        return None
    if ok(there) and ok(here):
        return 'answers'
    if ok(there):
        return 'refuses'
    if ok(here):
        return 'accepts'
    return 'code' if {there, here} & TELLING else 'other-code'


def strip_soft(entry):
    """A completion without what it need not say the same."""
    return re.sub(r' flags=\S+', '', entry)


def compare_events(there, here, tainted):
    """Pairs (kind, text, object) of what came on one side alone, or otherwise."""
    def of(lines):
        return collections.Counter(x for x in lines if x.split()[0] not in tainted)
    missing, added = of(there) - of(here), of(here) - of(there)
    found = []
    for entry in list(missing.elements()):
        name = entry.split()[0]
        key = ' '.join(entry.split()[:2] if 'value=' not in entry else [name])
        if ' error ' in entry:
            key = ' '.join(entry.split()[:3])
        ctx = re.search(r'ctx=\S+', entry)
        twin = next((x for x in added if x.startswith(key) or
                     ctx and ctx.group() in x.split() and x.split()[0] == name), None)
        if twin:
            added -= collections.Counter([twin])
            found.append(('reports', differing(entry, twin), name))
        else:
            found.append(('loses', generic(entry), name))
    return found + [('adds', generic(x), x.split()[0]) for x in added.elements()]


def generic(entry):
    """A completion without contexts, contents and numbers."""
    words = [kind_of(entry.split()[0])]
    for word in entry.split()[1:]:
        key = word.partition('=')[0]
        if key in ('flags', 'err', 'error', 'event', 'unstated', 'read', 'readerr'):
            words.append(word)
    return ' '.join(words)


def differing(there, here):
    """The fields in which two completions differ."""
    def fields(text):
        return {w.partition('=')[0]: w for w in text.split()[1:]}
    a, b = fields(there), fields(here)
    text = kind_of(there.split()[0])
    for key in sorted(set(a) | set(b)):
        if a.get(key) != b.get(key):
            hide = key in ('hash', 'value', 'len', 'olen')
            text += f' {key}' if hide else f' {key}:there={a.get(key)},here={b.get(key)}'
    return text


def compare_ends(lines, there, here, provider):
    """A crash or hang on one side or both; None when both came to the end."""
    def at(transcript):
        idx = len(transcript.answers)
        return shape(lines[idx]) if idx < len(lines) else 'exit', idx
    if here.end != 'exit 0':
        kind = 'hangs' if here.end == 'deadline' else 'crashes'
        call, idx = at(here)
        return Difference(kind, f'{provider}: {call}: {kind}', idx)
    if there.end != 'exit 0':
        kind = 'there-hangs' if there.end == 'deadline' else 'there-crashes'
        call, idx = at(there)
        return Difference(kind, f'{provider}: {call}: {kind}', idx)
    return None


def compare(lines, there, here, provider):
    """All differences of a sequence, in the order of its calls."""
    found = []
    tainted = set()
    for idx, line in enumerate(lines):
        if idx not in there.answers or idx not in here.answers:
            break
        a, b = there.answers[idx], here.answers[idx]
        names = named(line)
        if names & tainted:
            tainted |= names
            continue
        if line.startswith('drain'):
            for kind, text, name in compare_events(a.lines, b.lines, tainted):
                found.append(Difference(kind, f'{provider}: {kind} {text}', idx))
                tainted.add(name)
            continue
        kind = compare_results(a.result, b.result)
        text = f'there={a.result} here={b.result}'
        if not kind and a.answer != b.answer and not line.startswith('getinfo'):
            kind, text = 'answers', f'there={a.answer or "-"} here={b.answer or "-"}'
            if line.startswith('region'):
                text = 'other contents'
        if kind:
            found.append(Difference(kind, f'{provider}: {shape(line)}: {kind} {text}', idx))
            if kind not in ('other-code', 'answers'):
                tainted |= names
    end = compare_ends(lines, there, here, provider)
    if end:
        found.append(end)
    return found
