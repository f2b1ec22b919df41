-- Fails unless a table is the one that was looked at, and belongs to whom we trust. Its error repeats the reason; without one it has no row. The value is made of
-- what the catalogs say now, so that nothing of it is evaluated before the statement runs.
SELECT ('$mark' || w.reason)::pg_catalog.int4 AS guard
  FROM (SELECT coalesce(
          (SELECT CASE
                    WHEN c.relkind NOT IN ('r', 'p') THEN c.relname::pg_catalog.text || ' is not a table'
                    WHEN NOT $trusts(c.relowner) THEN
                         pg_catalog.format('table %s.%s belongs to %s', n.nspname, c.relname, pg_catalog.pg_get_userbyid(c.relowner))
                    WHEN NOT $trusts(n.nspowner) THEN
                         pg_catalog.format('schema %s belongs to %s', n.nspname, $owner(n.nspowner))
                    ELSE coalesce(
                         (SELECT pg_catalog.format('%s, a part of %s, is a foreign table or belongs to %s', p.relname, c.relname,
                                                   pg_catalog.pg_get_userbyid(p.relowner))
                            FROM pg_catalog.pg_partition_tree(c.oid) AS pt
                            JOIN pg_catalog.pg_class AS p ON p.oid = pt.relid
                           WHERE c.relkind = 'p' AND (p.relkind NOT IN ('r', 'p') OR NOT $trusts(p.relowner))
                           LIMIT 1),
                         (SELECT pg_catalog.format('code of a trigger on %s.%s runs belongs to %s', n.nspname, c.relname,
                                                   pg_catalog.pg_get_userbyid(u.owner))
                            FROM pg_catalog.pg_trigger AS tg
                           CROSS JOIN LATERAL $runs AS u
                           WHERE $is_written AND NOT $trusts(u.owner)
                             AND tg.tgrelid IN (SELECT c.oid UNION ALL
                                                SELECT pt.relid FROM pg_catalog.pg_partition_tree(c.oid) AS pt WHERE c.relkind = 'p')
                           LIMIT 1),
                         '')
                  END
             FROM pg_catalog.pg_class AS c
             JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.oid = $oid AND n.nspname = $schema AND c.relname = $name),
          'it has changed') AS found) AS l
 CROSS JOIN LATERAL (SELECT nullif(l.found, '') AS reason) AS w
 WHERE w.reason IS NOT NULL
