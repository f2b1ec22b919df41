-- Taking a task: its key for the session, a row in the log, and nobody else.
--
-- Each session keeps the plans that it made at first, when the tables may have been all but empty, and must not make them again for
-- each task: hence the settings. An SQL function with settings of its own is planned at each call, so none of those is on the way.

-- Reads all locks of the server: for who found that it has to know.
CREATE FUNCTION @schema@.held_task_ids()
RETURNS bigint[]
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    RETURN (SELECT coalesce(array_agg((l.classid::bigint & 65535) << 32 | l.objid::bigint), '{}')
              FROM pg_locks l
             WHERE l.locktype = 'advisory'
               AND l.objsubid = 1
               AND l.classid::bigint >> 16 = 19540
               AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
               AND l.granted);
END
$body$;
COMMENT ON FUNCTION @schema@.held_task_ids() IS 'The tasks whose key somebody holds in this database';

-- Closes the execution that the log has as running although its key was free, which is ours now. False when that was the last
-- attempt, when the execution showed signs of life after p_oldest, as that of a worker that is still stopping does, and when somebody
-- has its row locked.
CREATE FUNCTION @schema@.supersede_execution(p_task_id integer, p_worker_id text, p_oldest timestamptz)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_lost task_execution_log;
BEGIN
    SELECT * INTO v_lost
      FROM task_execution_log e
     WHERE e.task_id = p_task_id AND e.status = 'running' AND (greatest(e.started_at, e.heartbeat_at) > p_oldest) IS NOT TRUE
       FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE task_execution_log e
       SET status = 'failed', completed_at = clock_timestamp(), recovered_by = p_worker_id,
           error_message = format('the session that held its lock was gone when worker %s acquired it', p_worker_id)
     WHERE e.task_id = p_task_id AND e.status = 'running' AND e.id = v_lost.id;
    INSERT INTO locktop_audit (action, actor, task_id, execution_id, worker_id, lock_id, target_pid, target_start, reason)
    VALUES ('superseded', p_worker_id, p_task_id, v_lost.id, v_lost.worker_id, task_lock_key(p_task_id), v_lost.backend_pid,
            v_lost.backend_start, 'its key was free when the task was acquired');
    IF EXISTS (SELECT FROM scheduled_tasks t WHERE t.id = p_task_id AND t.attempts + 1 >= t.max_attempts) THEN
        PERFORM settle_task(p_task_id, false);
        RETURN false;
    END IF;
    UPDATE scheduled_tasks t SET attempts = t.attempts + 1 WHERE t.id = p_task_id;
    RETURN true;
END
$body$;
COMMENT ON FUNCTION @schema@.supersede_execution(integer, text, timestamptz) IS
    'Fails the running execution of a task whose key was free, and counts the attempt';

