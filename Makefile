# Everything lives in .venv: Python packages, Node, Azurite. `make clean` removes it all.
# A step is done once: a stamp in .venv remembers it until the file it depends on changes.

PYTHON ?= python3
PROFILE ?= single-partition
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
UNPATCHED := $(wildcard tests/unit tests/contract tests/golden tests/rules)
PATCHED := $(wildcard tests/swarm tests/browser)
NO_TESTS := 5

.DEFAULT_GOAL := help
.PHONY: help venv dev azurite stress stress-throttled ui test test-unpatched test-patched test-wire test-long test-deps \
	lint check bench dashboards lock clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-zA-Z%-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PROFILE=name chooses the profile of stress and ui, ARGS='...' adds options of Locust."

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: requirements.txt pyproject.toml | $(VENV)/.created
	@echo "installing the pinned packages (a minute or so, once)"
	$(PIP) install -r requirements.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.run
	$(PIP) install -r requirements-dev.txt
	@touch $@

$(VENV)/.azurite: harness/endpoint/azurite/package-lock.json $(VENV)/.run
	$(BIN)/harness azurite install
	@touch $@

venv: $(VENV)/.run ## Create .venv with the pinned packages

dev: $(VENV)/.dev ## Add what tests and checks need

azurite: $(VENV)/.azurite ## Install the embedded Azurite into .venv

stress: venv azurite ## Stress one partition of the embedded Azurite (about a minute)
	$(BIN)/locust --headless --profile $(PROFILE) $(ARGS)

# Named, so that it is not taken for a profile. A rehearsal has nothing to pass or fail.
stress-throttled: venv azurite ## Stress one partition that throttles and is moved (a minute)
	$(BIN)/locust --headless --profile $(PROFILE) --throttling demo --set 'conditions=[]' \
		--set keys.rows_per_partition=400 $(ARGS)

stress-%: venv azurite ## Stress with the profile of that name, such as stress-key-spread
	$(BIN)/locust --headless --profile $* $(ARGS)

ui: venv azurite ## Open the Locust web UI, profiles to choose from
	$(BIN)/locust --profile $(PROFILE) $(ARGS)

test: test-unpatched test-patched ## Run all tests but the long ones

test-unpatched: dev azurite
	$(BIN)/pytest $(UNPATCHED)

# A process of its own: importing locust patches everything.
test-patched: dev azurite
	$(if $(PATCHED),$(BIN)/pytest $(PATCHED) || [ $$? -eq $(NO_TESTS) ])

test-wire: dev azurite ## Run the tests with real processes again, all with the session on the wire
	TEST_SESSION=wire $(BIN)/pytest tests/swarm

test-long: dev azurite ## Run the tests that need real minutes
	$(BIN)/pytest -m long $(UNPATCHED) || [ $$? -eq $(NO_TESTS) ]
	$(if $(PATCHED),$(BIN)/pytest -m long $(PATCHED) || [ $$? -eq $(NO_TESTS) ])

test-deps: ## Install the system packages of some tests (apt: prometheus, chromium)
	@if command -v promtool >/dev/null && command -v chromium >/dev/null; then \
		echo "prometheus and chromium are installed"; \
	else \
		sudo=; [ "$$(id -u)" -eq 0 ] || sudo=sudo; \
		echo "installing prometheus and chromium with apt-get; nothing else is changed"; \
		$$sudo apt-get update && \
		$$sudo env DEBIAN_FRONTEND=noninteractive \
			apt-get install -y --no-install-recommends prometheus chromium </dev/null; \
	fi

lint: dev ## Run ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test ## Run everything a change has to pass

bench: dev azurite ## Run the benchmarks; each prints a ratio
	@set -e; for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

dashboards: dev ## Make the Grafana dashboard again
	$(BIN)/python -m dashboards.generator

lock: ## Renew requirements*.txt from pyproject.toml
	./scripts/lock

clean: ## Remove .venv and what runs and tools left behind
	rm -rf $(VENV) out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
