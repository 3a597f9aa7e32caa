# SPDX-License-Identifier: MIT
# Which targets are there? `make help` lists them. CMake (CMakePresets.json)
# does the building, scripts/ the rest. On a fresh Debian every target first
# installs what it needs, and says so; with DEPS=no it installs nothing.
#
#   V=1               show every command     JOBS=n          use n cores
#   DEPS=no           install no packages
#   FUZZ_SECONDS=60   per fuzz target        SOAK_SECONDS=60 for make soak
#   FUZZ_SEED=1       the same inputs again, as far as time allows
#   PREFIX, DESTDIR   where make install installs

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 60
V ?= 0
export JOBS FUZZ_SECONDS V DEPS

Q := $(if $(filter-out 0,$(V)),,@)
build := $(Q)scripts/build.sh
ctest := $(Q)ctest -j$(JOBS)

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build test-quick deb deb-here newcomer dist dist-check amalgamation test test-qemu test-musl test-valkey look-page picture-page run run-distributed bench bench-command bench-shared bench-sqlite bench-redis bench-kubernetes e2e-kubernetes soak fuzz mutants protocol docs cov lint format install deps clean help

build: ## build the library and the command in build/release
	$(Q)scripts/deps.sh build
	$(build) release -DWQ_TESTS=OFF
	@echo "built: the command build/release/tools/wq," \
	    "the libraries build/release/libwq*.so and libwq*.a"

test: ## build and run all tests, also against the installed library
	$(Q)scripts/deps.sh build test
	$(build) release -DWQ_TESTS=ON
	$(ctest) --preset release -L shipped
	$(build) dev
	$(ctest) --preset dev

test-quick: ## run the tests that need only a compiler and cmocka
	$(Q)scripts/deps.sh quick
	$(build) quick
	$(ctest) --preset quick
	@echo "test-quick left out (make test runs them): the command, queues in" \
	    "files and servers, other backends, the model, refused memory," \
	    "stress, races, system calls, metrics, installed programs," \
	    "examples, documents, house checks"

test-qemu: ## run the tests for ARCHES (i386 aarch64 s390x armel) in qemu
	$(Q)scripts/deps.sh build qemu
	$(Q)scripts/platforms.sh $(or $(ARCHES),i386 aarch64 s390x armel)

test-musl: ## run the tests with musl instead of glibc
	$(Q)scripts/deps.sh build musl
	$(Q)scripts/platforms.sh musl

test-valkey: ## run the tests of queues in a server with Valkey
	$(Q)scripts/deps.sh build test
	$(build) dev
	$(Q)scripts/valkey.sh -j$(JOBS)

test-%: ## run the tests of another preset: test-asan test-tsan test-clang ...
	$(Q)scripts/deps.sh build test $(filter clang,$*)
	$(build) $* -DWQ_TESTS=ON
	$(ctest) --preset $* $(CTEST_ARGS)

look-page: build ## draw the live page in many states into build/look (needs chromium)
	$(Q)WQ_PROGRAM=build/release/tools/wq python3 -B tests/cli/look.py build/look $(ARGS)

picture-page: build ## draw the live page of the guide (needs chromium)
	$(Q)WQ_PROGRAM=build/release/tools/wq python3 -B tests/cli/picture.py $(ARGS)

run: build ## a short demo of the program wq run
	$(Q)PATH="$(CURDIR)/build/release/tools:$$PATH" \
	    examples/command/demo.sh $(ARGS)

run-distributed: build ## a queue in a Redis server whose worker and server are killed
	$(Q)PATH="$(CURDIR)/build/release/tools:$$PATH" \
	    examples/command/distributed.sh $(or $(ARGS),2000 --listen=0)

run-%: build ## run an example: run-durable run-controller run-workers run-hello ...
	$(Q)build/release/examples/$* $(ARGS)

bench: ## compare speed with client-go and others; see docs/benchmarks
	$(Q)scripts/deps.sh build bench
	$(build) release -DWQ_TESTS=OFF
	$(Q)scripts/bench.sh $(ARGS)
	$(Q)scripts/bench-sqlite.sh
	$(Q)scripts/bench-redis.sh

bench-command: build ## compare the command's speed with xargs and parallel
	$(Q)scripts/deps.sh bench
	$(Q)bench/command.sh build/release/tools/wq $(ARGS)

bench-shared: build ## measure the batches and wake-ups of shared queues
	$(Q)build/release/bench/bench_shared $(ARGS)

bench-sqlite: build ## compare queues in SQLite files with SQLite and other queues
	$(Q)scripts/deps.sh bench
	$(Q)scripts/bench-sqlite.sh $(ARGS)

