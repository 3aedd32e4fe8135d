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
COUNTED = ('accepts', 'more', 'other-code', 'there-crashes', 'there-hangs')

# Arguments that make two calls two causes; buffers, contexts and the like don't.
KEPT = ('flags', 'opt', 'cmd', 'format', 'wait', 'access', 'attr', 'buf', 'type', 'op', 'kind',
        'events', 'level', 'idle', 'do', 'of', 'null', 'base', 'rx_ctx_bits')


def ok(result):
    """Whether a call did what it was asked to."""
    return not result.startswith('-')


def kind_of(word):
    """The kind of the object of that name: cq of cq0."""
    return word.rstrip('0123456789')


def shape(line):
    """A call without the fields that differ between two of its kind."""
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


MSG, TAGGED, ATOMIC, RECV, DATA = 0x2, 0x8, 0x10, 0x400, 0x20000
READ_WRITE = 0x300


def comparable(entry):
    """A completion without what programs can't rely on: FI_MSG beside FI_TAGGED; whether an atomic
    reads or writes; data of what has been sent; flags and lengths of an error other than the
    overflow of a message that was cut off."""
    flags = re.search(r' flags=(\S+)', entry)
    if flags:
        bits = int(flags.group(1), 0)
        bits &= ~(MSG if bits & TAGGED else 0) & ~(READ_WRITE if bits & ATOMIC else 0)
        if not bits & (RECV | 0x3000):
            bits &= ~DATA
            entry = re.sub(r' data=\S+', '', entry)
        entry = entry.replace(flags.group(0), f' flags={bits:#x}')
    if ' error ' in entry:
        entry = re.sub(r' flags=\S+', '', entry)
        entry = re.sub(r' len=\S+', '', entry)
        entry = re.sub(r' olen=0$' if 'ETRUNC' in entry else r' olen=\S+', '', entry)
    return entry


def values_of(entry):
    """The numbers of a counter."""
    return [int(x) for x in re.findall(r'=(\d+)', entry)]


def counted(name, lines):
    """What that counter counts, and the kinds of transfers since its value was looked at before:
    by these the cause of a difference is known."""
    flags, kinds = set(), set()
    for line in lines:
        words = line.split()
        if words[0] == 'drain':
            kinds = set()
        elif words[0] == 'bind' and words[2] == name:
            flags |= {f for w in words if w.startswith('flags=') for f in w[6:].split('|')}
        elif TRANSFERS.match(line):
            kinds.add('message' if MESSAGES.match(words[0]) else
                      'fetch' if words[0] in ('fetch', 'compare') else 'access')
    return f'of {"|".join(sorted(flags))} by {"|".join(sorted(kinds))}'


def compare_counts(name, there, here, of):
    """A counter that has less, or more errors, than there."""
    (value_there, errors_there), (value, errors) = values_of(there), values_of(here)
    if value < value_there:
        return 'loses', f'{kind_of(name)} value {of}', name
    if errors > errors_there:
        return 'reports', f'{kind_of(name)} errors {of}', name
    return 'more', f'{kind_of(name)} value {of}', name


def compare_events(there, here, ignored, before):
    """Triples (kind, text, object) of results on one side only, or different ones; @before: the lines
    until then."""
    def of(lines):
        return collections.Counter(comparable(x) for x in lines
                                   if not ignored & set(x.split()[:3]))
    found = []
    missing, added = of(there) - of(here), of(here) - of(there)
    for entry in list(missing.elements()):
        words = entry.split()
        ctx = next((x for x in words if x.startswith('ctx=')), None)
        twin = next((x for x in added if x.split()[0] == words[0] and
                     (ctx in x.split() if ctx else x.split()[1] == words[1] or
                      'value=' in entry)), None)
        if twin:
            added -= collections.Counter([twin])
        if twin and 'value=' in entry:
            found.append(compare_counts(words[0], entry, twin, counted(words[0], before)))
        elif twin and twin.startswith(entry + ' olen='):
            continue  # there it does not say how much is missing
        elif twin:
            found.append(('reports', differing(entry, twin), words[0]))
        else:
            found.append(('loses', generic(entry), words[0]))
    for entry in added.elements():
        ctx = next((x for x in entry.split() if x.startswith('ctx=')), None)
        own = sum(ctx in x.split() for x in here)
        several = {'part', 'full'} & set(entry.split())  # a buffer of many messages
        spurious = not ctx or ctx != 'ctx=-1' and own > 1 and not several
        found.append(('adds' if spurious else 'more', generic(entry), entry.split()[0]))
    return found


def generic(entry):
    """A completion without contexts, contents and numbers."""
    words = [kind_of(entry.split()[0])]
    for word in entry.split()[1:]:
        key = word.partition('=')[0]
        if key in ('flags', 'err', 'error', 'event', 'unstated', 'read', 'readerr', 'part', 'full',
                   'elsewhere'):
            words.append(word)
    return ' '.join(words)


