-- Tables that may be ours: those of the usual names ($2) on the search path, in schema locktop or beside a configured one, and
-- the configured ones ($1, NULL where the config says nothing). With their columns (only of built-in types, so that reading them
-- runs nothing that their owner wrote) and their indexes. Nothing here opens a table, so nothing waits for one that is locked.
--
-- An index is told as whether it is unique, what its predicate is, and its columns. A predicate is understood where it is one
-- comparison of text with a constant (operator 98 is text = text): then it is the column and the bytes of the constant. It is
-- read from the stored expression, since pg_get_expr() would open the table.
WITH given AS (
SELECT pg_catalog.to_regclass(g.name)::pg_catalog.oid AS oid, g.place
  FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS g (name, place)
)
SELECT c.oid, n.nspname::pg_catalog.text, c.relname::pg_catalog.text,
       pg_catalog.pg_table_is_visible(c.oid),
       (SELECT pg_catalog.string_agg(g.place::pg_catalog.text, E'\n') FROM given AS g WHERE g.oid = c.oid),
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
       (SELECT pg_catalog.string_agg(pg_catalog.concat_ws('|',
                 CASE WHEN i.indisunique THEN 'unique' ELSE '' END,
                 CASE WHEN i.indpred IS NULL THEN ''
                      ELSE coalesce((
                        SELECT pg_catalog.translate(a.attname::pg_catalog.text, E'\n|=', '???') || '=' || p.parts[2]
                          FROM pg_catalog.regexp_matches(i.indpred::pg_catalog.text,
                                 '^\{OPEXPR :opno 98 [^{}]*\((?:\{RELABELTYPE :arg )?\{VAR [^{}]*:varattno (\d+) [^{}]*\}[^{}]*\}? ?\{CONST [^{}]*:constvalue \d+ \[ (?:-?\d+ ){4}([-0-9 ]*)\]\}\) :location -?\d+\}$') AS p (parts)
                          JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = p.parts[1]::pg_catalog.int2), '?')
                 END,
                 (SELECT pg_catalog.string_agg(pg_catalog.translate(coalesce(a.attname::pg_catalog.text, '?'), E'\n| ', '???'), ' ' ORDER BY k.place)
                    FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS k (attnum, place)
                    LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum)), E'\n')
          FROM pg_catalog.pg_index AS i
          JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
          JOIN pg_catalog.pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
         WHERE i.indrelid = c.oid AND i.indisvalid)
  FROM (SELECT g.oid FROM given AS g WHERE g.oid IS NOT NULL
         UNION
        SELECT r.oid
          FROM pg_catalog.pg_class AS r
          JOIN pg_catalog.pg_namespace AS s ON s.oid = r.relnamespace
         WHERE r.relname OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.text[])
           AND r.relkind IN ('r', 'p') AND r.relpersistence <> 't'
           AND (s.nspname = 'locktop'
                OR pg_catalog.pg_table_is_visible(r.oid)
                OR s.oid IN (SELECT k.relnamespace FROM given AS g JOIN pg_catalog.pg_class AS k ON k.oid = g.oid))) AS wanted
  JOIN pg_catalog.pg_class AS c ON c.oid = wanted.oid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 ORDER BY c.oid
