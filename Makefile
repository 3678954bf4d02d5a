# Run `make` to list the targets. Everything happens in .venv, which the first target creates.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled
export PATH := $(CURDIR)/$(BIN):$(PATH)
export DVC_NO_ANALYTICS := 1
export MLFLOW_DISABLE_TELEMETRY := true
# If this were set, each of a run's hundreds of processes would compile our modules again, and pytest all its tests.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup repro test test-live test-whole test-slow bench check docs format ui lock clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## Make .venv with the pinned packages (done by every other target)

# With uv, which the script installs, in a third of the time; with pip if there is no uv (or INSTALLER=pip).
$(READY): requirements.lock pyproject.toml .ci/install.py
	@echo "setting up .venv (a minute, once; by pip three)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python .ci/install.py
	@touch $(READY)

# On several cores, once; later changes are compiled by the first stage that needs them.
$(COMPILED): $(READY)
	@echo "compiling what the stages run (some minutes, once)"
	$(BIN)/python -m pipeline compile
	@touch $(COMPILED)

# Several stages at a time, with the same bytes as `dvc repro`; PIPELINE_WORKERS=1 runs one after the other.
repro: $(COMPILED)  ## Run the pipeline: whatever params.yaml, code or data make stale, then MLflow's view and the report
	python -m pipeline repro

# A file's tests run together, because slow ones share their set-up; the longest files begin first
# (tests/support/order.py).
test: $(COMPILED)  ## Run the tests (without those marked slow, live or whole)
	python -m pytest -m "not slow and not live and not whole" -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-live: $(COMPILED)  ## Run the tests that start servers: Slurm, Ray, PostgreSQL, workflows
	python -m pytest -m "live and not slow" -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-whole: $(COMPILED)  ## Run the tests that run the whole pipeline, or kill processes
	python -m pytest -m "whole and not slow" -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-slow: $(READY)  ## Run the tests marked slow
	python -m pytest -m slow

bench: $(READY)  ## Measure speed, memory and growth (minutes; leave the machine alone)
	python -m benchmarks

check: $(READY)  ## Lint, format, types, spelling and import contracts
	ruff check .
	ruff format --check .
	mypy
	codespell
	lint-imports

docs: $(READY)  ## Build the documents as a site, site/index.html; a broken link fails
	NO_MKDOCS_2_WARNING=1 python -m mkdocs build
	@echo "the documents: site/index.html"

format: $(READY)  ## Format the code
	ruff check --fix .
	ruff format .

ui: $(READY)  ## Open MLflow on this pipeline's runs
	python -m pipeline ui

lock: $(READY)  ## Write requirements.lock from what is in .venv
	@echo "# Everything the project runs and is checked with, pinned; made by 'make lock', installed by 'make setup'." > requirements.lock
	$(BIN)/python -m pip freeze --all --exclude pip --exclude-editable | sed -E 's/^(torch==[^+]*)\+.*/\1/' >> requirements.lock

clean:  ## Remove .venv and caches; results and MLflow's database stay
	rm -rf $(VENV) build site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
