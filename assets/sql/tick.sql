-- What the server says of itself at each poll. $1: OIDs of the databases to sum deadlocks over.
SELECT pg_catalog.clock_timestamp(),
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.pg_last_xact_replay_timestamp(),
       (SELECT sum(pg_catalog.pg_stat_get_db_deadlocks(d.oid))::pg_catalog.int8
          FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS d (oid))
