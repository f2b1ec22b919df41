-- What is over and old is removed, if somebody says how long it is kept: in the call, or for good by a setting.
--
--     SELECT cron.schedule('locktop purge', '17 3 * * *', $$CALL locktop.purge('30 days')$$);
--     ALTER DATABASE app SET locktop.keep_executions = '30 days';   -- and keep_queue, keep_audit: for a superuser; then CALL locktop.purge()
--
-- What runs or waits is never removed, nor are the last ten executions of each task. A call removes at most p_limit rows, oldest first,
-- and locks no others; rows that somebody has locked are left for the next time.

CREATE FUNCTION @schema@.retention(p_log text)
RETURNS interval
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
BEGIN
    RETURN nullif(current_setting('locktop.keep_' || p_log, true), '')::interval;
END
$body$;
COMMENT ON FUNCTION @schema@.retention(text) IS
    'How long rows are kept that are over: the setting locktop.keep_executions, keep_queue or keep_audit; null: for ever';

CREATE FUNCTION @schema@.kept_since(p_log text, p_keep interval)
RETURNS timestamptz
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_keep interval := coalesce(p_keep, retention(p_log));
BEGIN
    IF v_keep IS NULL THEN
        RAISE EXCEPTION 'nothing says how long % are kept', CASE p_log WHEN 'queue' THEN 'items of the queue' WHEN 'audit' THEN 'audit rows'
                                                                 ELSE p_log END
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = format('Say it in the call, or ALTER DATABASE %I SET locktop.keep_%s = ''30 days''.', current_database(), p_log);
    ELSIF v_keep < interval '0' THEN
        RAISE EXCEPTION 'what is over cannot be kept for %', v_keep USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN statement_timestamp() - v_keep;
END
$body$;
COMMENT ON FUNCTION @schema@.kept_since(text, interval) IS 'What ended before this time may go; for use by the functions that purge';

-- Of each task the start of the last execution that is kept whatever its age. An index has them.
CREATE FUNCTION @schema@.kept_execution(p_task_id int)
RETURNS timestamptz
LANGUAGE sql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
AS $body$
    SELECT e.started_at FROM task_execution_log e WHERE e.task_id = p_task_id ORDER BY e.started_at DESC OFFSET 9 LIMIT 1
$body$;
COMMENT ON FUNCTION @schema@.kept_execution(int) IS 'When the tenth execution of a task began, counted from the last: the ten stay';

CREATE FUNCTION @schema@.note_purge(p_log text, p_rows bigint, p_before timestamptz)
RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
    INSERT INTO locktop_audit (action, actor, detail)
    SELECT 'purged', session_user, format('%s rows of %s from before %s', p_rows, p_log, p_before) WHERE p_rows > 0
$body$;
COMMENT ON FUNCTION @schema@.note_purge(text, bigint, timestamptz) IS 'Puts on record that rows were removed; for use by the functions that purge';

CREATE FUNCTION @schema@.purge_executions(p_keep interval DEFAULT NULL, p_limit integer DEFAULT 10000)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
    v_before timestamptz := kept_since('executions', p_keep);
    v_task record;
    v_old tid[];
    v_gone bigint := 0;
BEGIN
    FOR v_task IN SELECT t.id, kept_execution(t.id) AS kept FROM scheduled_tasks t LOOP
        CONTINUE WHEN v_task.kept IS NULL;
        v_old := ARRAY(
            SELECT e.ctid FROM task_execution_log e
             WHERE e.task_id = v_task.id AND e.started_at < least(v_before, v_task.kept)
               AND e.status <> 'running' AND coalesce(e.completed_at, e.started_at) < v_before
             ORDER BY e.started_at LIMIT p_limit - v_gone
               FOR UPDATE SKIP LOCKED);
        DELETE FROM task_execution_log e WHERE e.ctid = ANY (v_old);
        v_gone := v_gone + cardinality(v_old);
        EXIT WHEN v_gone >= p_limit;
    END LOOP;
    PERFORM note_purge('task_execution_log', v_gone, v_before);
    RETURN v_gone;
END
$body$;
COMMENT ON FUNCTION @schema@.purge_executions(interval, integer) IS
    'Removes executions that ended so long ago, but never the last ten of a task: how many; for now and then, and for pg_cron';

CREATE FUNCTION @schema@.purge_queue(p_keep interval DEFAULT NULL, p_limit integer DEFAULT 10000)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
    v_before timestamptz := kept_since('queue', p_keep);
    v_old tid[];
    v_gone bigint;