bench-redis: build ## compare queues in Redis with its lists and other queues
	$(Q)scripts/deps.sh bench
	$(Q)scripts/bench-redis.sh $(ARGS)

bench-kubernetes: ## compare the Kubernetes controller with one in Go
	$(Q)scripts/deps.sh build e2e
	$(build) release -DWQ_TESTS=OFF
	$(Q)scripts/e2e_kubernetes.sh bench

e2e-kubernetes: ## run the Kubernetes controller against a real API server
	$(Q)scripts/deps.sh build e2e
	$(build) release -DWQ_TESTS=OFF
	$(Q)scripts/e2e_kubernetes.sh test

soak: ## use queues for SOAK_SECONDS each, and look for leaks and lost keys
	$(Q)scripts/deps.sh build test
	$(build) release -DWQ_TESTS=ON
	$(Q)build/release/tests/soak $(SOAK_SECONDS)
	$(Q)WQ_STRESS_SECONDS=$(SOAK_SECONDS) build/release/tests/stress_queue
	$(Q)WQ_POWER_LOSSES=1000 build/release/tests/sqlite_power
	$(Q)build/release/tests/sqlite_chaos process $(SOAK_SECONDS)
	$(Q)build/release/tests/sqlite_chaos lease $(SOAK_SECONDS)
	$(Q)build/release/tests/redis_chaos server $(SOAK_SECONDS)
	$(Q)build/release/tests/redis_chaos hosts $(SOAK_SECONDS) || [ $$? = 77 ]
	$(Q)build/release/tests/redis_chaos server $(SOAK_SECONDS) 3
	$(Q)WQ_STEPS=2100 build/release/tests/model_differential_redis
	$(Q)WQ_RECONNECTS=10000 build/release/tests/redis_link \
	    reconnects_leave_no_descriptor_thread_or_memory

fuzz: ## run every fuzz target for FUZZ_SECONDS
	$(Q)scripts/deps.sh build fuzz
	$(Q)scripts/fuzz.sh

mutants: ## break one mechanism at a time; a test must fail
	$(Q)scripts/deps.sh build test
	$(Q)scripts/mutants.sh $(ARGS)

protocol: ## check the models of the lock and of sleeping; ARGS=--quick
	$(Q)scripts/deps.sh build protocol
	$(Q)tests/protocol/run.sh $(ARGS)

docs: ## make the site of the documentation in build/docs
	$(Q)scripts/deps.sh docs
	$(Q)python3 -B scripts/docs/site.py build/docs

cov: test-cov ## print which share of lines and branches the tests reach
	$(Q)scripts/cov.sh

lint: ## check layout, analyse C and scripts, run the house tests
	$(Q)scripts/deps.sh build test lint
	$(build) dev
	$(Q)scripts/lint.sh
	$(if $(filter true,$(CI)),,$(ctest) --preset dev -L house)

format: ## format all C files with clang-format
	$(Q)scripts/deps.sh lint
	$(Q)scripts/files.sh '*.[ch]' '*.cc' | xargs clang-format -i

dist: ## make the tarballs of a release, reproducibly, in build/dist
	$(Q)scripts/deps.sh dist
	$(Q)scripts/dist.sh

dist-check: dist ## build and test the tarball, without git
	$(Q)scripts/deps.sh build test
	$(Q)scripts/dist-check.sh

deb: ## build Debian packages in a clean chroot, install and test them
	$(Q)scripts/deps.sh dist deb
	$(Q)scripts/deb.sh

deb-here: ## build Debian packages without a chroot, and check them with lintian
	$(Q)scripts/deps.sh build dist deb
	$(Q)scripts/deb.sh --here

newcomer: ## follow the README in a clean chroot, from clone to tests
	$(Q)scripts/deps.sh dist deb
	$(Q)scripts/newcomer.sh $(ARGS)

amalgamation: ## write the library as two files, build/single/wq.[ch]
	$(Q)scripts/deps.sh dist
	$(Q)python3 -B scripts/amalgamate.py build/single
	$(Q)rm -r build/single/wq
	@echo "amalgamation: build/single/wq.c and wq.h"

install: ## install to PREFIX (/usr/local) under DESTDIR
	$(Q)scripts/deps.sh build
	$(build) release -DWQ_TESTS=OFF "-DCMAKE_INSTALL_PREFIX=$(PREFIX)"
	$(Q)rm -f build/release/install_manifest.txt # of root, after sudo
	$(Q)cmake --install build/release

deps: ## install the tools of all targets but test-qemu, test-musl, *-kubernetes
	$(Q)scripts/deps.sh

clean: ## remove build/
	$(Q)rm -rf build

help: ## list the targets
	@sed -n '6,9s/^# *//p' Makefile
	@awk -F ':.*## ' '/^[a-z0-9%-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' \
	    Makefile
