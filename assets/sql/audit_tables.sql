-- Our schemas with a record of actions, and whether this role may add to it. Reads catalogs only. What belongs to somebody
-- untrusted is told, and not written to.
SELECT $answer
  FROM (SELECT n.nspname::text AS schema,
               CASE WHEN NOT $trusts_schema THEN $schema_owner WHEN NOT $trusts_table THEN pg_get_userbyid(a.relowner) END AS stranger,
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
         WHERE obj_description(n.oid, 'pg_namespace') LIKE 'locktop: %'
           AND obj_description(m.oid, 'pg_class') LIKE 'locktop: %'
         ORDER BY $trusts_schema AND $trusts_table DESC, n.nspname
         LIMIT 10) q
