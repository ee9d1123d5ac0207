# Everything is installed into .venv: Python packages, Node, Azurite. `make clean` removes it.
# Each step runs once: a stamp file in .venv records it until the file it depends on changes.

PYTHON ?= python3
PROFILE ?= single-partition
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# In CI only files with known hashes are installed.
HASHED := $(if $(GITHUB_ACTIONS),--require-hashes -r requirements-hashed.txt)
# How many pytest processes run side by side. Most tests wait more than they compute.
JOBS ?= 4
PARALLEL := $(BIN)/python -m tests.parallel -j $(JOBS) --
# Serial tests say something about a machine that has time: two of their files leave it some.
SERIAL := $(BIN)/python -m tests.parallel -j 2 --
# Importing Locust patches the standard library of its process: these tests have their own.
UNPATCHED := tests/unit tests/contract tests/golden tests/rules
PATCHED := tests/swarm tests/browser

# tc is where the PATH of users does not always lead.
export PATH := $(PATH):/usr/sbin:/sbin

.DEFAULT_GOAL := help
.PHONY: help venv dev azurite whatif-trial verdict-trial limit-trial stress stress-throttled ui test test-unpatched \
	test-rest test-wire test-long test-thorough test-deps coverage lint check bench dashboards reference docs gallery lock release-check clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-zA-Z%-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PROFILE=name chooses the profile of stress and ui, ARGS='...' adds options of the run."

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: requirements.txt pyproject.toml setup.py | $(VENV)/.created
	@echo "installing the pinned packages (a minute or so, once)"
	$(PIP) install $(or $(HASHED),-r requirements.txt)
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.run
	$(PIP) install $(or $(HASHED),-r requirements-dev.txt)
	@touch $@

$(VENV)/.npm: $(wildcard tests/support/*/package-lock.json) $(VENV)/.dev
	$(BIN)/python -m tests.support.npm_packages
	@touch $@

$(VENV)/.azurite: harness/endpoint/azurite/package-lock.json $(VENV)/.run
	$(BIN)/harness azurite install
	@touch $@

venv: $(VENV)/.run ## Create .venv with the pinned packages

dev: $(VENV)/.dev $(VENV)/.npm ## Add what tests and checks need

azurite: $(VENV)/.azurite ## Install the embedded Azurite into .venv

stress: venv azurite ## Stress one partition of the embedded Azurite (about a minute)
	$(BIN)/harness run $(PROFILE) $(ARGS)

# A target of its own, so that "throttled" is not taken for a profile. A rehearsal cannot fail.
stress-throttled: venv azurite ## Stress one partition that throttles and is moved (a minute)
	$(BIN)/harness run $(PROFILE) --throttling demo --set 'conditions=[]' \
		--set keys.rows_per_partition=400 $(ARGS)

stress-%: venv azurite ## Stress with the profile of that name, such as stress-key-spread
	$(BIN)/harness run $* $(ARGS)

ui: venv azurite ## Open the Locust web UI, profiles to choose from
	$(BIN)/harness run $(PROFILE) --ui $(ARGS)

test: dev azurite ## Run all tests but the long ones
	$(PARALLEL) $(PATCHED) -m "not long and not serial" -- $(UNPATCHED) -m "not long"
	$(SERIAL) $(PATCHED) -m "serial and not long"

test-unpatched: dev azurite
	$(PARALLEL) $(UNPATCHED) -m "not long"

# The groups of test-wire and of test-long leave each other no idle processor.
WIRE := TEST_SESSION=wire tests/swarm -m "session and not long and not serial"

test-wire: dev azurite ## Run again, with the session on the wire, what differs by the session
	$(PARALLEL) $(WIRE)

test-rest: ALSO := -- $(WIRE)
test-rest test-long: LONG := long and not thorough
test-thorough: LONG := thorough
test-thorough: PROPERTIES := or hypothesis
test-thorough: export TEST_EXAMPLES := all
test-long: dev azurite ## Run the tests that need real minutes
test-rest: dev azurite ## Run the tests of test-wire and test-long
test-thorough: dev azurite ## Run more cases of other tests, and all examples of properties
test-long test-rest test-thorough:
	$(PARALLEL) $(PATCHED) -m "$(LONG) and not serial" -- \
		$(UNPATCHED) -m "$(LONG) $(PROPERTIES)" $(ALSO)
	$(SERIAL) $(PATCHED) -m "$(LONG) and serial"

# Package and command: promtool is a command of prometheus, ip and tc are commands of iproute2.
TEST_DEPS := prometheus:promtool chromium:chromium iproute2:tc faketime:faketime

test-deps: ## Install the system packages of some tests with apt-get
	@missing=; for dep in $(TEST_DEPS); do \
		command -v "$${dep#*:}" >/dev/null || missing="$$missing $${dep%%:*}"; \
	done; \
	if [ -z "$$missing" ]; then \
		echo "the system packages of the tests are installed"; \
	else \
		sudo=; [ "$$(id -u)" -eq 0 ] || sudo=sudo; \
		echo "installing$$missing with apt-get; nothing else is changed"; \
		$$sudo apt-get update && \
		$$sudo env DEBIAN_FRONTEND=noninteractive \
			apt-get install -y --no-install-recommends $$missing </dev/null; \
	fi

coverage: dev azurite ## Show how much of harness/ the tests without Locust run
	$(BIN)/coverage erase
	$(BIN)/coverage run -m tests.parallel -j $(JOBS) -- $(UNPATCHED) -m "not long"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

lint: $(VENV)/.dev ## Run ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test ## Run everything a change has to pass

bench: dev azurite ## Run the benchmarks; each prints a ratio
	@set -e; for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

whatif-trial: dev azurite ## Hold what-ifs against replays; writes docs/whatif-trial.md
	$(BIN)/python -m benchmarks.whatif_trial

# HAProxy is one of the throttles.
verdict-trial: TEST_DEPS += haproxy:haproxy
verdict-trial: dev test-deps ## Hold verdicts against known causes; writes docs/verdict-trial.md
	$(BIN)/python -m benchmarks.verdict_trial $(ARGS)

limit-trial: dev ## Search limits that are drawn at random; writes docs/limit-trial.md
	$(BIN)/python -m benchmarks.limit_trial $(ARGS)

dashboards: dev ## Make the Grafana dashboard again
	$(BIN)/python -m dashboards.generator

reference: dev ## Make the reference pages of docs/ again, from the code
	$(BIN)/python -m docs.generator reference

docs: dev ## Build the documentation as a site, and check its links
	$(BIN)/python -m docs.generator site

gallery: dev azurite ## Make the eight reports that the site shows (five minutes)
	$(BIN)/python -m docs.generator gallery

lock: ## Renew requirements*.txt from pyproject.toml
	./scripts/lock

release-check: venv ## Build dist/, and try the wheel in an empty environment
	./scripts/release-check

clean: ## Remove .venv and what runs and tools left behind
	rm -rf $(VENV) out build dist *.egg-info .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
