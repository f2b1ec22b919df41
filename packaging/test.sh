#!/bin/bash
# Tests the files that build.sh built, on Debian or Ubuntu, as root: sizes, packages installed and removed, the programs and the image
# against a live server. A tool that is missing is a failure.
#
#     packaging/build.sh all && packaging/test.sh [--reproducible] [TEST…]
#     packaging/test.sh --needs        the packages for apt-get
#
# --reproducible also builds everything again, in another folder with another HOME, and compares the bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
dist=${LOCKTOP_DIST:-${CARGO_TARGET_DIR:-$root/target}/dist}
needs="binutils cpio debootstrap file fish git lintian makepkg man-db pacman-package-manager postgresql python3-pip qemu-user-static rpm rpmlint ruby runc skopeo systemd umoci zsh zstd"
if [ "${1:-}" = --needs ]; then
    echo "$needs"
    exit
fi
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
program=$dist/bin/x86_64-unknown-linux-musl/locktop
arm=$dist/bin/aarch64-unknown-linux-musl/locktop
deb=$dist/locktop_$version-1_amd64.deb
rpm=$dist/locktop-$version-1.x86_64.rpm
apk=$dist/locktop_$version-r1_x86_64.apk
arch=$dist/locktop-$version-1-x86_64.pkg.tar.zst

fail() {
    echo "packaging/test.sh: $test: $*" >&2
    exit 1
}

is_at_most() { # WHAT FIGURE LIMIT
    echo "$test: $1: $2 (at most $3)"
    awk "BEGIN { exit !($2 <= $3) }" || fail "$1 is $2"
}

test=start
[ "$(id -u)" = 0 ] || fail "run it as root: it makes roots of its own, and enters them"
for tool in cpio:cpio debootstrap:debootstrap file:file fish:fish lintian:lintian makepkg:makepkg man:man-db \
    pacman:pacman-package-manager qemu-aarch64-static:qemu-user-static readelf:binutils rpm2cpio:rpm rpmlint:rpmlint ruby:ruby runc:runc \
    skopeo:skopeo systemd-analyze:systemd umoci:umoci zsh:zsh zstd:zstd; do
    command -v "${tool%%:*}" >/dev/null || fail "${tool%%:*} is missing: apt-get install ${tool#*:}"
done
work=$(mktemp -d /tmp/locktop-packaging-XXXXXX)
chmod 755 "$work"
server=
trap 'if [ -n "$server" ]; then as_nobody "$server/pg_ctl" -D "$work/pg/data" -m immediate stop >/dev/null; fi; rm -rf "$work"' EXIT

as_nobody() {
    setpriv --reuid nobody --regid nogroup --clear-groups "$@"
}

