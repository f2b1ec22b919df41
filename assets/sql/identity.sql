-- What stays the same for as long as a connection lives; and the server's clock, to count from.
SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4,
       pg_catalog.current_setting('server_version'),
       pg_catalog.current_database()::pg_catalog.text,
       (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()),
       current_user::pg_catalog.text,
       pg_catalog.pg_backend_pid(),
       pg_catalog.current_setting('max_connections')::pg_catalog.int4,
       pg_catalog.pg_postmaster_start_time(),
       pg_catalog.current_setting('track_activity_query_size'),
       pg_catalog.pg_has_role(current_user, 'pg_read_all_stats',
                              CASE WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 < 150000
                                   THEN 'MEMBER' ELSE 'USAGE' END),
       pg_catalog.clock_timestamp(),
       pg_catalog.getdatabaseencoding()::pg_catalog.text,
       -- What is no plain interval would fail the statement.
       CASE WHEN pg_catalog.current_setting('locktop.orphan_grace', true) OPERATOR(pg_catalog.~)
                 '^ *([0-9]{1,9}([.][0-9]{1,6})?) *(ms|s|secs?|seconds?|mins?|minutes?|h|hours?)? *$|^ *[0-9]{1,4}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)? *$'
            THEN pg_catalog.date_part('epoch', pg_catalog.current_setting('locktop.orphan_grace', true)::pg_catalog.interval) END,
       -- In the order of their names; what sessions begin with, not what ours has over its kind of socket.
       (SELECT pg_catalog.string_agg(reset_val, ',' ORDER BY name COLLATE "C")
          FROM pg_catalog.pg_settings
         WHERE name IN ('client_connection_check_interval', 'tcp_keepalives_count', 'tcp_keepalives_idle',
                        'tcp_keepalives_interval')),
       pg_catalog.current_setting('deadlock_timeout'),
       pg_catalog.current_setting('log_lock_waits')::pg_catalog.bool,
       pg_catalog.current_setting('max_locks_per_transaction')::pg_catalog.int4,
       -- NLOCKENTS of lock.c with MaxBackends of postinit.c; version 18 has slots for autovacuum workers, and two special processes
       -- where there was the launcher.
       least(pg_catalog.current_setting('max_locks_per_transaction')::pg_catalog.int8
             OPERATOR(pg_catalog.*) (
                 (SELECT sum(setting::pg_catalog.int8) FROM pg_catalog.pg_settings
                   WHERE name IN ('max_connections', 'max_worker_processes', 'max_wal_senders', 'max_prepared_transactions',
                                  CASE WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 < 180000
                                       THEN 'autovacuum_max_workers' ELSE 'autovacuum_worker_slots' END))::pg_catalog.int8
                 OPERATOR(pg_catalog.+) CASE WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 < 180000
                                             THEN 1 ELSE 2 END),
             2147483647)::pg_catalog.int4
