# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Turn names.txt into a C program that prints what a set of headers defines of it.

Used by abi.py. The same program is compiled against our headers and against
others; it prints one `key TAB value` line for

	record	size and alignment of a struct, union or enum
	field	offset, size and type of a member; a slot of an op table too
	const	value and C type of an enumerator or a macro
	text	a string macro
	macro	that any other macro exists
	type	size of a typedef
	extern	type of an exported function
	inline	type of an inline call
	call	what an inline call does: which slot it takes, with which arguments

A type is tested for compatibility with the one in names.txt and printed as it
stands there, or as `?`. The `call` lines come from op tables whose every slot
reports its name and arguments. Each call runs three times: `plain`; `zero`,
with 64-bit arguments 0 and slots that return 0; and `old`, with tables whose
size says that they have no slots at all.
"""

import re
import zlib

# What a control command's argument looks like, so that its words can be shown.
CONTROL = {
	"FI_ALIAS": "struct fi_alias",
	"FI_GET_VAL": "struct fi_fid_var",
	"FI_SET_VAL": "struct fi_fid_var",
	"FI_GET_RAW_MR": "struct fi_mr_raw_attr",
	"FI_MAP_RAW_MR": "struct fi_mr_map_raw",
	"FI_UNMAP_KEY": "uint64_t",
	"FI_REFRESH": "struct fi_mr_modify",
	"FI_EXPORT_FID": "struct fi_fid_export",
	"FI_GET_MR_XPU_DESC": "struct fi_mr_xpu_desc",
}

# Macros and calls that are expressions of their arguments: tried with these too.
EXPRESSIONS = [
	"FI_VERSION(2, 6)", "FI_MAJOR(0x20006)", "FI_MINOR(0x20006)",
	"FI_VERSION_GE(3, 2)", "FI_VERSION_GE(2, 3)", "FI_VERSION_LT(3, 2)",
	"FI_VERSION_LT(2, 3)",
	"fi_tc_dscp_set(46)", "fi_tc_dscp_get(0x12e)", "fi_tc_dscp_get(0x22e)",
	"fi_tag_mpi(-1, 3)", "fi_group_addr(5, 9)", "fi_hmem_ze_device(3, 2)",
]


PRELUDE = r"""
#define KIND(x) _Generic((x), int: "i32", unsigned: "u32", long: "i64", \
	unsigned long: "u64", long long: "i64", unsigned long long: "u64", default: "?")
#define SAME(a, b) __builtin_types_compatible_p(__typeof__(a), b)
#define WORD(x) ((unsigned long long)(uintptr_t)(x))

static void put_const(const char *name, const char *kind, unsigned long long v)
{
	if (kind[0] == 'i')
		printf("const %s\t%lld %s\n", name, (long long)v, kind);
	else
		printf("const %s\t%#llx %s\n", name, v, kind);
}

static struct { _Alignas(16) char room[512]; } arena[16], object[16];
static int result;	/* what every slot returns */
static char line[4096];

static void say(const char *text)
{
	strncat(line, text, sizeof(line) - strlen(line) - 1);
}

/* A word in terms that do not change from run to run. */
static void say_word(unsigned long long v)
{
	unsigned long long a = v - WORD(arena), o = v - WORD(object);
	char text[64];

	if (a < sizeof(arena))
		snprintf(text, sizeof(text), "arg%llu+%llu", a / sizeof(arena[0]),
			 a % sizeof(arena[0]));
	else if (o < sizeof(object))
		snprintf(text, sizeof(text), "obj%llu+%llu", o / sizeof(object[0]),
			 o % sizeof(object[0]));
	else if ((long long)v < 0x10000 && (long long)v > -0x10000)
		snprintf(text, sizeof(text), "%lld", (long long)v);
	else if (v < 1ULL << 40 || v >> 60)
		snprintf(text, sizeof(text), "%#llx", v);
	else
		snprintf(text, sizeof(text), "local");
	say(text);
}

struct leaf {
	size_t at, len;
};

/* A struct's members, one of each union; zeros at the end say nothing. */
static void say_leaves(const void *arg, const struct leaf *leaf, size_t n)
{
	unsigned long long value[64];
	size_t i, k, cnt = 0, last = 0;

	for (i = 0; i < n; i++) {
		for (k = 0; leaf[k].at != leaf[i].at; k++)
			;
		if (k < i)
			continue;
		value[cnt] = 0;
		memcpy(&value[cnt], (const char *)arg + leaf[i].at, leaf[i].len);
		if (value[cnt++])
			last = cnt;
	}
	say(" {");
	for (i = 0; i < last; i++) {
		say(i ? ", " : "");
		say_word(value[i]);
	}
	say("}");
}

