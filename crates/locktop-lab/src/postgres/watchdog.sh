# Runs a server for as long as standard input stays open, then ends it and removes its directory.
#
# Arguments: the directory to make, the data directory to copy into it, and the server's command line.
# A line on standard input starts the server again after it has ended.
# Left in the directory: `pid` once the server was started, `exit` once it has ended, `log`.
#
# Standard input is a pipe whose other end only the parent has. It closes however the parent ends, so nothing that
# can happen to the parent leaves a server behind. The server is a child of this script, not of the parent, so there
# is no moment at which it runs and this script does not know it.
trap '' INT TERM HUP QUIT PIPE
umask 077
dir=$1
template=$2
shift 2

mkdir -- "$dir" || exit 1
if ! cp -R -- "$template" "$dir/data"; then
    rm -rf -- "$dir"
    exit 1
fi

run() {
    rm -f -- "$dir/pid" "$dir/exit"
    (
        "$@" </dev/null >>"$dir/log" 2>&1 &
        echo $! >"$dir/pid"
        wait $!
        echo $? >"$dir/exit"
    ) &
    keeper=$!
}

run "$@"
while read -r _; do
    run "$@"
done

# An immediate shutdown, asked for through the process group, in which everybody but the server ignores the signal.
# It is asked for again and again, because a server that has only just been started does not listen yet. The server
# needs some milliseconds, and ends its own children after 5 s at the latest.
tries=0
while kill -0 "$keeper" 2>/dev/null; do
    kill -QUIT 0
    sleep 0.02
    tries=$((tries + 1))
    if [ "$tries" -gt 500 ]; then
        rm -rf -- "$dir"
        kill -KILL 0
    fi
done
rm -rf -- "$dir"
