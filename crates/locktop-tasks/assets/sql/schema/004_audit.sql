-- Who writes to the record does not say who he is and when.

-- The owner of the table could take this away, too, and brings rows back as they were: so a dump is read.
CREATE FUNCTION @schema@.sign_audit()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    IF NOT pg_has_role(session_user, (SELECT c.relowner FROM pg_class c WHERE c.oid = TG_RELID), 'MEMBER') THEN
        NEW.at := clock_timestamp();
        NEW.session_role := session_user;
        NEW.session_pid := pg_backend_pid();
    END IF;
    RETURN NEW;
END
$body$;
COMMENT ON FUNCTION @schema@.sign_audit() IS 'Writes into an audit row who wrote it and when, whatever the row says';

CREATE TRIGGER locktop_audit_signed
    BEFORE INSERT ON @schema@.locktop_audit
    FOR EACH ROW EXECUTE FUNCTION @schema@.sign_audit();
