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
        -- Twice as long each time, at most an hour unless the first was longer.
        next_run_at := clock_timestamp() + greatest(v_task.retry_delay,
            least(v_task.retry_delay * 2 ^ least(v_attempts - 1, 20), interval '1 hour'));
    END IF;
    UPDATE scheduled_tasks t SET next_run_at = settle_task.next_run_at, attempts = v_attempts WHERE t.id = p_task_id;
END
$body$;
COMMENT ON FUNCTION @schema@.settle_task(integer, boolean) IS
    'Says when a task runs again after an execution ended: by its schedule, or sooner to try again';