# A PostgreSQL server on TCP, by the programs of Debian or those that `locktop demo` fetched.
start_server() {
    [ -z "$server" ] || return 0
    local bin
    for bin in ${LOCKTOP_PG_BIN:-} /usr/lib/postgresql/*/bin /var/cache/locktop/postgres/*/bin "$HOME"/.cache/locktop/postgres/*/bin; do
        as_nobody test -x "$bin/initdb" && server=$bin
    done
    [ -n "$server" ] || fail "no PostgreSQL: apt-get install postgresql, or run \"locktop demo\" once"
    mkdir "$work/pg"
    chown nobody "$work/pg"
    port=$((20000 + $$ % 20000))
    (
        cd "$work/pg"
        as_nobody "$server/initdb" -D data -U me -A trust -N >/dev/null
        as_nobody "$server/pg_ctl" -D data -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=" -l log -w start >/dev/null
    )
    target="host=127.0.0.1 port=$port user=me dbname=postgres"
}

# Whether a snapshot is one: a line of JSON with the session that took it.
shows() {
    grep '"backends"' >/dev/null || fail "no snapshot came"
}

size() {
    is_at_most "bytes of the static program" "$(stat -c %s "$program")" 14000000
}

static() {
    local one
    for one in "$program" "$arm"; do
        readelf --program-headers "$one" | grep -q INTERP && fail "$one has an interpreter"
        readelf --dynamic "$one" | grep -q NEEDED && fail "$one needs libraries"
        strings -a "$one" | grep -F -e "$HOME/" -e "$root" && fail "$one has paths of this machine"
    done
    file "$program" "$arm"
}

empty_root() {
    start_server
    mkdir "$work/empty"
    cp "$program" "$work/empty/"
    chroot "$work/empty" /locktop snapshot --format json "$target" | shows
    # As text too: it lacks time zone, no home and no name of the user.
    chroot "$work/empty" /locktop snapshot "$target" >/dev/null
}

speed() {
    start_server
    # What else runs on this machine does not count.
    chrt --fifo --all-tasks --pid 1 "$(head -n 1 "$work/pg/data/postmaster.pid")"
    milliseconds() { # COUNT COMMAND…
        chrt --fifo 1 python3 - "$@" <<'PY'
import statistics, subprocess, sys, time
count, *command = sys.argv[1:]
taken = []
for _ in range(int(count)):
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    taken.append((time.perf_counter() - began) * 1000)
print(round(statistics.median(taken), 1))
PY
    }
    is_at_most "milliseconds of --version" "$(milliseconds 21 "$program" --version)" 10
    is_at_most "milliseconds of a snapshot" "$(milliseconds 11 "$program" snapshot "$target")" 150
}

arm64() {
    start_server
    qemu-aarch64-static "$arm" --version
    qemu-aarch64-static "$arm" snapshot --format json "$target" | shows
}

archives() {
    local target
    for target in x86_64-unknown-linux-musl aarch64-unknown-linux-musl; do
        tar -xzf "$dist/locktop-$version-$target.tar.gz" -C "$work"
        local folder=$work/locktop-$version-$target part
        for part in locktop LICENSE-MIT LICENSE-APACHE THIRD-PARTY.txt README.md CHANGELOG.md man/locktop.1 man/locktop-check.1 \
            completions/locktop.bash contrib/systemd/locktop-worker@.service; do
            [ -s "$folder/$part" ] || fail "$target has no $part"
        done
    done
    (cd "$dist" && sha256sum --check --quiet SHA256SUMS)
}

manual() {
    local page
    for page in "$dist"/share/man/*.1; do
        man --warnings -E UTF-8 -l "$page" >/dev/null 2>"$work/said"
        [ ! -s "$work/said" ] || fail "$page: $(head -n 3 "$work/said")"
    done
    echo "$test: $(find "$dist/share/man" -name '*.1' | wc -l) pages"
}

completions() {
    bash -c "source '$dist/share/completions/locktop.bash' && complete -p locktop" >/dev/null
    zsh -c "autoload -U compinit && compinit -D -u && source '$dist/share/completions/_locktop' && [ -n \"\$_comps[locktop]\" ]"
    fish -c "source '$dist/share/completions/locktop.fish'; complete -C 'locktop snap'" 2>/dev/null | grep snapshot >/dev/null
}

debian() {
    lintian --fail-on error --suppress-tags bad-distribution-in-changes-file "$deb" "${deb/amd64/arm64}"
    local base=$work/debian mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)
    debootstrap --variant=minbase stable "$base" "$mirror" >"$work/debootstrap.log" || fail "debootstrap: $(tail -n 3 "$work/debootstrap.log")"
    everything() {
        find "$base" -xdev -path "$base/var/lib/dpkg" -prune -o -path "$base/var/log" -prune -o -path "$base/var/cache" -prune -o -print | sort
    }
    everything >"$work/before"
    mkdir "$work/old"
    cp -r "$dist/bin" "$dist/share" "$work/old/"
    VERSION=0.1.0 LOCKTOP_DIST=$work/old packaging/build.sh deb
    cp "$work/old/locktop_0.1.0-1_amd64.deb" "$deb" "$base/tmp/"
    chroot "$base" dpkg -i "/tmp/locktop_0.1.0-1_amd64.deb" >/dev/null
    chroot "$base" dpkg -i "/tmp/${deb##*/}" >/dev/null
    [ "$(chroot "$base" dpkg-query -W -f '${Version}' locktop)" = "$version-1" ] || fail "it was not upgraded"
    [ "$(chroot "$base" locktop --version)" = "locktop $version" ] || fail "another version runs"
    # Help has the exit status of UNKNOWN.
    { chroot "$base" /usr/lib/nagios/plugins/check_locktop --help || true; } | grep Usage >/dev/null
    # As an enabled unit and a recorder leave it.
    mkdir -p "$base/var/lib/private/locktop/prod" "$base/etc/systemd/system/multi-user.target.wants"
    touch "$base/var/lib/private/locktop/prod/a.ltr"
    ln -s /usr/lib/systemd/system/locktop-record@.service "$base/etc/systemd/system/multi-user.target.wants/locktop-record@prod.service"
    chroot "$base" dpkg --purge locktop >/dev/null
    rmdir "$base/etc/systemd/system/multi-user.target.wants"
    rm "$base"/tmp/locktop_*.deb
    everything >"$work/after"
    # Folders that the test made itself.
    diff <(grep -v -e '/etc/systemd' -e '/var/lib/private$' "$work/before") <(grep -v -e '/etc/systemd' -e '/var/lib/private$' "$work/after") ||
        fail "a purge leaves these"
}

