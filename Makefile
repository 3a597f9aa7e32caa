# SPDX-License-Identifier: MIT
# What can I ask of this project? `make help` says. A door handle: the building
# is done by CMake (CMakePresets.json), the rest by scripts/. On a fresh Debian
# every target first installs what it needs.
#
#   V=1               show every command     JOBS=n          use n cores
#   FUZZ_SECONDS=60   each target            SOAK_SECONDS=60 the stress tests
#   PREFIX, DESTDIR   where `make install` puts things

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 60
V ?= 0
export JOBS FUZZ_SECONDS V

Q := $(if $(filter-out 0,$(V)),,@)
build := $(Q)scripts/build.sh
ctest := $(Q)ctest -j$(JOBS)

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build test test-qemu test-musl run bench bench-command soak fuzz mutants protocol cov lint format install deps clean help

build: ## build library and command, as shipped, in build/release
	$(Q)scripts/deps.sh build
	$(build) release -DWQ_TESTS=OFF

test: ## build and run all tests, then try out what would be shipped
	$(Q)scripts/deps.sh build test
	$(build) release -DWQ_TESTS=ON
	$(ctest) --preset release -L shipped
	$(build) dev
	$(ctest) --preset dev

test-qemu: ## run the tests on ARCHES (i386 aarch64 s390x armel), by qemu
	$(Q)scripts/deps.sh build qemu
	$(Q)scripts/platforms.sh $(or $(ARCHES),i386 aarch64 s390x armel)

test-musl: ## run the tests with musl instead of glibc
	$(Q)scripts/deps.sh build musl
	$(Q)scripts/platforms.sh musl

test-%: ## run the tests of another preset: test-asan test-tsan test-clang ...
	$(Q)scripts/deps.sh build test $(filter clang,$*)
	$(build) $* -DWQ_TESTS=ON
	$(ctest) --preset $* $(CTEST_ARGS)

run: build ## a ten-second demo of the command
	$(Q)PATH="$(CURDIR)/build/release/tools:$$PATH" \
	    examples/command/demo.sh $(ARGS)

run-%: build ## run an example: run-controller run-workers run-hello ...
	$(Q)build/release/examples/$* $(ARGS)

bench: ## measure, beside client-go and others; see docs/benchmarks
	$(Q)scripts/deps.sh build bench
	$(build) release -DWQ_TESTS=OFF
	$(Q)scripts/bench.sh $(ARGS)

bench-command: build ## measure the command beside xargs and parallel
	$(Q)scripts/deps.sh bench
	$(Q)bench/command.sh build/release/tools/wq $(ARGS)

soak: ## stress the optimised library for SOAK_SECONDS
	$(Q)scripts/deps.sh build test
	$(build) release -DWQ_TESTS=ON
	$(Q)WQ_STRESS_SECONDS=$(SOAK_SECONDS) build/release/tests/stress_queue

fuzz: ## fuzz every target for FUZZ_SECONDS
	$(Q)scripts/deps.sh build fuzz
	$(Q)scripts/fuzz.sh

mutants: ## break the mechanisms one by one and see the tests fail
	$(Q)scripts/deps.sh build test
	$(Q)scripts/mutants.sh $(ARGS)

protocol: ## check models of the lock and of sleeping with spin; ARGS=--quick
	$(Q)scripts/deps.sh build protocol
	$(Q)tests/protocol/run.sh $(ARGS)

cov: test-cov ## say which lines the tests reach
	$(Q)scripts/cov.sh

lint: ## check layout, analyse C and scripts, check the house rules
	$(Q)scripts/deps.sh build test lint
	$(build) dev
	$(Q)scripts/lint.sh
	$(ctest) --preset dev -L house

format: ## lay out all C as .clang-format says
	$(Q)scripts/deps.sh lint
	$(Q)scripts/files.sh '*.[ch]' '*.cc' | xargs clang-format -i

install: ## install to PREFIX (/usr/local), below DESTDIR if set
	$(Q)scripts/deps.sh build
	$(build) release -DWQ_TESTS=OFF "-DCMAKE_INSTALL_PREFIX=$(PREFIX)"
	$(Q)cmake --install build/release

deps: ## install the tools of all targets but test-qemu and test-musl
	$(Q)scripts/deps.sh

clean: ## remove all that was built
	$(Q)rm -rf build

help: ## this list
	@sed -n '6,8s/^# *//p' Makefile
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' \
	    Makefile
