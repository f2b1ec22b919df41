-- Names of the relations in $1, which are of this database or shared; without the schema where the search path ($2) leads to it. One name may
-- be in ten thousand schemas: only those of the path are asked for it.
SELECT c.oid, c.relname::pg_catalog.text,
       CASE WHEN c.oid = (SELECT o.oid
                            FROM pg_catalog.unnest($2::pg_catalog.text[]) WITH ORDINALITY AS p (name, place)
                           CROSS JOIN LATERAL (SELECT s.oid FROM pg_catalog.pg_namespace AS s
                                                WHERE s.nspname = p.name::pg_catalog.name AND s.nspname::pg_catalog.text = p.name OFFSET 0) AS s
                           CROSS JOIN LATERAL (SELECT o.oid FROM pg_catalog.pg_class AS o
                                                WHERE o.relnamespace = s.oid AND o.relname = c.relname OFFSET 0) AS o
                           ORDER BY p.place
                           LIMIT 1) THEN NULL
            ELSE n.nspname::pg_catalog.text END,
       c.relisshared
  FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.oid = ANY ($1::pg_catalog.oid[])
