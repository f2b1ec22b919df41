-- What this role may do and see: rows of a word and a name. Not the roles there are, of which there may be 100,000: those whose
-- privileges this one has been granted, and the superusers, up to one more than are taken.
--
-- To signal a session takes the privileges of a role, which is USAGE; to see one, before 15, being a member of pg_read_all_stats
-- was enough, with or without inheriting (HAS_PGSTAT_PERMISSIONS in src/backend/utils/adt/pgstatfuncs.c). What a grant says of
-- inheriting has a column from 16 on, which older versions do not know by name.
WITH RECURSIVE me AS MATERIALIZED (
SELECT r.oid, r.rolname, r.rolsuper, r.rolinherit,
       pg_catalog.current_setting('server_version_num')::pg_catalog.int4 AS version
  FROM pg_catalog.pg_roles AS r
 WHERE r.rolname = current_user
), reached (oid) AS (
SELECT me.oid FROM me WHERE NOT me.rolsuper
 UNION
SELECT m.roleid FROM reached JOIN pg_catalog.pg_auth_members AS m ON m.member = reached.oid
)
SELECT 'role', me.rolname::pg_catalog.text FROM me
 UNION ALL
SELECT 'version', me.version::pg_catalog.text FROM me
 UNION ALL
SELECT 'is', 'superuser' FROM me WHERE me.rolsuper
 UNION ALL
SELECT 'is', 'no_inherit'
  FROM me
 WHERE NOT me.rolinherit
    OR EXISTS (SELECT FROM pg_catalog.pg_auth_members AS m
                WHERE m.member = me.oid AND pg_catalog.to_jsonb(m) ->> 'inherit_option' = 'false')
 UNION ALL
SELECT 'has', r.rolname::pg_catalog.text
  FROM me
  JOIN pg_catalog.pg_roles AS r
    ON r.rolname = ANY (ARRAY['pg_read_all_stats', 'pg_signal_backend', 'pg_signal_autovacuum_worker']::pg_catalog.name[])
 WHERE pg_catalog.pg_has_role(r.oid, CASE WHEN r.rolname = 'pg_read_all_stats' AND me.version < 150000 THEN 'MEMBER' ELSE 'USAGE' END)
 UNION ALL
(SELECT 'member', r.rolname::pg_catalog.text
   FROM reached
   JOIN pg_catalog.pg_roles AS r ON r.oid = reached.oid
  WHERE pg_catalog.pg_has_role(r.oid, 'USAGE')
  LIMIT 1001)
 UNION ALL
(SELECT 'superuser', r.rolname::pg_catalog.text FROM pg_catalog.pg_roles AS r WHERE r.rolsuper LIMIT 1001)
