-- A worker that stops gives back what it has begun.

-- True when it was ours. The execution ends as failed, and says why; the attempt does not count, and the task is due as it was
-- before, unless somebody planned it anew or disabled it in the meantime. The key is free exactly when the transaction commits.
CREATE FUNCTION @schema@.give_back_task(p_task_id int, p_worker_id text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_key bigint := task_lock_key(p_task_id);
    v_start timestamptz := own_backend_start();
BEGIN
    IF NOT EXISTS (
        SELECT FROM task_execution_log e
         WHERE e.task_id = p_task_id AND e.worker_id = p_worker_id AND e.status = 'running'
           AND e.backend_pid = pg_backend_pid() AND e.backend_start = v_start
    ) OR NOT pg_try_advisory_xact_lock(v_key) THEN
        RETURN false;
    END IF;
    UPDATE task_execution_log e
       SET status = 'failed', completed_at = clock_timestamp(),
           error_message = format('given back by worker %s, which was shut down; it does not count as an attempt', p_worker_id)
     WHERE e.task_id = p_task_id AND e.worker_id = p_worker_id AND e.status = 'running'
       AND e.backend_pid = pg_backend_pid() AND e.backend_start = v_start;
    IF NOT FOUND THEN
        PERFORM pg_advisory_unlock(v_key);
        RETURN false;
    END IF;
    -- A new time to run, so that idle workers are told.
    UPDATE scheduled_tasks t SET next_run_at = clock_timestamp() WHERE t.id = p_task_id AND t.next_run_at <= clock_timestamp();
    PERFORM pg_advisory_unlock(v_key);
    RETURN true;
END
$body$;
COMMENT ON FUNCTION @schema@.give_back_task(int, text) IS
    'Ends an execution that was not done, without counting the attempt: another worker can take the task at once; false when it was not ours';
