-- Closing executions whose session is gone.

-- Which session has a row locked, by the row's xmax. It cannot be asked directly: the row names a transaction, and a transaction holds
-- a lock on its own id. Null when that transaction is over by now, or is a part of one that was rolled up into it.
CREATE FUNCTION @schema@.row_locker(p_xmax xid, OUT pid integer, OUT prepared_gid text)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
DECLARE
    v_xids text[] := ARRAY[p_xmax::text];
BEGIN
    SELECT l.pid, p.gid INTO pid, prepared_gid
      FROM pg_locks l LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND p.transaction = l.transactionid
     WHERE l.locktype = 'transactionid' AND l.granted AND l.transactionid::text = ANY (v_xids);
    IF NOT FOUND AND v_xids[1] <> '0' THEN
        -- Several at once share the row by a number of another kind; asking for one that there is not is an error.
        BEGIN
            SELECT v_xids || array_agg(m.xid::text) INTO v_xids FROM pg_get_multixact_members(v_xids[1]::xid) m;
        EXCEPTION WHEN OTHERS THEN
            RETURN;
        END;
        SELECT l.pid, p.gid INTO pid, prepared_gid
          FROM pg_locks l LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND p.transaction = l.transactionid
         WHERE l.locktype = 'transactionid' AND l.granted AND l.transactionid::text = ANY (v_xids)
         LIMIT 1;
    END IF;
END
$body$;
COMMENT ON FUNCTION @schema@.row_locker(xid) IS 'Who has the row with this xmax locked, as far as it can be told';

-- One execution, in the caller's transaction, which should do nothing else and commit at once. Where p_is_seen, only if
-- it is what the caller has seen, with no sign of life after p_seen_at (null: that does not matter). The outcome is one of
--   recovered   failed in the log, and due again at next_run_at
--   gave_up     failed in the log, and not tried again before its next schedule: it was the last attempt
--   not_found   there is no such execution
--   not_running it has ended by now
--   changed     it is not what was seen: of another worker or session, or with a sign of life since
--   locked      somebody, holder_pid if that can be told, has its row or that of its task locked
--   held        holder_pid has its key, or runs the statement of a worker that lost it: it runs
--   held_by_us  this very session has its key
--   prepared    a prepared transaction has its key
--   unknown     its key is not the task's, so a free key says nothing
CREATE FUNCTION @schema@.recover_running(
    p_execution_id bigint, p_actor text, p_reason text, p_is_seen boolean DEFAULT false, p_worker_id text DEFAULT NULL,
    p_started_at timestamptz DEFAULT NULL, p_backend_pid int DEFAULT NULL, p_backend_start timestamptz DEFAULT NULL,
    p_seen_at timestamptz DEFAULT NULL)
RETURNS TABLE (execution_id bigint, task_id int, worker_id text, outcome text, holder_pid int, next_run_at timestamptz, detail text)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET lock_timeout = '3s'
AS $body$
#variable_conflict use_column
DECLARE
    v_row task_execution_log;
    v_locked boolean;
    v_key bigint;
    v_holder record;
    v_gid text;
    v_settled record;
    v_observed text;
