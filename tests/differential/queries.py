# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""queries - what is asked of fi_getinfo, and what differs in the answers

The grid: what each client asks for (clients.json), under each name and without one, with each
field changed to each of its values, and two at a time. Compared are the first answers of each
provider and kind of endpoint: one there has one here, which gives no less.
"""
import json
import pathlib
import random
import re

from compare import Difference
from libraries import Script

CLIENTS = json.loads((pathlib.Path(__file__).parent / 'clients.json').read_text('utf-8'))['clients']
APIS = ['1.0', '1.4', '1.5', '1.9', '1.17', 'newest']
NAMES_1 = ['', 'sockets', 'shm', 'tcp;ofi_rxm', 'ofi_rxm', 'tcp', 'udp', 'udp;ofi_rxd']
NAMES_2 = ['', 'tcp', 'sockets', 'shm', 'tcp;ofi_rxm', 'ofi_rxm', 'sm2', 'udp', 'udp;ofi_rxd']
SCRIPT_QUERIES = 100

SIZES = ['0', '1', '8', '64', '256', '4096', '65536', 'max']
COUNTS = ['0', '1', '2', '16', '256', '1024', 'max']
CAPS = ['FI_MSG', 'FI_RMA', 'FI_TAGGED', 'FI_ATOMIC', 'FI_COLLECTIVE', 'FI_READ', 'FI_WRITE',
        'FI_SEND', 'FI_RECV', 'FI_REMOTE_READ', 'FI_REMOTE_WRITE', 'FI_MULTI_RECV', 'FI_TRIGGER',
        'FI_FENCE', 'FI_HMEM', 'FI_RMA_PMEM', 'FI_SOURCE_ERR', 'FI_LOCAL_COMM',
        'FI_REMOTE_COMM', 'FI_SHARED_AV', 'FI_RMA_EVENT', 'FI_SOURCE', 'FI_NAMED_RX_CTX',
        'FI_DIRECTED_RECV', 'FI_PEER', 'FI_AV_USER_ID', 'FI_MULTICAST', 'FI_XPU',
        'FI_TAGGED_DIRECTED_RECV', '0', 'max']
MODES = ['0', 'FI_CONTEXT', 'FI_CONTEXT2', 'FI_LOCAL_MR', 'FI_RX_CQ_DATA', 'FI_ASYNC_IOV',
         'FI_MSG_PREFIX', 'max']
FLAGS = ['0', 'FI_COMPLETION', 'FI_INJECT', 'FI_INJECT_COMPLETE', 'FI_TRANSMIT_COMPLETE',
         'FI_DELIVERY_COMPLETE', 'FI_COMMIT_COMPLETE', 'FI_MULTI_RECV', 'FI_MORE', 'FI_FENCE',
         'max']
ORDERS = ['0', 'FI_ORDER_SAS', 'FI_ORDER_STRICT', 'FI_ORDER_RAW', 'FI_ORDER_WAW',
          'FI_ORDER_RAR', 'FI_ORDER_WAR', 'FI_ORDER_SAW', 'FI_ORDER_RMA_WAW',
          'FI_ORDER_ATOMIC_RAW', 'FI_ORDER_DATA', 'max']
MR_MODES = ['0', 'FI_MR_BASIC', 'FI_MR_SCALABLE', 'FI_MR_LOCAL', 'FI_MR_VIRT_ADDR',
            'FI_MR_ALLOCATED', 'FI_MR_PROV_KEY', 'FI_MR_ENDPOINT', 'FI_MR_RMA_EVENT',
            'FI_MR_VIRT_ADDR|FI_MR_ALLOCATED|FI_MR_PROV_KEY', 'FI_MR_BASIC|FI_MR_LOCAL',
            'FI_MR_HMEM', 'max32']
PROGRESS = ['0', 'FI_PROGRESS_AUTO', 'FI_PROGRESS_MANUAL', '9']

VALUES = {
    'caps': CAPS, 'mode': MODES, 'tx.caps': CAPS, 'rx.caps': CAPS, 'dom.caps': CAPS,
    'tx.mode': MODES, 'rx.mode': MODES, 'dom.mode': MODES,
    'tx.op_flags': FLAGS, 'rx.op_flags': FLAGS,
    'tx.msg_order': ORDERS, 'rx.msg_order': ORDERS, 'tx.comp_order': ORDERS,
    'rx.comp_order': ORDERS,
    'format': ['0', 'FI_SOCKADDR', 'FI_SOCKADDR_IN', 'FI_SOCKADDR_IN6', 'FI_ADDR_STR',
               'FI_SOCKADDR_IB', '99'],
    'tx.inject': SIZES, 'rx.buffered': SIZES, 'ep.max_msg': SIZES, 'ep.raw': SIZES,
    'ep.war': SIZES, 'ep.waw': SIZES, 'ep.prefix': ['0', '1', '64'],
    'tx.size': COUNTS, 'rx.size': COUNTS, 'tx.iov': COUNTS, 'tx.rma_iov': COUNTS,
    'rx.iov': COUNTS, 'dom.mr_iov': COUNTS,
    'tx.tclass': ['0', 'FI_TC_BULK_DATA', 'FI_TC_LOW_LATENCY', '0x100', '99'],
    'dom.tclass': ['0', 'FI_TC_BULK_DATA', '99'],
    'ep.type': ['0', 'FI_EP_MSG', 'FI_EP_DGRAM', 'FI_EP_RDM', '99'],
    'ep.protocol': ['0', 'FI_PROTO_XNET', 'FI_PROTO_SOCK_TCP', 'FI_PROTO_RXM', 'FI_PROTO_RXD',
                    'FI_PROTO_UDP', 'FI_PROTO_SHM', 'FI_PROTO_SM2', 'FI_PROTO_RXM_TCP', '99'],
    'ep.protocol_version': ['0', '1', '2', '99'],
    'ep.tag_format': ['0', '0xff', '0xaaaaaaaaaaaaaaaa', '0x5555555555555555', 'FI_TAG_MPI',
                      'FI_TAG_CCL', 'max'],
    'ep.tx_ctx': ['0', '1', '2', '16', '66', '256', 'FI_SHARED_CONTEXT'],
    'ep.rx_ctx': ['0', '1', '2', '16', '66', '256', 'FI_SHARED_CONTEXT'],
    'dom.threading': ['0', 'FI_THREAD_SAFE', 'FI_THREAD_FID', 'FI_THREAD_DOMAIN',
                      'FI_THREAD_COMPLETION', 'FI_THREAD_ENDPOINT', '99'],
    'dom.control': PROGRESS, 'dom.data': PROGRESS,
    'dom.rm': ['0', 'FI_RM_ENABLED', 'FI_RM_DISABLED', '9'],
    'dom.av_type': ['0', 'FI_AV_MAP', 'FI_AV_TABLE', '9'],
    'dom.mr_mode': MR_MODES,
    'dom.key_size': ['0', '1', '2', '4', '8', '16'],
    'dom.cq_data': ['0', '1', '4', '8', '16'],
    'dom.cq_cnt': COUNTS, 'dom.ep_cnt': COUNTS, 'dom.tx_ctx_cnt': COUNTS,
    'dom.rx_ctx_cnt': COUNTS, 'dom.max_tx': COUNTS, 'dom.max_rx': COUNTS,
    'dom.max_stx': COUNTS, 'dom.max_srx': COUNTS, 'dom.cntr_cnt': COUNTS,
    'dom.mr_cnt': COUNTS, 'dom.err_data': ['0', '8', '64', 'max'],
    'domain': ['lo', 'eth0', 'shm', 'none-such'], 'fabric': ['none-such'],
    'src': ['127.0.0.1:0', '127.0.0.1:41234', '203.0.113.9:0'], 'dest': ['127.0.0.1:41235'],
    '?node': ['127.0.0.1', 'localhost', '203.0.113.9', 'fi_shm://77'],
    '?service': ['0', '41236', 'name'],
    '?flags': ['FI_SOURCE', 'FI_NUMERICHOST', 'FI_PROV_ATTR_ONLY', 'FI_SOURCE|FI_NUMERICHOST',
               '0x1'],
    '?api': APIS,
}


class Query:
    """One call of fi_getinfo."""

    def __init__(self, client, name, api, changes):
        self.client, self.name, self.api = client, name, api
        self.hints = None if client['hints'] is None else dict(client['hints'])
        self.asked = dict(client.get('query', {}))
        self.changes = changes
        for key, value in changes:
            if key == '?api':
                self.api = value
            elif key.startswith('?'):
                self.asked[key[1:]] = value
            elif self.hints is not None:
                self.hints[key] = value

    def line(self, newest):
        """The line of a script."""
        words = ['getinfo inf0', 'api=' + (newest if self.api == 'newest' else self.api)]
        words += [f'{k}={v}' for k, v in self.asked.items()]
        if self.hints is None:
            words.append('hints=null')
        else:
            words += [f'{k}={v}' for k, v in self.hints.items()]
            if self.name:
                words.append(f'prov={self.name}')
        return ' '.join(words)

    def label(self):
        """The part of a signature that identifies it."""
        changed = ' '.join(f'{k}={v}' for k, v in sorted(self.changes))
        return f'query {self.name or "-"}: {self.client["name"]} {self.api} {changed}'.strip()


def names_of(client, names):
    """The names under which a client asks."""
    return [''] if client['hints'] is None else client.get('prov', names)


def grid(names):
    """Every client under every name, each field changed to each value."""
    for client in CLIENTS:
        for name in names_of(client, names):
            for api in client['api']:
                yield Query(client, name, api, [])
    for client in CLIENTS:
        if client['hints'] is None:
            continue
        for name in names_of(client, names):
            for key, values in VALUES.items():
                for value in values:
                    yield Query(client, name, client['api'][0], [(key, value)])


def pairs(names, seed, cnt):
    """Two fields changed, at random."""
    r = random.Random(f'queries {seed}')
    asking = [c for c in CLIENTS if c['hints'] is not None]
    for _ in range(cnt):
        client = r.choice(asking)
        keys = r.sample(sorted(VALUES), 2)
        yield Query(client, r.choice(names_of(client, names)), r.choice(client['api']),
                    [(k, r.choice(VALUES[k])) for k in keys])


def sample(names, seed, cnt):
    """All clients as they are, and so many of the grid and of the pairs; None: the whole grid."""
    whole = list(grid(names))
    if cnt is None:
        return whole + list(pairs(names, seed, len(whole) // 4))
    plain = [q for q in whole if not q.changes]
    changed = [q for q in whole if q.changes]
    chosen = random.Random(f'sample {seed}').sample(changed, min(cnt, len(changed)))
    return plain + chosen + list(pairs(names, seed, cnt // 2))


def ask(library, queries, newest):
    """Answers by the query's index; None where the library crashed or hung."""
    found = {}
    at = 0
    while at < len(queries):
        part = queries[at:at + SCRIPT_QUERIES]
        script = Script('queries', [q.line(newest) for q in part])
        got = library.run([script], 120000)['queries']
        for idx, answer in got.answers.items():
            found[at + idx] = answer
        at += len(part)
        if len(got.answers) < len(part):
            at += len(got.answers) - len(part) + 1
            found[at - 1] = None
    return found


