#!/bin/sh
# Runs every fuzz target of this module for the time given, 10s by default: ./fuzz.sh [TIME]
#
# Found inputs go to testdata/fuzz and fail `go test` from then on. Minimizing is kept short: by default it takes a minute
# for each new input, in which nothing else is tried.
set -eu
cd "$(dirname "$0")"
time=${1:-10s}
for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "== $package $target for $time"
		go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x
	done
done