BEGIN
    execution_id := p_execution_id;
    SELECT * INTO v_row FROM task_execution_log e WHERE e.id = p_execution_id AND e.status = 'running' FOR UPDATE SKIP LOCKED;
    v_locked := FOUND;
    IF NOT v_locked THEN
        SELECT * INTO v_row FROM task_execution_log e WHERE e.id = p_execution_id;
    END IF;
    task_id := v_row.task_id;
    worker_id := v_row.worker_id;
    IF v_row.id IS NULL THEN
        outcome := 'not_found';
        detail := format('there is no execution %s', p_execution_id);
    ELSIF v_row.status <> 'running' THEN
        outcome := 'not_running';
        detail := format('it is %s', v_row.status);
    ELSIF NOT v_locked THEN
        outcome := 'locked';
        SELECT r.pid, r.prepared_gid INTO holder_pid, v_gid
          FROM task_execution_log e CROSS JOIN row_locker(e.xmax) r
         WHERE e.id = p_execution_id;
        detail := CASE WHEN holder_pid IS NOT NULL THEN format('its row is locked by pid %s', holder_pid)
                       WHEN v_gid IS NOT NULL THEN format('its row is locked by the prepared transaction %L', v_gid)
                       ELSE 'its row was locked by somebody' END;
    -- Compared with the row that is locked: it stays as it is now.
    ELSIF p_is_seen AND (v_row.worker_id, v_row.started_at, v_row.backend_pid, v_row.backend_start)
                        IS DISTINCT FROM (p_worker_id, p_started_at, p_backend_pid, p_backend_start) THEN
        outcome := 'changed';
        detail := format('it is worker %s in session %s of %s now', v_row.worker_id, coalesce(v_row.backend_pid::text, '?'),
                         coalesce(v_row.backend_start::text, '?'));
    ELSIF v_row.heartbeat_at > p_seen_at THEN
        outcome := 'changed';
        detail := format('it showed a sign of life at %s', v_row.heartbeat_at);
    ELSIF v_row.lock_id IS DISTINCT FROM task_lock_key(v_row.task_id) THEN
        outcome := 'unknown';
        detail := format('its lock_id is %s and the key of the task is %s: whether it runs cannot be told',
                         coalesce(v_row.lock_id::text, 'null'), task_lock_key(v_row.task_id));
    END IF;
    IF outcome IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    v_key := v_row.lock_id;
    -- A look at the holders tells whether it is us, who would get the key again. Only having it tells that nobody else has.
    SELECT h.* INTO v_holder FROM key_holders(v_key) h ORDER BY h.pid = pg_backend_pid() DESC NULLS LAST LIMIT 1;
    IF v_holder.pid = pg_backend_pid() THEN
        outcome := 'held_by_us';
        holder_pid := v_holder.pid;
        detail := 'this very session holds its key';
    ELSIF NOT pg_try_advisory_xact_lock(v_key) THEN
        SELECT h.* INTO v_holder FROM key_holders(v_key) h LIMIT 1;
        outcome := CASE WHEN v_holder.prepared_gid IS NOT NULL THEN 'prepared' ELSE 'held' END;
        holder_pid := v_holder.pid;
        detail := CASE WHEN v_holder.prepared_gid IS NOT NULL
                       THEN format('the prepared transaction %L holds its key', v_holder.prepared_gid)
                       WHEN holder_pid IS NOT NULL THEN format('pid %s holds its key', holder_pid)
                       ELSE 'its key was held' END;
    ELSIF NOT pg_try_advisory_xact_lock(statement_lock_key(v_row.task_id)) THEN
        outcome := 'held';
        SELECT h.pid INTO holder_pid FROM key_holders(statement_lock_key(v_row.task_id)) h LIMIT 1;
        detail := CASE WHEN holder_pid IS NOT NULL
                       THEN format('its key is free, but the statement of the lost worker still runs in session %s', holder_pid)
                       ELSE 'its key was free, but the statement of the lost worker still ran' END;
    ELSE
        PERFORM FROM scheduled_tasks t WHERE t.id = v_row.task_id FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            outcome := 'locked';
            SELECT r.pid, r.prepared_gid INTO holder_pid, v_gid
              FROM scheduled_tasks t CROSS JOIN row_locker(t.xmax) r
             WHERE t.id = v_row.task_id;
            detail := CASE WHEN holder_pid IS NOT NULL THEN format('the row of its task is locked by pid %s', holder_pid)
                           WHEN v_gid IS NOT NULL THEN format('the row of its task is locked by the prepared transaction %L', v_gid)
                           ELSE 'the row of its task was locked by somebody' END;
        END IF;
    END IF;
    IF outcome IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    v_observed := format('key %s was free; session %s of %s did not hold it; last sign of life %s', v_key,
        coalesce(v_row.backend_pid::text, '?'), coalesce(v_row.backend_start::text, '?'),
        coalesce(greatest(v_row.started_at, v_row.heartbeat_at)::text, '?'));
    UPDATE task_execution_log e
       SET status = 'failed', completed_at = clock_timestamp(), recovered_by = p_actor,
           error_message = format('recovered by %s%s: %s', p_actor, ' (' || p_reason || ')', v_observed)
     WHERE e.id = p_execution_id;
    SELECT s.* INTO v_settled FROM settle_task(v_row.task_id, false) s;
    outcome := CASE WHEN v_settled.gave_up THEN 'gave_up' ELSE 'recovered' END;
    next_run_at := v_settled.next_run_at;
    detail := v_observed;
    INSERT INTO locktop_audit
        (action, actor, task_id, execution_id, worker_id, lock_id, target_pid, target_start, reason, detail)
    VALUES (outcome, p_actor, v_row.task_id, p_execution_id, v_row.worker_id, v_key, v_row.backend_pid, v_row.backend_start,
            p_reason, v_observed);
    RETURN NEXT;
END
$body$;
COMMENT ON FUNCTION @schema@.recover_running(bigint, text, text, boolean, text, timestamptz, int, timestamptz, timestamptz) IS
    'What recover_execution and recover_seen_execution do; for use by these';

