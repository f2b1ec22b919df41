-- Settings of a session on a direct connection, one round trip, the same text for every server version.
-- statement_timeout and lock_timeout are set before, since these may have to wait for a lock on a catalog.
-- SQL_ASCII as the client's encoding means that the server converts nothing: text arrives in the bytes it is stored
-- in, and one query in another encoding cannot fail a whole statement. locktop.datid is a setting of our own: the
-- OID of the database, for locks.sql. No relation is named here, so that a connection that stands gets its settings also while
-- somebody holds pg_class: to open another one in its place would leave a backend there that waits in its start, where nothing
-- can be told to it and no time-out holds.
-- Whoever writes says so (a transaction of his own, READ WRITE). A policy is code of a table's owner: with row_security off it is an
-- error, and never runs.
-- locktop.seed is for the digests of backends.sql: what another role does cannot be made to look like nothing.
-- The memory is for 50,000 locks, which would go through a file otherwise.
SELECT pg_catalog.set_config('client_encoding', 'SQL_ASCII', false),
       pg_catalog.set_config('idle_session_timeout', '0', false),
       pg_catalog.set_config('idle_in_transaction_session_timeout', '0', false),
       pg_catalog.set_config('default_transaction_isolation', 'read committed', false),
       pg_catalog.set_config('default_transaction_read_only', 'on', false),
       pg_catalog.set_config('row_security', 'off', false),
       pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false),
       pg_catalog.set_config('jit', 'off', false),
       pg_catalog.set_config('work_mem', '16MB', false),
       pg_catalog.set_config('max_parallel_workers_per_gather', '0', false),
       pg_catalog.set_config('locktop.datid', (SELECT objid::pg_catalog.text FROM
                pg_catalog.pg_get_object_address('database', ARRAY[pg_catalog.current_database()::pg_catalog.text], '{}')), false),
       pg_catalog.set_config('locktop.seed',
                pg_catalog.hashtextextended(pg_catalog.gen_random_uuid()::pg_catalog.text, 0)::pg_catalog.text, false),
       CASE WHEN pg_catalog.current_setting('transaction_timeout', true) IS NOT NULL
            THEN pg_catalog.set_config('transaction_timeout', '0', false) END
