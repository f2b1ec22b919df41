-- Fails where a relation that this transaction has locked, which a statement does as soon as it names it, or a part of one, belongs to
-- somebody whom we do not trust, or has a column of a type that does: a cast of it is a function of his. Its error repeats the reason; without one it has no row.
WITH RECURSIVE named (oid) AS (
SELECT l.relation
  FROM pg_catalog.pg_locks AS l
 WHERE l.locktype = 'relation' AND l.pid = pg_catalog.pg_backend_pid() AND l.granted
   AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
 UNION
SELECT i.inhrelid
  FROM named AS n
  JOIN pg_catalog.pg_inherits AS i ON i.inhparent = n.oid
), $types
SELECT ('$mark' || w.reason)::pg_catalog.int4 AS guard
  FROM (SELECT coalesce(
               (SELECT pg_catalog.format('table %s.%s belongs to %s', n.nspname, c.relname,
                                         CASE WHEN $trusts(c.relowner) THEN $owner(n.nspowner) ELSE pg_catalog.pg_get_userbyid(c.relowner) END)
                  FROM named
                  JOIN pg_catalog.pg_class AS c ON c.oid = named.oid
                  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
                 WHERE NOT $trusts(c.relowner) OR (NOT $trusts(n.nspowner) AND c.relkind <> 'i')
                 LIMIT 1),
               (SELECT pg_catalog.format('type %s of a column of %s.%s belongs to %s', y.typname, n.nspname, c.relname, $owner(y.typowner))
                  FROM types AS t
                  JOIN pg_catalog.pg_class AS c ON c.oid = t.relation
                  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
                  JOIN pg_catalog.pg_type AS y ON y.oid = t.oid
                 WHERE NOT $trusts(y.typowner)
                 LIMIT 1)) AS reason) AS w
 WHERE w.reason IS NOT NULL
