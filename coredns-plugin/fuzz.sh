#!/bin/sh
# Runs every fuzz target of this module for the time given, 10s by default: ./fuzz.sh [TIME]
#
# Found inputs go to testdata/fuzz and fail `go test` from then on. Minimizing is kept short: by default it takes a minute
# for each new input, in which nothing else is tried.
set -eu
cd "$(dirname "$0")"
time=${1:-10s}
said=$(mktemp)
trap 'rm -f "$said"' EXIT

# Go before 1.27 at times takes the end of the time for a failure (go.dev/issue/75804). A real one names its input.
only_ran_out_of_time() {
	grep -q '^ *context deadline exceeded$' "$said" && ! grep -q 'Failing input' "$said"
}

for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "== $package $target for $time"
		if go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x >"$said" 2>&1; then
			tail -n 2 "$said"
		else
			cat "$said"
			only_ran_out_of_time || exit 1
		fi
	done
done
