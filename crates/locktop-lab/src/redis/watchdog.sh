# Runs a Redis server for as long as standard input stays open, then kills it and removes its directory.
#
# Arguments: the directory to make, and the server's command line.
# A line on standard input starts the server again after it has ended.
# Left in the directory: `pid` once the server was started, `exit` once it has ended, `log`.
#
# Standard input is a pipe whose other end only the parent has. It closes however the parent ends, so nothing that
# can happen to the parent leaves a server behind.
trap '' INT TERM HUP QUIT PIPE
umask 077
dir=$1
shift

mkdir -- "$dir" || exit 1

run() {
    rm -f -- "$dir/pid" "$dir/exit"
    (
        "$@" </dev/null >>"$dir/log" 2>&1 &
        echo $! >"$dir/pid.new"
        mv -- "$dir/pid.new" "$dir/pid"
        wait $!
        echo $? >"$dir/exit.new"
        mv -- "$dir/exit.new" "$dir/exit"
    ) &
    keeper=$!
}

run "$@"
while read -r _; do
    run "$@"
done

# Nothing is kept on disk, so that there is nothing to shut down in order. The number is the server's for as long as
# its keeper has not written down that it ended.
while kill -0 "$keeper" 2>/dev/null; do
    if [ -f "$dir/pid" ] && [ ! -f "$dir/exit" ]; then
        kill -KILL "$(cat "$dir/pid")" 2>/dev/null
    fi
    sleep 0.02
done
rm -rf -- "$dir"
