-- Ends a version: its row, and what it made or replaced, which is what this transaction wrote to the catalogs.
INSERT INTO @schema@.locktop_schema (version) VALUES (@version@);
INSERT INTO @schema@.locktop_objects (kind, identity, fingerprint)
SELECT CASE c.relkind WHEN 'r' THEN 'table' ELSE 'view' END, c.relname::text, NULL
  FROM pg_catalog.pg_class c
 WHERE c.relnamespace = pg_catalog.to_regnamespace(@schema_literal@)
   AND c.relkind IN ('r', 'v')
   AND c.xmin = pg_catalog.pg_current_xact_id()::xid
UNION ALL
SELECT CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END,
       p.proname || '(' || pg_catalog.array_to_string(ARRAY(
           SELECT pg_catalog.format_type(t.oid, NULL)
             FROM pg_catalog.unnest(p.proargtypes) WITH ORDINALITY AS t (oid, place)
            ORDER BY t.place), ', ') || ')',
       pg_catalog.md5(p.prosrc)
  FROM pg_catalog.pg_proc p
 WHERE p.pronamespace = pg_catalog.to_regnamespace(@schema_literal@)
   AND p.xmin = pg_catalog.pg_current_xact_id()::xid
ON CONFLICT (kind, identity) DO UPDATE SET fingerprint = EXCLUDED.fingerprint;
