-- Of each name that is asked about (a number, its schema or NULL, the name): the relation that the role's search path leads to, what it is, how large it
-- was when it was last counted, the table of an index, and what is below it. Reads catalogs alone. Operators are the server's own by
-- name: this runs along the role's own path, which is what is asked about.
SELECT DISTINCT ON (a.number) a.number, c.oid, n.nspname, c.relkind, c.reltuples, c.relpages, i.indrelid,
       ARRAY(WITH RECURSIVE below (oid) AS (
                    SELECT h.inhrelid FROM pg_catalog.pg_inherits AS h WHERE h.inhparent OPERATOR(pg_catalog.=) c.oid
                     UNION
                    SELECT h.inhrelid FROM pg_catalog.pg_inherits AS h, below AS b WHERE h.inhparent OPERATOR(pg_catalog.=) b.oid)
             SELECT b.oid FROM below AS b LIMIT 10000)
  FROM (VALUES $asked) AS a (number, schema, name)
  JOIN pg_catalog.pg_class AS c ON c.relname::pg_catalog.text OPERATOR(pg_catalog.=) a.name
  JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
  LEFT JOIN pg_catalog.pg_index AS i ON i.indexrelid OPERATOR(pg_catalog.=) c.oid
 WHERE CASE WHEN a.schema IS NULL THEN pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname) IS NOT NULL
            ELSE n.nspname::pg_catalog.text OPERATOR(pg_catalog.=) a.schema END
 ORDER BY a.number, pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)
