-- A schema as `locktop schema install` makes it, of mallory's own: each object in it reports that it was called, and then does what it
-- should.
INSERT INTO locktop.scheduled_tasks (task_name, task_type, next_run_at, schedule_cron) VALUES
    ('gone', 'sql', now() - interval '1 hour', NULL), ('due', 'sql', now() - interval '1 hour', '* * * * *');
INSERT INTO locktop.task_execution_log (task_id, worker_id, status, started_at, lock_id, backend_pid, backend_start, attempt, heartbeat_at)
    VALUES (1, 'w', 'running', now() - interval '2 hours', locktop.task_lock_key(1), 1, now() - interval '3 hours', 1, now() - interval '2 hours');
INSERT INTO locktop.task_queue (task_name) VALUES ('mail');
SELECT locktop.lease_acquire(7, 'node1', '1 hour');
DO $do$
DECLARE
    f record;
    v record;
    t record;
BEGIN
    FOR f IN
        SELECT p.oid, p.proname, pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result,
               p.provolatile, (SELECT coalesce(string_agg('$' || n, ', ' ORDER BY n), '') FROM generate_series(1, p.pronargs) n) AS numbers
          FROM pg_proc p
         WHERE p.pronamespace = 'locktop'::regnamespace AND p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype
    LOOP
        EXECUTE format('ALTER FUNCTION %s RENAME TO %I', f.oid::regprocedure, 'real_' || f.proname);
        EXECUTE format('CREATE FUNCTION locktop.%I(%s) RETURNS %s LANGUAGE sql %s AS $body$ SELECT evil.hit(%L); SELECT %s locktop.%I(%s) $body$',
                       f.proname, f.arguments, f.result,
                       CASE f.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END,
                       'function ' || f.proname, CASE WHEN f.result = 'void' THEN '' ELSE '* FROM' END, 'real_' || f.proname, f.numbers);
    END LOOP;
    FOR v IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'locktop'::regnamespace AND c.relkind = 'v' LOOP
        EXECUTE format('ALTER VIEW locktop.%I RENAME TO %I', v.relname, 'real_' || v.relname);
        EXECUTE format('CREATE VIEW locktop.%I AS SELECT * FROM locktop.%I WHERE evil.hit(%L)', v.relname, 'real_' || v.relname, 'view ' || v.relname);
    END LOOP;
    FOR t IN SELECT c.oid, c.relname FROM pg_class c WHERE c.relnamespace = 'locktop'::regnamespace AND c.relkind = 'r' LOOP
        CALL evil.trap(t.oid::regclass);
    END LOOP;
END $do$;
REVOKE TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA locktop FROM PUBLIC;
GRANT USAGE ON SCHEMA locktop TO PUBLIC;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA locktop TO PUBLIC;
GRANT ALL ON ALL SEQUENCES IN SCHEMA locktop TO PUBLIC;