BEGIN
    -- Each state has an index of its own.
    v_old := ARRAY(SELECT q.ctid FROM task_queue q WHERE q.status = 'completed' AND q.completed_at < v_before
                    ORDER BY q.completed_at LIMIT p_limit FOR UPDATE SKIP LOCKED);
    v_old := v_old || ARRAY(SELECT q.ctid FROM task_queue q WHERE q.status = 'failed' AND q.completed_at < v_before
                             ORDER BY q.completed_at LIMIT p_limit - cardinality(v_old) FOR UPDATE SKIP LOCKED);
    DELETE FROM task_queue q WHERE q.ctid = ANY (v_old);
    v_gone := cardinality(v_old);
    PERFORM note_purge('task_queue', v_gone, v_before);
    RETURN v_gone;
END
$body$;
COMMENT ON FUNCTION @schema@.purge_queue(interval, integer) IS
    'Removes items of the queue that completed or were set aside as failed so long ago: how many; for now and then, and for pg_cron';

-- The one way to remove rows of the record, for the owner of the table. It says so there.
CREATE FUNCTION @schema@.purge_audit(p_keep interval DEFAULT NULL, p_limit integer DEFAULT 10000)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
    v_before timestamptz := kept_since('audit', p_keep);
    v_old tid[];
    v_gone bigint;
BEGIN
    v_old := ARRAY(SELECT a.ctid FROM locktop_audit a WHERE a.at < v_before ORDER BY a.at LIMIT p_limit);
    -- Only superusers have a setting of their own at the head of a function.
    PERFORM set_config('locktop.purging', 'audit', true);
    DELETE FROM locktop_audit a WHERE a.ctid = ANY (v_old);
    GET DIAGNOSTICS v_gone = ROW_COUNT;
    PERFORM set_config('locktop.purging', '', true);
    PERFORM note_purge('locktop_audit', v_gone, v_before);
    RETURN v_gone;
END
$body$;
COMMENT ON FUNCTION @schema@.purge_audit(interval, integer) IS
    'Removes audit rows that were written so long ago, and writes one that says so: how many; for the owner of the table';

-- What a purge would remove, for whoever asks before. It counts, so it may take a while.
CREATE FUNCTION @schema@.purge_candidates(p_keep interval DEFAULT NULL)
RETURNS TABLE (log text, keep interval, old_rows bigint, oldest timestamptz)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
#variable_conflict use_column
DECLARE
    v_before timestamptz;
BEGIN
    FOREACH log IN ARRAY ARRAY['executions', 'queue', 'audit'] LOOP
        keep := coalesce(p_keep, retention(log));
        CONTINUE WHEN keep IS NULL;
        v_before := kept_since(log, keep);
        IF log = 'executions' THEN
            SELECT count(e.id), min(e.started_at) INTO old_rows, oldest
              FROM (SELECT t.id, kept_execution(t.id) AS kept FROM scheduled_tasks t OFFSET 0) t
              JOIN task_execution_log e ON e.task_id = t.id AND e.started_at < least(v_before, t.kept)
             WHERE t.kept IS NOT NULL AND e.status <> 'running' AND coalesce(e.completed_at, e.started_at) < v_before;
        ELSIF log = 'queue' THEN
            SELECT count(*), min(q.completed_at) INTO old_rows, oldest FROM task_queue q
             WHERE q.status IN ('completed', 'failed') AND q.completed_at < v_before;
        ELSE
            SELECT count(*), min(a.at) INTO old_rows, oldest FROM locktop_audit a WHERE a.at < v_before;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$body$;
COMMENT ON FUNCTION @schema@.purge_candidates(interval) IS 'How many rows a purge would remove, by what is to be kept';

-- A procedure that commits can have no settings of its own, so every name is in full.
CREATE PROCEDURE @schema@.purge(p_keep interval DEFAULT NULL)
LANGUAGE plpgsql
AS $body$
DECLARE
    c_batch CONSTANT integer := 10000;
    v_log pg_catalog.text;
    v_gone bigint;
BEGIN
    FOREACH v_log IN ARRAY ARRAY['executions', 'queue', 'audit'] LOOP
        CONTINUE WHEN p_keep IS NULL AND @schema@.retention(v_log) IS NULL;
        LOOP
            IF v_log OPERATOR(pg_catalog.=) 'executions' THEN
                v_gone := @schema@.purge_executions(p_keep, c_batch);
            ELSIF v_log OPERATOR(pg_catalog.=) 'queue' THEN
                v_gone := @schema@.purge_queue(p_keep, c_batch);
            ELSE
                v_gone := @schema@.purge_audit(p_keep, c_batch);
            END IF;
            COMMIT;
            EXIT WHEN v_gone OPERATOR(pg_catalog.<) c_batch;
        END LOOP;
    END LOOP;
END
$body$;
COMMENT ON PROCEDURE @schema@.purge(interval) IS
    'Removes all that is over and older than it is to be kept, in transactions of 10,000 rows; without p_keep what a setting says';
