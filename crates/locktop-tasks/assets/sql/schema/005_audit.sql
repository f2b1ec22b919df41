-- The record is only added to, with one exception.

-- Who owns the table could take the trigger away, so he may have purge_audit() remove old rows. It adds one that says so.
CREATE OR REPLACE FUNCTION @schema@.refuse_audit_change()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('locktop.purging', true) = 'audit'
       AND pg_has_role(session_user, (SELECT c.relowner FROM pg_class c WHERE c.oid = TG_RELID), 'MEMBER') THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% of %.% is refused: rows are added, never changed', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege', HINT = 'purge_audit() removes old rows, for the owner of the table.';
END
$body$;
