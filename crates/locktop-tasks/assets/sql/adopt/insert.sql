-- Copies the new rows: how many; how many of them were active there, or odd; how many got another id, and the first of those.
, numbered AS MATERIALIZED (
SELECT f.*, f.id AS old_id,
       CASE WHEN f.clashes THEN $base + pg_catalog.row_number() OVER (PARTITION BY f.clashes ORDER BY f.id) ELSE f.id END AS new_id
  FROM fresh AS f
), done AS (
INSERT INTO $into (id, $columns)
SELECT n.new_id, $columns FROM numbered AS n
RETURNING 1
)
SELECT (SELECT pg_catalog.count(*) FROM done), pg_catalog.count(*) FILTER (WHERE n.was_active), pg_catalog.count(*) FILTER (WHERE n.was_odd),
       pg_catalog.count(*) FILTER (WHERE n.clashes),
       (pg_catalog.array_agg(pg_catalog.format('%s is %s', n.old_id, n.new_id) ORDER BY n.old_id) FILTER (WHERE n.clashes))[1:10]
  FROM numbered AS n
