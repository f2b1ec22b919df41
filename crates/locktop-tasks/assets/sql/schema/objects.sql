-- What is in a schema beside what the manifest says it made. $1: the schema's name.
-- made: as it was; changed: a function with another body; missing: not there; foreign: not in the manifest.
WITH found AS (
    SELECT CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence'
                          WHEN 'c' THEN 'type' ELSE 'relation' END AS kind,
           c.relname::text AS identity, NULL::text AS fingerprint
      FROM pg_catalog.pg_class c
     WHERE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = $1)
       AND c.relkind IN ('r', 'v', 'm', 'f', 'p', 'c', 'S')
       -- The sequence of a serial column belongs to its table.
       AND NOT (c.relkind = 'S' AND EXISTS (
           SELECT FROM pg_catalog.pg_depend d
            WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')
              AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass))
    UNION ALL
    SELECT CASE p.prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate' ELSE 'function' END,
           p.proname || '(' || pg_catalog.array_to_string(ARRAY(
               SELECT pg_catalog.format_type(t.oid, NULL)
                 FROM pg_catalog.unnest(p.proargtypes) WITH ORDINALITY AS t (oid, place)
                ORDER BY t.place), ', ') || ')',
           pg_catalog.md5(p.prosrc)
      FROM pg_catalog.pg_proc p
     WHERE p.pronamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = $1)
    UNION ALL
    SELECT 'type', t.typname::text, NULL
      FROM pg_catalog.pg_type t
     WHERE t.typnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = $1)
       AND t.typtype IN ('e', 'd', 'r')
)
SELECT coalesce(f.kind, m.kind), coalesce(f.identity, m.identity),
       CASE WHEN m.identity IS NULL THEN 'foreign'
            WHEN f.identity IS NULL THEN 'missing'
            WHEN f.fingerprint IS DISTINCT FROM m.fingerprint THEN 'changed'
            ELSE 'made' END
  FROM found f
  FULL JOIN @schema@.locktop_objects m ON m.kind = f.kind AND m.identity = f.identity
 ORDER BY 1, 2
