# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# A thin front for meson. Each target first installs the Debian packages it
# needs and that are missing (scripts/deps; docs/dependencies.md says why each).
#
#   make            build into $(BUILD)
#   make demo       NetPIPE under Open MPI on one host and on two, and its table
#   make demo-devices  a controller, three borrowers at a time, their table and a drawing of them
#   make check      every test
#   make storm ROUNDS=N  N rounds of each kind of change of memory that a device transfers, and
#                   of registering memory whose pages are taken away; at nice 19
#   make bench      the interleaved measurements of bench/run, and their bars
#   make install PREFIX=DIR
#   make asan tsan  the unit and stress suites under the sanitizers
#   make check-clang the unit and stress suites of a build by clang
#   make check-arm64 a build for aarch64 by gcc and clang, and the unit and model suites
#                   in qemu-user
#   make check-vm   every job of tests/vm, in virtual machines, one of them for aarch64
#   make soak-kofi  the jobs of the kernel's modules, which are loaded and unloaded 1,000 times
#   make soak       the jobs on a kernel that looks for errors (KASAN, lockdep, kmemleak, failslab), which is built
#                   once, in 10 to 25 minutes of two processors
#   make check-user the suites that need no privilege as an ordinary user
#   make format     rewrite the sources in the house style
#   make tidy       clang-tidy over the sources

BUILD  ?= build
PREFIX ?= /usr/local
SETUP  ?=
TESTARGS ?=
ROUNDS ?= 1000000
DESTDIR ?=

# A test's limit ends it when it hangs. It is for a machine that does nothing else; here a test may
# take several times as long, beside others and on a shared host.
MESON_TEST = meson test --no-rebuild --print-errorlogs --timeout-multiplier 4

# meson's: how many tests run at a time. Many wait more than they compute.
export MESON_TESTTHREADS ?= $(shell echo $$(($$(nproc) * 2)))

BUILD_PKGS  = gcc libc6-dev meson ninja-build pkg-config libcmocka-dev \
	      libjansson-dev libjemalloc-dev libcurl4-openssl-dev libssl-dev
MPI_PKGS    = openmpi-bin netpipe-openmpi libfabric1 libfabric-bin iproute2 \
	      util-linux python3
CHECK_PKGS  = $(MPI_PKGS) hpcc python3-mpi4py python3-numpy python3-distutils \
	      libfabric-dev libopenmpi-dev g++ valgrind groff-base spin liburing-dev redis-server \
	      lammps qemu-system-x86 etcd-server $(DEVICE_PKGS) python3-libnbd
BENCH_PKGS  = $(MPI_PKGS) libfabric-dev libucx-dev libopenmpi-dev mpich libmpich-dev liburing-dev \
	      $(DEVICE_PKGS) qemu-utils
DEVICE_PKGS = fio nbdkit nbdkit-plugin-dev
CROSS_PKGS  = gcc-aarch64-linux-gnu libc6-dev-arm64-cross libcmocka-dev:arm64 \
	      libjansson-dev:arm64 qemu-user
DEBUG_PKGS  = flex bison bc libelf-dev kmod xz-utils perl
VM_PKGS     = qemu-system-x86 qemu-system-arm make util-linux python3 sparse
STYLE_PKGS  = clang-format clang-tidy clang

SOURCES = git ls-files '*.c' '*.h'
DEPS    = scripts/deps

# What weft_fio.so is built with; where that can't be had, it is left out.
FETCH_FIO = scripts/fetch-source fio $(BUILD)/fio-source || [ $$? -eq 77 ]

all: build

.PHONY: all build setup demo demo-devices check storm bench install asan tsan check-clang check-arm64 \
	check-vm soak-kofi soak check-user format format-check tidy clean

$(BUILD)/build.ninja:
	@$(DEPS) $(BUILD_PKGS)
	meson setup $(SETUP) $(BUILD)

# What was installed or fetched after the last configuration may be what an optional part needs.
setup: $(BUILD)/build.ninja
	@for new in /var/lib/dpkg/status $(BUILD)/fio-source/.fetched; do \
		[ ! $$new -nt $(BUILD)/build.ninja ] || exec meson setup --reconfigure $(SETUP) $(BUILD); \
	done

build: setup
	ninja -C $(BUILD)

