-- The end of an execution, and its signs of life. All of these find the execution by the task, the worker and this very session, and
-- leave one alone that is not running any more.
-- The settings are those of 002_acquire.

-- True when the finish counted. The key is free exactly when the transaction commits: not before, or another session could run the
-- task while it still looks due.
CREATE FUNCTION @schema@.try_release_task_lock(p_task_id int, p_worker_id text, p_status text, p_error_message text DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $body$
DECLARE
    v_key bigint := task_lock_key(p_task_id);
    v_start timestamptz := own_backend_start();
    v_id bigint;
    v_own text;
BEGIN
    IF p_status IS NULL OR p_status NOT IN ('completed', 'failed') THEN
        RAISE EXCEPTION 'status is "%": a task ends as completed or failed', p_status USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT e.id, e.worker_id INTO v_id, v_own
      FROM task_execution_log e
     WHERE e.task_id = p_task_id AND e.status = 'running' AND e.backend_pid = pg_backend_pid() AND e.backend_start = v_start;
    IF v_id IS NOT NULL AND v_own IS DISTINCT FROM p_worker_id THEN
        -- Another worker on this connection runs it; the key is that one's.
        RETURN false;
    END IF;
    IF v_id IS NULL AND NOT EXISTS (SELECT FROM key_holders(v_key) h WHERE h.pid = pg_backend_pid()) THEN
        RETURN false;
    END IF;
    -- Ours for the transaction, then no more for the session. It does not wait: if somebody else has it, it is lost.
    IF NOT pg_try_advisory_xact_lock(v_key) THEN
        RETURN false;
    END IF;
    UPDATE task_execution_log e
       SET status = p_status, completed_at = clock_timestamp(), error_message = p_error_message
     WHERE e.task_id = p_task_id AND e.status = 'running' AND e.id = v_id;
    IF NOT FOUND THEN
        PERFORM pg_advisory_unlock(v_key);
        RETURN false;
    END IF;
    PERFORM settle_task(p_task_id, p_status = 'completed');
    PERFORM pg_advisory_unlock(v_key);
    RETURN true;
END
$body$;
COMMENT ON FUNCTION @schema@.try_release_task_lock(int, text, text, text) IS
    'Ends an execution as completed or failed, plans the next and gives the key back; false when it was not ours any more';

CREATE FUNCTION @schema@.release_task_lock(p_task_id int, p_worker_id text, p_status text, p_error_message text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    IF NOT try_release_task_lock(p_task_id, p_worker_id, p_status, p_error_message) THEN
        RAISE WARNING 'task % is not run by worker % in this session any more: its end was not recorded', p_task_id, p_worker_id;
    END IF;
END
$body$;
COMMENT ON FUNCTION @schema@.release_task_lock(int, text, text, text) IS
    'As try_release_task_lock, with a warning in place of false';

-- Gives back the keys of tasks that this session does not run by the log: what a call that failed left, since session locks survive a
-- rollback, and what belonged to an execution that somebody else closed. p_working: tasks that are worked on all the same, as those
-- are that were told to stop and have not yet; their keys stay. How many locks that were.
CREATE FUNCTION @schema@.release_idle_task_keys(p_working int[] DEFAULT '{}')
RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
-- To unlock what is held for the transaction only is a warning.
SET client_min_messages = error
AS $body$
DECLARE
    v_start timestamptz := own_backend_start();
    v_keys bigint[];
    v_key bigint;
    v_freed integer;
    v_count integer := 0;
BEGIN
    -- They stack, and nothing tells how high.
    LOOP
        SELECT array_agg(l.classid::bigint << 32 | l.objid::bigint) INTO v_keys
          FROM pg_locks l
         WHERE l.locktype = 'advisory'
           AND l.objsubid = 1
           AND l.classid::bigint >> 16 = 19540
           AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
           AND l.pid = pg_backend_pid()
           AND l.mode = 'ExclusiveLock'
           AND l.granted
           AND ((l.classid::bigint & 65535) << 32 | l.objid::bigint) <> ALL (coalesce(p_working, '{}')::bigint[])
           AND NOT EXISTS (
               SELECT FROM task_execution_log e
                WHERE e.task_id = ((l.classid::bigint & 65535) << 32 | l.objid::bigint) AND e.status = 'running'
                  AND e.backend_pid = pg_backend_pid() AND e.backend_start = v_start);
        EXIT WHEN v_keys IS NULL;
        v_freed := 0;
        FOREACH v_key IN ARRAY v_keys LOOP
            v_freed := v_freed + pg_advisory_unlock(v_key)::integer;
        END LOOP;
        -- What is left is held for the transaction.
        EXIT WHEN v_freed = 0;
        v_count := v_count + v_freed;
    END LOOP;
    RETURN v_count;
END
$body$;
COMMENT ON FUNCTION @schema@.release_idle_task_keys(int[]) IS
    'Unlocks the keys of all tasks that this session does not run, as often as they are stacked; for use after a fetch that failed';

CREATE FUNCTION @schema@.heartbeat_task(p_task_id int, p_worker_id text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $body$
BEGIN
    UPDATE task_execution_log e
       SET heartbeat_at = clock_timestamp()
     WHERE e.task_id = p_task_id AND e.worker_id = p_worker_id AND e.status = 'running'
       AND e.backend_pid = pg_backend_pid() AND e.backend_start = own_backend_start();
    RETURN FOUND;
END
$body$;
COMMENT ON FUNCTION @schema@.heartbeat_task(int, text) IS
    'A sign of life for one task; false when it is not ours any more and has to stop';

CREATE FUNCTION @schema@.heartbeat_tasks(p_worker_id text)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $body$
DECLARE
    v_start timestamptz := own_backend_start();
BEGIN
    RETURN QUERY
    UPDATE task_execution_log e
       SET heartbeat_at = clock_timestamp()
     WHERE e.worker_id = p_worker_id AND e.status = 'running'
       AND e.backend_pid = pg_backend_pid() AND e.backend_start = v_start
    RETURNING e.id;
END
$body$;
COMMENT ON FUNCTION @schema@.heartbeat_tasks(text) IS
    'A sign of life for all that a worker runs in this session: the executions that are still its own; it stops the others';
