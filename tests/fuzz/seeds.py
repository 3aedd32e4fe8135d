#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""seeds.py FOLDER - writes the inputs with which the fuzz targets of lenders and borrowers begin

Each target has a folder there. An input says what an honest side would say, in the order in which the target reads its
bytes; the targets and libFuzzer change it. A finding is added here, by what it says, together with its mend.
"""
import base64
import json
import pathlib
import sys

LISTED, WATCHED, REFUSED, GRANTED, KEPT, ENTRY, BASE64, MEMBERS = range(8)

# enum lease_kind, as lease_fuzz.c reads it
(HELLO, LIST, BORROW, ATTACH, RENEW, SHARE, RETURN, WINDOW, UNWINDOW, QUEUES, UNQUEUES, MEMORY, UNMEMORY, ADMIN, LEASES,
 REVOKE, EXPORT, UNEXPORT, IMPORT, WATCH) = range(20)

# Behind each request: it is not changed, and not cut off.
HONEST = [0, 0]


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def directory():
    device = {'id': '1122334455667788', 'name': 'nvme-11223344-A', 'class': 'nvme', 'state': 'free', 'vendor': 6966,
              'model': 'm', 'serial': 's', 'blocks': 1024, 'block_size': 512, 'leases': 0, 'queue_pairs': 8,
              'queue_pairs_free': 8}
    entry = json.dumps({'version': 1, 'node': '1122334455667788', 'host': 'h', 'socket': '/run/weft', 'address': 'a:1', 'provider': 'tcp',
                        'devices': [device]})
    kv = {'key': encoded('/weft/lenders/1122334455667788'), 'value': encoded(entry), 'lease': '7', 'mod_revision': '3'}
    header = {'cluster_id': '1', 'member_id': '2', 'revision': '3', 'raft_term': '4'}
    texts = {
        'listed': (LISTED, {'header': header, 'kvs': [kv, kv], 'more': True, 'count': '2'}),
        'listed-nothing': (LISTED, {'header': header}),
        'watched': (WATCHED, {'result': {'header': header, 'events': [{'kv': kv}, {'type': 'DELETE', 'kv': kv}]}}),
        'watch-begins': (WATCHED, {'result': {'header': header, 'created': True}}),
        'watch-over': (WATCHED, {'result': {'header': header, 'canceled': True, 'compact_revision': '9'}}),
        'watch-error': (WATCHED, {'error': {'grpc_code': 14, 'http_code': 503, 'message': 'etcdserver: no leader'}}),
        'refused': (REFUSED, {'error': 'etcdserver: no leader', 'code': 14, 'message': 'etcdserver: no leader'}),
        'granted': (GRANTED, {'header': header, 'ID': '7587862094675012103', 'TTL': '6'}),
        'kept': (KEPT, {'result': {'header': header, 'ID': '7587862094675012103', 'TTL': '6'}}),
    }
    seeds = {name: bytes([kind]) + json.dumps(text).encode() for name, (kind, text) in texts.items()}
    seeds['entry'] = bytes([ENTRY]) + entry.encode()
    seeds['base64'] = bytes([BASE64]) + encoded('any bytes of some length, as a key has them').encode()
    seeds['members'] = bytes([MEMBERS]) + b'http://a:1,https://b.site/,http://[::1],http://[fe80::2]:3/'
    seeds['key'] = bytes([MEMBERS]) + b'/weft/lenders/1122334455667788'
    return seeds


def journal():
    lease = {'lease': 1, 'used': 1, 'generation': 7, 'token': '00112233445566778899aabbccddeeff', 'flags': 2,
             'uid': 1000, 'pid': 77}
    elsewhere = {**lease, 'lease': 8, 'used': 0, 'pid': -1}
    return {'two': json.dumps({'version': 2, 'leases': [lease, elsewhere]}).encode(),
            'none': json.dumps({'version': 2, 'leases': []}).encode(),
            'cut-off': json.dumps({'version': 2, 'leases': [lease]}).encode()[:60],
            'node': b'1122334455667788\n'}


def lease():
    """The first byte says whose user it is; an address of DMA is its low bits times a page, a size its pages less one."""
    window = [WINDOW, 2, 0, 1, 0, 1, *HONEST]
    queues = [QUEUES, 0, 1, 15, 0, *HONEST]
    borrow = [BORROW, 1, 100, 0, *HONEST]
    said = {
        'asks': [[kind, *more, *HONEST] for kind, more in
                 ((HELLO, []), (LIST, [0]), (LIST, [1]), (LEASES, []), (ADMIN, [1, 1]), (WATCH, []))],
        'borrows': [borrow, [ATTACH, *HONEST], [RENEW, 50, *HONEST], [SHARE, *HONEST], [RETURN, *HONEST]],
        'windows': [window, window, [UNWINDOW, 0, 1, *HONEST]],
        'queues': [window, queues, [UNQUEUES, 1, *HONEST], [QUEUES, 0, 1, 15, 1, 1, *HONEST]],
        'memory': [[MEMORY, 1, *HONEST], [UNMEMORY, 0, 2, *HONEST]],
        'segments': [[EXPORT, 1, 0, 0, 1, *HONEST], [IMPORT, 0, 1, *HONEST], [UNEXPORT, 0, 1, *HONEST]],
        'revokes': [borrow, [REVOKE, *HONEST]],
    }
    return {name: bytes([0, *(byte for request in requests for byte in request)]) for name, requests in said.items()}


def session():
    """Steps: how, what, whether it is changed, whether it is cut off, and how many rounds follow."""
    def step(*what):
        return [0, *what, 0, 0]

    connect, near = step(0, 0), step(0, 1, 6)
    read = [0, 1, 8, 0, 0, 0]
    write_along = [1, 2, 8, 0, 0, 4]
    long_write = [1, 3, 8, 0, 0, 1, 4]
    end_one = [200, 0]
    said = {
        'reads': connect + step(2, 0, *read) + end_one,
        'writes': connect + step(2, 1, *write_along, *read) + end_one + end_one,
        'long': connect + step(2, 0, *long_write) + end_one + end_one,
        'near': near + step(3, 3) + end_one + end_one + end_one,
        'pings': connect + step(5) + connect,
        'ends': connect + step(2, 0, *read) + [255, 0] + end_one,
    }
    return {name: bytes(steps) for name, steps in said.items()}


def lender():
    """Steps, by what they are modulo 9, each with the bytes of its answers: 0 is an honest one."""
    listed, device, segment, window, pair, used, kept, returned = 0, 1, 2, 3, 4, 5, 7, 206
    greeted = [0]
    borrowed = greeted + [device, 10, 0, 0]
    own = [segment, 4, 0, 0]
    near = [segment, 60, 2, 0, 0]
    opened = [window, 0, 0]
    paired = [pair, 0, 0, 0]
    read = [used, 3, 0, 0, 1, 0, 0, 0, 0]
    said = {
        'lists': greeted + [listed] + [0] * 12,
        'borrows': borrowed + [device, 0, 0, 0, returned, 1, 0],
        'segments': borrowed + own + [segment + 9, 4, 1, 0, segment + 9],
        'near': borrowed + near + opened + [window, 0],
        'reads': borrowed + own + opened + paired + read + read + [pair, 0, 0, 0],
        'sleeps': borrowed + own + opened + [pair, 1, 0, 0] + read,
        'keeps': borrowed + [kept + 63, 0, 110, 3, 110, 4, 0, 0] + [0] * 8,
        'ends': borrowed + paired + [kept + 63, 0, 101, 5, 0, 254] + [0] * 8,
        'floods': greeted + [device, 10, 0, 32, 3],
        'late': greeted + [device, 10, 0, 32, 1, device, 10, 0, 0],
        'short-memory': borrowed + [segment, 200, 2, 1, 1, 0],
    }
    return {name: bytes(steps) for name, steps in said.items()}


def remote():
    """What the lender says, then steps; a message: how, kind, whether it is changed, whether it is cut off."""
    def step(*what):
        return [0, 0, *what, 0, 0]

    connected = [0, 0, 0, 0, 2, 0, 0]
    near = [1, 0, 0, 0, 2, 0, 0]
    submit = [100, 0, 0, 0, 0]
    write = [100, 0, 0, 1, 0]
    taken = [200, 7]
    said = {
        'reads': connected + submit + [0, 130, 0] + taken,
        'writes': connected + write + step(5, 1, 0, 0) + taken,
        'near': near + submit + [0, 130, 0x80] + taken,
        'pings': connected + taken * 8 + step(6),
        'ends': connected + submit + step(7) + taken,
        'closes': connected + submit + [252, 253, 252],
        'again': connected + submit + [250, 150] + connected,
    }
    return {name: bytes(steps) for name, steps in said.items()}


def main(folder):
    for make in directory, journal, lease, lender, remote, session:
        at = pathlib.Path(folder) / make.__name__
        at.mkdir(parents=True, exist_ok=True)
        for name, seed in make().items():
            (at / name).write_bytes(seed)


main(*sys.argv[1:])
