# The only front door. `make help` lists the targets.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
JOBS ?= $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
TEST_JOBS ?= $(JOBS)
RELEASES := v0.4.2 v0.6.2 v0.8.1 v0.9.0 v0.9.1 v0.10.0 v0.11.0 v0.12.0

.DEFAULT_GOAL := help
.PHONY: help setup lock lint format features test explain-recordings exhaustive bench coverage mutation faults atlas docs pages report images build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with dmsim and the tools

$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 setup")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lock: ## renew requirements.lock from pyproject.toml
	$(PYTHON) -m venv $(VENV)-lock && $(VENV)-lock/bin/pip install --quiet pip-tools
	$(VENV)-lock/bin/pip-compile --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --allow-unsafe --no-header --extra container --extra dev -o requirements.lock pyproject.toml
	rm -r $(VENV)-lock

features: setup ## the main job: every scenario on the simulated runner
	$(BIN)/python -m pytest features/ -n $(JOBS) -q

test: setup ## all tests, with the linters; the features for every release
	$(MAKE) --no-print-directory --jobs $(JOBS) $(if $(filter output-sync,$(.FEATURES)),--output-sync) lint $(RELEASES:%=features-%)
	$(BIN)/python -m pytest tests/ -n $(TEST_JOBS) -q

# One process each: workers would collect all scenarios again, which takes as long as running them.
features-%: setup
	$(BIN)/python -m pytest features/ -q --release $*

report: setup ## the feature suite on every release as a page, report/report.html
	for release in $(RELEASES); do \
	  $(BIN)/python -m pytest features/ -q --release $$release --dmsim-results report/$$release.jsonl || exit 1; \
	done
	$(BIN)/dmsim report $(RELEASES:%=report/%.jsonl) --html report/report.html

lint: setup ## Ruff, mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: setup ## let Ruff format and mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What the variable turns off is the theme's notice of its own successor, not a warning about the site.
docs: setup ## the documentation as a site in site/; a warning is an error (read it: python3 -m http.server -d site)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

pages: setup ## renew the generated pages in docs/
	$(BIN)/python -m simulator.bdd.vocabulary > docs/vocabulary.md.part && mv docs/vocabulary.md.part docs/vocabulary.md
	$(BIN)/python -m features.field_reports > docs/field-reports.md.part && mv docs/field-reports.md.part docs/field-reports.md
	$(BIN)/python -m simulator.report.host_page > docs/hosts.md.part && mv docs/hosts.md.part docs/hosts.md
	$(BIN)/python -m simulator.report.fidelity > docs/fidelity.md.part && mv docs/fidelity.md.part docs/fidelity.md
	$(BIN)/python -m simulator.report.fidelity --counts > fixtures/verified.json.part && mv fixtures/verified.json.part fixtures/verified.json
	$(BIN)/python -m simulator.report.release_page > docs/releases.md.part && mv docs/releases.md.part docs/releases.md
	$(BIN)/python -m simulator.report.guide_page > docs/guide-versus-sources.md.part && mv docs/guide-versus-sources.md.part docs/guide-versus-sources.md
	$(BIN)/python -m simulator.report.rewrite_page > docs/from-shell-to-go.md.part && mv docs/from-shell-to-go.md.part docs/from-shell-to-go.md
	$(BIN)/python -m simulator.report.findings_page

images: setup ## images of host kinds, from fixtures/images; root, debootstrap and Docker build them (IMAGES="--base IMAGE KIND...")
	$(BIN)/python -m simulator.images $(IMAGES)

explain-recordings: setup ## explain the log of every recording, whole and cut (two minutes)
	$(BIN)/python -m tests.explaining.every_recording

exhaustive: setup ## the tests that take too long for every day: whole surveys of the shell releases, all recordings for each named change
	DMSIM_EXHAUSTIVE=1 $(BIN)/python -m pytest -m exhaustive -n $(JOBS) -q

bench: setup ## how long a simulated run takes, and the feature suite against empty scenarios
	$(BIN)/python -m pytest tests/bench --benchmark-only --benchmark-columns=median,mean,max,rounds -q
	$(BIN)/python tests/bench/suite.py

coverage: setup ## branch coverage of the core
	$(BIN)/coverage run -m pytest -q
	$(BIN)/coverage report

mutation: setup ## mutation score of the core (half an hour); the survivors are listed
	$(BIN)/mutmut run > mutation.log 2>&1 || true
	$(BIN)/python -m tests.mutation

faults: setup ## plant faults in the model: each must be noticed, and each scenario must notice one (ten minutes)
	$(BIN)/python tests/features/planted.py -j 2

# BOUNDS="faults=0 pods=1": other bounds than the usual ones.
atlas: setup ## walk every path of the Go releases and run each edge's witness (long; BOUNDS="faults=0 pods=1" narrows it)
	$(BIN)/python -m tests.explore.every_witness $(BOUNDS)

build: setup ## wheel and sdist
	$(BIN)/python -m build --no-isolation

clean: ## remove what make made
	rm -rf $(VENV) dist build site report mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
