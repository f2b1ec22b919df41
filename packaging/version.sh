#!/bin/sh
# Checks that a tag, Cargo.toml and the changelog name the same version, and prints its changes.
#
#     packaging/version.sh v1.2.3
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
if [ "${1:?the tag}" != "v$version" ]; then
    echo "packaging/version.sh: the tag is $1, and Cargo.toml has version $version" >&2
    exit 1
fi
# The section begins with "## [1.2.3] - 2026-12-01".
changes=$(sed -n "/^## \[$version\] - [0-9]/,/^## \[/{/^## \[/!p;}" CHANGELOG.md)
if [ -z "$changes" ]; then
    echo "packaging/version.sh: CHANGELOG.md has no section \"## [$version] - DATE\"" >&2
    exit 1
fi
echo "$changes"
