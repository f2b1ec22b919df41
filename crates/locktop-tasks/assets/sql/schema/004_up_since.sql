-- When the server came up, also where an ordinary role owns the schema.

-- No session of now is older. After a start, a crash, which ends all sessions, and a promotion every key is free, and those who held one
-- may need a while to notice.
--
-- The launchers start when the server first lets somebody write, which no function tells. Their start may be hidden from a worker, so
-- this looks as the owner of the schema. Where that does not help either: recovery after a crash begins all statistics anew, after the
-- last session has ended and before the next one begins, and everybody may see when. (Somebody who resets them by hand makes the grace
-- begin anew, which is too long and never too short.) A promotion was after the last transaction replayed.
CREATE OR REPLACE FUNCTION @schema@.up_since()
RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT greatest(pg_postmaster_start_time(), coalesce(
        (SELECT min(a.backend_start) FROM pg_stat_get_activity(NULL) a
          WHERE a.backend_type IN ('autovacuum launcher', 'logical replication launcher')),
        greatest(pg_stat_get_bgwriter_stat_reset_time(), pg_last_xact_replay_timestamp())))
$body$;
