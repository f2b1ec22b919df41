-- Client sessions that have done nothing since the last poll. One that is idle in no transaction neither acquires nor releases a lock before its
-- state changes, and that has a time. A message Describe begins a transaction and acquires locks without such a change (exec_describe_statement_message in
-- src/backend/tcop/postgres.c), until a Sync ends it: an idle session in a transaction is not quiet. One that is "idle in transaction" may do the
-- same, and is quiet all the same, since most locks are of such sessions: KnownLocks::lacks notices when one of those is missing. A clock that
-- is set back a little is allowed for by the time since when (Limits::clock_slack).
SELECT CASE state WHEN 'idle' THEN -pid ELSE pid END AS signed, pid
  FROM pg_catalog.pg_stat_get_activity(NULL)
 WHERE state_change < (SELECT pg_catalog.to_timestamp(pg_catalog.current_setting('locktop.since', true)::pg_catalog.float8))
   AND CASE state WHEN 'idle' THEN xact_start IS NULL ELSE state IN ('idle in transaction', 'idle in transaction (aborted)') END
   AND backend_type = 'client backend'
