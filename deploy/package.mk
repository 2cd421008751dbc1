# Packages and the container image. The programs in deploy/package say what each step does.

# The architectures of the packages: this machine's own, unless given.
ARCHES ?=
# An image from a registry to build on, instead of a Debian that mmdebstrap makes.
BASE ?=

.PHONY: package
package: build ## deb, rpm, tar.gz, checksums and SBOM into target/package; ARCHES="amd64 arm64" for both architectures
	@$(PYTHON) deploy/package --dist $(DIST) $(if $(ARCHES),--arches $(ARCHES))

# The key that signs, as gpg names it, and the address at which the folder will be published.
KEY ?=
URL ?=

.PHONY: apt-repo
apt-repo: ## KEY=FINGERPRINT: an apt repository of the packages in target/package, as the folder target/apt for any web server; URL=https://...
	@test -n "$(KEY)" || { echo "KEY is empty: make apt-repo KEY=FINGERPRINT, as gpg --list-secret-keys prints it" >&2; exit 2; }
	@$(PYTHON) deploy/package/apt_repository.py --key $(KEY) $(if $(URL),--url $(URL))

.PHONY: image
image: build ## (root) the container image, targets plain and host, as OCI archives in target/image
	@$(PYTHON) deploy/package --dist $(DIST) --arches $$($(PYTHON) deploy/package/project.py) --formats
	@$(PYTHON) deploy/package/image.py $(if $(BASE),--from $(BASE))

.PHONY: package-test
package-test: build $(VENV_TEST)/.ready ## (root) packages and image, tested
	cd integration && ../$(VENV_TEST)/bin/python -m pytest e2e/test_package.py e2e/test_image.py e2e/test_operating.py

.PHONY: wasm-image
wasm-image: build-edge-filters ## (root) url-rewrite as an OCI image for Envoy Gateway and Istio, in target/image
	@$(PYTHON) deploy/package/wasm_image.py
