-- Taking a task: its key for the session, a row in the log, and nobody else.

CREATE FUNCTION @schema@.held_task_ids()
RETURNS bigint[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT coalesce(array_agg((l.classid::bigint & 65535) << 32 | l.objid::bigint), '{}')
      FROM pg_locks l
     WHERE l.locktype = 'advisory'
       AND l.objsubid = 1
       AND l.classid::bigint >> 16 = 19540
       AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
       AND l.granted
$body$;
COMMENT ON FUNCTION @schema@.held_task_ids() IS 'The tasks whose key somebody holds in this database';

-- Starts an execution, or answers null. This session must not hold the key yet.
--
-- The key is taken for the transaction first and for the session last: an error on the way leaves nothing held.
CREATE FUNCTION @schema@.start_execution(p_task_id integer, p_worker_id text)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_key bigint := task_lock_key(p_task_id);
    v_start timestamptz := own_backend_start();
    v_now timestamptz;
    v_task scheduled_tasks;
    v_lost task_execution_log;
    v_execution bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(v_key) THEN
        RETURN NULL;
    END IF;
    -- Only now: before, somebody else may have been finishing it.
    SELECT * INTO v_task FROM scheduled_tasks t WHERE t.id = p_task_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no task %', p_task_id USING ERRCODE = 'no_data_found';
    END IF;
    v_now := clock_timestamp();
    IF v_task.is_enabled IS NOT TRUE OR v_task.next_run_at IS NULL OR v_task.next_run_at > v_now THEN
        RETURN NULL;
    END IF;
    -- The key was free, so whoever runs it by the log is gone.
    UPDATE task_execution_log e
       SET status = 'failed', completed_at = v_now, recovered_by = p_worker_id,
           error_message = format('the session that held its lock was gone when worker %s acquired it', p_worker_id)
     WHERE e.task_id = p_task_id AND e.status = 'running'
    RETURNING * INTO v_lost;
    IF FOUND THEN
        INSERT INTO locktop_audit (action, actor, task_id, execution_id, worker_id, lock_id, target_pid, target_start, reason)
        VALUES ('superseded', p_worker_id, p_task_id, v_lost.id, v_lost.worker_id, v_key, v_lost.backend_pid,
                v_lost.backend_start, 'its key was free when the task was acquired');
        IF v_task.attempts + 1 >= v_task.max_attempts THEN
            PERFORM settle_task(p_task_id, false);
            RETURN NULL;
        END IF;
        v_task.attempts := v_task.attempts + 1;
    END IF;
    INSERT INTO task_execution_log
        (task_id, worker_id, status, started_at, heartbeat_at, lock_id, backend_pid, backend_start, attempt)
    VALUES (p_task_id, p_worker_id, 'running', v_now, v_now, v_key, pg_backend_pid(), v_start, v_task.attempts + 1)
    RETURNING id INTO v_execution;
    UPDATE scheduled_tasks t SET last_run_at = v_now, attempts = v_task.attempts WHERE t.id = p_task_id;
    IF NOT pg_try_advisory_lock(v_key) THEN
        RAISE EXCEPTION 'the key % of task % was lost', v_key, p_task_id;
    END IF;
    RETURN v_execution;
END
$body$;
COMMENT ON FUNCTION @schema@.start_execution(integer, text) IS
    'Takes the key of a due task and logs an execution; for use by the functions that check first whether this session has it';

-- False when somebody has the task, this session included, and when it is not due or not enabled.
CREATE FUNCTION @schema@.try_acquire_task_lock(p_task_id int, p_worker_id text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    -- Session locks stack: the one that has it would get it again.
    IF p_task_id = ANY (held_task_ids()) THEN
        RETURN false;
    END IF;
    RETURN start_execution(p_task_id, p_worker_id) IS NOT NULL;
END
$body$;
COMMENT ON FUNCTION @schema@.try_acquire_task_lock(int, text) IS
    'Takes a due task for this session: true when it is ours now. Commit at once; the work comes after.';

-- Up to p_max_tasks of the due tasks that nobody holds, the highest priority first.
CREATE FUNCTION @schema@.fetch_tasks(p_worker_id text, p_max_tasks int DEFAULT 1)
RETURNS TABLE (execution_id bigint, task_id int, task_name text, task_type text, payload jsonb, attempt int,
               max_attempts int, timeout_seconds double precision, lock_id bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_oldest timestamptz := v_now - orphan_grace();
    v_started boolean;
    v_skip bigint[];
    v_priority integer;
    v_task integer;
    v_execution bigint;
    v_count integer := 0;
BEGIN
    IF NOT EXISTS (SELECT FROM scheduled_tasks t WHERE t.is_enabled AND t.next_run_at <= v_now) THEN
        RETURN;
    END IF;
    v_skip := held_task_ids();
    v_started := up_since() > v_oldest;
    SELECT max(t.priority) INTO v_priority FROM scheduled_tasks t WHERE t.is_enabled;
    WHILE v_priority IS NOT NULL AND v_count < p_max_tasks LOOP
        -- A task that is being taken has its row locked. One whose worker may still be stopping is left alone for a while.
        SELECT t.id INTO v_task
          FROM scheduled_tasks t
         WHERE t.is_enabled AND t.priority = v_priority AND t.next_run_at <= v_now AND t.id <> ALL (v_skip)
           AND NOT EXISTS (
               SELECT FROM task_execution_log e
                WHERE e.task_id = t.id AND e.status = 'running' AND (v_started OR greatest(e.started_at, e.heartbeat_at) > v_oldest))
         ORDER BY t.next_run_at, t.id
         LIMIT 1
           FOR NO KEY UPDATE OF t SKIP LOCKED;
        IF NOT FOUND THEN
            SELECT max(t.priority) INTO v_priority FROM scheduled_tasks t WHERE t.is_enabled AND t.priority < v_priority;
            CONTINUE;
        END IF;
        v_skip := v_skip || v_task::bigint;
        v_execution := start_execution(v_task, p_worker_id);
        IF v_execution IS NOT NULL THEN
            v_count := v_count + 1;
            RETURN QUERY
            SELECT e.id, t.id, t.task_name, t.task_type, t.payload, e.attempt, t.max_attempts,
                   extract(epoch FROM t.timeout)::double precision, e.lock_id
              FROM task_execution_log e JOIN scheduled_tasks t ON t.id = e.task_id
             WHERE e.id = v_execution;
        END IF;
    END LOOP;
END
$body$;
COMMENT ON FUNCTION @schema@.fetch_tasks(text, int) IS
    'Takes the highest-priority due tasks that nobody holds, with what a worker needs to run them; no row when there is none';

CREATE FUNCTION @schema@.worker_fetch_and_execute_task(p_worker_id text)
RETURNS TABLE (task_id int, task_name text, task_type text, acquired boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT f.task_id, f.task_name, f.task_type, true FROM fetch_tasks(p_worker_id, 1) f;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::int, NULL::text, NULL::text, false;
    END IF;
END
$body$;
COMMENT ON FUNCTION @schema@.worker_fetch_and_execute_task(text) IS
    'Takes one due task; one row, with acquired false when there is none';

CREATE FUNCTION @schema@.try_acquire_multiple_tasks(p_worker_id text, p_max_tasks int DEFAULT 3)
RETURNS TABLE (task_id int, task_name text, acquired boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT f.task_id, f.task_name, true FROM fetch_tasks(p_worker_id, p_max_tasks) f;
END
$body$;
COMMENT ON FUNCTION @schema@.try_acquire_multiple_tasks(text, int) IS 'Takes up to so many due tasks';

-- When to look again for one who has just found nothing: the earliest next_run_at of what nobody runs, which may have come since, or
-- the time when an execution whose key is free becomes an orphan.
CREATE FUNCTION @schema@.next_due_at()
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_held bigint[] := held_task_ids();
BEGIN
    RETURN least(
        (SELECT min(t.next_run_at)
           FROM scheduled_tasks t
          WHERE t.is_enabled AND t.id <> ALL (v_held)
            AND NOT EXISTS (SELECT FROM task_execution_log e WHERE e.task_id = t.id AND e.status = 'running')),
        (SELECT greatest(min(greatest(e.started_at, e.heartbeat_at)), max(u.since)) + orphan_grace()
           FROM task_execution_log e
           JOIN scheduled_tasks t ON t.id = e.task_id
          CROSS JOIN (SELECT up_since() AS since) u
          WHERE e.status = 'running' AND t.is_enabled AND t.next_run_at IS NOT NULL AND e.task_id <> ALL (v_held)));
END
$body$;
COMMENT ON FUNCTION @schema@.next_due_at() IS
    'When a worker that found nothing to do should look again, unless it is notified before; null when nothing is planned';