def values(library, more=()):
    """Numbers of the values in the clients' checks and in the grid, and of some more."""
    names = set(more) | {check.split()[2] for c in CLIENTS for check in c['checks']}
    for key in ALL_BITS:
        names |= set(VALUES.get(key, []))
        names |= {(c['hints'] or {}).get(key, '0') for c in CLIENTS}
    names = sorted(names)
    got = library.run([Script('values', [f'value {n}' for n in names])], 60000)['values']
    return {n: int(got.answers[i].answer, 0) for i, n in enumerate(names)}


# Answers

# more or as much
AT_LEAST = ['tx.inject', 'tx.size', 'tx.iov', 'tx.rma_iov', 'rx.size', 'rx.iov', 'ep.max_msg',
            'ep.raw', 'ep.war', 'ep.waw', 'dom.cq_data', 'dom.cq_cnt', 'dom.ep_cnt',
            'dom.tx_ctx_cnt', 'dom.rx_ctx_cnt', 'dom.max_tx', 'dom.max_rx', 'dom.max_stx',
            'dom.max_srx', 'dom.cntr_cnt', 'dom.mr_iov']
# all bits that are there, or were asked for
ALL_BITS = ['caps', 'tx.caps', 'rx.caps', 'tx.msg_order', 'rx.msg_order', 'dom.caps']
MODIFIERS = 0x3f00  # FI_READ to FI_REMOTE_WRITE, which the classes imply
UNBOUNDED = 1 << 60
# no more bits than there
NO_MORE = ['mode', 'tx.mode', 'rx.mode', 'dom.mode', 'dom.mr_mode']
EQUAL = ['format', 'tx.op_flags', 'rx.op_flags', 'ep.type', 'ep.protocol', 'ep.prefix',
         'ep.tag_format', 'ep.tx_ctx', 'ep.rx_ctx', 'dom.threading', 'dom.control', 'dom.data',
         'dom.rm', 'dom.av_type', 'tx.tclass', 'fab.api']


