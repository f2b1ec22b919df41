#!/bin/sh
# Runs all tests of locktop. Gets what is missing first: the PostgreSQL versions that the tests need come from npm; npm itself, the
# servers beside PostgreSQL, Python (the printed Redis recipes are run as they stand), psql (whose verdicts ours are compared with) and
# openssl (which makes certificates) come from apt-get, if that is possible.
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

# Servers live outside of the PATH of many.
has() {
    command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ] || [ -x "/opt/homebrew/bin/$1" ]
}

missing=
has npm || missing="$missing npm"
has pgbouncer || missing="$missing pgbouncer"
[ -n "${LOCKTOP_REDIS_SERVER:-}" ] || has redis-server || has valkey-server || missing="$missing redis-server"
has python3 || missing="$missing python3"
has psql || missing="$missing postgresql-client"
has openssl || missing="$missing openssl"
if [ -n "$missing" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    say "installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # each is a word of its own
    { apt-get update -q && apt-get install -qy --no-install-recommends $missing; } </dev/null ||
        say "that failed; a test that needs one of these will say so"
fi

say "building"
# The examples run as parts of the tests.
cargo test --workspace --locked --lib --bins --tests --no-run </dev/null || exit 1

# Finds or fetches each version, and prints "available <major>" for every one that there is.
found=$(cargo test --locked --quiet --test server -- --ignored --exact --nocapture embedded::available </dev/null) || exit 1
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

# Most tests wait most of the time, for a server, a term, a heartbeat: more of them at once than there are processors.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)))}
export RUST_TEST_THREADS

cargo test --workspace --locked --lib --bins --tests --no-fail-fast </dev/null
status=$?
cargo test --workspace --locked --doc </dev/null || status=1
if [ "$status" = 0 ]; then
    say "all tests passed ($size suite, PostgreSQL $versions)"
else
    say "FAILED ($size suite, PostgreSQL $versions)"
    exit 1
fi
