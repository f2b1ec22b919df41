-- Tables that may belong to the job systems of others, as an object of JSON each. $wanted is a literal: an array of objects with the
-- name of a table, or its end or beginning, the columns that it must have, and the schema where only one counts. Nothing here opens a table, so
-- nothing waits for one that is locked, and nothing of a table is evaluated.
--
-- A stranger is who owns the table, its schema or a part of it, or the type of a column, without being trusted. Those whom we trust come
-- first, so that a thousand tables of somebody hide none.
-- Of columns and labels only those come that an adapter asks for: anybody may make enormous ones. Of more than a thousand tables the others are
-- counted, by the adapter that they may be of.
--
-- Each part of it takes time in proportion to what is in the catalogs, whatever is in them: of tables that are not trusted 2,000 are
-- examined, and neither their parts nor the types of their columns are; a part is gathered once, for the root of its tree.
WITH RECURSIVE wanted AS MATERIALIZED (
SELECT w.place, w.adapter, w.name, w.suffix, w.begins, w.beside, w.schema, w.columns, w.uses, w.labels
  FROM ROWS FROM (pg_catalog.jsonb_to_recordset($wanted::pg_catalog.jsonb) AS (adapter pg_catalog.text, name pg_catalog.text,
                  suffix pg_catalog.text, begins pg_catalog.text, beside pg_catalog.text, schema pg_catalog.text, columns pg_catalog.text[],
                  uses pg_catalog.text[], labels pg_catalog.text[])) WITH ORDINALITY
       AS w (adapter, name, suffix, begins, beside, schema, columns, uses, labels, place)
), uses AS MATERIALIZED (
SELECT DISTINCT u.name FROM wanted AS w CROSS JOIN LATERAL pg_catalog.unnest(w.uses) AS u (name)
), labels AS MATERIALIZED (
SELECT DISTINCT u.name FROM wanted AS w CROSS JOIN LATERAL pg_catalog.unnest(w.labels) AS u (name)
), owners AS MATERIALIZED (
SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE $trusts(r.oid)
), ending AS MATERIALIZED (
-- One pass over the names, where there are endings or beginnings to look for; a _ in them stands for any letter here, and is looked at below.
SELECT c.oid, c.relnamespace, c.relname::pg_catalog.text AS name, c.relkind, c.relispartition, c.relowner
  FROM pg_catalog.pg_class AS c
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
   AND c.relname::pg_catalog.text LIKE ANY (ARRAY(SELECT '%' || e.suffix FROM wanted AS e WHERE e.suffix IS NOT NULL
                                                  UNION ALL SELECT e.begins || '%' FROM wanted AS e WHERE e.begins IS NOT NULL))
), homes AS MATERIALIZED (
-- What begins so counts only in a schema that has the table beside it: many have tables that begin with t_.
SELECT DISTINCT w.place, w.begins, w.schema, c.relnamespace
  FROM wanted AS w
  JOIN pg_catalog.pg_class AS c ON c.relname = w.beside::pg_catalog.name
 WHERE w.begins IS NOT NULL
), named AS MATERIALIZED (
SELECT d.oid, d.place, d.relkind = 'p' AND NOT d.relispartition AS is_root,
       d.relowner IN (SELECT o.oid FROM owners AS o) AND n.nspowner IN (SELECT o.oid FROM owners AS o) AS is_trusted
  FROM (SELECT c.oid, w.place, w.schema, c.relkind, c.relispartition, c.relowner, c.relnamespace
          FROM wanted AS w
          JOIN pg_catalog.pg_class AS c ON c.relname = w.name::pg_catalog.name AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
         UNION ALL
        SELECT c.oid, w.place, w.schema, c.relkind, c.relispartition, c.relowner, c.relnamespace
          FROM wanted AS w
          JOIN ending AS c ON pg_catalog.right(c.name, pg_catalog.length(w.suffix)) = w.suffix
         WHERE w.suffix IS NOT NULL
         UNION ALL
        SELECT c.oid, h.place, h.schema, c.relkind, c.relispartition, c.relowner, c.relnamespace
          FROM homes AS h
          JOIN ending AS c ON c.relnamespace = h.relnamespace AND NOT c.relispartition
           AND pg_catalog.left(c.name, pg_catalog.length(h.begins)) = h.begins) AS d
  -- By its index for each, whatever the planner believes of their number.
 CROSS JOIN LATERAL (SELECT n.nspowner, n.nspname::pg_catalog.text AS name FROM pg_catalog.pg_namespace AS n
                      WHERE n.oid = d.relnamespace OFFSET 0) AS n
 WHERE d.schema IS NULL OR d.schema = n.name
), examined AS MATERIALIZED (
SELECT d.oid, d.place, d.is_trusted, d.is_root FROM named AS d WHERE d.is_trusted
 UNION ALL
(SELECT d.oid, d.place, d.is_trusted, d.is_root FROM named AS d WHERE NOT d.is_trusted ORDER BY d.oid LIMIT 2000)
), fitting AS MATERIALIZED (
SELECT e.oid, e.place, e.is_trusted, e.is_root
  FROM examined AS e
  JOIN wanted AS w ON w.place = e.place
 WHERE (SELECT pg_catalog.count(*) FROM pg_catalog.pg_attribute AS a
         WHERE a.attrelid = e.oid AND a.attname = ANY (w.columns::pg_catalog.name[]) AND a.attnum > 0 AND NOT a.attisdropped)
       = pg_catalog.cardinality(w.columns)
), candidates AS MATERIALIZED (
SELECT t.oid, t.is_trusted, t.is_root
  FROM (SELECT DISTINCT f.oid, f.is_trusted, f.is_root FROM fitting AS f) AS t
 ORDER BY t.is_trusted DESC, t.oid
 LIMIT 1000
), trusted AS (
SELECT w.oid FROM candidates AS w WHERE w.is_trusted
), $types, strange_types AS MATERIALIZED (
SELECT t.relation, pg_catalog.min(y.oid) AS oid
  FROM types AS t
  JOIN pg_catalog.pg_type AS y ON y.oid = t.oid
 WHERE y.typowner NOT IN (SELECT o.oid FROM owners AS o)
 GROUP BY t.relation
), parts (root, oid) AS (
-- Each part once: a table is a part of one other alone.
SELECT w.oid, i.inhrelid
  FROM candidates AS w
  JOIN pg_catalog.pg_inherits AS i ON i.inhparent = w.oid
 WHERE w.is_trusted AND w.is_root
 UNION ALL
SELECT p.root, i.inhrelid
  FROM parts AS p
 CROSS JOIN LATERAL (SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = p.oid OFFSET 0) AS i
), parted AS MATERIALIZED (
SELECT p.root, p.oid, c.relkind, c.relowner, pg_catalog.row_number() OVER (PARTITION BY p.root ORDER BY p.oid) AS place
  FROM parts AS p
  JOIN pg_catalog.pg_class AS c ON c.oid = p.oid
), gathered AS MATERIALIZED (
SELECT p.root,
       pg_catalog.jsonb_agg(p.oid::pg_catalog.int8 ORDER BY p.oid) FILTER (WHERE p.place <= 1000) AS parts,
       pg_catalog.min(p.oid) FILTER (WHERE p.relowner NOT IN (SELECT o.oid FROM owners AS o)) AS strange_part,
       pg_catalog.min(p.oid) FILTER (WHERE p.relkind NOT IN ('r', 'p')) AS foreign_part
  FROM parted AS p
 GROUP BY p.root
)
SELECT pg_catalog.to_jsonb(t)::pg_catalog.text
  FROM (
SELECT c.oid::pg_catalog.int8, n.nspname::pg_catalog.text AS schema, c.relname::pg_catalog.text AS name,
       c.relkind::pg_catalog.text AS kind, c.relpersistence = 't' AS is_temporary,
       c.relkind = 'p' AND c.relispartition AS is_inner,
       coalesce(CASE WHEN NOT $trusts(c.relowner) THEN $owner(c.relowner) END,
                CASE WHEN NOT $trusts(n.nspowner) THEN $owner(n.nspowner) END,
                $owner(q.relowner))::pg_catalog.text AS stranger,
       CASE WHEN q.oid IS NOT NULL THEN pg_catalog.format('%s.%s', qn.nspname, q.relname) END AS strange_part,
       coalesce(g.parts, '[]') AS parts,
       (SELECT p.relname::pg_catalog.text FROM pg_catalog.pg_class AS p WHERE p.oid = g.foreign_part) AS foreign_part,
       (SELECT pg_catalog.jsonb_build_object('owner', $owner(y.typowner), 'name', pg_catalog.left(y.typname::pg_catalog.text, 63))
          FROM pg_catalog.pg_type AS y WHERE y.oid = s.oid) AS strange_type,
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
  LEFT JOIN gathered AS g ON g.root = c.oid
  LEFT JOIN pg_catalog.pg_class AS q ON q.oid = g.strange_part
  LEFT JOIN pg_catalog.pg_namespace AS qn ON qn.oid = q.relnamespace
  LEFT JOIN strange_types AS s ON s.relation = c.oid
 ORDER BY c.oid) AS t
 UNION ALL
SELECT pg_catalog.jsonb_build_object('adapter', w.adapter, 'left_out', pg_catalog.count(DISTINCT l.oid))::pg_catalog.text
  FROM (SELECT f.oid, f.place FROM fitting AS f WHERE f.oid NOT IN (SELECT c.oid FROM candidates AS c)
         UNION ALL
        SELECT d.oid, d.place FROM named AS d WHERE d.oid NOT IN (SELECT e.oid FROM examined AS e)) AS l
  JOIN wanted AS w ON w.place = l.place
 GROUP BY w.adapter