def differing(there, here):
    """The fields in which two completions differ."""
    def fields(text):
        return {w.partition('=')[0]: w for w in text.split()[1:]}
    a, b = fields(there), fields(here)
    if ('error' in a) != ('error' in b):
        one, other = (generic(x).partition(' ')[2] for x in (there, here))
        return f'{kind_of(there.split()[0])} there={one} here={other}'
    text = kind_of(there.split()[0])
    for key in sorted(set(a) | set(b)):
        if a.get(key) != b.get(key):
            hide = key in ('hash', 'len', 'olen', 'from')
            text += f' {key}' if hide else f' there={a.get(key)} here={b.get(key)}'
    return text


def compare_ends(lines, there, here, provider):
    """A crash or hang on one side or both; None if both reached the end."""
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


TRANSFERS = re.compile(r't?(send|recv|inject)|read|write|atomic|fetch|compare')
# providers there whose connection ends when a message is cut off
CONNECTED = re.compile(r'tcp|net')
RECEIVES = re.compile(r't?recv')
MESSAGES = re.compile(r't?(send|recv)|t?inject(data)?$')


def ended(lines):
    """Pairs of a context and whether it failed, of the completions that a drain printed."""
    return {(w, ' error ' in x) for x in lines for w in x.split() if w.startswith('ctx=')}


def is_access(line):
    """Does this call transfer, but no message?"""
    return TRANSFERS.match(line) and not MESSAGES.match(line.split()[0])


class Differing:
    """What of a sequence is no longer alike on both sides, and not compared any more."""

    def __init__(self):
        self.names = set()  # objects, contexts ('ctx=3'), kinds of objects ('cntr*')
        self.met = collections.defaultdict(set)  # objects that were bound to each other

    def bound(self, names):
        """These have to do with each other from now on."""
        for name in names:
            self.met[name] |= names

    def add(self, line, names, deep):
        """A call has done another thing here than there."""
        self.names |= names
        if deep:
            for name in names:
                self.names |= self.met[name]
        if TRANSFERS.match(line):
            ctx = next((w for w in line.split() if w.startswith('ctx=')), None)
            self.names |= {ctx, 'ctx=-1', 'counts'}
            if MESSAGES.match(line.split()[0]):
                self.names.add('messages')

    def ignored(self, lines):
        """Names whose events are not compared, of those in the lines."""
        found = set(self.names)
        for x in lines:
            if 'value=' in x and 'counts' in self.names:
                found.add(x.split()[0])
            if 'messages' in self.names and not x.startswith(('cntr', 'eq')):
                found.add(x.split()[0])
        return found


def compare(lines, there, here, provider):
    """All differences of a sequence, in the order of its calls."""
    found = []
    differs = Differing()
    alone = set()  # what has ended so on one side alone until now
    for idx, line in enumerate(lines):
        if idx not in there.answers or idx not in here.answers:
            break
        a, b = there.answers[idx], here.answers[idx]
        names = named(line) - {'dom0', 'fab0', 'inf0'}
        if line.startswith('drain'):
            for kind, text, name in compare_events(a.lines, b.lines,
                                                   differs.ignored(a.lines + b.lines),
                                                   lines[:idx]):
                found.append(Difference(kind, f'{provider}: {kind} {text}', idx))
                differs.names.add(name)
            alone ^= ended(a.lines) ^ ended(b.lines)
            if any('err=-ECANCELED' in x or 'err=-ENOTCONN' in x
                   for x in set(a.lines) - set(b.lines)):
                differs.names.add('counts')  # a connection that ended there took more along
            if CONNECTED.match(provider) and any('err=-ETRUNC' in x for x in a.lines):
                differs.names.add('regions')  # so it may have done without a word
            continue
        if line.startswith('region') and ({'counts', 'regions'} & differs.names or
                                          any(is_access(x) and ctx in x.split()
                                              for ctx, _ in alone for x in lines)):
            continue  # what one of them did to the region it did on one side alone
        if line in ('close dom0', 'close fab0') and differs.names:
            continue  # what is open in it may be so on one side alone
        if names & differs.names:
            differs.add(line, names, False)
            continue
        kind, text = compare_results(a.result, b.result), f'there={a.result} here={b.result}'
        absent = 'absent' in (a.result, b.result)
        if not kind and not absent and a.answer != b.answer and not line.startswith('getinfo'):
            kind, text = 'answers', f'there={a.answer or "-"} here={b.answer or "-"}'
            if line.startswith('region'):
                text = 'other contents'
        if kind:
            found.append(Difference(kind, f'{provider}: {shape(line)}: {kind} {text}', idx))
            if line.startswith(('getinfo', 'fabric', 'domain')):
                break
            if kind in ('refuses', 'accepts') and not line.startswith('cancel'):
                differs.add(line, names, line.startswith(('enable', 'bind', 'close')))
        elif absent and a.result != b.result:
            differs.add(line, names, False)
        elif absent and RECEIVES.match(line):
            differs.add(line, set(), False)  # which unmatched sends complete is not specified
        elif line.startswith('bind'):
            differs.bound(names)
    end = compare_ends(lines, there, here, provider)
    if end:
        found.append(end)
    return found
