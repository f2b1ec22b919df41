-- pg_stat_activity from the function below the view: names of databases and roles are looked up by locktop, so that
-- no catalog has to be opened.
--
-- The sessions are in 128 groups, by process id. A group of which nothing has changed since the last poll is not sent again: what
-- changed is told by a digest of all columns, with a seed that is ours. The last row has no pid: it says what locktop.poll is, and has the
-- digests, for the next poll.
COPY (
WITH a AS MATERIALIZED (
SELECT pid, backend_start, leader_pid, datid, usesysid, application_name, client_addr, client_port, backend_type,
       state, wait_event_type, wait_event, xact_start, query_start, state_change, backend_xid, backend_xmin,
       query_id, query,
       pid & 127 AS part,
       pg_catalog.hash_record_extended(s, (SELECT pg_catalog.current_setting('locktop.seed', true)::pg_catalog.int8)) AS hash
  FROM pg_catalog.pg_stat_get_activity(NULL) AS s
),
now AS MATERIALIZED (SELECT part, pg_catalog.bit_xor(hash) AS digest FROM a GROUP BY part),
before AS (
SELECT (place - 1)::pg_catalog.int4 AS part, digest
  FROM pg_catalog.unnest(pg_catalog.current_setting('locktop.digests', true)::pg_catalog.int8[]) WITH ORDINALITY AS d (digest, place)
)
SELECT pid, backend_start, leader_pid, datid, usesysid, application_name, client_addr, client_port, backend_type,
       state, wait_event_type, wait_event, xact_start, query_start, state_change, backend_xid, backend_xmin,
       query_id, query
  FROM a
 WHERE part NOT IN (SELECT now.part FROM now JOIN before ON before.part = now.part AND before.digest = now.digest)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, pg_catalog.current_setting('locktop.poll', true), NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       (SELECT pg_catalog.array_agg(coalesce(digest, 0) ORDER BY part)::pg_catalog.text
          FROM pg_catalog.generate_series(0, 127) AS g (part) LEFT JOIN now USING (part))
) TO STDOUT (FORMAT binary)
