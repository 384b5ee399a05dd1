# Everything here makes its own virtual environment on a machine with Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test lint check bench verify fuzz planted planted-sample coverage experiments reproduce peers federation docs gallery sandbox clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "make %-15s %s\n", $$1, $$2 }'

demo: $(VENV)/.runtime  ## the main job on bundled real data
	@$(BIN)/fedassay demo

test: $(VENV)/.test  ## all tests, and the forty that take longest
	$(BIN)/python -m pytest -n auto --dist worksteal --durations=40

lint: $(VENV)/.test  ## format, lint, types, imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test  ## everything; the tests also check README and docs

verify: $(VENV)/.test  ## statistical tests, rounds, kills, coverage and accuracy at full size (hours)
	FEDASSAY_VERIFY=1 $(BIN)/python -m pytest -n auto --dist worksteal tests/statistical tests/unit/test_secagg.py \
		tests/unit/test_secagg_cohorts.py tests/unit/test_report_ids.py \
		tests/endtoend/test_ledger_kills.py tests/endtoend/test_tally_kills.py
	$(BIN)/python -m experiments.coverage --page experiments/coverage.md
	$(BIN)/python -m experiments.accuracy

fuzz: $(VENV)/.test  ## a million hostile messages for every decoder
	$(BIN)/python -m tests.fuzz 1000000

planted: $(VENV)/.test  ## every planted bug must be caught; writes docs/testing.md (25 minutes at most)
	$(BIN)/python -m tests.planted --jobs 2 --write docs/testing.md

planted-sample: $(VENV)/.test  ## twelve of them, as in CI
	$(BIN)/python -m tests.planted --jobs 2 --sample 12

coverage: $(VENV)/.test  ## which lines and branches no test reaches; writes docs/testing.md
	$(BIN)/python -m tests.reached --run --write docs/testing.md

docs: $(VENV)/.test  ## the documentation site, in build/site
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -q -b html -c docs . build/site
	@echo "Open build/site/index.html"

gallery: $(VENV)/.runtime  ## the pictures of docs/gallery.md
	$(BIN)/python -m examples.gallery

sandbox: $(VENV)/.runtime  ## every table that README and docs name, in the folder sandbox
	@$(BIN)/python -m examples.tables sandbox

federation: $(VENV)/.flower  ## four hospitals on this machine: keys, TLS, a SuperLink, a kill, the report
	@$(BIN)/python -m examples.four_hospitals

experiments: $(VENV)/.runtime  ## studies of accuracy; writes experiments/*.md
	$(BIN)/python -m experiments.distributed
	$(BIN)/python -m experiments.local
	$(BIN)/python -m experiments.grids
	$(BIN)/python -m experiments.calibration
	$(BIN)/python -m experiments.theory
	$(BIN)/python -m experiments.planning
	$(BIN)/python -m experiments.classes
	$(BIN)/python -m experiments.timing
	$(BIN)/python -m experiments.smallest_cell
	$(BIN)/python -m experiments.reconstruction
	$(BIN)/python -m experiments.peers

reproduce: $(VENV)/.runtime  ## the paper's tables, figures and claims again; writes docs/paper-results.md
	$(BIN)/python -m experiments.reproduced --run build/reproduction

peers: $(VENV)/.runtime  ## ours beside what others do; writes experiments/peers.md
	$(BIN)/python -m experiments.peers

bench: $(VENV)/.bench  ## benchmarks against peers; writes benchmarks/README.md
	$(BIN)/python -m benchmarks

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "fedassay needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e '.[all]'
	@touch $@

$(VENV)/.flower: $(VENV)/.runtime
	$(PIP) -e '.[all,flower]'
	@touch $@

$(VENV)/.test: $(VENV)/.runtime
	$(PIP) 'pip>=25.1'  # the first that knows dependency groups
	$(PIP) -e '.[all]' --group dev
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	$(PIP) -e '.[all]' --group bench
	@touch $@

clean:  ## remove what was installed, built and cached
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
