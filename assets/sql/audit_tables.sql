-- Our schemas with a record of actions, and whether this role may add to it. Reads catalogs only. What somebody untrusted has made to
-- look like one is none.
SELECT to_jsonb(q)
  FROM (SELECT n.nspname::text AS schema,
               pg_is_in_recovery() AS in_recovery,
               current_user::text AS role,
               has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(a.oid, 'INSERT')
                   AND coalesce((SELECT has_sequence_privilege(s.oid, 'USAGE')
                                   FROM pg_class s
                                  WHERE s.relnamespace = n.oid AND s.relname = 'locktop_audit_id_seq' AND s.relkind = 'S'), false)
                   AS may_insert
          FROM pg_namespace n
          JOIN pg_class a ON a.relnamespace = n.oid AND a.relname = 'locktop_audit' AND a.relkind = 'r'
          JOIN pg_class m ON m.relnamespace = n.oid AND m.relname = 'locktop_schema' AND m.relkind = 'r'
         WHERE $trusts_schema AND $trusts_table
           AND obj_description(n.oid, 'pg_namespace') LIKE 'locktop: %'
           AND obj_description(m.oid, 'pg_class') LIKE 'locktop: %'
         ORDER BY n.nspname
         LIMIT 10) q
