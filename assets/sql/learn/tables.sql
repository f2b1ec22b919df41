-- Tables of software that makes its keys from rows or names: which software, and in which schema they are.
-- Only tables of owners who are trusted, for to read one may run what its owner wrote; ordinary ones without row security in force,
-- with columns of built-in types.
-- The first row is the database itself.
(SELECT 'database', NULL::pg_catalog.text, NULL::pg_catalog.text, pg_catalog.current_database())
UNION ALL
(SELECT known.software, c.relname::pg_catalog.text, c.oid::pg_catalog.text, n.nspname
FROM (VALUES ('pgmq', 'meta', ARRAY['queue_name text', 'is_partitioned bool']),
             ('good_jobs', 'good_jobs', ARRAY['id uuid', 'serialized_params jsonb', 'performed_at time', 'finished_at time']),
             ('good_jobs_active', 'good_jobs',
              ARRAY['active_job_id uuid', 'serialized_params jsonb', 'performed_at time', 'finished_at time']),
             ('good_jobs_finished', 'good_jobs', ARRAY['id uuid', 'serialized_params jsonb', 'finished_at time']),
             ('good_job_processes', 'good_job_processes', ARRAY['id uuid', 'state jsonb']),
             ('que', 'que_jobs', ARRAY['id int', 'job_class text', 'run_at time']),
             ('terraform', 'states', ARRAY['id int', 'name text', 'data text'])
     ) AS known (software, relation, columns)
JOIN pg_catalog.pg_class c ON c.relname = known.relation AND c.relkind = 'r' AND c.relpersistence <> 't'
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE (known.software <> 'pgmq' OR n.nspname = 'pgmq')
  -- The last ones are read by an index, or the table is small.
  AND (known.software <> 'good_jobs_finished' OR pg_catalog.pg_relation_size(c.oid) < 8388608
       OR EXISTS (SELECT FROM pg_catalog.pg_index i
                  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
                  WHERE i.indrelid = c.oid AND i.indisvalid AND a.attname = 'finished_at'
                    AND coalesce(pg_catalog.pg_get_expr(i.indpred, i.indrelid), '(finished_at IS NOT NULL)')
                        = '(finished_at IS NOT NULL)'))
  AND $trusts(c.relowner) AND $trusts(n.nspowner)
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
  AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
  AND NOT pg_catalog.row_security_active(c.oid)
  AND known.columns <@ ARRAY(
        SELECT a.attname || ' ' || CASE WHEN t.oid >= 10000 THEN '?'
                                        WHEN t.oid IN (20, 21, 23) THEN 'int'
                                        WHEN t.typcategory = 'S' THEN 'text'
                                        WHEN t.typcategory = 'D' THEN 'time'
                                        ELSE t.typname::text END
        FROM pg_catalog.pg_attribute a
        JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
ORDER BY n.nspname, known.software
LIMIT 20)