def infos(lines):
    """The first answer for each provider and kind of endpoint, as dictionaries."""
    found = {}
    for line in lines:
        fields = dict(word.split('=', 1) for word in line.split(' ') if '=' in word)
        if 'ep.type' in fields:
            found.setdefault((fields['prov'], int(fields['ep.type'], 0)), fields)
    return found


def number(fields, key):
    """A field as a number."""
    return int(fields[key], 0)


def old_registration(query):
    """Whether mr_mode is an enumeration in the requested version."""
    return query.api in ('1.0', '1.1', '1.2', '1.3', '1.4')


def compare_info(query, there, here, value_of):
    """Pairs (kind, text) of what one answer has otherwise."""
    for key in AT_LEAST:
        if number(here, key) < min(number(there, key), UNBOUNDED):
            yield 'less', f'{key} there={there[key]} here={here[key]}'
    for key in ALL_BITS:
        hints = query.hints or {}
        wanted = value_of(hints.get(key, '0'))
        if key.endswith('.caps') and not wanted:
            wanted = value_of(hints.get('caps', '0'))
        if key.endswith('caps') and wanted:
            wanted |= MODIFIERS
        lost = number(there, key) & ~number(here, key) & (wanted or ~0)
        if lost:
            yield 'less', f'{key} lacks={lost:#x}'
    for key in NO_MORE:
        more = number(here, key) & ~number(there, key)
        if key == 'dom.mr_mode' and old_registration(query):
            more = number(here, key) != number(there, key)
        if more:
            yield 'asks', f'{key} there={there[key]} here={here[key]}'
    for key in EQUAL:
        if number(here, key) != number(there, key):
            yield 'answers', f'{key} there={there[key]} here={here[key]}'
    for key in ('src', 'dest'):
        a, b = (host(x.get(key)) for x in (there, here))
        if a != b:
            yield 'answers', f'{key} there={a} here={b}'
    if there['nic'] != here['nic']:
        yield 'answers', f'nic there={there["nic"]} here={here["nic"]}'


