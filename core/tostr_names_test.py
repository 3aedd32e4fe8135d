#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""tostr_names_test.py LIBFABRIC INCLUDE - fi_tostr has a word for all that the headers define

Reads the enumerators and the flags out of the public headers and asks the library for each.
A value of an enumeration has its own name; a flag has its name in at least one type that
prints flags, or is listed here with the reason why no type prints it. So a name that a later
level of the interface adds can't be forgotten.
"""
import ctypes
import pathlib
import re
import sys

# The enumeration, by its name or by the first word of one without, and its type.
VALUES = {
    'enum fi_ep_type': 'EP_TYPE',
    'FI_FORMAT_UNSPEC': 'ADDR_FORMAT',
    'enum fi_threading': 'THREADING',
    'enum fi_progress': 'PROGRESS',
    'FI_PROTO_UNSPEC': 'PROTOCOL',
    'enum fi_av_type': 'AV_TYPE',
    'enum fi_datatype': 'ATOMIC_TYPE',
    'enum fi_op': 'ATOMIC_OP',
    'FI_NOTIFY': 'EQ_EVENT',
    'enum fi_op_type': 'OP_TYPE',
    'enum fi_collective_op': 'COLLECTIVE_OP',
    'enum fi_hmem_iface': 'HMEM_IFACE',
    'enum fi_cq_format': 'CQ_FORMAT',
    'enum fi_cq_wait_cond': 'CQ_WAIT_COND',
    'enum fi_wait_obj': 'WAIT_OBJ',
    'enum fi_log_level': 'LOG_LEVEL',
    'enum fi_log_subsys': 'LOG_SUBSYS',
}
# What these two print is the setting's word: FI_LOG_EP_CTRL is 'ep_ctrl'.
AS_SETTING = {'LOG_LEVEL', 'LOG_SUBSYS'}
SENTINELS = {'FI_LOG_SUBSYS_MAX', 'FI_LOG_MAX'}

FLAGS = ['CAPS', 'OP_FLAGS', 'MSG_ORDER', 'MODE', 'CQ_EVENT_FLAGS', 'MR_MODE']
# Types that print flags within a structure, and which of its 64-bit words they are.
STRUCT_FLAGS = {'AV_ATTR': 5, 'CQ_ATTR': 1, 'MR_ATTR': 2}

ELSEWHERE = {
    'fi_getinfo takes it': ['FI_RESCAN', 'FI_PROV_ATTR_ONLY', 'FI_NUMERICHOST'],
    'a binding takes it': ['FI_SELECTIVE_COMPLETION'],
    'an insert into an address vector takes it': ['FI_SYNC_ERR', 'FI_AUTH_KEY',
                                                  'FI_FIREWALL_ADDR'],
    'a peer provider takes it': ['FI_PEER_TRANSFER'],
    'a query takes it': ['FI_FETCH_ATOMIC', 'FI_COMPARE_ATOMIC'],
    'an address set takes it': ['FI_UNIVERSE', 'FI_BARRIER_SET', 'FI_BROADCAST_SET',
                                'FI_ALLTOALL_SET', 'FI_ALLREDUCE_SET', 'FI_ALLGATHER_SET',
                                'FI_REDUCE_SCATTER_SET', 'FI_REDUCE_SET', 'FI_SCATTER_SET',
                                'FI_GATHER_SET'],
    'a registration takes it': ['FI_MR_DMABUF', 'FI_MR_SINGLE_USE', 'FI_HMEM_HOST_ALLOC',
                                'FI_HMEM_DEVICE_ONLY', 'FI_REG_MR'],
    'a number range of options, no flag': ['FI_PROV_SPECIFIC_EFA', 'FI_PROV_SPECIFIC_TCP'],
    'the core and a logger have it among themselves': ['FI_LOG_PROV_FILTERED'],
    'comp_order, a field without meaning since 2.0': ['FI_ORDER_DATA'],
}


def headers(include):
    """The text of all public headers, without comments."""
    text = ''
    for path in sorted((include / 'rdma').rglob('*.h')):
        text += path.read_text(encoding='utf-8')
    return re.sub(r'/\*.*?\*/', '', text, flags=re.S)


def number(expression, known):
    expression = re.sub(r'\((?:u?int\w*_t|int)\)', '', expression)
    expression = re.sub(r'\b(\d+|0x[0-9a-fA-F]+)[uU]?[lL]*\b', r'\1', expression)
    return eval(expression, {'__builtins__': {}}, known)


def enumerations(text):
    """{name of the enumeration, or of its first value: {name: value}}"""
    found = {}
    constants = {name: int(value, 0) for name, value in
                 re.findall(r'^#define\s+(FI_\w+)\s+(\d+|0x[0-9a-fA-F]+)$', text, re.M)}
    constants |= flags(text)
    for name, body in re.findall(r'\b(enum(?: \w+)?)\s*\{(.*?)\}', text, re.S):
        values, following = {}, 0
        for entry in filter(None, (entry.strip() for entry in body.split(','))):
            word, _, expression = (part.strip() for part in entry.partition('='))
            if expression:
                following = number(expression, constants | values)
            values[word.split()[0]] = following
            following += 1
        constants |= values
        found[name if ' ' in name else next(iter(values))] = values
    return found


def flags(text):
    """{name: value} of each #define that shifts a one"""
    found = {}
    for name, expression in re.findall(r'^#define\s+(FI_\w+)\s+(.*<<.*)$', text, re.M):
        try:
            found[name] = number(expression, found)
        except (NameError, SyntaxError):
            continue
    return found