unpacked() { # PACKAGE
    start_server
    "$work/unpacked/usr/bin/locktop" snapshot --format json "$target" | shows
    [ -s "$work/unpacked/usr/share/man/man1/locktop.1.gz" ] || fail "$1 has no manual page"
    rm -rf "$work/unpacked"
}

redhat() {
    rpmlint --config packaging/rpmlint.toml "$rpm" "${rpm/x86_64/aarch64}"
    rpm --query --list --package "$rpm" | grep /usr/lib/systemd/system/locktop-worker@.service >/dev/null
    mkdir "$work/unpacked"
    (cd "$work/unpacked" && rpm2cpio "$rpm" | cpio --extract --make-directories --quiet)
    unpacked "$rpm"
}

alpine() {
    mkdir "$work/unpacked"
    tar -xzf "$apk" -C "$work/unpacked" 2>/dev/null
    grep -q "^pkgver = $version-r1" "$work/unpacked/.PKGINFO" || fail "another version: $(grep pkgver "$work/unpacked/.PKGINFO")"
    unpacked "$apk"
}

archlinux() {
    pacman --query --info --file "$arch" | grep "^Version.*$version-1"
    pacman --query --list --file "$arch" | grep /usr/bin/locktop >/dev/null
    mkdir "$work/unpacked"
    tar --zstd -xf "$arch" -C "$work/unpacked"
    unpacked "$arch"
    mkdir "$work/pkgbuild"
    cp "$dist/PKGBUILD" "$dist/locktop-$version.tar.gz" "$work/pkgbuild/"
    chown -R nobody "$work/pkgbuild"
    (cd "$work/pkgbuild" && HOME=$work/pkgbuild as_nobody makepkg --printsrcinfo | grep "pkgver = $version")
    # The file that would be downloaded is there already: its sum is compared.
    (cd "$work/pkgbuild" && HOME=$work/pkgbuild as_nobody makepkg --verifysource --nodeps)
}

homebrew() {
    local target
    mkdir "$work/brew"
    cp "$dist"/locktop-"$version"-*-musl.tar.gz "$work/brew/"
    for target in aarch64 x86_64; do # They are built on macOS alone: what is filled in is the sum of any file.
        cp "$dist/locktop-$version-$target-unknown-linux-musl.tar.gz" "$work/brew/locktop-$version-$target-apple-darwin.tar.gz"
    done
    LOCKTOP_DIST=$work/brew packaging/build.sh formula
    ruby -c "$work/brew/locktop.rb"
    [ "$(grep -c "$(sha256sum <"$dist/locktop-$version-x86_64-unknown-linux-musl.tar.gz" | cut -d ' ' -f 1)" "$work/brew/locktop.rb")" = 2 ] ||
        fail "a sum is wrong"
    ! grep -n '@[A-Z]' "$work/brew/locktop.rb" || fail "something was not filled in"
}

