-- Fails where anything in a schema, or the schema, belongs to somebody whom we do not trust, or such a one may put something there: a
-- function that fits a call better would be called in place of ours. Its error repeats the reason.
SELECT ('$mark' || w.reason)::pg_catalog.int4 AS guard
  FROM (SELECT (
          SELECT coalesce(
                 CASE WHEN NOT $trusts(n.nspowner) THEN
                      pg_catalog.format('schema %s belongs to %s', n.nspname, $owner(n.nspowner)) END,
                 (SELECT CASE WHEN a.grantee = 0 THEN pg_catalog.format('every role may create objects in schema %s: REVOKE CREATE ON SCHEMA %1$I FROM PUBLIC', n.nspname)
                              ELSE pg_catalog.format('a right to create objects in schema %s belongs to %s', n.nspname, pg_catalog.pg_get_userbyid(a.grantee)) END
                    FROM pg_catalog.aclexplode(n.nspacl) AS a
                   WHERE a.privilege_type = 'CREATE' AND (a.grantee = 0 OR NOT $trusts(a.grantee))
                   LIMIT 1),
                 (SELECT pg_catalog.format('%s in schema %s belongs to %s', c.relname, n.nspname, pg_catalog.pg_get_userbyid(c.relowner))
                    FROM pg_catalog.pg_class AS c
                   WHERE c.relnamespace = n.oid AND NOT $trusts(c.relowner)
                   LIMIT 1),
                 (SELECT pg_catalog.format('function %s in schema %s belongs to %s', f.proname, n.nspname, pg_catalog.pg_get_userbyid(f.proowner))
                    FROM pg_catalog.pg_proc AS f
                   WHERE f.pronamespace = n.oid AND NOT $trusts(f.proowner)
                   LIMIT 1),
                 (SELECT pg_catalog.format('operator %s in schema %s belongs to %s', o.oprname, n.nspname, pg_catalog.pg_get_userbyid(o.oprowner))
                    FROM pg_catalog.pg_operator AS o
                   WHERE o.oprnamespace = n.oid AND NOT $trusts(o.oprowner)
                   LIMIT 1),
                 (SELECT pg_catalog.format('type %s in schema %s belongs to %s', t.typname, n.nspname, pg_catalog.pg_get_userbyid(t.typowner))
                    FROM pg_catalog.pg_type AS t
                   WHERE t.typnamespace = n.oid AND NOT $trusts(t.typowner)
                   LIMIT 1),
                 (SELECT CASE WHEN a.grantee = 0 THEN pg_catalog.format('every role may make %s %s.%s: REVOKE %s ON %2$I.%3$I FROM PUBLIC', r.what, n.nspname, c.relname, a.privilege_type)
                              ELSE pg_catalog.format('a right to make %s %s.%s belongs to %s', r.what, n.nspname, c.relname, pg_catalog.pg_get_userbyid(a.grantee)) END
                    FROM pg_catalog.pg_class AS c
                   CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) AS a
                   CROSS JOIN LATERAL (SELECT CASE a.privilege_type WHEN 'TRIGGER' THEN 'triggers on' ELSE 'foreign keys to' END) AS r (what)
                   WHERE c.relnamespace = n.oid AND (a.privilege_type = 'TRIGGER' OR (a.privilege_type = 'REFERENCES' AND c.relkind IN ('r', 'p'))) AND (a.grantee = 0 OR NOT $trusts(a.grantee))
                   LIMIT 1),
                 (SELECT pg_catalog.format('code of a trigger on %s.%s runs belongs to %s', n.nspname, c.relname, pg_catalog.pg_get_userbyid(u.owner))
                    FROM pg_catalog.pg_class AS c
                    JOIN pg_catalog.pg_trigger AS tg ON tg.tgrelid = c.oid
                   CROSS JOIN LATERAL $runs AS u
                   WHERE c.relnamespace = n.oid AND NOT $trusts(u.owner)
                   LIMIT 1))
            FROM pg_catalog.pg_namespace AS n
           WHERE n.nspname = $schema) AS reason) AS w
 WHERE w.reason IS NOT NULL