static void finish(const char *name, const char *variant)
{
	unsigned long long word;
	size_t i, k;

	for (i = 0; i < 16; i++) {
		for (k = 0; k < sizeof(arena[0]); k += sizeof(word)) {
			memcpy(&word, arena[i].room + k, sizeof(word));
			if (!word)
				continue;
			say("; *");
			say_word(WORD(arena[i].room + k));
			say("=");
			say_word(word);
		}
	}
	printf("call %s %s\t%s\n", name, variant, line);
	line[0] = 0;
	memset(arena, 0, sizeof(arena));
}
"""


def load(path, label):
	"""names.txt's lines for one set: (kind, name, type) each."""
	entries = []
	with open(path, encoding="ascii") as names:
		for text in names:
			if text.startswith("#"):
				continue
			labels, kind, name, type_text = (text.rstrip("\n").split("\t") + [""])[:4]
			if label in labels.split(","):
				entries.append((kind, name, type_text))
	return entries


def quote(text):
	return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def split_args(text):
	args, depth, start = [], 0, 0
	for i, c in enumerate(text):
		depth += (c == "(") - (c == ")")
		if c == "," and depth == 0:
			args.append(text[start:i].strip())
			start = i + 1
	args.append(text[start:].strip())
	return [] if args in (["void"], [""]) else args


def signature(type_text):
	"""'int (*)(A, B)' or 'int (A, B)' to ('int', ['A', 'B'])."""
	found = re.match(r"([^(]*)(?:\(\*\))?\((.*)\)$", type_text)
	return found.group(1).strip(), split_args(found.group(2))


def constant(name):
	return zlib.crc32(name.encode()) % 1000 + 1


