-- Texts that golang-migrate hashes to a key: schema, table and database, with a control character in place of NUL. Only catalogs are read.
SELECT 0::bigint AS key,
       named.nspname || pg_catalog.chr(1) || named.relname || pg_catalog.chr(1) || pg_catalog.current_database() AS name
FROM (SELECT n.nspname::text, 'schema_migrations'::text AS relname
      FROM pg_catalog.pg_namespace n
      UNION
      SELECT n.nspname::text, c.relname::text
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind = 'r' AND c.relname ~ '(migrat|version|histor)'
        AND EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'dirty')
        AND EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'version')
     ) AS named
WHERE named.nspname <> 'information_schema' AND named.nspname !~ '^pg_'
LIMIT 10000
