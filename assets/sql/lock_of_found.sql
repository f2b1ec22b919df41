-- The relations that names lead to (a number, its schema or NULL, the name).
SELECT DISTINCT ON (a.number) a.number, c.oid, n.nspname
  FROM (VALUES $asked) AS a (number, schema, name)
  JOIN pg_catalog.pg_class AS c ON c.relname::pg_catalog.text OPERATOR(pg_catalog.=) a.name
  JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
 WHERE CASE WHEN a.schema IS NULL THEN pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname) IS NOT NULL
            ELSE n.nspname::pg_catalog.text OPERATOR(pg_catalog.=) a.schema END
 ORDER BY a.number, pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)
