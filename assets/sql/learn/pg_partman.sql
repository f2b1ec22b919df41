-- The lock of pg_partman's maintenance. The server's own hash function says what number that is.
SELECT pg_catalog.hashtext('pg_partman run_maintenance')::bigint AS key, 'pg_partman run_maintenance' AS name
