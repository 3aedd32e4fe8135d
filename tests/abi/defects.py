#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Put defects into a copy of our headers, and see that the comparison finds each.

Guards the tests themselves: a probe that prints nothing would agree with
everything. Ends with 0 or 1.
"""

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile

import abi

TABLE = os.path.join(abi.HERE, "table-2.x.txt")

# What is wrong, file, text, its replacement, and a line that must be reported, or
# None where the probe can't even be compiled.
DEFECTS = [
	("a constant has another value", "fabric.h",
	 "#define FI_SOURCE\t\t(1ULL << 57)", "#define FI_SOURCE\t\t(1ULL << 56)",
	 "differs: const FI_SOURCE\n"),
	("an enumerator was put in", "fabric.h",
	 "FI_CLASS_CQ,", "FI_CLASS_NEW,\n\tFI_CLASS_CQ,", "differs: const FI_CLASS_CNTR\n"),
	("two members changed places", "fabric.h",
	 "size_t cq_cnt;\n\tsize_t ep_cnt;", "size_t ep_cnt;\n\tsize_t cq_cnt;",
	 "differs: field struct fi_domain_attr.cq_cnt\n"),
	("a member is narrower", "fi_eq.h",
	 "\tfi_addr_t src_addr;", "\tuint32_t src_addr;",
	 "differs: field struct fi_cq_err_entry.src_addr\n"),
	("a struct grew", "fabric.h",
	 "\tvoid *internal[4];", "\tvoid *internal[5];", "grown: record struct fi_context\n"),
	("two slots of the same type changed places", "fi_eq.h",
	 "\tint (*add)(struct fid_cntr *cntr, uint64_t value);\n"
	 "\tint (*set)(struct fid_cntr *cntr, uint64_t value);",
	 "\tint (*set)(struct fid_cntr *cntr, uint64_t value);\n"
	 "\tint (*add)(struct fid_cntr *cntr, uint64_t value);",
	 "differs: field struct fi_ops_cntr.add\n"),
	("a slot returns another type", "fi_domain.h",
	 "int (*remove)(struct fid_av", "ssize_t (*remove)(struct fid_av",
	 "differs: field struct fi_ops_av.remove\n"),
	("an inline call takes another slot", "fi_tagged.h",
	 "ep->tagged->sendmsg(", "ep->tagged->recvmsg(", "differs: call fi_tsendmsg plain\n"),
	("an inline call swaps arguments", "fi_rma.h",
	 "ep->rma->write(ep, buf, len, desc, dest_addr, addr, key,",
	 "ep->rma->write(ep, buf, len, desc, dest_addr, key, addr,",
	 "differs: call fi_write plain\n"),
	("a slot that old tables lack is called unchecked", "fi_cm.h",
	 "if (!FI_CHECK_OP(ep->cm, struct fi_ops_cm, join))", "if (0)",
	 "differs: call fi_join old\n"),
	("an exported call returns another type", "fabric.h",
	 "uint32_t fi_version(void)", "uint64_t fi_version(void)", None),
	("a name is missing", "fi_errno.h", "FI_ENORX,", "FI_ENORX_,", None),
]


def copy_with(where, file, old, new):
	include = os.path.join(where, "include")
	shutil.copytree(abi.OURS, include)
	path = os.path.join(include, "rdma", file)
	with open(path, encoding="utf-8") as source:
		text = source.read()
	if old not in text:
		raise ValueError(f"{file} has no '{old}' any more: renew defects.py")
	with open(path, "w", encoding="utf-8") as out:
		out.write(text.replace(old, new, 1))
	return include


def reported(include):
	"""What the comparison of these headers with the table says."""
	said = io.StringIO()
	try:
		with contextlib.redirect_stdout(said):
			abi.compare("2.x", abi.read_table(TABLE), abi.dump("2.x", include))
	except abi.DoesNotCompile:
		return None
	return said.getvalue()


def main():
	bad = 0
	for what, file, old, new, expected in DEFECTS:
		with tempfile.TemporaryDirectory() as where:
			said = reported(copy_with(where, file, old, new))
		found = said is None if expected is None else said and expected in said
		print(f"{'found' if found else 'NOT FOUND'}: {what}")
		bad += not found
	with tempfile.TemporaryDirectory() as where:
		include = copy_with(where, "fi_cm.h", "#include <rdma/fi_endpoint.h>", "")
		script = os.path.join(abi.HERE, "alone.py")
		alone = subprocess.run([sys.executable, script, include],
				       capture_output=True, text=True, timeout=120)
		found = alone.returncode == 1 and "fi_cm.h does not compile alone" in alone.stdout
		print(f"{'found' if found else 'NOT FOUND'}: a header needs another before it")
		bad += not found
	return 1 if bad else 0


sys.exit(main())
