"""Archives, the container image, the list of components and the sums of build.sh, byte for byte the same each time.

    pack.py archive FOLDER FILE     a tar of a folder, by gzip
    pack.py image BIN FILE          an OCI layout with an image for each program of BIN, in a tar
    pack.py tree FORMAT PROGRAM SHARE FOLDER    the files of a package
    pack.py notices FILE            the licences of all that is linked in
    pack.py sbom FILE               CycloneDX of all that is linked in
    pack.py sums FOLDER             SHA256SUMS of the files there
    pack.py fill TEMPLATE FOLDER FILE    a template with @VERSION@, @HOMEPAGE@, and @SHA256 name@ of the files there
"""

import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time
import tomllib

VERSION = os.environ["VERSION"]
HOMEPAGE = os.environ["HOMEPAGE"]
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
NOBODY = 65532
MAINTAINER = "locktop maintainers <maintainers@locktop.invalid>"
DESCRIPTION = "top for PostgreSQL locks, leases and the tasks that depend on them"


def stamp():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))


def zipped(data):
    return gzip.compress(data, 9, mtime=0)


def tar(entries):
    """A tar of (name, content or None for a folder, mode), in the order of the names."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content, mode in sorted(entries, key=lambda entry: entry[0]):
            info = tarfile.TarInfo(name)
            info.mode, info.mtime = mode, EPOCH
            if content is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(content)
            archive.addfile(info, None if content is None else io.BytesIO(content))
    return out.getvalue()


def archive(folder, file):
    root = pathlib.Path(folder)
    entries = [(root.name, None, 0o755)]
    for path in root.rglob("*"):
        name = f"{root.name}/{path.relative_to(root).as_posix()}"
        executable = path.is_dir() or path.name == "locktop"
        entries.append((name, None if path.is_dir() else path.read_bytes(), 0o755 if executable else 0o644))
    pathlib.Path(file).write_bytes(zipped(tar(entries)))


def image(programs, file):
    """One layer for each processor: the program, a user without rights, the licences. No shell, no libraries."""
    blobs = {}

    def blob(data, kind, **more):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)} | more

    created = stamp()
    labels = {
        "org.opencontainers.image.title": "locktop",
        "org.opencontainers.image.description": DESCRIPTION,
        "org.opencontainers.image.version": VERSION,
        "org.opencontainers.image.source": HOMEPAGE,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.created": created,
    }
    passwd = f"root:x:0:0:root:/:/sbin/nologin\nlocktop:x:{NOBODY}:{NOBODY}:locktop:/:/sbin/nologin\n"
    folders = ["etc", "tmp", "usr", "usr/bin", "usr/share", "usr/share/licenses", "usr/share/licenses/locktop"]
    common = [(name, None, 0o1777 if name == "tmp" else 0o755) for name in folders]
    common += [("etc/passwd", passwd.encode(), 0o644), ("etc/group", f"root:x:0:\nlocktop:x:{NOBODY}:\n".encode(), 0o644)]
    for name in ["LICENSE-APACHE", "LICENSE-MIT"]:
        common.append((f"usr/share/licenses/locktop/{name}", pathlib.Path(name).read_bytes(), 0o644))
    manifests = []
    for target, processor in [("x86_64-unknown-linux-musl", "amd64"), ("aarch64-unknown-linux-musl", "arm64")]:
        program = (pathlib.Path(programs) / target / "locktop").read_bytes()
        layer = tar([*common, ("usr/bin/locktop", program, 0o755)])
        config = {
            "created": created,
            "architecture": processor,
            "os": "linux",
            "config": {
                "User": f"{NOBODY}:{NOBODY}",
                "Env": ["PATH=/usr/bin", "HOME=/"],
                "Entrypoint": ["/usr/bin/locktop"],
                "WorkingDir": "/",
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
            "history": [{"created": created, "created_by": "packaging/build.sh image"}],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": blob(json.dumps(config).encode(), "config.v1+json"),
            "layers": [blob(zipped(layer), "layer.v1.tar+gzip")],
        }
        platform = {"architecture": processor, "os": "linux"}
        manifests.append(blob(json.dumps(manifest).encode(), "manifest.v1+json", platform=platform))
    several = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}
    name = {"org.opencontainers.image.ref.name": VERSION, "io.containerd.image.name": f"docker.io/library/locktop:{VERSION}"}
    index = {"schemaVersion": 2, "manifests": [blob(json.dumps(several).encode(), "index.v1+json", annotations=name)]}
    entries = [("blobs", None, 0o755), ("blobs/sha256", None, 0o755)]
    entries += [(f"blobs/sha256/{digest}", data, 0o644) for digest, data in blobs.items()]
    entries += [("index.json", json.dumps(index).encode(), 0o644)]
    entries += [("oci-layout", b'{"imageLayoutVersion": "1.0.0"}', 0o644)]
    pathlib.Path(file).write_bytes(tar(entries))


def tree(form, program, share, folder):
    """All files of a package, in `files`, and its changelog."""
    files = pathlib.Path(folder, "files")
    doc = files / "usr/share/doc/locktop"

    def put(path, content, mode=0o644):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)

    put(files / "usr/bin/locktop", pathlib.Path(program).read_bytes(), 0o755)
    plugins = {"deb": "lib/nagios", "rpm": "lib64/nagios"}.get(form, "lib/monitoring-plugins")
    plugin = files / "usr" / plugins / ("plugins/check_locktop" if "nagios" in plugins else "check_locktop")
    plugin.parent.mkdir(parents=True)
    plugin.symlink_to(os.path.relpath(files / "usr/bin/locktop", plugin.parent))
    for page in pathlib.Path(share, "man").iterdir():
        put(files / "usr/share/man/man1" / f"{page.name}.gz", zipped(page.read_bytes()))
    zsh = "vendor-completions" if form == "deb" else "site-functions"
    for name, place in [
        ("locktop.bash", "bash-completion/completions/locktop"),
        ("_locktop", f"zsh/{zsh}/_locktop"),
        ("locktop.fish", "fish/vendor_completions.d/locktop.fish"),
    ]:
        put(files / "usr/share" / place, pathlib.Path(share, "completions", name).read_bytes())
    for path in pathlib.Path("contrib").rglob("*.*"):
        put(doc / path, path.read_bytes())
        if path.suffix == ".service" and form != "apk":
            put(files / "usr/lib/systemd/system" / path.name, path.read_bytes())
    put(doc / "README.md", pathlib.Path("README.md").read_bytes())
    put(doc / "changelog.gz", zipped(pathlib.Path("CHANGELOG.md").read_bytes()))
    notices(doc / "THIRD-PARTY.txt")
    if form == "deb":
        put(doc / "copyright", pathlib.Path("packaging/copyright").read_bytes())
        put(files / "usr/share/lintian/overrides/locktop", pathlib.Path("packaging/lintian-overrides").read_bytes())
    else:
        for name in ["LICENSE-APACHE", "LICENSE-MIT"]:
            put(files / "usr/share/licenses/locktop" / name, pathlib.Path(name).read_bytes())
    change = {"semver": VERSION, "date": stamp(), "packager": MAINTAINER}
    change |= {"deb": {"urgency": "medium", "distributions": ["unstable"]}}
    change |= {"changes": [{"note": f"Release {VERSION}; changelog.gz has the changes."}]}
    pathlib.Path(folder, "changelog.yaml").write_text(json.dumps([change]))
    for path in [pathlib.Path(folder), *pathlib.Path(folder).rglob("*")]:
        os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)


def components():
    """The packages that are linked into the program, by name and version; not those that only a build needs."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-musl"]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    seen, todo = set(), [found["resolve"]["root"]]
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            linked = [dep for dep in nodes[one]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
            todo += [dep["pkg"] for dep in linked if "proc-macro" not in packages[dep["pkg"]]["targets"][0]["kind"]]
    return sorted((packages[one] for one in seen), key=lambda package: (package["name"], package["version"]))


def notices(file):
    """Most licences ask that their text goes with a binary. Texts that are the same appear once."""
    texts = {}
    for package in components():
        if package["source"] is None:
            continue
        folder = pathlib.Path(package["manifest_path"]).parent
        title = f"{package['name']} {package['version']} ({package['license']})"
        files = sorted(path for path in folder.iterdir() if re.match(r"(?i)(licen[cs]e|copying|notice)", path.name) and path.is_file())
        for text in [path.read_text(errors="replace").strip() for path in files] or ["(the package has no file with a licence)"]:
            texts.setdefault(text, []).append(title)
    parts = ["\n".join(titles) + "\n\n" + text for text, titles in texts.items()]
    pathlib.Path(file).write_text(("\n\n" + "=" * 80 + "\n\n").join(parts) + "\n")


def sbom(file):
    sums = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.loads(pathlib.Path("Cargo.lock").read_text())["package"]}
    listed = []
    for package in components():
        name, version = package["name"], package["version"]
        one = {"type": "library", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}"}
        one["bom-ref"] = one["purl"]
        if package["license"]:
            one["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if sums.get((name, version)):
            one["hashes"] = [{"alg": "SHA-256", "content": sums[name, version]}]
        listed.append(one)
    program = {"type": "application", "name": "locktop", "version": VERSION, "bom-ref": f"pkg:cargo/locktop@{VERSION}"}
    whole = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1}
    whole |= {"metadata": {"timestamp": stamp(), "component": program}}
    whole |= {"components": [one for one in listed if one["name"] != "locktop"]}
    pathlib.Path(file).write_text(json.dumps(whole, indent=1) + "\n")


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sums(folder):
    files = sorted(path for path in pathlib.Path(folder).iterdir() if path.is_file() and path.name != "SHA256SUMS")
    pathlib.Path(folder, "SHA256SUMS").write_text("".join(f"{sha256(path)}  {path.name}\n" for path in files))


def fill(template, folder, file):
    text = pathlib.Path(template).read_text().replace("@VERSION@", VERSION).replace("@HOMEPAGE@", HOMEPAGE)

    def of(match):
        path = pathlib.Path(folder, match[1])
        if not path.is_file():
            sys.exit(f"packaging/build.sh: {template} needs {path}, which was not built")
        return sha256(path)

    pathlib.Path(file).write_text(re.sub(r"@SHA256 ([^@]*)@", of, text))


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {"archive": archive, "image": image, "tree": tree, "notices": notices, "sbom": sbom, "sums": sums, "fill": fill}[command](*arguments)
