# Runs a server for as long as standard input stays open, then ends it and removes its directory.
#
# Arguments: the signal that ends the server at once, the directory to make, the data directory to copy into it or
# nothing, and the server's command line.
# A line on standard input starts the server again after it has ended.
# Left in the directory: `pid` once the server was started, `exit` once it has ended, `log`.
#
# Standard input is a pipe whose other end only the parent has. It closes however the parent ends, so nothing that
# can happen to the parent leaves a server behind. The server is a child of this script, not of the parent, so there
# is no moment at which it runs and this script does not know it.
trap '' INT TERM HUP QUIT PIPE
umask 077
signal=$1
dir=$2
data=$3
shift 3

mkdir -- "$dir" || exit 1
if [ -n "$data" ] && ! cp -R -- "$data" "$dir/data"; then
    rm -rf -- "$dir"
    exit 1
fi

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
    supervisor=$!
}

run "$@"
while read -r _; do
    run "$@"
done

# The number is the server's for as long as its supervisor has not written down that it ended. It is asked again and again,
# because a server that has only just been started does not listen yet: PostgreSQL needs some milliseconds, and ends its
# own children after 5 s at the latest. After ten, or where somebody removed the directory, all are killed.
tries=0
while kill -0 "$supervisor" 2>/dev/null; do
    if [ -f "$dir/pid" ] && [ ! -f "$dir/exit" ]; then
        kill "-$signal" "$(cat "$dir/pid")" 2>/dev/null
    fi
    sleep 0.02
    tries=$((tries + 1))
    if [ "$tries" -gt 500 ]; then
        rm -rf -- "$dir"
        kill -KILL 0
    fi
done
rm -rf -- "$dir"