image() {
    start_server
    mkdir "$work/layout"
    tar -xf "$dist/locktop-$version-image.tar" -C "$work/layout"
    skopeo inspect --raw "oci:$work/layout:$version" | grep arm64 >/dev/null
    # umoci knows no image for several processors.
    skopeo copy --quiet --override-arch amd64 "oci:$work/layout:$version" "oci:$work/one:locktop"
    umoci unpack --image "$work/one:locktop" "$work/bundle"
    python3 - "$work/bundle/config.json" "$target" <<'PY'
import json, sys
file, target = sys.argv[1:]
config = json.load(open(file))
config["process"] |= {"terminal": False, "args": config["process"]["args"] + ["snapshot", "--format", "json", target]}
config["root"]["readonly"] = True
# The network of this machine, where the server is; no limits, which need a cgroup of one's own.
config["linux"]["namespaces"] = [one for one in config["linux"]["namespaces"] if one["type"] != "network"]
config["linux"].pop("resources", None)
config["mounts"] = [one for one in config["mounts"] if one["type"] in ("proc", "tmpfs", "devpts")]
json.dump(config, open(file, "w"))
PY
    grep -q '"uid":65532\|"uid": 65532' "$work/bundle/config.json" || fail "it would run as root"
    runc --root "$work/runc" run --bundle "$work/bundle" "locktop-$$" </dev/null | shows
}

units() {
    local unit figure
    mkdir -p "$work/units"
    for unit in locktop-worker@ locktop-record@; do
        sed "s|/usr/bin/locktop|$program|" "contrib/systemd/$unit.service" >"$work/units/$unit.service"
        systemd-analyze verify "$work/units/$unit.service"
        figure=$(systemd-analyze security --offline=true --no-pager "$work/units/$unit.service" | sed -n 's/.*Overall exposure level.*: \([0-9.]*\) .*/\1/p')
        is_at_most "exposure of $unit" "$figure" 1.5
    done
}

components() {
    python3 - "$dist/locktop-$version.cdx.json" <<'PY'
import json, sys
found = json.load(open(sys.argv[1]))
assert found["bomFormat"] == "CycloneDX" and found["metadata"]["component"]["name"] == "locktop"
names = {one["name"] for one in found["components"]}
assert {"tokio", "rustls", "ratatui", "redis"} <= names and "criterion" not in names, names
assert all(one.get("licenses") for one in found["components"])
print(f"components: {len(names)} crates are linked in")
PY
}

# Everything once more, elsewhere.
reproducible() {
    local again=$work/again name
    git clone --quiet . "$again"
    mkdir "$work/home"
    (
        export RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup} HOME=$work/home
        PATH=$PATH:$(dirname "$(command -v cargo)")
        unset CARGO_HOME CARGO_TARGET_DIR LOCKTOP_DIST
        "$again/packaging/build.sh" all
    )
    for name in bin/x86_64-unknown-linux-musl/locktop bin/aarch64-unknown-linux-musl/locktop $(cd "$dist" && ls -- *.*); do
        cmp "$dist/$name" "$again/target/dist/$name"
    done
    echo "$test: $(cd "$dist" && ls -- *.* | wc -l) files and both programs are the same"
}

all="size static speed empty_root arm64 archives manual completions debian redhat alpine archlinux homebrew image units components"
if [ "${1:-}" = --reproducible ]; then
    shift
    all="$all reproducible"
fi
[ $# -gt 0 ] || set -- $all
passed=0
for test; do
    began=$(date +%s)
    "$test"
    echo "ok $test ($(($(date +%s) - began)) s)"
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
