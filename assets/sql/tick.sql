-- What the server says of itself at each poll. $1: OIDs of the databases to sum deadlocks over.
-- Of a standby: whether WAL comes, and whether all that came is replayed. Then it is not behind, however old the last change is.
SELECT pg_catalog.clock_timestamp(),
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.pg_last_xact_replay_timestamp(),
       EXISTS (SELECT FROM pg_catalog.pg_stat_get_wal_receiver() AS r WHERE r.pid IS NOT NULL),
       pg_catalog.pg_last_wal_receive_lsn() <= pg_catalog.pg_last_wal_replay_lsn(),
       (SELECT sum(pg_catalog.pg_stat_get_db_deadlocks(d.oid))::pg_catalog.int8
          FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS d (oid)),
       pg_catalog.pg_backend_pid()
