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

# `go test -list` would compile the tests of every package.
for file in $(grep -rl --include='*_test.go' '^func Fuzz' .); do
	package=$(dirname "$file")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "== $package $target for $time"
		if go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x >"$said" 2>&1; then
			tail -n 2 "$said"
		else
			cat "$said"
			only_ran_out_of_time || exit 1
		fi
	done
done
