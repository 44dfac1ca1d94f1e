# make help. Nothing is needed first but Python 3.11 or newer, make and git, and a package index for pip;
# with a C++20 compiler the native engine is built too.
#
# The install is editable: Python files are used where they lie, while the compiled module lives inside the
# virtual environment, so several of them (Python versions, sanitizers) share one checkout. Nothing is rebuilt on
# import: make compares times and runs pip again when cpp/ changed; seconds, as the build folder is kept.

VENV  ?= .venv
BUILD ?= build/$(notdir $(VENV))
BIN   := $(VENV)/bin
ARGS  ?=

ifeq ($(origin CXX),default)
CXX := c++
endif

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	echo $$python && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
PYTEST := $(BIN)/python -m pytest
RUN_TESTS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PYTEST) -n auto --dist worksteal

CXX_SOURCES := $(wildcard cpp/*.[ch]pp cpp/*/*.[ch]pp cpp/*/*/*.[ch]pp)
CXX_FILES := $(CXX_SOURCES) $(wildcard benchmarks/*.[ch]pp tests/*/*.[ch]pp)

# -Werror is for our own machines: the warnings of a compiler unknown to us must not stop anyone's first test.
CONFIG ?= $(if $(CI),-C cmake.define.ONKEL_WERROR=ON)

ATTACK = PYTHONPATH=tests OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -W ignore

.PHONY: help demo test test-all attack lint format stub bench docs sanitize compilers clean
.DEFAULT_GOAL := help

help:  ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: $(VENV)/.demo  ## race the learners over four embedded streams; the report is demo.html
	$(BIN)/onkel race demo --report demo.html

test: $(VENV)/.test  ## the quick tests, a few minutes; ARGS="-k hinge" for some of them
	$(RUN_TESTS) -m "not slow" $(ARGS)

test-all: test  ## the quick tests, the slow ones, and those of rounding as other processors run them
	$(RUN_TESTS) -m slow $(ARGS)
	$(if $(ARGS),,$(BIN)/python tests/every_processor.py)

attack: $(VENV)/.test  ## hostile files, calls and kills; ARGS="--seconds 600 --seed 7" or "--models 300000"
	$(ATTACK) tests/attack/attacker.py $(ARGS)

lint: $(VENV)/.lint  ## style, types, imports and includes, stub
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tests/test_ladder.py
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)
	$(call with_native,$(STUBGEN) -o $(BUILD)/_core.pyi && diff -u src/onkel/native/_core.pyi $(BUILD)/_core.pyi)

format: $(VENV)/.lint  ## format Python and C++ as lint requires
	$(BIN)/ruff check --fix --exit-zero --quiet
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CXX_FILES)

stub: $(VENV)/.lint  ## write src/onkel/native/_core.pyi again
	$(call with_native,$(STUBGEN) -o src/onkel/native/_core.pyi)

bench: $(VENV)/.all  ## measure against plain C++, scikit-learn and river
	$(BIN)/python benchmarks/run.py $(ARGS)

docs: $(VENV)/.docs  ## the manual, in site/
	$(BIN)/zensical build --clean --strict

# Python is not built with the sanitizers, so their runtime is loaded before it; libstdc++ too, or exceptions
# could not be followed. One process and no capture: a report must not be lost.
sanitize: ASAN = $(shell $(CXX) -print-file-name=libasan.so)
sanitize:  ## the suite under the address and undefined-behaviour sanitizers
	$(MAKE) VENV=.venv-sanitize .venv-sanitize/.test CONFIG="-C cmake.build-type=Debug \
	    -C cmake.define.ONKEL_SANITIZE=ON -C cmake.define.ONKEL_WERROR=ON"
	@test -e "$(ASAN)" || { echo "make sanitize needs GCC and its libasan"; exit 1; }
	LD_PRELOAD="$(ASAN) $(shell $(CXX) -print-file-name=libstdc++.so.6)" \
	    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc OMP_NUM_THREADS=1 \
	    .venv-sanitize/bin/python -m pytest --capture=sys -m "not slow" $(ARGS)

# Each has a build folder of its own. The headers of the Python here do for aarch64, too.
COMPILERS := g++ clang++ aarch64-linux-gnu-g++
AARCH64 := -D CMAKE_SYSTEM_NAME=Linux -D CMAKE_SYSTEM_PROCESSOR=aarch64 -D CMAKE_EXE_LINKER_FLAGS=-static \
	-D CMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64
compilers: $(VENV)/.tools  ## the C++ by GCC, by clang and for aarch64: no warnings, vector code equals plain loops
	@absent=; for compiler in $(COMPILERS); do if command -v $$compiler >/dev/null; then \
	    $(MAKE) --no-print-directory compile-$$compiler || exit 1; else absent="$$absent $$compiler"; fi; done; \
	    command -v qemu-aarch64 >/dev/null || absent="$$absent qemu-aarch64"; \
	    echo "not here, and so not tried:$${absent:- none}"

compile-%:
	$(BIN)/cmake -S . -B build/$* -G Ninja -D CMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -D CMAKE_CXX_COMPILER=$* \
	    -D CMAKE_BUILD_TYPE=Release -D ONKEL_WERROR=ON -D ONKEL_CHECK=ON $(if $(filter aarch64%,$*),$(AARCH64)) \
	    -D Python_EXECUTABLE=$(abspath $(BIN)/python) -D nanobind_DIR="$$($(BIN)/python -m nanobind --cmake_dir)"
	$(BIN)/cmake --build build/$*
	$(if $(filter aarch64%,$*),@! command -v qemu-aarch64 >/dev/null ||) $(BIN)/ctest --test-dir build/$* --output-on-failure

clean:  ## remove environments and everything built
	rm -rf .venv .venv-sanitize build dist site .cache .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

STUBGEN = $(BIN)/python -m nanobind.stubgen --quiet -m onkel.native._core
with_native = @if $(BIN)/python -W ignore -c 'import onkel.native._core' 2>/dev/null; then set -x; $(1); \
	else echo 'no native module here: its stub is neither compared nor written'; fi

# --- environments: .venv/.NAME says that onkel with the extra NAME is installed

# The build tools live in the environment (no build isolation), so that a second build is an incremental one.
$(VENV)/.tools: pyproject.toml
	@test -n "$(PYTHON)" || { echo "onkel needs Python 3.11 or newer, with venv (Debian: python3-venv);" \
	    "if it is not on the PATH: make PYTHON=/path/to/python3 ..."; exit 1; }
	test -x $(BIN)/pip || { $(PYTHON) -m venv $(VENV) && $(PIP) --upgrade pip; }
	$(PIP) cmake ninja $$($(BIN)/python -c \
	    'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')
	@touch $@

# Where a compiler works, a failure to build is an error; where none does, pip installs the Python engine alone.
PROBE = printf '\#include <Python.h>\n\#include <concepts>\nint main() {}\n' | $(CXX) -std=c++20 -fsyntax-only \
	-I"$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')" -x c++ - 2>/dev/null

$(VENV)/.%: $(VENV)/.tools CMakeLists.txt $(CXX_SOURCES)
	@if $(PROBE); then export ONKEL_REQUIRE_NATIVE=1; \
	else echo "no C++20 compiler or no Python headers: the Python engine alone (once they are there: make clean)"; \
	fi; \
	set -x; $(PIP) --no-build-isolation -C build-dir=$(BUILD) $(CONFIG) -e '.[$*]'
	@touch $@