-- Starts an execution, or answers null. A running one of the task that showed signs of life after p_oldest is left alone. Who has
-- the row of the task locked, and found it due, says how many attempts it has: whoever has the key by then cannot end before us.
--
-- The key is taken for the transaction first and for the session last, so that an error in here leaves nothing held. One that comes
-- after, in the same transaction, does: release_idle_task_keys() is for that.
CREATE FUNCTION @schema@.start_execution(p_task_id integer, p_worker_id text, p_attempts integer DEFAULT NULL,
                                         p_oldest timestamptz DEFAULT 'infinity',
                                         OUT execution_id bigint, OUT attempt integer, OUT lock_id bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
DECLARE
    v_start timestamptz := own_backend_start();
    v_now timestamptz;
BEGIN
    lock_id := task_lock_key(p_task_id);
    IF NOT pg_try_advisory_xact_lock(lock_id) THEN
        RETURN;
    END IF;
    -- The statement of a worker that lost the key may still run, in a session of its own.
    IF NOT pg_try_advisory_xact_lock(statement_lock_key(p_task_id)) THEN
        RETURN;
    END IF;
    v_now := clock_timestamp();
    attempt := p_attempts + 1;
    IF attempt IS NULL THEN
        -- Only now: before, somebody else may have been finishing it.
        SELECT t.attempts + 1 INTO attempt
          FROM scheduled_tasks t
         WHERE t.id = p_task_id AND t.is_enabled AND t.next_run_at <= v_now
           FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            IF NOT EXISTS (SELECT FROM scheduled_tasks t WHERE t.id = p_task_id) THEN
                RAISE EXCEPTION 'there is no task %', p_task_id USING ERRCODE = 'no_data_found';
            END IF;
            RETURN;
        END IF;
    END IF;
    LOOP
        -- A row in the way is found by the very index that allows one.
        INSERT INTO task_execution_log
            (task_id, worker_id, status, started_at, heartbeat_at, lock_id, backend_pid, backend_start, attempt)
        VALUES (p_task_id, p_worker_id, 'running', v_now, v_now, lock_id, pg_backend_pid(), v_start, attempt)
        ON CONFLICT (task_id) WHERE status = 'running' DO NOTHING
        RETURNING id INTO execution_id;
        EXIT WHEN FOUND;
        IF NOT supersede_execution(p_task_id, p_worker_id, p_oldest) THEN
            RETURN;
        END IF;
        attempt := attempt + 1;
    END LOOP;
    UPDATE scheduled_tasks t SET last_run_at = v_now WHERE t.id = p_task_id;
    IF NOT pg_try_advisory_lock(lock_id) THEN
        RAISE EXCEPTION 'the key % of task % was lost', lock_id, p_task_id;
    END IF;
END
$body$;
COMMENT ON FUNCTION @schema@.start_execution(integer, text, integer, timestamptz) IS
    'Takes the key of a due task and logs an execution; for use by the functions that check first whether this session has it';

-- False when somebody has the task, this session included, and when it is not due or not enabled.
CREATE FUNCTION @schema@.try_acquire_task_lock(p_task_id int, p_worker_id text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $body$
DECLARE
    v_started record;
BEGIN
    -- Session locks stack: the one that has it would get it again.
    IF p_task_id = ANY (held_task_ids()) THEN
        RETURN false;
    END IF;
    v_started := start_execution(p_task_id, p_worker_id);
    RETURN v_started.execution_id IS NOT NULL;
END
$body$;
COMMENT ON FUNCTION @schema@.try_acquire_task_lock(int, text) IS
    'Takes a due task for this session: true when it is ours now. Commit at once; the work comes after.';

-- Up to p_max_tasks of the due tasks that nobody holds, the highest priority first.
--
-- What runs is told by the log, and by its key only when the log is in doubt: to look at the keys costs more the more locks there
-- are on the server, whoever has them. So a session that has the bare key of a task, and does not run it, is given the task too.
--
-- An error after the first task leaves the keys of those before it with the session, and the tasks with nobody: call
-- release_idle_task_keys() then.
CREATE FUNCTION @schema@.fetch_tasks(p_worker_id text, p_max_tasks int DEFAULT 1)
RETURNS TABLE (execution_id bigint, task_id int, task_name text, task_type text, payload jsonb, attempt int,
               max_attempts int, timeout_seconds double precision, lock_id bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $body$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_oldest timestamptz := v_now - orphan_grace();
    v_held bigint[];
    v_restarted boolean;
    v_skip bigint[] := '{}';
    v_priority integer;
    v_empty integer := 0;
    v_task record;
    v_started record;
    v_found boolean;
    v_count integer := 0;
BEGIN
    SELECT max(t.priority) INTO v_priority FROM scheduled_tasks t WHERE t.is_enabled;
    WHILE v_priority IS NOT NULL AND v_count < p_max_tasks LOOP
        v_found := false;
        -- A task that is being taken has its row locked. One whose worker may still be stopping is left alone for a while. The
        -- OFFSET keeps it a look into an index for each, also where the tables seem to be small.
        FOR v_task IN
            SELECT t.id, t.task_name, t.task_type, t.payload, t.attempts, t.max_attempts, t.timeout, e.seen
              FROM scheduled_tasks t
              LEFT JOIN LATERAL (
                   SELECT greatest(r.started_at, r.heartbeat_at, '-infinity') AS seen
                     FROM task_execution_log r
                    WHERE r.task_id = t.id AND r.status = 'running'
                   OFFSET 0) e ON true
             WHERE t.is_enabled AND t.priority = v_priority AND t.next_run_at <= v_now AND t.id <> ALL (v_skip)
               AND (e.seen > v_oldest) IS NOT TRUE
             ORDER BY t.next_run_at, t.id
             LIMIT p_max_tasks - v_count
               FOR NO KEY UPDATE OF t SKIP LOCKED
        LOOP
            v_found := true;
            v_skip := v_skip || v_task.id::bigint;
            IF v_task.seen IS NOT NULL THEN
                IF v_held IS NULL THEN
                    v_held := held_task_ids();
                    v_skip := v_skip || v_held;
                    v_restarted := up_since() > v_oldest;
                END IF;
                CONTINUE WHEN v_restarted OR v_task.id = ANY (v_held);
                -- Nobody else's task waits for who has this row locked. The insert would, where the row was changed and not committed.
                PERFORM FROM task_execution_log r WHERE r.task_id = v_task.id AND r.status = 'running' FOR UPDATE SKIP LOCKED;
                CONTINUE WHEN NOT FOUND;
            END IF;
            v_started := start_execution(v_task.id, p_worker_id, v_task.attempts, v_oldest);
            IF v_started.execution_id IS NOT NULL THEN
                v_count := v_count + 1;
                execution_id := v_started.execution_id;
                task_id := v_task.id;
                task_name := v_task.task_name;
                task_type := v_task.task_type;
                payload := v_task.payload;
                attempt := v_started.attempt;
                max_attempts := v_task.max_attempts;
                timeout_seconds := extract(epoch FROM v_task.timeout);
                lock_id := v_started.lock_id;
                RETURN NEXT;
            END IF;
        END LOOP;
        IF v_found THEN
            v_empty := 0;
            CONTINUE;
        END IF;
        -- Nothing more at this priority. The next one is found at once, whatever it has. After many with nothing it is worth while to
        -- go through all tasks for one that has something due.
        v_empty := v_empty + 1;
        IF v_empty < 16 THEN
            SELECT max(t.priority) INTO v_priority FROM scheduled_tasks t WHERE t.is_enabled AND t.priority < v_priority;
        ELSE
            v_empty := 0;
            SELECT max(d.priority) INTO v_priority
              FROM (SELECT t.priority FROM scheduled_tasks t WHERE t.is_enabled AND t.next_run_at <= v_now OFFSET 0) d
             WHERE d.priority < v_priority;
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

-- When to look again for one who has just found nothing: the earliest next_run_at of what nobody runs, which may have come since; the
-- earliest to come of whatever task, since announce_task tells nobody of one after that; or the time when an execution whose key is
-- free becomes an orphan.
CREATE FUNCTION @schema@.next_due_at()
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $body$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_held bigint[] := held_task_ids();
BEGIN
    RETURN least(
        (SELECT min(t.next_run_at)
           FROM scheduled_tasks t
          WHERE t.is_enabled AND t.next_run_at <= v_now AND t.id <> ALL (v_held)
            AND NOT EXISTS (SELECT FROM task_execution_log e WHERE e.task_id = t.id AND e.status = 'running')),
        (SELECT min(t.next_run_at) FROM scheduled_tasks t WHERE t.is_enabled AND t.next_run_at > v_now),
        (SELECT greatest(min(greatest(e.started_at, e.heartbeat_at)), max(u.since)) + orphan_grace()
           FROM task_execution_log e
           JOIN scheduled_tasks t ON t.id = e.task_id
          CROSS JOIN (SELECT up_since() AS since) u
          WHERE e.status = 'running' AND t.is_enabled AND t.next_run_at IS NOT NULL AND e.task_id <> ALL (v_held)));
END
$body$;
COMMENT ON FUNCTION @schema@.next_due_at() IS
    'When a worker that found nothing to do should look again, unless it is notified before; null when nothing is planned';
