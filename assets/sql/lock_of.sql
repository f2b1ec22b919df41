-- Of each name that is asked about (a number, its schema or NULL, the name): the relation that the role's search path leads to, what it is, how large it
-- was when it was last counted, and the table of an index. Reads catalogs alone. Operators are the server's own by
-- name: this runs along the role's own path, which is what is asked about.
SELECT a.number, c.oid, a.nspname, c.relkind, c.reltuples, c.relpages, i.indrelid
  FROM ($found) AS a
  JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) a.oid
  LEFT JOIN pg_catalog.pg_index AS i ON i.indexrelid OPERATOR(pg_catalog.=) c.oid
