-- Client sessions that have done nothing since the last poll. One that is idle or idle in transaction neither takes nor gives back a lock
-- before its state changes, and that has a time. A clock that is set back a little is
-- allowed for by who says since when (Limits::clock_slack).
SELECT CASE state WHEN 'idle' THEN -pid ELSE pid END AS signed, pid
  FROM pg_catalog.pg_stat_get_activity(NULL)
 WHERE state_change < (SELECT pg_catalog.to_timestamp(pg_catalog.current_setting('locktop.since', true)::pg_catalog.float8))
   AND state IN ('idle', 'idle in transaction', 'idle in transaction (aborted)')
   AND backend_type = 'client backend'
