-- Ending the session that holds the key of a slow execution: it is asked for in one transaction and done in the next, so that who
-- wanted it is on record whatever comes of it. Neither holds a row lock; the worker's finish may need the row.

-- The outcome is "asked", with the audit row to hand to terminate_task_holder, or a reason why not:
--   not_found, not_running, unknown   as for recover_execution
--   not_slow    it is within its timeout
--   free        nobody holds the key: there is nobody to end
--   held_by_us  this very session holds it
--   prepared    a prepared transaction holds it, a stranger to us
--   shared      several hold it in shared mode: no worker of ours does that
--   hidden      this role may not see when the holder's session began
CREATE FUNCTION @schema@.ask_task_termination(p_execution_id bigint, p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (outcome text, audit_id bigint, task_id int, worker_id text, holder_pid int, holder_start timestamptz, detail text)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET lock_timeout = '3s'
AS $body$
#variable_conflict use_column
DECLARE
    v_row record;
    v_holders integer;
    v_holder record;
BEGIN
    SELECT e.status, e.task_id, e.worker_id, e.lock_id, e.started_at, e.lock_id = task_lock_key(e.task_id) AS is_ours, t.timeout
      INTO v_row
      FROM task_execution_log e JOIN scheduled_tasks t ON t.id = e.task_id
     WHERE e.id = p_execution_id;
    task_id := v_row.task_id;
    worker_id := v_row.worker_id;
    SELECT count(*) INTO v_holders FROM key_holders(v_row.lock_id) h;
    SELECT h.* INTO v_holder FROM key_holders(v_row.lock_id) h ORDER BY h.pid = pg_backend_pid() DESC NULLS LAST LIMIT 1;
    holder_pid := v_holder.pid;
    holder_start := v_holder.backend_start;
    outcome := CASE
        WHEN v_row.status IS NULL THEN 'not_found'
        WHEN v_row.status <> 'running' THEN 'not_running'
        WHEN v_row.is_ours IS NOT TRUE OR pg_is_in_recovery() THEN 'unknown'
        WHEN v_row.started_at + v_row.timeout > clock_timestamp() THEN 'not_slow'
        WHEN v_holders = 0 THEN 'free'
        WHEN v_holder.pid = pg_backend_pid() THEN 'held_by_us'
        WHEN v_holder.pid IS NULL THEN 'prepared'
        WHEN v_holders > 1 OR v_holder.mode <> 'ExclusiveLock' THEN 'shared'
        WHEN v_holder.backend_start IS NULL THEN 'hidden'
        ELSE 'asked' END;
    detail := CASE outcome
        WHEN 'not_found' THEN format('there is no execution %s', p_execution_id)
        WHEN 'not_running' THEN format('it is %s', v_row.status)
        WHEN 'unknown' THEN 'its key is not that of the task, or this is a standby'
        WHEN 'not_slow' THEN format('it began at %s and may take %s', v_row.started_at, v_row.timeout)
        WHEN 'free' THEN 'nobody holds its key'
        WHEN 'held_by_us' THEN 'this very session holds its key'
        WHEN 'prepared' THEN format('the prepared transaction %L holds its key', v_holder.prepared_gid)
        WHEN 'shared' THEN 'its key is held in shared mode'
        WHEN 'hidden' THEN format('when pid %s began is hidden from this role: grant it pg_read_all_stats', v_holder.pid)
        ELSE format('pid %s of %s held key %s', v_holder.pid, v_holder.backend_start, v_row.lock_id) END;
    IF outcome = 'asked' THEN
        INSERT INTO locktop_audit
            (action, actor, task_id, execution_id, worker_id, lock_id, target_pid, target_start, reason, detail)
        VALUES ('asked', p_actor, v_row.task_id, p_execution_id, v_row.worker_id, v_row.lock_id, v_holder.pid,
                v_holder.backend_start, p_reason, detail)
        RETURNING id INTO audit_id;
    END IF;
    RETURN NEXT;
END
$body$;
COMMENT ON FUNCTION @schema@.ask_task_termination(bigint, text, text) IS
    'Records that the holder of a slow execution is to be ended; commit, then call terminate_task_holder';

-- The same for whoever has looked and decided: the outcome is "changed", and nothing is recorded, when the execution is of another
-- worker or session by now, or another session holds its key.
CREATE FUNCTION @schema@.ask_seen_termination(
    p_execution_id bigint, p_worker_id text, p_started_at timestamptz, p_backend_pid int, p_backend_start timestamptz,
    p_holder_pid int, p_holder_start timestamptz, p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (outcome text, audit_id bigint, task_id int, worker_id text, holder_pid int, holder_start timestamptz, detail text)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
DECLARE
    v_row task_execution_log;
BEGIN
    SELECT * INTO v_row FROM task_execution_log e WHERE e.id = p_execution_id AND e.status = 'running';
    IF FOUND AND (v_row.worker_id, v_row.started_at, v_row.backend_pid, v_row.backend_start)
                 IS DISTINCT FROM (p_worker_id, p_started_at, p_backend_pid, p_backend_start) THEN
        outcome := 'changed';
        task_id := v_row.task_id;
        worker_id := v_row.worker_id;
        detail := format('it is worker %s in session %s of %s now', v_row.worker_id, coalesce(v_row.backend_pid::text, '?'),
                         coalesce(v_row.backend_start::text, '?'));
        RETURN NEXT;
        RETURN;
    END IF;
    BEGIN
        SELECT * INTO outcome, audit_id, task_id, worker_id, holder_pid, holder_start, detail
          FROM ask_task_termination(p_execution_id, p_actor, p_reason);
        IF outcome = 'asked' AND (holder_pid, holder_start) IS DISTINCT FROM (p_holder_pid, p_holder_start) THEN
            RAISE EXCEPTION SQLSTATE 'LT001';
        END IF;
    EXCEPTION WHEN SQLSTATE 'LT001' THEN
        -- Undone is the row that says "asked"; the variables stay.
        outcome := 'changed';
        audit_id := NULL;
        detail := format('pid %s of %s holds its key now', holder_pid, holder_start);
    END;
    RETURN NEXT;
END
$body$;
COMMENT ON FUNCTION @schema@.ask_seen_termination(bigint, text, timestamptz, int, timestamptz, int, timestamptz, text, text) IS
    'As ask_task_termination, unless the execution or the holder of its key is not the one that was seen';

-- True when the session was told to end. False when it is not the one it was any more, or no longer holds the key in this database,
-- or the execution has ended.
CREATE FUNCTION @schema@.terminate_task_holder(p_audit_id bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_asked record;
    v_done boolean;
BEGIN
    SELECT a.*, a.xmin = pg_current_xact_id_if_assigned()::xid AS is_own INTO v_asked
      FROM locktop_audit a WHERE a.id = p_audit_id AND a.action = 'asked';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'audit row % asks for no termination', p_audit_id USING ERRCODE = 'no_data_found';
    END IF;
    IF v_asked.is_own THEN
        RAISE EXCEPTION 'audit row % is not committed yet', p_audit_id
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Ask in one transaction, and terminate in the next.';
    END IF;
    SELECT pg_terminate_backend(s.pid) INTO v_done
      FROM (SELECT a.pid
              FROM pg_stat_get_activity(v_asked.target_pid) a
              JOIN task_execution_log e ON e.id = v_asked.execution_id AND e.status = 'running'
             WHERE a.backend_start = v_asked.target_start
               AND a.pid <> pg_backend_pid()
               AND EXISTS (SELECT FROM key_holders(v_asked.lock_id) h
                            WHERE h.pid = a.pid AND h.mode = 'ExclusiveLock')
            OFFSET 0) s;
    RETURN coalesce(v_done, false);
END
$body$;
COMMENT ON FUNCTION @schema@.terminate_task_holder(bigint) IS
    'Ends the session that an audit row asks to end, if it is still the same and still holds the key';
