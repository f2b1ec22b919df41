-- Tables that may be ours: those of the usual names ($2) on the search path ($3), in schema locktop or in the schema of a configured one, and
-- the configured ones ($1, NULL where the config says nothing). With their columns and their indexes, as one object of JSON each. Nothing
-- here opens a table, so nothing waits for one that is locked; and nothing of a table is evaluated. What is no name is an error of to_regclass.
--
-- A stranger is who owns the table, its schema or a part of it without being trusted. A table of a stranger hides none: of one name all that
-- are on the path come, with their place on it, whatever they are; what a name means is decided where the rows are read.
--
-- Each part of it takes time in proportion to what is in the catalogs. Of functions those are read that are short, at most 500 of each owner.
--
-- An index is told as whether it is unique, what its predicate is, and its columns. A predicate is understood where it is one
-- comparison of text with a constant (operator 98 is text = text): then it is the column and the bytes of the constant. It is
-- read from the stored expression, since pg_get_expr() would open the table.
WITH RECURSIVE owners AS MATERIALIZED (
SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE $trusts(r.oid)
), path AS MATERIALIZED (
SELECT s.oid, p.place, pg_catalog.has_schema_privilege(s.oid, 'USAGE') OR s.nspowner IN (SELECT o.oid FROM owners AS o) AS counts
  FROM pg_catalog.unnest($3::pg_catalog.text[]) WITH ORDINALITY AS p (name, place)
 CROSS JOIN LATERAL (SELECT s.oid, s.nspowner FROM pg_catalog.pg_namespace AS s
                      WHERE s.nspname = p.name::pg_catalog.name AND s.nspname::pg_catalog.text = p.name OFFSET 0) AS s
), given AS MATERIALIZED (
SELECT g.place, k.oid, k.relnamespace, s.place AS path
  FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS g (name, place)
 CROSS JOIN LATERAL (SELECT CASE WHEN pg_catalog.to_regclass(g.name) IS NULL THEN pg_catalog.parse_ident(g.name)
                                 ELSE pg_catalog.parse_ident(g.name) END AS parts) AS p
 CROSS JOIN LATERAL (SELECT s.oid, s.place FROM path AS s WHERE pg_catalog.cardinality(p.parts) = 1
                      UNION ALL
                     SELECT s.oid, NULL FROM pg_catalog.pg_namespace AS s
                      WHERE s.nspname = p.parts[pg_catalog.cardinality(p.parts) - 1]::pg_catalog.name) AS s
 CROSS JOIN LATERAL (SELECT k.oid, k.relnamespace FROM pg_catalog.pg_class AS k
                      WHERE k.relnamespace = s.oid AND k.relname = p.parts[pg_catalog.cardinality(p.parts)]::pg_catalog.name OFFSET 0) AS k
 WHERE g.name IS NOT NULL
), wanted AS MATERIALIZED (
SELECT g.oid, g.relnamespace FROM given AS g
 UNION
SELECT r.oid, s.oid
  FROM (SELECT p.oid FROM path AS p WHERE p.counts
         UNION
        SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname = 'locktop'
         UNION
        SELECT g.relnamespace FROM given AS g) AS s
 CROSS JOIN LATERAL (SELECT r.oid FROM pg_catalog.pg_class AS r
                      WHERE r.relnamespace = s.oid AND r.relname = ANY ($2::pg_catalog.name[])
                        AND r.relkind IN ('r', 'p') AND r.relpersistence <> 't' OFFSET 0) AS r
), parts (root, oid) AS (
SELECT w.oid, w.oid
  FROM wanted AS w
  JOIN pg_catalog.pg_class AS c ON c.oid = w.oid AND c.relkind = 'p' AND c.relowner IN (SELECT o.oid FROM owners AS o)
 UNION ALL
SELECT p.root, i.inhrelid
  FROM parts AS p
 CROSS JOIN LATERAL (SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = p.oid OFFSET 0) AS i
), strange_parts AS MATERIALIZED (
SELECT p.root, pg_catalog.min(c.relowner) AS owner
  FROM parts AS p
  JOIN pg_catalog.pg_class AS c ON c.oid = p.oid
 WHERE c.relowner NOT IN (SELECT o.oid FROM owners AS o)
 GROUP BY p.root
), functions AS MATERIALIZED (
SELECT f.pronamespace, f.proowner, f.prosrc
  FROM (SELECT f.pronamespace, f.proowner, f.prosrc,
               pg_catalog.row_number() OVER (PARTITION BY f.proowner ORDER BY pg_catalog.octet_length(f.prosrc), f.oid) AS place
          FROM pg_catalog.pg_proc AS f
         WHERE f.pronamespace IN (SELECT w.relnamespace FROM wanted AS w)
           -- Told without its text: one that is long may take a second to be read.
           AND pg_catalog.octet_length(f.prosrc) <= 20000
           AND (f.proowner IN (SELECT o.oid FROM owners AS o)
                OR f.proowner IN (SELECT c.relowner FROM wanted AS w JOIN pg_catalog.pg_class AS c ON c.oid = w.oid))) AS f
 WHERE f.place <= 500 AND pg_catalog.strpos(f.prosrc, 'advisory_lock') > 0
)
SELECT pg_catalog.to_jsonb(t)::pg_catalog.text
  FROM (
SELECT c.oid::pg_catalog.int8, n.nspname::pg_catalog.text AS schema, c.relname::pg_catalog.text AS name,
       (SELECT p.place FROM path AS p WHERE p.oid = c.relnamespace AND p.counts) AS path,
       ARRAY(SELECT g.place FROM given AS g WHERE g.oid = c.oid) AS given,
       CASE WHEN c.relkind NOT IN ('r', 'p') THEN 'it is not a table'
            WHEN pg_catalog.row_security_active(c.oid) THEN 'its row security would run expressions of its owner'
       END AS refused,
       c.relkind = 'p' AS is_partitioned,
       coalesce(CASE WHEN NOT $trusts(c.relowner) THEN $owner(c.relowner) END,
                $owner(s.owner),
                CASE WHEN NOT $trusts(n.nspowner) THEN $owner(n.nspowner) END)::pg_catalog.text AS stranger,
       pg_catalog.pg_get_userbyid(c.relowner)::pg_catalog.text AS owner,
       c.reltuples::pg_catalog.int8 AS rows,
       l.keep IS NOT NULL AS is_limited,
       -- What of the table is older than it is to be kept, by the histogram of the column: a hundredth of the rows lies between two bounds. Only a
       -- time is taken for one, and only what surely is an interval.
       CASE WHEN l.keep ~ '^\d{1,6} *(second|minute|hour|day|week|month|year)s?$' THEN
            (SELECT (greatest(c.reltuples, 0) * (1 - s.null_frac) * pg_catalog.count(*) FILTER (WHERE b.at < pg_catalog.now() - l.keep::pg_catalog.interval)
                     / nullif(pg_catalog.count(*), 0))::pg_catalog.int8
               FROM pg_catalog.pg_stats AS s
              CROSS JOIN LATERAL pg_catalog.unnest(CASE
                    WHEN (SELECT a.atttypid FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = s.attname) = 1184
                    THEN s.histogram_bounds::pg_catalog.text::pg_catalog.timestamptz[] END) AS b (at)
              WHERE s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = l.attname AND NOT s.inherited
              GROUP BY s.null_frac) END AS old_rows,
       EXTRACT(timezone FROM pg_catalog.now())::pg_catalog.int8 AS zone,
       -- The text of a function is only looked at: one that speaks of the table and takes advisory locks takes them for its rows.
       EXISTS (SELECT FROM functions AS f
                WHERE f.pronamespace = c.relnamespace
                  AND (f.proowner = c.relowner OR f.proowner IN (SELECT o.oid FROM owners AS o))
                  AND pg_catalog.strpos(f.prosrc, c.relname::pg_catalog.text) > 0) AS has_function,
       (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                 'name', a.attname, 'type', a.atttypid::pg_catalog.int8, 'generated', a.attgenerated)), '[]')
          FROM pg_catalog.pg_attribute AS a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
       (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                 'is_unique', i.indisunique,
                 'is_partial', i.indpred IS NOT NULL,
                 'only', (SELECT pg_catalog.jsonb_build_array(a.attname, p.parts[2])
                            FROM pg_catalog.regexp_matches(i.indpred::pg_catalog.text,
                                   '^\{OPEXPR :opno 98 [^{}]*\((?:\{RELABELTYPE :arg )?\{VAR [^{}]*:varattno (\d+) [^{}]*\}[^{}]*\}? ?\{CONST [^{}]*:constvalue \d+ \[ (?:-?\d+ ){4}([-0-9 ]*)\]\}\) :location -?\d+\}$') AS p (parts)
                            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = p.parts[1]::pg_catalog.int2),
                 'columns', (SELECT pg_catalog.jsonb_agg(a.attname ORDER BY k.place)
                               FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS k (attnum, place)
                               LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum))), '[]')
          FROM pg_catalog.pg_index AS i
          JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
          JOIN pg_catalog.pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
         -- A table that is not trusted is copied as a whole, whatever its indexes are.
         WHERE i.indrelid = c.oid AND i.indisvalid AND c.relowner IN (SELECT o.oid FROM owners AS o)) AS indexes
  FROM wanted
  JOIN pg_catalog.pg_class AS c ON c.oid = wanted.oid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  LEFT JOIN strange_parts AS s ON s.root = c.oid
  LEFT JOIN LATERAL (SELECT pg_catalog.split_part(x.line, '=', 2) AS keep, g.attname
          FROM (VALUES ('task_execution_log', 'executions', 'completed_at'), ('task_queue', 'queue', 'completed_at')) AS g (relname, log, attname)
          JOIN pg_catalog.pg_database AS d ON d.datname = pg_catalog.current_database()
          JOIN pg_catalog.pg_db_role_setting AS r ON r.setdatabase = d.oid AND r.setrole = 0
         CROSS JOIN LATERAL pg_catalog.unnest(r.setconfig) AS x (line)
         WHERE g.relname = c.relname AND pg_catalog.starts_with(x.line, 'locktop.keep_' || g.log || '=')) AS l ON true
 ORDER BY c.oid) AS t