class Program:
	def __init__(self, headers, entries):
		self.entries = entries
		self.fields = {}	# record -> [(member, type)]
		for kind, name, type_text in entries:
			if kind == "field":
				record, member = name.split(".", 1)
				self.fields.setdefault(record, []).append((member, type_text))
		self.tables = [r for r in self.fields if r.startswith("struct fi_ops")]
		self.objects = [r for r in self.fields if re.match(r"struct fid(_|$)", r)]
		self.consts = {name for kind, name, _ in entries if kind == "const"}
		self.top = ["#include <stdio.h>", "#include <string.h>", "#include <poll.h>"]
		self.top += [f"#include <rdma/{h}>" for h in headers] + [PRELUDE]
		self.main = []

	def text(self):
		for entry in self.entries:
			getattr(self, "tell_" + entry[0])(entry[1], entry[2])
		self.define_stubs()
		self.define_objects()
		for kind, name, type_text in self.entries:
			if kind == "inline":
				self.call(name, *signature(type_text))
		known = {name for _, name, _ in self.entries}
		for use in EXPRESSIONS:
			if use.split("(")[0] not in known:
				continue
			self.main.append(f'printf("const {use}\\t%lld\\n", (long long)({use}));')
		return "\n".join(self.top + ["int main(void)", "{"] + self.main +
				 ["return 0;", "}", ""])

	# One line about each name

	def tell_record(self, name, _):
		self.main.append(f'printf("record {name}\\tsize %zu align %zu\\n", '
				 f"sizeof({name}), _Alignof({name}));")

	def tell_field(self, name, type_text):
		record, member = name.split(".", 1)
		at = f"(({record} *)0)->{member}"
		size = "(size_t)0" if type_text.endswith("[]") else f"sizeof({at})"
		self.main.append(f'printf("field {name}\\t%zu size %zu %s\\n", '
				 f"offsetof({record}, {member}), {size}, "
				 f'SAME({at}, {type_text}) ? {quote(type_text)} : "?");')

	def tell_const(self, name, _):
		self.main.append(f'put_const("{name}", KIND({name}), '
				 f"(unsigned long long)({name}));")

	def tell_text(self, name, _):
		self.main.append(f'printf("text {name}\\t%s\\n", {name});')

	def tell_macro(self, name, _):
		self.main += [f"#ifdef {name}", f'printf("macro {name}\\tdefined\\n");', "#endif"]

	def tell_type(self, name, type_text):
		self.main.append(f'printf("type {name}\\tsize %zu %s\\n", sizeof({name}), '
				 f'SAME({name}, {type_text}) ? {quote(type_text)} : "?");')

	def tell_function(self, kind, name, type_text):
		self.main.append(f'printf("{kind} {name}\\t%s\\n", SAME({name}, {type_text}) ? '
				 f'{quote(type_text)} : "?");')

	def tell_extern(self, name, type_text):
		self.tell_function("extern", name, type_text)

	def tell_inline(self, name, type_text):
		self.tell_function("inline", name, type_text)

	# Slots and exported functions that report their arguments

	def stub(self, report, symbol, type_text, storage):
		ret, args = signature(type_text)
		if "..." in args:
			return False
		params = ", ".join(f"__typeof__({a}) a{i}" for i, a in enumerate(args)) or "void"
		body = [f'say("{report}(");']
		for i in range(len(args)):
			body += ['say(", ");'] if i else []
			body.append(f"say_word(WORD(a{i}));")
		body.append('say(")");')
		if report == "fi_ops.control":
			for command, arg in CONTROL.items():
				if command in self.consts:
					leaves = ", ".join(self.leaves(arg))
					body += [
						f"if (a1 == {command}) {{",
						f"static const struct leaf l[] = {{ {leaves} }};",
						"say_leaves(a2, l, sizeof(l) / sizeof(l[0])); }",
					]
			body += [
				"if (a1 == FI_ALIAS && !result)",
				"*((struct fi_alias *)a2)->fid = (struct fid *)&object[15];",
			]
		for i, a in enumerate(args):
			if a == "struct fid **":
				body.append(f"if (!result) *a{i} = (struct fid *)&object[15];")
		if ret.endswith("*"):
			body.append(f"return ({ret})arena[15].room;")
		elif ret != "void":
			body.append(f"return ({ret})result;")
		self.top += [f"{storage}{ret} {symbol}({params})\n{{"] + body + ["}"]
		return True

	def leaves(self, record, base="0"):
		"""Initializers of struct leaf for each scalar member, in order."""
		if record not in self.fields:
			return [f"{{ {base}, sizeof({record}) }}"]
		found = []
		for member, type_text in self.fields[record]:
			at = f"{base} + offsetof({record}, {member})"
			if type_text in self.fields:
				found += self.leaves(type_text, at)
			else:
				found.append(f"{{ {at}, sizeof({type_text}) }}")
		return found

	def define_stubs(self):
		for kind, name, type_text in self.entries:
			if kind == "extern":
				self.stub(name, name, type_text, "")
		for table in self.tables:
			short = table.split()[1]
			init = []
			for member, type_text in self.fields[table]:
				if "(*)(" in type_text and self.stub(f"{short}.{member}",
						f"{short}_{member}_stub", type_text, "static "):
					init.append(f".{member} = {short}_{member}_stub")
			self.top.append(f"static {table} {short}_table = {{ {', '.join(init)} }};")
		self.top.append("static void size_tables(int old)\n{")
		for table in self.tables:
			short = table.split()[1]
			self.top.append(f"{short}_table.size = "
					f"old ? sizeof(size_t) : sizeof({table});")
		self.top.append("}")

	def define_objects(self):
		"""obj_X(k): object k made into an X whose tables are the reporting ones."""
		for record in self.objects:
			short = record.split()[1]
			self.top.append(f"static {record} *make_{short}(int k)\n{{\n"
					f"{record} *p = ({record} *)&object[k];\n"
					"memset(&object[k], 0, sizeof(object[k]));")
			for member, type_text in self.fields[record]:
				ops = re.match(r"struct (fi_ops\w*) \*$", type_text)
				if ops and f"struct {ops.group(1)}" in self.fields:
					self.top.append(f"p->{member} = &{ops.group(1)}_table;")
				elif type_text == "struct fid":
					self.top.append(f"p->{member}.ops = &fi_ops_table;")
				elif re.match(r"(void \*|u?int\d*_t|size_t|fi_addr_t)$", type_text):
					self.top.append(f"p->{member} = ({type_text})"
							f"{constant(record + member)};")
			self.top.append("return p;\n}")

	# Inline calls

	def argument(self, i, type_text, zero):
		bare = re.sub(r"^const ", "", type_text)
		if bare in ("fid_t", "struct fid *"):
			return f"(struct fid *)make_fid_ep({i})"
		if bare.endswith(" *") and bare[:-2] in self.objects:
			return f"make_{bare[7:-2]}({i})"
		if bare.endswith("*"):
			return f"({type_text})arena[{i}].room"
		if zero and bare == "uint64_t":
			return "0"
		return f"({type_text}){0x11 * (i + 1)}"

	def call(self, name, ret, args):
		for variant in ("plain", "zero", "old"):
			values = ", ".join(self.argument(i, a, variant == "zero")
					   for i, a in enumerate(args))
			self.main += [
				f"size_tables({int(variant == 'old')});",
				f"result = {0 if variant == 'zero' else -77};",
				"make_fid_ep(15);",
			]
			if ret == "void":
				self.main.append(f"{name}({values});")
			else:
				self.main += [
					f"{{ {ret} ret = {name}({values});",
					'say(" -> "); say_word(WORD(ret)); }',
				]
			self.main.append(f'finish("{name}", "{variant}");')


def program(headers, entries):
	return Program(headers, entries).text()