CREATE FUNCTION @schema@.recover_execution(p_execution_id bigint, p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (execution_id bigint, task_id int, worker_id text, outcome text, holder_pid int, next_run_at timestamptz, detail text)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    RETURN QUERY SELECT * FROM recover_running(p_execution_id, p_actor, p_reason);
END
$body$;
COMMENT ON FUNCTION @schema@.recover_execution(bigint, text, text) IS
    'Fails an execution whose key is free and makes its task due again; says what it did or why not';

-- The same for whoever has looked and decided: only while it is what was seen, of the same worker in the same session. Otherwise, and
-- when there was a sign of life after p_seen_at (null: that does not matter), the outcome is "changed".
CREATE FUNCTION @schema@.recover_seen_execution(
    p_execution_id bigint, p_worker_id text, p_started_at timestamptz, p_backend_pid int, p_backend_start timestamptz,
    p_seen_at timestamptz, p_actor text, p_reason text DEFAULT NULL)
RETURNS TABLE (execution_id bigint, task_id int, worker_id text, outcome text, holder_pid int, next_run_at timestamptz, detail text)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    RETURN QUERY SELECT * FROM recover_running(p_execution_id, p_actor, p_reason, true, p_worker_id, p_started_at, p_backend_pid,
                                               p_backend_start, p_seen_at);
END
$body$;
COMMENT ON FUNCTION @schema@.recover_seen_execution(bigint, text, timestamptz, int, timestamptz, timestamptz, text, text) IS
    'As recover_execution, unless the execution is not the one that was seen';

-- What a recovery would look at. Locks nothing.
CREATE FUNCTION @schema@.recovery_candidates()
RETURNS TABLE (execution_id bigint, task_id int, task_name text, worker_id text, state text, started_at timestamptz,
               duration interval, timeout interval, heartbeat_at timestamptz, attempt int, max_attempts int, lock_id bigint,
               holder_pid int, held_by_prepared boolean, backend_pid int, backend_start timestamptz)
LANGUAGE sql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT r.* FROM running_tasks r WHERE r.state IN ('orphan', 'slow') ORDER BY r.started_at, r.execution_id
$body$;
COMMENT ON FUNCTION @schema@.recovery_candidates() IS 'The executions that are orphans or slow';

-- Recovers the orphans that began so long ago; ends nobody. One row for each that has run for longer.
CREATE FUNCTION @schema@.check_and_recover_timeout_tasks(p_timeout_minutes int DEFAULT 30)
RETURNS TABLE (task_id int, worker_id text, lock_released boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
DECLARE
    v_row record;
BEGIN
    IF p_timeout_minutes IS NULL OR p_timeout_minutes < 0 THEN
        RAISE EXCEPTION 'p_timeout_minutes is %: expected 0 or more', coalesce(p_timeout_minutes::text, 'null')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR v_row IN
        SELECT r.execution_id, r.task_id, r.worker_id, r.state
          FROM running_tasks r
         WHERE r.started_at <= clock_timestamp() - make_interval(mins => p_timeout_minutes)
         ORDER BY r.task_id
    LOOP
        task_id := v_row.task_id;
        worker_id := v_row.worker_id;
        -- The rows of those that run are not touched: their finish would have to wait. Nor are those that are settling, which after a
        -- start or a promotion of the server is all of them: their workers may still be stopping.
        BEGIN
            lock_released := v_row.state = 'orphan' AND EXISTS (
                SELECT FROM recover_execution(v_row.execution_id, 'check_and_recover_timeout_tasks',
                                              format('it ran for more than %s minutes', p_timeout_minutes)) f
                 WHERE f.outcome IN ('recovered', 'gave_up'));
        EXCEPTION WHEN lock_not_available THEN
            -- Somebody has the task locked: that one is left for the next time, and the others are not.
            lock_released := false;
        END;
        RETURN NEXT;
    END LOOP;
END
$body$;
COMMENT ON FUNCTION @schema@.check_and_recover_timeout_tasks(int) IS
    'Recovers the orphans that began so long ago; lock_released is false for those that run, and for those that may be stopping';

CREATE FUNCTION @schema@.orphans(p_limit integer)
RETURNS bigint[]
LANGUAGE sql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT coalesce(array_agg(o.execution_id), '{}')
      FROM (SELECT r.execution_id FROM running_tasks r WHERE r.state = 'orphan' ORDER BY r.execution_id LIMIT p_limit) o
$body$;
COMMENT ON FUNCTION @schema@.orphans(integer) IS 'Executions that are orphans';

-- For pg_cron: SELECT cron.schedule('10 seconds', 'CALL locktop.recover_orphans()');
-- A procedure that commits can have no settings of its own, so every name is in full.
CREATE PROCEDURE @schema@.recover_orphans(p_limit integer DEFAULT 100)
LANGUAGE plpgsql
AS $body$
DECLARE
    v_ids bigint[];
    v_id bigint;
BEGIN
    v_ids := @schema@.orphans(p_limit);
    FOREACH v_id IN ARRAY v_ids LOOP
        BEGIN
            PERFORM @schema@.recover_execution(v_id, 'recover_orphans', NULL::pg_catalog.text);
        EXCEPTION WHEN OTHERS THEN
            RAISE WARNING 'execution % was not recovered: %', v_id, SQLERRM;
        END;
        COMMIT;
    END LOOP;
END
$body$;
COMMENT ON PROCEDURE @schema@.recover_orphans(integer) IS 'Recovers all orphans, each in a transaction of its own';
