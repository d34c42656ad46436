# Everything that a newcomer or a developer types. `make` alone lists it.
# Works with the make of macOS (3.81) and any POSIX shell.

PORT ?= 8000
DATA ?= .discreet
BIN := .venv/bin
LINT := set -x; $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && \
	$(BIN)/lint-imports --no-logo
# What `make check` tests: everything that starts no server and takes no sample.
QUICK := tests/privacy tests/decisions tests/families tests/metrics tests/test_house.py
# Tests that call make find what somebody finds who types it, not what this make was told.
BY_HAND := env -u MAKELEVEL -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u ARGS -u PORT -u DATA -u PYTHON
# An interpreter given here, PYTHON=python3.12, makes the environment; see .ci/environment.
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help run traffic test check chaos lint format audit bench wheel pictures cards dashboards k8s image constraints clean \
	environment

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: ## serve the demo on its embedded store: make run [PORT=8000] [DATA=.discreet]
	@.ci/environment run
	@exec $(BIN)/discreet serve --demo --port $(PORT) --data $(DATA)

traffic: ## send synthetic visitors to the running demo: make traffic [ARGS="--rate 50"]
	@.ci/environment run
	@exec $(BIN)/discreet simulate --traffic --url http://127.0.0.1:$(PORT) --key-file $(DATA)/demo-key $(ARGS)

test: environment ## lint and all tests; says at the end what could not be tested here
	@packages=$$($(BIN)/python -m tests.requirements) && \
		{ [ -z "$$packages" ] || .ci/apt $$packages || true; }
	@tests/deploy/tools/install
	@exec $(BY_HAND) $(BIN)/python -m tests.run --durations=15 $(ARGS)

check: environment ## while you work: lint, and the quick tests, in a minute
	@$(LINT)
	@exec $(BY_HAND) $(BIN)/python -m pytest -q -n 2 --dist loadfile $(QUICK) $(ARGS)

chaos: environment ## a nemesis against a real server, histories checked: make chaos [ARGS="--seconds 3600 --seed 7"]
	@$(BIN)/python -m tests.chaos.soak --cycles 1000
	@$(BIN)/python -m tests.chaos.run $(ARGS)

lint: environment ## ruff, mypy and the layers
	@$(LINT)

format: environment ## rewrite what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

audit: ## check every privacy claim: make audit [ARGS=--quick]
	@.ci/environment audit
	@$(BIN)/discreet audit $(ARGS)

bench: ## measure beside a floor and an alternative: make bench [ARGS="--quick --json"], ARGS=--help for more
	@.ci/environment bench >&2
	@command -v wrk >/dev/null || .ci/apt wrk >&2 || true
	@exec $(BIN)/python loadtests/bench.py $(ARGS)

wheel: environment ## build the wheels of server and client, and the list of what the server runs with (CycloneDX)
	rm -rf build dist service/discreet_client/build
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist . ./service/discreet_client
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --of JSON -o dist/sbom.cdx.json \
		deploy/image/service.lock

pictures: environment ## draw the live page's and the hub's pictures anew, from running ones, into docs/img
	@$(BIN)/python -m tests.browser.picture docs/img
	@$(BIN)/python -m tests.browser.picture_hub docs/img

cards: environment ## write the guarantee cards in docs/privacy.md anew, from the code
	@$(BIN)/python -m tests.cards
	@$(BIN)/python -m tests.defaults

dashboards: environment ## write the Grafana dashboards anew, and the chart's copy of them and of the rules
	@$(BIN)/python -m deploy.grafana

k8s: environment ## write the plain manifests in k8s/ anew, from the chart
	@$(BIN)/python -m deploy.manifests

image: environment ## build the container image and try it out, with buildah and podman (as root)
	@packages=$$($(BIN)/python -m tests.requirements image) && \
		{ [ -z "$$packages" ] || .ci/apt $$packages || true; }
	@$(BIN)/python -m tests.deploy.image $(ARGS)

constraints: ## pin today's versions anew (with Python 3.11)
	.ci/constraints

clean: ## remove the environment and all caches; what the demo learned and spent (DATA) stays
	rm -rf .venv .venv.lock build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		.import_linter_cache
	find service tests -name __pycache__ -type d -prune -exec rm -rf {} +

environment:
	@.ci/environment dev
