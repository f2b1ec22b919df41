-- Tables that may belong to the job systems of others, as an object of JSON each. $wanted is a literal: an array of objects with the
-- name of a table, or its end or beginning, the columns that it must have, and the schema where only one counts. Nothing here opens a table, so
-- nothing waits for one that is locked, and nothing of a table is evaluated.
--
-- A stranger is who owns the table, its schema or a part of it, or the type of a column, without being trusted. Those whom we trust come
-- first, so that a thousand tables of somebody hide none.
-- Of columns and labels only those come that an adapter asks for: anybody may make enormous ones. Of more than a thousand tables the others are
-- counted, by the adapter that they may be of.
WITH RECURSIVE wanted AS (
SELECT w.adapter, w.name, w.suffix, w.begins, w.beside, w.schema, w.columns, w.uses, w.labels
  FROM pg_catalog.jsonb_to_recordset($wanted::pg_catalog.jsonb) AS w (adapter pg_catalog.text, name pg_catalog.text, suffix pg_catalog.text, begins pg_catalog.text, beside pg_catalog.text,
                                                                        schema pg_catalog.text, columns pg_catalog.text[],
                                                                        uses pg_catalog.text[], labels pg_catalog.text[])
), uses AS MATERIALIZED (
SELECT DISTINCT u.name FROM wanted AS w CROSS JOIN LATERAL pg_catalog.unnest(w.uses) AS u (name)
), labels AS MATERIALIZED (
SELECT DISTINCT u.name FROM wanted AS w CROSS JOIN LATERAL pg_catalog.unnest(w.labels) AS u (name)
), ending AS MATERIALIZED (
-- One pass over the names, where there are endings or beginnings to look for; a _ in them stands for any letter here, and is looked at below.
SELECT c.oid, c.relnamespace, c.relname::pg_catalog.text AS name, c.relispartition AS is_part
  FROM pg_catalog.pg_class AS c
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
   AND c.relname::pg_catalog.text LIKE ANY (ARRAY(SELECT '%' || e.suffix FROM wanted AS e WHERE e.suffix IS NOT NULL
                                                  UNION ALL SELECT e.begins || '%' FROM wanted AS e WHERE e.begins IS NOT NULL))
), homes AS MATERIALIZED (
-- What begins so counts only in a schema that has the table beside it: many have tables that begin with t_.
SELECT DISTINCT w.adapter, w.begins, w.schema, w.columns, c.relnamespace
  FROM wanted AS w
  JOIN pg_catalog.pg_class AS c ON c.relname = w.beside::pg_catalog.name
 WHERE w.begins IS NOT NULL
), named AS (
SELECT c.oid, w.adapter, w.schema, w.columns
  FROM wanted AS w
  JOIN pg_catalog.pg_class AS c ON c.relname = w.name::pg_catalog.name
 UNION ALL
SELECT c.oid, w.adapter, w.schema, w.columns
  FROM wanted AS w
  JOIN ending AS c ON pg_catalog.right(c.name, pg_catalog.length(w.suffix)) = w.suffix
 WHERE w.suffix IS NOT NULL
 UNION ALL
SELECT c.oid, h.adapter, h.schema, h.columns
  FROM homes AS h
  JOIN ending AS c ON c.relnamespace = h.relnamespace AND NOT c.is_part
   AND pg_catalog.left(c.name, pg_catalog.length(h.begins)) = h.begins
), fitting AS MATERIALIZED (
SELECT DISTINCT c.oid, d.adapter, $trusts(c.relowner) AND $trusts(n.nspowner) AS is_trusted
  FROM named AS d
  JOIN pg_catalog.pg_class AS c ON c.oid = d.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace AND (d.schema IS NULL OR n.nspname::pg_catalog.text = d.schema)
 WHERE (SELECT pg_catalog.count(*) FROM pg_catalog.pg_attribute AS a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attname::pg_catalog.text = ANY (d.columns))
       = pg_catalog.cardinality(d.columns)
), candidates AS MATERIALIZED (
SELECT t.oid
  FROM (SELECT DISTINCT f.oid, f.is_trusted FROM fitting AS f) AS t
 ORDER BY t.is_trusted DESC, t.oid
 LIMIT 1000
), $types, parts (root, oid) AS (
SELECT w.oid, w.oid FROM candidates AS w
 UNION
SELECT p.root, i.inhrelid
  FROM parts AS p
  JOIN pg_catalog.pg_inherits AS i ON i.inhparent = p.oid
  JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid AND c.relispartition
)
SELECT pg_catalog.to_jsonb(t)::pg_catalog.text
  FROM (
SELECT c.oid::pg_catalog.int8, n.nspname::pg_catalog.text AS schema, c.relname::pg_catalog.text AS name,
       c.relkind::pg_catalog.text AS kind, c.relpersistence = 't' AS is_temporary,
       coalesce(CASE WHEN NOT $trusts(c.relowner) THEN $owner(c.relowner) END,
                CASE WHEN NOT $trusts(n.nspowner) THEN $owner(n.nspowner) END,
                (SELECT $owner(p.relowner)
                   FROM parts AS q
                   JOIN pg_catalog.pg_class AS p ON p.oid = q.oid
                  WHERE q.root = c.oid AND NOT $trusts(p.relowner)
                  ORDER BY p.oid
                  LIMIT 1))::pg_catalog.text AS stranger,
       (SELECT pg_catalog.format('%s.%s', pn.nspname, p.relname)
          FROM parts AS q
          JOIN pg_catalog.pg_class AS p ON p.oid = q.oid
          JOIN pg_catalog.pg_namespace AS pn ON pn.oid = p.relnamespace
         WHERE q.root = c.oid AND $trusts(c.relowner) AND $trusts(n.nspowner) AND NOT $trusts(p.relowner)
         ORDER BY p.oid
         LIMIT 1) AS strange_part,
       (SELECT coalesce(pg_catalog.jsonb_agg(q.oid::pg_catalog.int8 ORDER BY q.oid), '[]')
          FROM (SELECT q.oid FROM parts AS q WHERE q.root = c.oid AND q.oid <> c.oid ORDER BY q.oid LIMIT 1000) AS q) AS parts,
       (SELECT p.relname::pg_catalog.text
          FROM parts AS q
          JOIN pg_catalog.pg_class AS p ON p.oid = q.oid
         WHERE q.root = c.oid AND q.oid <> c.oid AND p.relkind NOT IN ('r', 'p')
         ORDER BY p.oid
         LIMIT 1) AS foreign_part,
       (SELECT pg_catalog.jsonb_build_object('owner', $owner(y.typowner), 'name', pg_catalog.left(y.typname::pg_catalog.text, 63))
          FROM types AS t
          JOIN pg_catalog.pg_type AS y ON y.oid = t.oid
         WHERE t.relation = c.oid AND NOT $trusts(y.typowner)
         ORDER BY y.oid
         LIMIT 1) AS strange_type,
       pg_catalog.has_schema_privilege(n.oid, 'USAGE') AS has_usage,
       pg_catalog.has_table_privilege(c.oid, 'SELECT') AS has_select,
       pg_catalog.row_security_active(c.oid) AS has_row_security,
       (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                 'name', a.attname, 'type', a.atttypid::pg_catalog.int8, 'is_enum', y.typtype = 'e',
                 'labels', (SELECT coalesce(pg_catalog.jsonb_agg(e.enumlabel), '[]')
                              FROM pg_catalog.pg_enum AS e
                             WHERE e.enumtypid = y.oid AND e.enumlabel::pg_catalog.text IN (SELECT l.name FROM labels AS l)))), '[]')
          FROM pg_catalog.pg_attribute AS a
          JOIN pg_catalog.pg_type AS y ON y.oid = a.atttypid
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
           AND a.attname::pg_catalog.text IN (SELECT u.name FROM uses AS u)) AS columns
  FROM candidates AS w
  JOIN pg_catalog.pg_class AS c ON c.oid = w.oid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 ORDER BY c.oid) AS t
 UNION ALL
SELECT pg_catalog.jsonb_build_object('adapter', f.adapter, 'left_out', pg_catalog.count(*))::pg_catalog.text
  FROM fitting AS f
 WHERE f.oid NOT IN (SELECT w.oid FROM candidates AS w)
 GROUP BY f.adapter
