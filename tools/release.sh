#!/bin/sh
# Tags the present commit as the release that Cargo.toml and CHANGELOG.md name. Nothing is pushed.
#
# Before: set `version` in Cargo.toml, rename "Unreleased" in CHANGELOG.md to "VERSION - DATE", commit, and run `make test`.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "release: $1" >&2
    exit 1
}

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
[ -n "$version" ] || fail "no version under [workspace.package] in Cargo.toml"
tag="v$version"
[ -z "$(git status --porcelain)" ] || fail "the tree has changes that are not committed: commit or stash them"
! git rev-parse -q --verify "refs/tags/$tag" >/dev/null || fail "the tag $tag exists: raise the version in Cargo.toml"
heading=$(grep -m 1 -E '^## [0-9]' CHANGELOG.md || true)
echo "$heading" | grep -Eq "^## $version - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" ||
    fail "CHANGELOG.md begins with \"$heading\": expected \"## $version - YYYY-MM-DD\""
[ -z "$(sed -n '/^## Unreleased/,/^## [0-9]/{/^- /p}' CHANGELOG.md)" ] ||
    fail "CHANGELOG.md has entries under Unreleased: move them below \"$heading\", or raise the version"
notes=$(sed -n "/^## $version - /,/^## /{/^## /d;p}" CHANGELOG.md)
git tag --cleanup=whitespace -a "$tag" -m "Longhaul $version" -m "$notes"
echo "tagged $(git rev-parse --short HEAD) as $tag; publish it with: git push origin $tag"
