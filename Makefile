# `make run` and `make test` do all their own set-up; `make help` lists the rest.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?= $(shell command -v python3.11 || command -v python3)
NPM ?= npm
BIN := .venv/bin
# What is run once more through relay and daemon.
BY_DAEMON := tests/scenarios tests/acpx tests/interop tests/matrix
# The stamps stand for "the runtime is installed", "the dev extras too", "the real parts too".
RUNTIME := .venv/.runtime
DEV := .venv/.dev
REAL_PARTS := .tools/.installed
# Four processes on two cores: the tests wait for servers and clients more than half of their
# time. Whole files in the order of their names, so that the long ones come before the units.
SIDE_BY_SIDE := -n 4 --dist loadfile --no-loadscope-reorder
PIP_INSTALL := tools/venv "$(PYTHON)" .venv --quiet
# Of others we install exact files, and run no code of theirs at that.
LOCKED := $(PIP_INSTALL) --require-hashes --only-binary :all: --requirement
LOCK := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --group build \
  --generate-hashes --no-annotate --custom-compile-command 'make lock' $(ARGS)

.PHONY: help setup dev run test test-long unit lint format tools systemd lock record bench stress matrix soak drift inventory clean

help:
	@echo 'run     a conversation through the adapter on the stub server (REAL=1: on the real one)'
	@echo 'test    everything that has to hold: lint, unit tests, scenarios on stub and real server'
	@echo 'test-long  every case of every scenario on the real server, too'
	@echo 'unit    the tests that need no server'
	@echo 'lint    ruff and mypy;  format: let ruff write its format'
	@echo 'setup   .venv with $(BIN)/opencode-acp;  dev: the test tools too'
	@echo 'tools   the real OpenCode, Node and acpx into .tools (Linux x86-64)'
	@echo 'lock    the packages of Python and the real parts, pinned anew by hash (ARGS=--upgrade)'
	@echo 'systemd  what the tests of deploy/ want of systemd (Debian, as root)'
	@echo 'record  recordings of the real server for the unit tests'
	@echo 'stress  random schedules with cut feeds on the real server (ARGS="--schedules 200 --seed 1")'
	@echo 'matrix  every fault in every phase of a turn, on both servers: docs/fault-matrix.md'
	@echo 'soak    50 clients under faults for ten minutes (ARGS="--seconds 60 --users 20")'
	@echo 'drift   routes and scenarios on a server that runs here: URL=... ARGS="--password-file FILE"'
	@echo 'inventory  what is kept and which routes are used: contract/INVENTORY.md'
	@echo 'bench   the benchmarks;  clean: remove .venv, .tools and the caches'

setup: $(RUNTIME)

dev: $(DEV)

run: $(RUNTIME) $(if $(REAL),$(REAL_PARTS))
	$(BIN)/python -m stubs.demo

test: $(DEV) $(REAL_PARTS) systemd lint
	$(BIN)/pytest $(SIDE_BY_SIDE) -m 'not long'
	AGENT_TRANSPORT=daemon $(BIN)/pytest $(SIDE_BY_SIDE) -m 'not long' $(BY_DAEMON)

test-long: $(DEV) $(REAL_PARTS) systemd
	$(BIN)/pytest $(SIDE_BY_SIDE)
	AGENT_TRANSPORT=daemon $(BIN)/pytest $(SIDE_BY_SIDE) $(BY_DAEMON)

unit: $(DEV)
	$(BIN)/pytest tests/unit

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

tools: $(REAL_PARTS)

# The Debian package, where its programs are missing and we may install it.
systemd:
	tools/systemd

record: $(DEV) $(REAL_PARTS)
	$(BIN)/python -m tests.record

bench: $(DEV) $(REAL_PARTS)
	@set -e; for file in tests/bench/bench_*.py; do \
	  echo "$$file"; $(BIN)/python -m "tests.bench.$$(basename "$$file" .py)"; done

stress: $(DEV) $(REAL_PARTS)
	$(BIN)/python -m tests.stress $(ARGS)

matrix: $(DEV) $(REAL_PARTS)
	$(BIN)/python -m tests.matrix

soak: $(DEV)
	$(BIN)/python -m tests.soak $(ARGS)

drift: $(DEV)
	$(BIN)/python -m tests.drift $(URL) $(ARGS)

inventory: $(DEV)
	$(BIN)/python -m tests.inventory

$(RUNTIME): pyproject.toml requirements.txt scripts/opencode-acp tools/venv
	$(LOCKED) requirements.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q adapter contract
	@touch $@

$(DEV): $(RUNTIME) requirements-dev.txt
	$(LOCKED) requirements-dev.txt
	@touch $@

$(REAL_PARTS): tools/package.json tools/package-lock.json tools/.npmrc
	@[ "$$(uname -s) $$(uname -m)" = "Linux x86_64" ] || { \
	  echo 'The real OpenCode, Node and acpx of the tests are only to be had on Linux x86-64.' >&2; \
	  exit 1; }
	@command -v $(NPM) >/dev/null || { \
	  echo 'npm is missing; on Debian: apt-get install npm' >&2; exit 1; }
	@mkdir -p .tools
	cp tools/package.json tools/package-lock.json tools/.npmrc .tools/
	cd .tools && $(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# What the lock file of npm keeps, and why: tools/trim_lock.py. ARGS=--upgrade takes newer packages
# of Python; without it those that are locked stay.
lock: $(DEV)
	$(LOCK) --extra dev --output-file requirements-dev.txt
	$(LOCK) --constraint requirements-dev.txt --output-file requirements.txt
	cd tools && $(NPM) install --package-lock-only --ignore-scripts --no-audit --no-fund
	$(PYTHON) tools/trim_lock.py tools/package-lock.json

clean:
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis
