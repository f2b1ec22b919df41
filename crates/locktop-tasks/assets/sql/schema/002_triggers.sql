-- What happens when somebody writes to scheduled_tasks.

-- A schedule is checked when it is written, and gives the first time to run.
CREATE FUNCTION @schema@.plan_task()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    v_next timestamptz;
BEGIN
    v_next := cron_next(NEW.schedule_cron, clock_timestamp(), NEW.time_zone);
    IF TG_OP = 'INSERT' THEN
        NEW.next_run_at := coalesce(NEW.next_run_at, v_next);
    ELSIF NEW.next_run_at IS NOT DISTINCT FROM OLD.next_run_at
          AND (NEW.schedule_cron, NEW.time_zone) IS DISTINCT FROM (OLD.schedule_cron, OLD.time_zone)
          AND NEW.schedule_cron IS NOT NULL THEN
        NEW.next_run_at := v_next;
    END IF;
    RETURN NEW;
END
$body$;
COMMENT ON FUNCTION @schema@.plan_task() IS 'Checks a cron expression and sets next_run_at from it';

CREATE TRIGGER plan_task
    BEFORE INSERT OR UPDATE OF schedule_cron, time_zone ON @schema@.scheduled_tasks
    FOR EACH ROW EXECUTE FUNCTION @schema@.plan_task();

-- Wakes idle workers. They sleep until the earliest next_run_at to come, so only a task that is due now or before that is news.
-- Commits that notify wait for each other: to tell everything would make a busy system slower.
CREATE FUNCTION @schema@.announce_task()
RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, @schema@, pg_temp
AS $body$
DECLARE
    -- A variable, which an index can be searched for.
    v_now timestamptz := clock_timestamp();
BEGIN
    IF NEW.next_run_at > v_now AND EXISTS (
        SELECT FROM scheduled_tasks t
         WHERE t.is_enabled AND t.next_run_at > v_now AND t.next_run_at <= NEW.next_run_at AND t.id <> NEW.id
    ) THEN
        RETURN NULL;
    END IF;
    -- The same words each time: a transaction that makes a thousand tasks due is heard once.
    PERFORM pg_notify('locktop_tasks', TG_TABLE_SCHEMA);
    RETURN NULL;
END
$body$;
COMMENT ON FUNCTION @schema@.announce_task() IS
    'NOTIFY locktop_tasks, ''<schema>'' when a task is due, or will be before any other';

CREATE TRIGGER announce_new_task
    AFTER INSERT ON @schema@.scheduled_tasks
    FOR EACH ROW WHEN (NEW.is_enabled AND NEW.next_run_at IS NOT NULL)
    EXECUTE FUNCTION @schema@.announce_task();
CREATE TRIGGER announce_changed_task
    AFTER UPDATE OF next_run_at, is_enabled ON @schema@.scheduled_tasks
    FOR EACH ROW WHEN (NEW.is_enabled AND NEW.next_run_at IS NOT NULL
        AND (NEW.next_run_at IS DISTINCT FROM OLD.next_run_at OR NEW.is_enabled IS DISTINCT FROM OLD.is_enabled))
    EXECUTE FUNCTION @schema@.announce_task();
