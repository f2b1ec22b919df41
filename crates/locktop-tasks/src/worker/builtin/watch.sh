# Runs a program in this process, with somebody in its process group who ends the whole group when told to, and when nobody is left who
# could tell.
#
# Arguments: the program's own. Standard input is a pipe whose other end only the worker has: a line asks the group to end (TERM), the
# pipe's end kills it. However the worker ends, the pipe does. The group has an id of its own for as long as somebody is in it, and the
# one who kills it is.
exec 3<&0 </dev/null
(
    trap '' HUP INT QUIT TERM
    exec >/dev/null 2>&1
    while read -r _ <&3; do kill -TERM 0; done
    kill -KILL 0
) &
exec 3<&-
exec "$@"
