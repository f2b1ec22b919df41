-- Whether there is a schema of this name ($1), whether it is one of locktop's, and who asks.
SELECT n.oid IS NOT NULL,
       coalesce(pg_catalog.obj_description(n.oid, 'pg_namespace') LIKE 'locktop: %' AND EXISTS (
           SELECT FROM pg_catalog.pg_class AS c
            WHERE c.relnamespace = n.oid AND c.relname = 'locktop_schema' AND c.relkind = 'r'
              AND pg_catalog.obj_description(c.oid, 'pg_class') LIKE 'locktop: %'), false),
       current_user::pg_catalog.text
  FROM (SELECT) AS one
  LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = $1
