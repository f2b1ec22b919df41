-- Retention without pg_cron: a worker removes a little now and then.

-- What "ALTER DATABASE ... SET locktop.keep_executions" says now, for this role and database. A session that is older than the setting, or than its
-- end, does not have it as current_setting().
CREATE FUNCTION @schema@.retention_set(p_log text)
RETURNS interval
LANGUAGE sql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT nullif(substr(x.line, strpos(x.line, '=') + 1), '')::interval
      FROM pg_db_role_setting s
     CROSS JOIN LATERAL unnest(s.setconfig) AS x (line)
     WHERE s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
       AND s.setrole IN (0, (SELECT r.oid FROM pg_roles r WHERE r.rolname = session_user))
       AND starts_with(x.line, 'locktop.keep_' || p_log || '=')
       -- A number without a unit would be seconds, which nobody means.
       AND x.line !~ '=\s*[0-9.]+\s*$'
     ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC
     LIMIT 1
$body$;
COMMENT ON FUNCTION @schema@.retention_set(text) IS
    'How long rows are kept that are over, as the database or the role has it set now: of executions, queue or audit; null: for ever';

-- One small step: of each log with a retention at most p_limit rows. Nothing where another session is just at it. Commit at once: nobody
-- else can make a step before.
CREATE FUNCTION @schema@.purge_step(p_limit integer DEFAULT 1000)
RETURNS TABLE (log text, keep interval, removed bigint, may boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
BEGIN
    -- 0x4C50.
    IF NOT pg_try_advisory_xact_lock(lock_key(19536, 'locktop_audit'::regclass::oid::bigint)) THEN
        RETURN;
    END IF;
    FOREACH log IN ARRAY ARRAY['executions', 'queue', 'audit'] LOOP
        BEGIN
            keep := retention_set(log);
        EXCEPTION WHEN data_exception THEN
            -- It is no interval: the others are purged all the same.
            CONTINUE;
        END;
        CONTINUE WHEN keep IS NULL;
        removed := 0;
        BEGIN
            IF log = 'executions' THEN
                may := has_table_privilege('task_execution_log', 'DELETE');
                IF may THEN
                    removed := purge_executions(keep, p_limit);
                END IF;
            ELSIF log = 'queue' THEN
                may := has_table_privilege('task_queue', 'DELETE');
                IF may THEN
                    removed := purge_queue(keep, p_limit);
                END IF;
            ELSE
                -- The trigger there lets nobody but the owner.
                may := has_table_privilege('locktop_audit', 'DELETE')
                       AND pg_has_role(session_user, (SELECT c.relowner FROM pg_class c WHERE c.oid = 'locktop_audit'::regclass), 'MEMBER');
                IF may THEN
                    removed := purge_audit(keep, p_limit);
                END IF;
            END IF;
        EXCEPTION WHEN insufficient_privilege THEN
            -- It takes more rights than one: what the role may purge is purged.
            may := false;
            removed := 0;
        END;
        RETURN NEXT;
    END LOOP;
END
$body$;
COMMENT ON FUNCTION @schema@.purge_step(integer) IS
    'Removes a few rows that are past the retention that is set, as "locktop worker" does now and then: how many of each log, and whether the role may';
