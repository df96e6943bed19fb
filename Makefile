# The front door. `make help` lists what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test check coverage test-cluster test-crash test-hardware format lock proto docs benchmark clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What runs, without what builds and tests it: enough for the demo, in half the time.
$(VENV)/.runtime: requirements.txt
	@echo "Installing into $(VENV) what the driver needs, once"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.installed: requirements-dev.txt pyproject.toml $(VENV)/.runtime
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(VENV)/.runtime ## Watch claims go from YAML to containers, in this process (ARGS=--keep keeps it running)
	@$(BIN)/python -m kubectl_dra demo $(ARGS)

test: $(VENV)/.installed ## Run unit, contract and integration tests (no root, no cluster)
	$(BIN)/python -m pytest

coverage: $(VENV)/.installed ## Run the same tests and report what they do not reach
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report

check: $(VENV)/.installed ## Run linters, type checker and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-cluster: $(VENV)/.installed ## Run the tests on a real Kubernetes (root, Go; 15 minutes the first time)
	@test "$$(id -u)" = 0 || { echo "test-cluster: not root, want root for network namespaces and containers" >&2; exit 2; }
	$(BIN)/python -m tests.cluster.program
	$(BIN)/python -m pytest tests/cluster

test-crash: $(VENV)/.installed ## Kill the plugin, and cut the power, at each of its effects (15 minutes; ARGS=--full: longer)
	$(BIN)/python -m tests.crash $(ARGS)

test-hardware: $(VENV)/.installed ## Run the tests on this machine's GPUs (DRA_DRIVER_TEST_MIG=1 makes a partition, too)
	$(BIN)/python -m pytest tests/hardware

format: $(VENV)/.installed ## Format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(VENV)/.installed ## Lock the versions and hashes of all dependencies anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --upgrade pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --upgrade pyproject.toml --group dev -o requirements-dev.txt

proto: $(VENV)/.installed ## Generate the Python side of the gRPC contracts
	$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. kubeletplugin/proto/*.proto tests/cluster/proto/*.proto

docs: $(VENV)/.installed ## Generate the reference pages from the code
	$(BIN)/python -m docs.generate

benchmark: $(VENV)/.installed ## Measure prepare, start, selectors, allocation, a large cluster, the controller (Go, root)
	$(BIN)/python -m benchmarks.prepare
	$(BIN)/python -m benchmarks.soak
	$(BIN)/python -m benchmarks.start
	$(BIN)/python -m benchmarks.selector
	$(BIN)/python -m benchmarks.allocation
	$(BIN)/python -m benchmarks.fleet
	$(BIN)/python -m benchmarks.controller

clean: ## Remove everything that is built here
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .coverage
