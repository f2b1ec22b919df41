-- Names of the relations in $1, which are of this database or shared; without the schema where the search path ($2) leads to it.
SELECT c.oid, c.relname::pg_catalog.text,
       CASE WHEN c.oid = (SELECT o.oid
                            FROM pg_catalog.pg_class AS o
                            JOIN pg_catalog.pg_namespace AS s ON s.oid = o.relnamespace
                           WHERE o.relname = c.relname AND s.nspname::pg_catalog.text = ANY ($2::pg_catalog.text[])
                           ORDER BY pg_catalog.array_position($2::pg_catalog.text[], s.nspname::pg_catalog.text)
                           LIMIT 1) THEN NULL
            ELSE n.nspname::pg_catalog.text END,
       c.relisshared
  FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.oid = ANY ($1::pg_catalog.oid[])