def host(address):
    """An address without the port that was chosen for it."""
    if not address:
        return 'none'
    if address.startswith('in'):
        return address.rpartition(':')[0]
    return address.partition(':')[0]


def passes(check, fields, value_of):
    """Whether an answer passes a client's check."""
    key, op, value = check.split()
    has, wants = number(fields, key), value_of(value)
    return {'=': has == wants, '!=': has != wants, '>=': has >= wants, '<=': has <= wants,
            'has': has & wants == wants, 'lacks': not has & wants}[op]


def compare_answers(query, there, here, value_of):
    """All differences of one query."""
    label = query.label()

    def difference(kind, text):
        return Difference(kind, f'{label}: {kind} {text}', 0)
    if there is None or here is None:
        return [difference('crashes', 'here')] if there is not None else []
    if there.result != '0':
        if here.result == '0':
            return [difference('accepts', f'there={there.result}')]
        return [] if there.result == here.result else \
            [difference('other-code', f'there={there.result} here={here.result}')]
    if here.result != '0':
        return [difference('refuses', f'here={here.result}')]
    found = []
    a, b = infos(there.lines), infos(here.lines)
    for key, fields in ((k, f) for k, f in a.items() if k[1]):
        what = f'{key[0]}/{key[1]}'
        if key not in b:
            found.append(difference('misses', what))
            continue
        found += [difference(kind, f'{what} {text}')
                  for kind, text in compare_info(query, fields, b[key], value_of)]
        found += [difference('fails', f'{what} {check}') for check in query.client['checks']
                  if check.split()[0] not in dict(query.changes) and passes(check, fields, value_of) and not passes(check, b[key], value_of)]
    return found


def cause(query, difference, refused):
    """What differences with one cause have in common: a refusal, what was changed, unless the client
    is among the @refused as it is; else what is answered, without the provider's name."""
    text = difference.signature.partition(': ')[2].partition(': ')[2]
    text = re.sub(r'\S+/(\d) ', r'/\1 ', text)
    if difference.kind == 'refuses':
        plain = not query.changes or (query.client['name'], query.name) in refused
        text += ' ' + (query.client['name'] if plain else
                       ' '.join('='.join(c) for c in query.changes))
    return difference.kind, text


HARMFUL = ('refuses', 'misses', 'less', 'asks', 'answers', 'fails', 'crashes')
