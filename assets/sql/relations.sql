-- Names of the relations in $1, which are of this database or shared; without the schema when it is on the search path.
SELECT c.oid, c.relname::pg_catalog.text,
       CASE WHEN NOT pg_catalog.pg_table_is_visible(c.oid) THEN n.nspname::pg_catalog.text END,
       c.relisshared
  FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.oid = ANY ($1::pg_catalog.oid[])
