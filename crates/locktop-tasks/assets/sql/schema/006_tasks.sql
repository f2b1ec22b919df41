-- Tasks of some types. Without p_types they are those of all, as ever.

-- Up to p_max_tasks of the due tasks that nobody holds, the highest priority first. With p_types only tasks of these types: all others
-- are left alone, and no attempt of theirs is spent.
--
-- What runs is told by the log, and by its key only when the log is in doubt: to look at the keys costs more the more locks there
-- are on the server, whoever has them. So a session that has the bare key of a task, and does not run it, is given the task too.
--
-- An error after the first task leaves the keys of those before it with the session, and the tasks with nobody: call
-- release_idle_task_keys() then.
CREATE FUNCTION @schema@.fetch_tasks(p_worker_id text, p_max_tasks int DEFAULT 1, p_types text[] DEFAULT NULL)
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
               AND (p_types IS NULL OR t.task_type = ANY (p_types))
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
              FROM (SELECT t.priority FROM scheduled_tasks t WHERE t.is_enabled AND t.next_run_at <= v_now
                       AND (p_types IS NULL OR t.task_type = ANY (p_types)) OFFSET 0) d
             WHERE d.priority < v_priority;
        END IF;
    END LOOP;
END
$body$;
COMMENT ON FUNCTION @schema@.fetch_tasks(text, int, text[]) IS
    'Takes the highest-priority due tasks that nobody holds, with what a worker needs to run them; no row when there is none';

CREATE FUNCTION @schema@.worker_fetch_and_execute_task(p_worker_id text, p_types text[] DEFAULT NULL)
RETURNS TABLE (task_id int, task_name text, task_type text, acquired boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT f.task_id, f.task_name, f.task_type, true FROM fetch_tasks(p_worker_id, 1, p_types) f;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::int, NULL::text, NULL::text, false;
    END IF;
END
$body$;
COMMENT ON FUNCTION @schema@.worker_fetch_and_execute_task(text, text[]) IS
    'Takes one due task; one row, with acquired false when there is none';

CREATE FUNCTION @schema@.try_acquire_multiple_tasks(p_worker_id text, p_max_tasks int DEFAULT 3, p_types text[] DEFAULT NULL)
RETURNS TABLE (task_id int, task_name text, acquired boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT f.task_id, f.task_name, true FROM fetch_tasks(p_worker_id, p_max_tasks, p_types) f;
END
$body$;
COMMENT ON FUNCTION @schema@.try_acquire_multiple_tasks(text, int, text[]) IS 'Takes up to so many due tasks';

-- When to look again for one who has just found nothing: the earliest next_run_at of what nobody runs, which may have come since; the
-- earliest to come of whatever task and type, since announce_task tells nobody of one after that; or the time when an execution whose key is
-- free becomes an orphan.
CREATE FUNCTION @schema@.next_due_at(p_types text[] DEFAULT NULL)
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
            AND (p_types IS NULL OR t.task_type = ANY (p_types))
            AND NOT EXISTS (SELECT FROM task_execution_log e WHERE e.task_id = t.id AND e.status = 'running')),
        (SELECT min(t.next_run_at) FROM scheduled_tasks t WHERE t.is_enabled AND t.next_run_at > v_now),
        (SELECT greatest(min(greatest(e.started_at, e.heartbeat_at)), max(u.since)) + orphan_grace()
           FROM task_execution_log e
           JOIN scheduled_tasks t ON t.id = e.task_id
          CROSS JOIN (SELECT up_since() AS since) u
          WHERE e.status = 'running' AND t.is_enabled AND t.next_run_at IS NOT NULL AND e.task_id <> ALL (v_held)
            AND (p_types IS NULL OR t.task_type = ANY (p_types))));
END
$body$;
COMMENT ON FUNCTION @schema@.next_due_at(text[]) IS
    'When a worker that found nothing to do should look again, unless it is notified before; null when nothing is planned';
