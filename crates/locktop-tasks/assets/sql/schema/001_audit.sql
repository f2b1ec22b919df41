-- What was done to whom, by whom and why. Rows are added, never changed.

CREATE TABLE @schema@.locktop_audit (
    id bigserial PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    action text NOT NULL,
    actor text NOT NULL,
    session_role name NOT NULL DEFAULT session_user,
    session_pid integer NOT NULL DEFAULT pg_backend_pid(),
    task_id integer,
    execution_id bigint,
    worker_id text,
    lock_id bigint,
    -- Whom it was done to, where it was a session.
    target_pid integer,
    target_start timestamptz,
    reason text,
    -- What was observed, and what came of it.
    detail text
);
CREATE INDEX locktop_audit_at ON @schema@.locktop_audit (at DESC);
CREATE INDEX locktop_audit_execution ON @schema@.locktop_audit (execution_id) WHERE execution_id IS NOT NULL;
COMMENT ON TABLE @schema@.locktop_audit IS 'locktop: what was done to whom, by whom and why; rows are added, never changed';

CREATE FUNCTION @schema@.refuse_audit_change()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    RAISE EXCEPTION '% of %.% is refused: rows are added, never changed', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$body$;
COMMENT ON FUNCTION @schema@.refuse_audit_change() IS 'Keeps the audit rows as they were written';

CREATE TRIGGER locktop_audit_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON @schema@.locktop_audit
    FOR EACH STATEMENT EXECUTE FUNCTION @schema@.refuse_audit_change();
