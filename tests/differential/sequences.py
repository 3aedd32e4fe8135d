# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""sequences - random programs of control calls and transfers, each made by its seed alone

A sequence is what a program would do (open, bind, enable, transfer, close), with parts chosen at
random, and then disturbed: calls are moved, left out, doubled, and others come in between.
"""
import random

CAPS = ['FI_MSG', 'FI_TAGGED', 'FI_MSG|FI_TAGGED', 'FI_MSG|FI_TAGGED|FI_RMA',
        'FI_MSG|FI_RMA', 'FI_MSG|FI_TAGGED|FI_RMA|FI_ATOMIC', 'FI_RMA|FI_ATOMIC|FI_MSG',
        'FI_MSG|FI_TAGGED|FI_DIRECTED_RECV', 'FI_MSG|FI_MULTI_RECV|FI_RMA']
EXTRA = ['', '|FI_SOURCE', '|FI_DIRECTED_RECV', '|FI_SOURCE|FI_DIRECTED_RECV']
FORMATS = ['FI_CQ_FORMAT_CONTEXT', 'FI_CQ_FORMAT_MSG', 'FI_CQ_FORMAT_DATA',
           'FI_CQ_FORMAT_TAGGED', 'FI_CQ_FORMAT_TAGGED', 'FI_CQ_FORMAT_UNSPEC']
WAITS = ['FI_WAIT_NONE', 'FI_WAIT_NONE', 'FI_WAIT_UNSPEC', 'FI_WAIT_FD']
LENS = [0, 1, 8, 8, 63, 64, 65, 128, 200, 256, 1000, 4000, 4096, 4097, 16384, 65536, 200000]
OPTIONS = ['FI_OPT_MIN_MULTI_RECV', 'FI_OPT_CM_DATA_SIZE', 'FI_OPT_BUFFERED_MIN',
           'FI_OPT_BUFFERED_LIMIT', 'FI_OPT_SEND_BUF_SIZE', 'FI_OPT_RECV_BUF_SIZE',
           'FI_OPT_TX_SIZE', 'FI_OPT_RX_SIZE', 'FI_OPT_FI_HMEM_P2P',
           'FI_OPT_CUDA_API_PERMITTED', 'FI_OPT_SHARED_MEMORY_PERMITTED']
COMMANDS = ['FI_GETFIDFLAG', 'FI_SETFIDFLAG', 'FI_GETOPSFLAG', 'FI_SETOPSFLAG', 'FI_GETWAIT',
            'FI_GETWAITOBJ', 'FI_ENABLE', 'FI_BACKLOG', 'FI_FLUSH_WORK']
COUNTED = ['FI_SEND', 'FI_RECV', 'FI_READ', 'FI_WRITE', 'FI_REMOTE_READ', 'FI_REMOTE_WRITE',
           'FI_SEND|FI_RECV', 'FI_READ|FI_WRITE', 'FI_SEND|FI_WRITE|FI_READ']
ACCESS = ['FI_REMOTE_WRITE|FI_REMOTE_READ|FI_READ|FI_WRITE|FI_SEND|FI_RECV',
          'FI_REMOTE_WRITE|FI_REMOTE_READ', 'FI_REMOTE_WRITE', 'FI_REMOTE_READ',
          'FI_SEND|FI_RECV', 'FI_RMA|FI_REMOTE_READ|FI_REMOTE_WRITE', '0', 'max']
TYPES = ['FI_UINT64', 'FI_INT32', 'FI_INT64', 'FI_UINT8', 'FI_FLOAT', 'FI_DOUBLE']
PLAIN_OPS = ['FI_MIN', 'FI_MAX', 'FI_SUM', 'FI_PROD', 'FI_ATOMIC_WRITE', 'FI_BOR', 'FI_BXOR']
COMPARE_OPS = ['FI_CSWAP', 'FI_CSWAP_NE', 'FI_CSWAP_LE', 'FI_MSWAP']
OF_BITS = {'FI_BOR', 'FI_BXOR', 'FI_MSWAP'}  # have no meaning for floating point numbers


class Sequence:
    """One sequence: its lines, as they are made."""

    def __init__(self, style, seed, provider):
        self.r = random.Random(f'{style} {seed} {provider}')
        self.provider = provider
        self.lines = []
        self.ctx = 0
        self.counts = 0
        self.left = False  # messages or receives that nothing matches
        self.caps = ''
        # one source for each destination: what two send is taken in any order
        self.source_of = [self.r.randrange(2), self.r.randrange(2)]
        # receives of a destination all name the source, or none: there the post order of both
        # kinds together does not hold
        self.names_source = [self.chance(0.3), self.chance(0.3)]

    def pick(self, *choices):
        """One of them."""
        return self.r.choice(choices)

    def chance(self, share):
        """True in that share of all cases."""
        return self.r.random() < share

    def add(self, text):
        """One more call."""
        self.lines.append(text)

    def next_ctx(self):
        """A context, and with it a buffer, that nothing else has."""
        self.ctx += 1
        return self.ctx % 64

    def begin(self, caps=None, extra=None, fields=()):
        """fi_getinfo, the fabric and the domain; of random capabilities, or of these."""
        self.caps = caps or self.r.choice(CAPS) + self.r.choice(EXTRA)
        fields = list(fields) + [f'api={self.pick("1.5", "1.9", "1.17")}', f'prov={self.provider}',
                  'ep.type=FI_EP_RDM', f'caps={self.caps}{extra or ""}', 'mode=FI_CONTEXT|FI_CONTEXT2',
                  'dom.mr_mode=' + self.pick('FI_MR_VIRT_ADDR|FI_MR_ALLOCATED|FI_MR_PROV_KEY',
                                             'FI_MR_UNSPEC')]
        if 'shm' not in self.provider:
            fields += ['format=FI_SOCKADDR_IN', 'src=127.0.0.1:0']
        if self.chance(0.3):
            fields.append('dom.threading=' + self.pick('FI_THREAD_DOMAIN', 'FI_THREAD_SAFE'))
        if self.chance(0.3):
            fields.append('dom.data=' + self.pick('FI_PROGRESS_MANUAL', 'FI_PROGRESS_AUTO'))
        if self.chance(0.2):
            fields.append('tx.op_flags=' + self.pick('FI_COMPLETION', 'FI_INJECT_COMPLETE',
                                                     'FI_TRANSMIT_COMPLETE',
                                                     'FI_DELIVERY_COMPLETE'))
        self.add('getinfo inf0 ' + ' '.join(fields) + ' say=first')
        self.add('fabric fab0 inf0')
        self.add('domain dom0 fab0 inf0')

    def wait(self):
        """A kind of waiting; shm there has few."""
        if self.provider == 'shm' and self.chance(0.9):
            return 'FI_WAIT_NONE'
        return self.r.choice(WAITS)

    def open_cq(self, name, form=None):
        """A completion queue, of any format or of this one."""
        source = ' source=1' if 'FI_SOURCE' in self.caps else ''
        self.add(f'cq {name} dom0 size={self.pick(0, 1, 16, 128, 1024)} '
                 f'format={form or self.r.choice(FORMATS)} wait={self.wait()}{source}')

    def selective(self, receives):
        """Flags to bind a queue with, beside the direction; shm and rxd there report all receives,
        net everything."""
        if receives and self.provider in ('shm', 'udp;ofi_rxd') or self.provider == 'net':
            return ''
        return '|FI_SELECTIVE_COMPLETION' if self.chance(0.15) else ''

    def bind_queues(self, ep, tx, rx):
        """The queues of an endpoint."""
        if tx == rx and self.chance(0.6):
            self.add(f'bind {ep} {tx} flags=FI_TRANSMIT|FI_RECV{self.selective(True)}')
            return
        self.add(f'bind {ep} {tx} flags=FI_TRANSMIT{self.selective(False)}')
        self.add(f'bind {ep} {rx} flags=FI_RECV{self.selective(True)}')

    def open(self):
        """All that there is before the transfers."""
        self.begin()
        self.open_ends()

    def open_ends(self):
        """Two endpoints that know each other and themselves, by the same numbers."""
        self.add('av av0 dom0 type=' + self.pick('FI_AV_TABLE', 'FI_AV_MAP', 'FI_AV_UNSPEC'))
        queues = self.r.randint(1, 3)
        for i in range(queues):
            self.open_cq(f'cq{i}')
        self.counts = counters = self.pick(0, 0, 1, 2)
        for i in range(counters):
            self.add(f'cntr cntr{i} dom0 events=FI_CNTR_EVENTS_COMP')
        for ep in ('ep0', 'ep1'):
            self.add(f'ep {ep} dom0 inf0')
            self.add(f'bind {ep} av0')
            self.bind_queues(ep, f'cq{self.r.randrange(queues)}', f'cq{self.r.randrange(queues)}')
            for i in range(counters):
                if self.chance(0.6):
                    self.add(f'bind {ep} cntr{i} flags={self.r.choice(COUNTED)}')
            self.add(f'enable {ep}')
        for i, ep in enumerate(('ep0', 'ep1')):
            self.add(f'insert av0 {ep} to={i}')
        if 'FI_RMA' in self.caps:
            self.open_regions()

    def open_regions(self):
        """What accesses go to."""
        for i in range(2):
            self.add(f'mr mr{i} dom0 inf0 region={i} len=262144 key={i + 5} access='
                     + self.pick(ACCESS[0], ACCESS[0], ACCESS[1], ACCESS[5], ACCESS[7]))

    def message(self):
        """A send and its receive, in either order, or one of them alone."""
        tagged = 'FI_TAGGED' in self.caps and ('FI_MSG' not in self.caps or self.chance(0.6))
        if not tagged and 'FI_MSG' not in self.caps:
            return
        t = 't' if tagged else ''
        tag = self.pick(0, 1, 2, 7)
        length = self.r.choice(LENS)
        to = self.r.randrange(2)
        source = self.source_of[to]
        alone = tagged and self.chance(0.3) and \
            not any('op_flags=FI_DELIVERY' in x for x in self.lines[:1])
        if alone:  # and for good: which unmatched sends complete is not specified
            length, tag = min(length, 64), 100 + self.ctx
            self.left = True
        send = self.a_send(t, f'ep{source}', to, length, tag)
        if alone:
            send = send.replace('FI_DELIVERY_COMPLETE', '0')
        recv = self.a_recv(t, f'ep{to}', source, length, tag)
        for line in self.pick((send,), (recv,)) if alone else \
                self.pick((recv, send), (send, recv), (recv, send)):
            self.add(line)

    def a_send(self, t, ep, to, length, tag):
        """One line of a send."""
        verb = self.pick('send', 'send', 'sendv', 'sendmsg', 'inject', 'senddata', 'injectdata')
        if 'inject' in verb:
            length = min(length, 64)
        line = f'{t}{verb} {ep} to={to} ctx={self.next_ctx()} len={length}'
        if t:
            line += f' tag={tag}'
        if 'data' in verb:
            line += f' data={self.pick(0, 1, 0x12345678)}'
        if verb == 'sendmsg':
            line += ' flags=' + self.pick('0', 'FI_COMPLETION', 'FI_INJECT_COMPLETE',
                                          'FI_TRANSMIT_COMPLETE', 'FI_DELIVERY_COMPLETE',
                                          'FI_COMPLETION|FI_REMOTE_CQ_DATA')
        if verb in ('sendv', 'sendmsg'):
            line += f' cnt={self.pick(1, 2, 3)}'
        return line

    def a_recv(self, t, ep, source, length, tag):
        """One line of a receive."""
        verb = self.pick('recv', 'recv', 'recvv', 'recvmsg')
        room = length + self.pick(0, 0, 8, 100)
        if self.chance(0.1):
            room = length // 2
        line = f'{t}{verb} {ep} ctx={self.next_ctx()} len={room}'
        if source is not None and self.names_source[int(ep[2:])]:
            line += f' to={source}'
        if t:
            line += f' tag={tag}' + (' ignore=max' if not self.left and self.chance(0.2) else '')
        if verb == 'recvmsg':
            line += ' flags=' + self.pick('0', 'FI_COMPLETION', 'FI_COMPLETION')
        return line + (f' cnt={self.pick(1, 2)}' if verb in ('recvv', 'recvmsg') else '')

    def access(self):
        """A write, a read or an atomic of an endpoint."""
        self.an_access(self.pick('ep0', 'ep1'))

    def an_access(self, ep, to=None):
        """The same of this endpoint or context, to there or anywhere."""
        mr = self.pick('mr0', 'mr1')
        ctx = self.next_ctx()
        to = to or f'to={self.pick(0, 1)}'
        if 'FI_ATOMIC' in self.caps and self.chance(0.5):
            verb = self.pick('atomic', 'inject_atomic', 'fetch', 'compare')
            type_ = self.r.choice(TYPES)
            ops = COMPARE_OPS if verb == 'compare' else PLAIN_OPS
            if type_ in ('FI_FLOAT', 'FI_DOUBLE'):
                ops = [x for x in ops if x not in OF_BITS]
            op = self.r.choice(ops)
            if verb == 'fetch' and self.chance(0.3):
                op = 'FI_ATOMIC_READ'
            self.add(f'{verb} {ep} {mr} {to} ctx={ctx} cnt={self.pick(1, 1, 2, 8)} '
                     f'at={self.pick(0, 8, 64)} type={type_} op={op}')
            self.add('drain')
            return
        verb = self.pick('write', 'write', 'read', 'read', 'writemsg', 'readmsg', 'writedata',
                         'inject_write', 'inject_writedata')
        length = self.r.choice(LENS)
        if 'inject' in verb:
            length = min(length, 64)
        line = f'{verb} {ep} {mr} {to} ctx={ctx} len={length} at={self.pick(0, 8, 100)}'
        if 'data' in verb:
            line += ' data=77'
        if verb == 'writemsg':
            line += ' flags=' + self.pick('0', 'FI_COMPLETION', 'FI_DELIVERY_COMPLETE',
                                          'FI_INJECT_COMPLETE', 'FI_TRANSMIT_COMPLETE')
        if verb.startswith('read') and length and not self.counts and self.chance(0.1):
            line += ' wrong=1000'
        self.add(line)
        self.add('drain')

    def search(self):
        """Now and then a cancel and a peek, of what nothing else is on its way to."""
        ep = self.pick('ep0', 'ep1')
        if self.chance(0.08) and not self.counts:  # libraries differ in counting cancelled ones
            if 'FI_TAGGED' in self.caps and self.chance(0.7):
                ctx, self.left = self.next_ctx(), True
                self.add(f'trecv {ep} ctx={ctx} len=64 tag={100 + self.ctx}')
                self.add(f'cancel {ep} ctx={ctx}')
            self.add(f'cancel {ep} ctx={self.next_ctx()}')
        if 'FI_TAGGED' in self.caps and self.chance(0.06):
            self.add('drain')
            self.add(f'trecvmsg {ep} ctx={self.next_ctx()} len=64 tag={self.pick(0, 1, 2)} '
                     'cnt=1 flags=FI_PEEK' + self.pick('', '|FI_CLAIM', '|FI_DISCARD'))

    def transfers(self, cnt):
        """Transfers, and checks of the results."""
        for _ in range(cnt):
            if 'FI_RMA' in self.caps and self.chance(0.4):
                self.access()
            else:
                self.message()
            if self.chance(0.3):
                self.add('drain')
            self.search()
        self.end_transfers()

    def end_transfers(self):
        """The last results, and the contents of the regions."""
        self.add('drain')
        if 'FI_RMA' in self.caps:
            self.add('region 0')
            self.add('region 1')

    def objects(self):
        """Names of what has been opened so far in the text."""
        opens = ('fabric', 'domain', 'av', 'cq', 'cntr', 'eq', 'waitset', 'pollset', 'ep', 'sep',
                 'tx', 'rx', 'stx', 'srx', 'mr', 'alias')
        return [line.split()[1] for line in self.lines if line.split()[0] in opens]

    def close_all(self):
        """Close everything: mostly as one should, else in any order."""
        names = [n for n in self.objects() if not n.startswith(('fab', 'dom'))]
        order = {'mr': 0, 'alias': 0, 'ep': 2, 'tx': 1, 'rx': 1, 'sep': 2, 'stx': 3, 'srx': 3}
        if self.chance(0.5):
            names.sort(key=lambda n: order.get(n.rstrip('0123456789'), 4))
        else:
            self.r.shuffle(names)
        for name in names + ['dom0', 'fab0']:
            self.add(f'close {name}')

    def a_control(self, number):
        """One call of any kind to any object; @number keeps new names apart."""
        r, names = self.r, self.objects() + ['ep0', 'cq0']
        queues = [n for n in names if n.startswith('cq')]
        ends = [n for n in names if n.startswith(('ep', 'tx', 'rx', 'srx', 'sep', 'alias'))]
        counters = [n for n in names if n.startswith('cntr')] or ['cntr0']
        some, end, queue, counter = map(r.choice, (names, ends, queues, counters))
        n = 10 + number
        return r.choice([
            lambda: f'eq eq{n} fab0 size={self.pick(0, 1, 1024)} wait={self.wait()} '
                    f'flags={self.pick("0", "FI_WRITE")}',
            lambda: f'cq cq{n} dom0 size={self.pick(0, 1, 65536)} format={r.choice(FORMATS)} '
                    f'wait={self.wait()}' + (' attr=null' if self.chance(0.05) else ''),
            lambda: f'cntr cntr{n} dom0 events={self.pick(0, 0, 1, 7)} wait={self.wait()} '
                    + (' attr=null' if self.chance(0.1) else ''),
            lambda: f'av av{n} dom0 type={self.pick("FI_AV_TABLE", "FI_AV_MAP", 0, 9)} '
                    f'count={self.pick(0, 1, 100000)} flags={self.pick(0, 0, "FI_EVENT")} '
                    f'rx_ctx_bits={self.pick(0, 0, 4, 8, 64)}',
            lambda: f'waitset wait{n} fab0 wait={self.pick("FI_WAIT_UNSPEC", "FI_WAIT_FD", 0)}',
            lambda: f'pollset poll{n} dom0 flags={self.pick(0, 0, 1)}',
            lambda: f'stx stx{n} dom0 inf0' + (' attr=null' if self.chance(0.1) else ''),
            lambda: f'srx srx{n} dom0 inf0' + (' attr=null' if self.chance(0.1) else ''),
            lambda: f'sep sep{n} dom0 inf0',
            lambda: f'ep ep{n} dom0 inf0',
            lambda: f'mr mr{n} dom0 inf0 region=2 len={self.pick(0, 1, 4096)} key={n} '
                    f'access={r.choice(ACCESS)} flags={self.pick(0, 0, 0, "FI_RMA_EVENT", "max")}'
                    + (' base=null' if self.chance(0.1) else ''),
            lambda: f'alias alias{n} {end} flags={self.pick(0, "FI_TRANSMIT", "FI_RECV")}',
            lambda: f'bind {end} {queue} flags={self.pick("FI_TRANSMIT", "FI_RECV", 0)}',
            lambda: f'bind {end} {queue} flags='
                    + self.pick('FI_TRANSMIT|FI_RECV', 'FI_SEND|FI_SELECTIVE_COMPLETION', 'max'),
            lambda: f'bind {end} {counter} flags={r.choice(COUNTED)}',
            lambda: f'bind {end} {counter} flags={self.pick(0, "max", "FI_TAGGED")}',
            lambda: f'bind {end} {some} flags={self.pick(0, 0, "FI_SEND")}',
            lambda: f'bind {some} {r.choice(names)} flags={self.pick(0, "FI_REMOTE_WRITE")}',
            lambda: f'enable {end}',
            lambda: f'close {some}' if self.chance(0.3) else f'enable {end}',
            lambda: f'getopt {end} opt={r.choice(OPTIONS)} len={self.pick(8, 8, 8, 4, 0)}',
            lambda: f'setopt {end} opt={r.choice(OPTIONS)} value={self.pick(0, 1, 64, "max")} '
                    f'len={self.pick(8, 8, 8, 4, 0, 1)}',
            lambda: f'getopt {end} opt={self.pick(100, "FI_OPT_CM_DATA_SIZE")} '
                    f'level={self.pick(0, 1)}',
            lambda: f'control {some} cmd={r.choice(COMMANDS)} '
                    f'value={self.pick(0, "FI_TRANSMIT", "FI_RECV|FI_COMPLETION")}',
            lambda: f'getname {end} len={self.pick(0, 1, 16, 256)}',
            lambda: f'getname {end} buf=null',
            lambda: f'poll_add poll{10 + r.randrange(number + 1)} {some}',
            lambda: f'poll_del poll{10 + r.randrange(number + 1)} {some}',
            lambda: f'trywait fab0 {queue}',
            lambda: f'wait {queue} timeout={self.pick(0, 1)}',
            lambda: f'wait {counter} timeout={self.pick(0, 1)} threshold={self.pick(0, 1)}',
            lambda: f'signal {queue}',
            lambda: f'count {counter} do={self.pick("add", "set", "adderr", "seterr")} '
                    f'value={self.pick(0, 1, 5)}',
            lambda: f'left {end} of={self.pick("tx", "rx")}',
            lambda: f'valid {end} kind={self.pick("plain", "fetch", "compare")} '
                    f'type={self.pick("FI_UINT64", "FI_FLOAT", "FI_LONG_DOUBLE", 99)} '
                    f'op={self.pick("FI_SUM", "FI_CSWAP", "FI_BXOR", "FI_ATOMIC_READ", 99)}',
            lambda: f'query dom0 type={self.pick("FI_UINT64", "FI_DOUBLE", 99)} '
                    f'op={self.pick("FI_SUM", "FI_CSWAP", "FI_MSWAP")} '
                    f'flags={self.pick(0, "FI_FETCH_ATOMIC", "FI_COMPARE_ATOMIC")}',
            lambda: f'insert av0 {self.pick("ep0", "ep1")} to={self.r.randint(4, 9)} '
                    f'cnt={self.pick(1, 1, 2, 4, 0)}' + (' null=1' if self.chance(0.2) else ''),
            lambda: f'remove av0 from={self.r.randint(4, 9)}',
            lambda: f'lookup av0 {self.pick("ep0", "ep1")} from={self.pick(0, 1, 5)} '
                    f'len={self.pick(512, 4, 0)}',
            lambda: f'straddr av0 ep0 len={self.pick(64, 512, 4)}',
        ])()

    def disturb(self, share):
        """Move, drop and double calls, and put others in between."""
        head, body = self.lines[:3], self.lines[3:]
        for _ in range(max(1, int(len(body) * share))):
            self.lines = head + body
            at = self.r.randrange(len(body))
            what = self.r.random()
            if what < 0.12:
                body.insert(self.r.randrange(len(body)), body.pop(at))
            elif what < 0.15:
                body.pop(at)
            elif what < 0.25:
                body.insert(at, body[at])
            else:
                body.insert(at, self.a_control(self.r.randrange(6)))
        self.lines = head + body


def make(style, seed, provider):
    """The lines of one sequence."""
    s = Sequence(style, seed, provider)
    s.open()
    if style == 'data':
        s.transfers(s.r.randint(3, 12))
    else:
        s.disturb(s.r.choice((0.15, 0.3, 0.6)))
        s.transfers(s.r.randint(1, 3))
    s.close_all()
    return s.lines
