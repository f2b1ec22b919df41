-- The published tables of a schema ($1), from the catalogs alone: nothing opens one. As one object of JSON each; odd: why it is not taken.
SELECT pg_catalog.to_jsonb(f)::pg_catalog.text
  FROM (
SELECT c.oid::pg_catalog.int8 AS oid, c.relname::pg_catalog.text AS name,
       CASE WHEN c.relkind = 'p' THEN 'is partitioned'
            WHEN c.relkind <> 'r' THEN 'is not a table'
            WHEN c.relpersistence = 't' THEN 'is a temporary table'
            WHEN EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE c.oid IN (i.inhparent, i.inhrelid))
            THEN 'has rows in other tables, by inheritance' END AS odd,
       (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                 'name', a.attname, 'type', a.atttypid::pg_catalog.int8,
                 'shown', pg_catalog.format_type(a.atttypid, NULL)) ORDER BY a.attnum), '[]')
          FROM pg_catalog.pg_attribute AS a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
  FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname IN ('scheduled_tasks', 'task_execution_log', 'task_queue')
 ORDER BY c.oid) AS f
