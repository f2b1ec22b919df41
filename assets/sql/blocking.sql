-- The server's own word on who blocks each of the processes in $1, and each of those in $2 that wait for a safe snapshot.
SELECT w.pid, pg_catalog.pg_blocking_pids(w.pid), false
  FROM pg_catalog.unnest($1::pg_catalog.int4[]) AS w (pid)
 UNION ALL
SELECT w.pid, pg_catalog.pg_safe_snapshot_blocking_pids(w.pid), true
  FROM pg_catalog.unnest($2::pg_catalog.int4[]) AS w (pid)