class Library:
    def __init__(self, path, types):
        self.lib = ctypes.CDLL(path)
        self.lib.fi_tostr_r.restype = ctypes.c_char_p
        self.types = types

    def text(self, data, kind):
        room = ctypes.create_string_buffer(16384)
        self.lib.fi_tostr_r(room, ctypes.c_size_t(len(room)), ctypes.byref(data),
                            ctypes.c_int(self.types['FI_TYPE_' + kind]))
        return room.value.decode()

    def value(self, value, kind):
        return self.text(ctypes.c_uint64(value & 2**64 - 1), kind)

    def struct_flags(self, value, kind):
        data = (ctypes.c_uint64 * 64)()
        data[STRUCT_FLAGS[kind]] = value
        return self.text(data, kind)


def main(path, include):
    text = headers(include)
    enums = enumerations(text)
    library = Library(path, enums['enum fi_type'])
    findings, asked = [], 0

    printed = set(VALUES.values()) | set(FLAGS) | set(STRUCT_FLAGS)
    for enum, kind in VALUES.items():
        for name, value in enums[enum].items():
            if name in SENTINELS:
                continue
            asked += 1
            want = name.replace('FI_LOG_', '').lower() if kind in AS_SETTING else name
            got = library.value(value, kind)
            if got != want:
                findings.append(f'{name} is "{got}" in FI_TYPE_{kind}')

    elsewhere = {name for names in ELSEWHERE.values() for name in names}
    for name, value in flags(text).items():
        asked += 1
        words = [library.value(value, kind) for kind in FLAGS]
        words += re.findall(r'FI_\w+', ' '.join(library.struct_flags(value, kind)
                                                for kind in STRUCT_FLAGS))
        if (name in words) == (name in elsewhere):
            findings.append(f'{name}: {"named after all" if name in words else "no name"}')
    for name in elsewhere - set(flags(text)):
        findings.append(f'{name} is in no header')

    for name in enums['enum fi_type']:
        if name[8:] not in printed and library.text((ctypes.c_uint64 * 128)(), name[8:]) in (
                '', 'Unknown type'):
            findings.append(f'{name} prints nothing')
    print('\n'.join(findings) or f'{asked} names')
    return 1 if findings or asked < 250 else 0


sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
