-- The schemas off the role's search path that have a relation of a name that is asked about without a schema: it may be the one that is meant.
SELECT a.number, n.nspname
  FROM (VALUES $asked) AS a (number, schema, name)
  JOIN pg_catalog.pg_class AS c ON c.relname::pg_catalog.text OPERATOR(pg_catalog.=) a.name
  JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
 WHERE a.schema IS NULL AND pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname) IS NULL
   AND n.nspname::pg_catalog.text OPERATOR(pg_catalog.!~) '^pg_(toast_)?temp_'
 ORDER BY a.number, n.nspname
 LIMIT 100
