# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""families - random programs around what most programs do not use

Each is what a program of its kind would do, in half of all cases disturbed before the transfers:
contexts of scalable endpoints, shared contexts, buffers of many messages, sleeping, and operations
that wait for a counter. Where the other library has none of a kind there is nothing to compare.
"""
from sequences import ACCESS, COUNTED, LENS, Sequence

BITS = 4       # of an address that say which receive context
SMALL = [1, 8, 8, 63, 64, 65, 200, 500, 1000]
MIN_MULTI = 1024


class Contexts(Sequence):
    """Two scalable endpoints: contexts of one send to those of the other, and to their own."""

    def open(self):
        """The endpoints, their contexts and queues."""
        self.number = self.pick(1, 2, 3)
        self.begin(caps=self.pick('FI_MSG|FI_TAGGED', 'FI_MSG|FI_TAGGED|FI_RMA|FI_ATOMIC', 'FI_MSG',
                                  'FI_TAGGED', 'FI_MSG|FI_RMA'),
                   extra='|FI_NAMED_RX_CTX',
                   fields=[f'ep.tx_ctx={self.number}', f'ep.rx_ctx={self.number}'])
        self.add(f'av av0 dom0 type={self.pick("FI_AV_TABLE", "FI_AV_MAP")} rx_ctx_bits={BITS}')
        self.queues = self.r.randint(1, 3)
        for i in range(self.queues):
            self.open_cq(f'cq{i}')
        self.counts = self.pick(0, 0, 1, 2)
        for i in range(self.counts):
            self.add(f'cntr cntr{i} dom0 events=FI_CNTR_EVENTS_COMP')
        for e in range(2):
            self.open_sep(e)
        for e in range(2):
            self.add(f'insert av0 sep{e} to={e}')
        # one source for each destination: what two send is taken in any order
        self.sources = {(e, i): (self.r.randrange(2), self.r.randrange(self.number))
                        for e in range(2) for i in range(self.number)}
        if 'FI_RMA' in self.caps:
            self.open_regions()

    def open_sep(self, e):
        """One of the endpoints, with all contexts; these are enabled before it or after it."""
        self.add(f'sep sep{e} dom0 inf0')
        self.add(f'bind sep{e} av0')
        names = []
        for i in range(self.number):
            for kind, direction in (('tx', 'FI_TRANSMIT'), ('rx', 'FI_RECV')):
                name = f'{kind}{4 * e + i}'
                names.append(name)
                self.add(f'{kind} {name} sep{e} idx={i}'
                         + (' attr=null' if self.chance(0.2) else ''))
                self.add(f'bind {name} cq{self.r.randrange(self.queues)} flags={direction}')
                for n in range(self.counts):
                    if self.chance(0.5):
                        self.add(f'bind {name} cntr{n} flags={self.r.choice(COUNTED)}')
        if self.chance(0.2):
            self.add(f'bind sep{e} cq0 flags=FI_TRANSMIT|FI_RECV')
        enables = [f'enable {name}' for name in names]
        enables.insert(self.pick(0, len(enables)), f'enable sep{e}')
        for line in enables:
            self.add(line)

    def ends(self):
        """A sender, a receiver, and how the sender names it."""
        e, i = self.r.randrange(2), self.r.randrange(self.number)
        source, j = self.sources[e, i]
        return f'tx{4 * source + j}', f'rx{4 * e + i}', f'to={e} rx={i} bits={BITS}'

    def transfers(self, cnt):
        """Messages and accesses of contexts."""
        for _ in range(cnt):
            sender, receiver, to = self.ends()
            if 'FI_RMA' in self.caps and self.chance(0.3):
                self.an_access(sender, to)
                continue
            length, tag = self.r.choice(LENS), self.pick(0, 1, 2)
            t = 't' if 'FI_TAGGED' in self.caps and ('FI_MSG' not in self.caps or
                                                     self.chance(0.5)) else ''
            send = self.a_send(t, sender, 0, length, tag).replace(' to=0 ', f' {to} ', 1)
            recv = self.a_recv(t, receiver, None, length, tag)
            for line in self.pick((recv, send), (send, recv)):
                self.add(line)
            if self.chance(0.5):
                self.add('drain')
        if self.chance(0.3):  # one context is closed, the others stay
            self.add('drain')
            self.add(f'close {self.pick("tx", "rx")}{self.r.randrange(self.number)}')
            sender, receiver, to = self.ends()
            self.add(f'cancel {receiver} ctx={self.next_ctx()}')
        self.end_transfers()


class Shared(Sequence):
    """Endpoints that share a receive context, and one to transmit by where there is such a thing."""

    def open(self):
        """The contexts, and two endpoints that share them."""
        self.transmits = self.provider == 'sockets' and self.chance(0.6)
        fields = ['ep.rx_ctx=max'] + (['ep.tx_ctx=max'] if self.transmits else [])
        self.begin(caps=self.pick('FI_MSG|FI_TAGGED', 'FI_MSG', 'FI_TAGGED',
                                  'FI_MSG|FI_TAGGED|FI_RMA'), fields=fields)
        self.add('av av0 dom0 type=' + self.pick('FI_AV_TABLE', 'FI_AV_MAP'))
        for i in range(2):
            self.open_cq(f'cq{i}')
        self.add('srx srx0 dom0 inf0')
        if self.transmits:
            self.add('stx stx0 dom0 inf0')
        for e in range(2):
            self.add(f'ep ep{e} dom0 inf0')
            lines = [f'bind ep{e} av0', f'bind ep{e} cq{e} flags=FI_TRANSMIT|FI_RECV',
                     f'bind ep{e} srx0'] + ([f'bind ep{e} stx0'] if self.transmits else [])
            self.r.shuffle(lines)
            for line in lines + [f'enable ep{e}']:
                self.add(line)
        for e in range(2):
            self.add(f'insert av0 ep{e} to={e}')
        self.source = self.r.randrange(2)
        self.only = self.r.randrange(2)  # where untagged messages go: two are no order
        if 'FI_RMA' in self.caps:
            self.open_regions()

    def transfers(self, cnt):
        """Messages to both endpoints, which are received by the context that they share."""
        for _ in range(cnt):
            t = 't' if 'FI_TAGGED' in self.caps and ('FI_MSG' not in self.caps or
                                                     self.chance(0.6)) else ''
            to = self.r.randrange(2) if t else self.only
            length, tag = self.r.choice(LENS), 10 * to + self.pick(0, 1, 2)
            send = self.a_send(t, f'ep{self.source}', to, length, tag)
            recv = self.a_recv(t, 'srx0', None, length, tag).replace(' ignore=max', '')
            for line in self.pick((recv, send), (send, recv)):
                self.add(line)
            if self.chance(0.5):
                self.add('drain')
            if 'FI_RMA' in self.caps and self.chance(0.2):
                self.an_access(f'ep{self.source}', f'to={to}')
        if self.chance(0.2):
            self.add('drain')
            self.add(f'cancel srx0 ctx={self.next_ctx()}')
        self.end_transfers()


class Multi(Sequence):
    """Buffers that take many messages each."""

    def open(self):
        """Two endpoints that say when such a buffer is full."""
        self.begin(caps='FI_MSG|FI_MULTI_RECV')
        # which unmatched sends complete is not specified
        self.lines[0] = self.lines[0].replace('FI_DELIVERY_COMPLETE', 'FI_TRANSMIT_COMPLETE')
        self.add('av av0 dom0 type=' + self.pick('FI_AV_TABLE', 'FI_AV_MAP'))
        for e in range(2):
            self.open_cq(f'cq{e}', form=self.pick('FI_CQ_FORMAT_DATA', 'FI_CQ_FORMAT_TAGGED'))
            self.add(f'ep ep{e} dom0 inf0')
            self.add(f'bind ep{e} av0')
            self.add(f'bind ep{e} cq{e} flags=FI_TRANSMIT|FI_RECV')
            # before it is enabled: afterwards it has no effect in shm and tcp;ofi_rxm there
            self.add(f'setopt ep{e} opt=FI_OPT_MIN_MULTI_RECV value={MIN_MULTI}')
            self.add(f'enable ep{e}')
        for e in range(2):
            self.add(f'insert av0 ep{e} to={e}')

    def transfers(self, cnt):
        """Buffers first, or messages first, or in between."""
        to = self.r.randrange(2)
        source = self.source_of[to]
        for _ in range(cnt):
            if self.chance(0.35):
                flags = 'FI_MULTI_RECV' + self.pick('', '', '|FI_COMPLETION')
                self.add(f'recvmsg ep{to} ctx={self.next_ctx()} cnt=1 flags={flags} '
                         f'len={self.pick(2000, 4096, 8000, 65536)}')
            for _ in range(self.r.randint(1, 4)):
                send = self.a_send('', f'ep{source}', to, self.r.choice(SMALL), 0)
                self.add(send.replace('FI_DELIVERY_COMPLETE', 'FI_TRANSMIT_COMPLETE'))
            if self.chance(0.6):
                self.add('drain')
        self.add(f'recvmsg ep{to} ctx={self.next_ctx()} cnt=1 flags=FI_MULTI_RECV len=200000')
        self.end_transfers()


class Waits(Sequence):
    """Two endpoints whose program sleeps: on descriptors, in sets, in calls."""

    def wait(self):
        """How one waits for a queue."""
        return self.pick('FI_WAIT_FD', 'FI_WAIT_UNSPEC', 'FI_WAIT_SET set=wait0')

    def open(self):
        """A set, queues and counters in it or not, and an event queue."""
        self.begin(caps='FI_MSG|FI_TAGGED')
        self.add('waitset wait0 fab0 wait=' + self.pick('FI_WAIT_FD', 'FI_WAIT_UNSPEC'))
        self.add('av av0 dom0 type=' + self.pick('FI_AV_TABLE', 'FI_AV_MAP'))
        # one for all: whoever sleeps on it makes everything move
        self.open_cq('cq0')
        self.add(f'cntr cntr0 dom0 events=FI_CNTR_EVENTS_COMP wait={self.wait()}')
        self.add(f'eq eq0 fab0 size=16 wait={self.wait()} flags=FI_WRITE')
        for e in range(2):
            self.add(f'ep ep{e} dom0 inf0')
            self.add(f'bind ep{e} av0')
            self.add(f'bind ep{e} cq0 flags=FI_TRANSMIT|FI_RECV')
            self.add(f'bind ep{e} cntr0 flags=FI_RECV')
            self.add(f'enable ep{e}')
        for e in range(2):
            self.add(f'insert av0 ep{e} to={e}')

    def transfers(self, cnt):
        """Messages, and looks of every kind at what is slept on."""
        # a set without any object that reports messages
        idle = '' if any('set=wait0' in x and x.startswith('c') for x in self.lines) else ' idle=1'
        for n in range(cnt):
            to = self.r.randrange(2)
            length, tag = self.r.choice(SMALL), self.pick(0, 1)
            send = self.a_send('t', f'ep{self.source_of[to]}', to, length, tag)
            send = send.replace('FI_DELIVERY_COMPLETE', 'FI_COMPLETION')
            self.add(self.a_recv('t', f'ep{to}', None, length, tag).replace(' ignore=max', ''))
            self.add(send)
            self.add(self.pick('sleep fab0 cq0 timeout=300', f'wait wait0 timeout=300{idle}',
                               f'wait cntr0 threshold={n + 1} timeout=300'))
            self.add('drain')
            self.add(self.pick('wait cq0 timeout=2', 'wait wait0 timeout=2 idle=1',
                               'trywait fab0 cq0', 'signal cq0', 'wait eq0 timeout=2', 'eq_write eq0 event=1',
                               'trywait fab0 wait0', 'control cq0 cmd=FI_GETWAIT',
                               'control wait0 cmd=FI_GETWAIT', 'control eq0 cmd=FI_GETWAIT'))
        self.end_transfers()


class Deferred(Sequence):
    """Operations that wait for a counter: triggered, and deferred work."""

    def open(self):
        """As others do, with a counter that nothing counts by, and one for what is done."""
        self.begin(caps=self.pick('FI_MSG|FI_TAGGED', 'FI_MSG|FI_TAGGED|FI_RMA'),
                   extra='|FI_TRIGGER')
        # which unmatched sends complete is not specified
        self.lines[0] = self.lines[0].replace('FI_DELIVERY_COMPLETE', 'FI_TRANSMIT_COMPLETE')
        self.open_ends()
        self.counts = 1
        self.add('cntr cntr5 dom0 events=FI_CNTR_EVENTS_COMP')
        self.add('cntr cntr6 dom0 events=FI_CNTR_EVENTS_COMP')

    def triggered(self, line, threshold):
        """The same as a triggered operation."""
        line = line.replace('sendv ', 'sendmsg ').replace('recvv ', 'recvmsg ')
        line = line.replace('tsend ', 'tsendmsg ').replace('trecv ', 'trecvmsg ')
        line = line.replace('tsenddata ', 'tsendmsg ').replace('tinject ', 'tsendmsg ')
        line = line.replace('tinjectdata ', 'tsendmsg ')
        words = [w for w in line.split() if not w.startswith(('flags=', 'cnt='))]
        return ' '.join(words + ['cnt=1', 'flags=FI_TRIGGER|FI_COMPLETION', 'trigger=cntr5',
                                 f'threshold={threshold}'])

    def transfers(self, cnt):
        """Half of a message waits for the counter, which is then added to."""
        value = 0
        for n in range(cnt):
            to = self.r.randrange(2)
            source = self.source_of[to]
            tag = 100 + n
            step = self.pick(1, 1, 2)
            kind = self.pick('send', 'recv', 'work', 'count', 'write')
            # a receive that waits is none yet: what is large may wait for it at home
            length = self.r.choice(SMALL if kind == 'recv' else LENS)
            send = self.a_send('t', f'ep{source}', to, length, tag)
            send = send.replace('FI_DELIVERY_COMPLETE', 'FI_TRANSMIT_COMPLETE')
            recv = self.a_recv('t', f'ep{to}', None, length, tag).replace(' ignore=max', '')
            if kind == 'send':
                send = self.triggered(send, value + step)
            elif kind == 'recv':
                recv = self.triggered(recv, value + step)
            ctx = self.next_ctx()
            if kind == 'work':
                self.add(recv)
                self.add(f'work ep{source} dom0 do=tsend to={to} ctx={ctx} len={length} tag={tag} '
                         f'trigger=cntr5 threshold={value + step} done=cntr6')
            elif kind == 'count':
                self.add(f'work ep0 dom0 do={self.pick("add", "set")} cntr=cntr6 '
                         f'value={100 * n + 7} trigger=cntr5 threshold={value + step}')
            elif kind == 'write' and 'FI_RMA' in self.caps:
                self.add(f'work ep{source} dom0 do={self.pick("write", "read")} mr=mr{to} '
                         f'to={to} ctx={ctx} len={length} trigger=cntr5 '
                         f'threshold={value + step} done=cntr6')
            else:
                self.add(recv)
                self.add(send)
            self.add('drain')
            self.add(f'count cntr5 do=add value={step}')
            value += step
            self.add('drain')
            if kind in ('work', 'write'):
                self.add(f'buffer ctx={ctx} len={length}')
        self.end_transfers()


# A family, and the providers there that have what it is about.
FAMILIES = {
    'contexts': (Contexts, ('sockets',)),
    'shared': (Shared, ('sockets',)),
    'multi': (Multi, None),
    'waits': (Waits, None),
    'deferred': (Deferred, ('sockets',)),
}


def make(style, seed, provider):
    """The lines of one sequence of a family."""
    s = FAMILIES[style][0](style, seed, provider)
    s.open()
    if s.chance(0.5):
        s.disturb(0.12)
    s.transfers(s.r.randint(3, 10))
    s.close_all()
    return s.lines


def applies(style, provider):
    """Has the other library's provider what this style is about?"""
    return style not in FAMILIES or not FAMILIES[style][1] or provider in FAMILIES[style][1]
