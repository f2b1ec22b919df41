-- What becomes of a task when an execution of it ends.

CREATE FUNCTION @schema@.orphan_grace()
RETURNS interval
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    RETURN coalesce(nullif(current_setting('locktop.orphan_grace', true), ''), '30 seconds')::interval;
END
$body$;
COMMENT ON FUNCTION @schema@.orphan_grace() IS
    'How long after its last sign of life an execution whose key is free is an orphan: the setting locktop.orphan_grace, or 30 seconds';

-- No session of now is older. After a start, a crash, which ends all sessions, and a promotion every key is free, and those who held one
-- may need a while to notice.
--
-- The launchers start when the server first lets somebody write, which no function tells. Their start may be hidden from a worker, so
-- this looks as the owner of the schema; where that does not help either, a promotion was after the last transaction replayed.
CREATE FUNCTION @schema@.up_since()
RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    SELECT greatest(pg_postmaster_start_time(), coalesce(
        (SELECT min(a.backend_start) FROM pg_stat_get_activity(NULL) a
          WHERE a.backend_type IN ('autovacuum launcher', 'logical replication launcher')),
        pg_last_xact_replay_timestamp()))
$body$;
COMMENT ON FUNCTION @schema@.up_since() IS
    'When the server last started, started anew after a crash, or was promoted: orphan_grace() counts from then at the earliest';

CREATE FUNCTION @schema@.task_lock_key(p_task_id bigint)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    -- 0x4C54
    IF p_task_id BETWEEN 0 AND 281474976710655 THEN
        RETURN 19540::bigint << 48 | p_task_id;
    END IF;
    -- Which says what is wrong.
    RETURN lock_key(19540, p_task_id);
END
$body$;
COMMENT ON FUNCTION @schema@.task_lock_key(bigint) IS 'The advisory lock key of a task';

-- A worker's statement runs in another session than the one that holds the task's key, and may outlive it: nobody starts the task
-- while a session has this key.
CREATE FUNCTION @schema@.statement_lock_key(p_task_id bigint)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    -- 0x4C57
    IF p_task_id BETWEEN 0 AND 281474976710655 THEN
        RETURN 19543::bigint << 48 | p_task_id;
    END IF;
    -- Which says what is wrong.
    RETURN lock_key(19543, p_task_id);
END
$body$;
COMMENT ON FUNCTION @schema@.statement_lock_key(bigint) IS
    'The advisory lock key of the session that runs the statement of a task of type "sql"';

CREATE FUNCTION @schema@.get_task_lock_id(p_task_name text)
RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_id bigint;
BEGIN
    SELECT t.id INTO v_id FROM scheduled_tasks t WHERE t.task_name = p_task_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no task named "%"', p_task_name USING ERRCODE = 'no_data_found';
    END IF;
    RETURN task_lock_key(v_id);
END
$body$;
COMMENT ON FUNCTION @schema@.get_task_lock_id(text) IS 'The advisory lock key of the task with this name';

CREATE FUNCTION @schema@.retry_pause(p_delay interval, p_failures integer)
RETURNS interval
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    -- Twice as long each time, at most an hour unless the first was longer; and no end of time that would be an error.
    SELECT CASE WHEN p_delay >= interval '1 hour' THEN least(p_delay, interval '1000 years')
                ELSE least(p_delay * 2 ^ least(p_failures - 1, 20), interval '1 hour') END
$body$;
COMMENT ON FUNCTION @schema@.retry_pause(interval, integer) IS 'How long a task rests after so many failures in a row';

-- The key of the task has to be held.
CREATE FUNCTION @schema@.settle_task(p_task_id integer, p_completed boolean, OUT next_run_at timestamptz, OUT gave_up boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
DECLARE
    v_task scheduled_tasks;
    v_attempts integer := 0;
BEGIN
    gave_up := false;
    IF p_completed THEN
        UPDATE scheduled_tasks t
           SET next_run_at = cron_next(t.schedule_cron, clock_timestamp(), t.time_zone), attempts = 0
         WHERE t.id = p_task_id
        RETURNING t.next_run_at INTO STRICT next_run_at;
        RETURN;
    END IF;
    SELECT * INTO STRICT v_task FROM scheduled_tasks WHERE id = p_task_id FOR NO KEY UPDATE;
    gave_up := v_task.attempts + 1 >= v_task.max_attempts;
    IF gave_up THEN
        next_run_at := cron_next(v_task.schedule_cron, clock_timestamp(), v_task.time_zone);
    ELSE
        v_attempts := v_task.attempts + 1;
        next_run_at := clock_timestamp() + retry_pause(v_task.retry_delay, v_attempts);
    END IF;
    UPDATE scheduled_tasks t SET next_run_at = settle_task.next_run_at, attempts = v_attempts WHERE t.id = p_task_id;
END
$body$;
COMMENT ON FUNCTION @schema@.settle_task(integer, boolean) IS
    'Says when a task runs again after an execution ended: by its schedule, or sooner to try again';
