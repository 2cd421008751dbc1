#!/usr/bin/env bash
# `bazel test //...`: runs `make test` in the checkout that this runfiles tree links to.
set -euo pipefail
make -C "$(dirname "$(readlink -f Makefile)")" test
