-- The server's own word on who blocks each of the processes in $1.
SELECT w.pid, pg_catalog.pg_blocking_pids(w.pid)
  FROM pg_catalog.unnest($1::pg_catalog.int4[]) AS w (pid)
