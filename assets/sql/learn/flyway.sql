-- Texts that Flyway hashes to a key: the quoted names of its tables, and of those it would create in each schema. Only catalogs are read.
SELECT 0::bigint AS key, '"' || named.nspname || '"."' || named.relname || '"' AS name
FROM (SELECT n.nspname::text, known.relname
      FROM pg_catalog.pg_namespace n
      CROSS JOIN (VALUES ('flyway_schema_history'), ('schema_version')) AS known (relname)
      UNION
      SELECT n.nspname::text, c.relname::text
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind = 'r' AND c.relname ~ '(flyway|migrat|version|histor)'
        AND EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'installed_rank')
     ) AS named
WHERE named.nspname <> 'information_schema' AND named.nspname !~ '^pg_'
LIMIT 10000
