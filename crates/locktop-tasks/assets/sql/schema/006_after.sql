-- The functions that took another's place are whose those were, and who could call those can call these.

DO $do$
DECLARE
    v_old record;
    v_new record;
    v_grant record;
BEGIN
    FOR v_old IN
        SELECT o.name, o.owner, coalesce(o.acl, '[]') AS acl
          FROM jsonb_to_recordset(current_setting('locktop.replaced')::jsonb) AS o (name text, owner text, acl jsonb)
    LOOP
        -- The one that this transaction has made, whatever else goes by that name.
        SELECT p.oid::regprocedure AS called, pg_get_userbyid(p.proowner) AS owner,
               coalesce(p.proacl, acldefault('f', p.proowner)) AS acl, p.proowner
          INTO v_new
          FROM pg_proc p
         WHERE p.pronamespace = to_regnamespace(@schema_literal@) AND p.proname = v_old.name
           AND p.xmin = pg_current_xact_id()::xid;
        FOR v_grant IN SELECT a.grantee FROM aclexplode(v_new.acl) a WHERE a.grantee <> v_new.proowner LOOP
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', v_new.called,
                           CASE WHEN v_grant.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_grant.grantee)) END);
        END LOOP;
        FOR v_grant IN SELECT g ->> 0 AS role, (g ->> 1)::boolean AS more FROM jsonb_array_elements(v_old.acl) g LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s%s', v_new.called, coalesce(quote_ident(v_grant.role), 'PUBLIC'),
                           CASE WHEN v_grant.more THEN ' WITH GRANT OPTION' ELSE '' END);
        END LOOP;
        IF v_new.owner <> v_old.owner THEN
            EXECUTE format('ALTER FUNCTION %s OWNER TO %I', v_new.called, v_old.owner);
        END IF;
    END LOOP;
END
$do$;