demo:
	@$(DEPS) $(BUILD_PKGS) $(MPI_PKGS)
	@$(MAKE) --no-print-directory build
	scripts/demo $(BUILD)

demo-devices:
	@$(DEPS) $(BUILD_PKGS) liburing-dev util-linux python3 $(DEVICE_PKGS)
	@$(FETCH_FIO)
	@$(MAKE) --no-print-directory build
	scripts/demo-devices $(BUILD) $(BUILD)/devices.svg

check:
	@$(DEPS) $(BUILD_PKGS) $(CHECK_PKGS)
	@$(FETCH_FIO)
	@$(MAKE) --no-print-directory build
	$(MESON_TEST) -C $(BUILD) $(TESTARGS)

STORMS = munmap mremap MADV_DONTNEED MADV_FREE MADV_REMOVE MAP_FIXED brk

storm:
	@$(DEPS) $(BUILD_PKGS) liburing-dev
	@$(MAKE) --no-print-directory build
	for kind in $(STORMS); do nice -n 19 $(BUILD)/tests/mem/storm $(ROUNDS) 1 $$kind || exit; done
	STORM_ROUNDS=$(ROUNDS) nice -n 19 $(BUILD)/mem/mem_storm_test

bench:
	@$(DEPS) $(BUILD_PKGS) $(BENCH_PKGS)
	@$(FETCH_FIO)
	@$(MAKE) --no-print-directory build
	bench/run $(BUILD)

install: setup
	meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX)) -Dlibdir=lib
	ninja -C $(BUILD)
	DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild
	@scripts/after-install $(abspath $(PREFIX))

asan:
	@$(DEPS) $(BUILD_PKGS)
	scripts/sanitize asan $(BUILD)-asan $(TESTARGS)

tsan:
	@$(DEPS) $(BUILD_PKGS) util-linux
	scripts/sanitize tsan $(BUILD)-tsan $(TESTARGS)

check-clang:
	@$(DEPS) $(BUILD_PKGS) $(CHECK_PKGS) clang
	[ -f $(BUILD)-clang/build.ninja ] || CC=clang meson setup $(SETUP) $(BUILD)-clang
	ninja -C $(BUILD)-clang
	$(MESON_TEST) -C $(BUILD)-clang --suite unit --suite stress $(TESTARGS)

check-arm64:
	@$(DEPS) $(BUILD_PKGS) $(CROSS_PKGS) clang python3
	scripts/check-arm64 $(BUILD)-arm64 $(TESTARGS)

check-vm:
	@$(DEPS) $(BUILD_PKGS) $(CROSS_PKGS)
	@$(DEPS) $(VM_PKGS) || echo "jobs are skipped that need what is missing"
	@$(MAKE) --no-print-directory build
	scripts/build-arm64 $(BUILD)-arm64
	tests/vm/run --all --build $(BUILD) --arm64 $(BUILD)-arm64 \
		--log $(BUILD)-vm/meson-logs/testlog.json || [ $$? -eq 77 ]

soak-kofi:
	@$(DEPS) $(VM_PKGS)
	@$(MAKE) --no-print-directory build
	WEFT_KOFI_ROUNDS=1000 tests/vm/run --build $(BUILD) kofi kofi-sockets kofi-ibverbs

soak:
	@$(DEPS) $(VM_PKGS) $(DEBUG_PKGS)
	@$(MAKE) --no-print-directory build
	tests/vm/run --build $(BUILD) --debugging

check-user:
	@$(DEPS) $(BUILD_PKGS) $(CHECK_PKGS)
	@$(MAKE) --no-print-directory build
	scripts/check-as-user $(BUILD) $(BUILD)-user

format:
	@$(DEPS) $(STYLE_PKGS)
	$(SOURCES) | xargs clang-format -i

format-check:
	@$(DEPS) $(STYLE_PKGS)
	$(SOURCES) | xargs clang-format --dry-run --Werror

tidy: setup
	@$(DEPS) $(STYLE_PKGS)
	$(SOURCES) | grep '\.c$$' | grep -v -e '^kernel/' -e '^bench/mpi/' -e '^tests/vm/module/' -e '^tests/vm/kofi/' | \
		xargs clang-tidy --quiet -p $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-clang \
		$(BUILD)-arm64 $(BUILD)-arm64-clang $(BUILD)-arm64-jemalloc $(BUILD)-vm $(BUILD)-user
