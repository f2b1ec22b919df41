-- The task tables: those of the usual names on the search path, in schema locktop or beside a configured one, and the
-- configured ones, $1 and $2. With their columns (only of built-in types, so that reading them runs nothing that their
-- owner wrote) and their indexes. Nothing here opens a table, so nothing waits for one that is locked.
SELECT c.oid, n.nspname::pg_catalog.text, c.relname::pg_catalog.text,
       pg_catalog.pg_table_is_visible(c.oid),
       coalesce(c.oid = given.tasks, false), coalesce(c.oid = given.log, false),
       CASE WHEN c.relkind NOT IN ('r', 'p') THEN 'it is not a table'
            WHEN pg_catalog.row_security_active(c.oid) THEN 'its row security would run expressions of its owner'
       END,
       c.relkind = 'p',
       (SELECT pg_catalog.string_agg(a.attname::pg_catalog.text || ' ' || CASE
                 WHEN a.atttypid IN (20, 21, 23) THEN 'int'
                 WHEN a.atttypid IN (25, 1043) THEN 'text'
                 WHEN a.atttypid IN (1184, 1114, 1082) THEN 'time'
                 WHEN a.atttypid = 16 THEN 'bool'
                 WHEN a.atttypid = 1186 THEN 'interval'
                 WHEN a.atttypid IN (700, 701, 1700) THEN 'number'
                 ELSE '?' END, E'\n')
          FROM pg_catalog.pg_attribute AS a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v'),
       (SELECT pg_catalog.string_agg(CASE WHEN i.indpred IS NULL THEN '' WHEN i.indisunique THEN 'unique where ' ELSE 'where ' END || (
                 SELECT pg_catalog.string_agg(coalesce(a.attname::pg_catalog.text, '?'), ' ' ORDER BY k.place)
                   FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS k (attnum, place)
                   LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum), E'\n')
          FROM pg_catalog.pg_index AS i
          JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
          JOIN pg_catalog.pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
         WHERE i.indrelid = c.oid AND i.indisvalid)
  FROM (SELECT pg_catalog.to_regclass($1)::pg_catalog.oid AS tasks,
               pg_catalog.to_regclass($2)::pg_catalog.oid AS log) AS given
 CROSS JOIN pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.oid IN (given.tasks, given.log)
    OR (c.relname IN ('scheduled_tasks', 'task_execution_log')
        AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
        AND (n.nspname = 'locktop'
             OR pg_catalog.pg_table_is_visible(c.oid)
             OR n.oid IN (SELECT g.relnamespace FROM pg_catalog.pg_class AS g WHERE g.oid IN (given.tasks, given.log))))
 ORDER BY c.oid
