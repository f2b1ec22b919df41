-- The six tables, parted by an expression of mallory's; each part with an index, a check, a default and a trigger of its own.
CREATE TABLE scheduled_tasks (id integer, task_name text, task_type text, schedule_cron text, is_enabled boolean,
                              last_run_at timestamptz, next_run_at timestamptz) PARTITION BY RANGE ((id + evil.zero('partition key')));
CREATE TABLE task_execution_log (id bigint, task_id integer, worker_id text, status text, started_at timestamptz,
                                 completed_at timestamptz, lock_id bigint) PARTITION BY RANGE ((id + evil.zero('partition key')));
CREATE TABLE distlock (id integer, expired_time interval, owner text, ts timestamptz) PARTITION BY RANGE ((id + evil.zero('partition key')));
CREATE TABLE task_queue (id bigint, task_name text, status text, worker_id text, created_at timestamptz,
                         started_at timestamptz, completed_at timestamptz) PARTITION BY RANGE ((id + evil.zero('partition key')));
CREATE TABLE rate_limit (key integer, count integer, window_start timestamptz) PARTITION BY RANGE ((key + evil.zero('partition key')));
CREATE TABLE id_generator (worker_id integer, sequence integer, last_timestamp bigint)
    PARTITION BY RANGE ((worker_id + evil.zero('partition key')));
CREATE INDEX ON scheduled_tasks (id);
CREATE INDEX ON task_execution_log (id);
CREATE INDEX ON task_queue (id);
DO $do$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['scheduled_tasks', 'task_execution_log', 'distlock', 'task_queue', 'rate_limit', 'id_generator'] LOOP
        EXECUTE format('CREATE TABLE evil.%I PARTITION OF %I (CHECK (evil.hit(%L))) FOR VALUES FROM (0) TO (1000)', t, t, t || ' check of a part');
        EXECUTE format('CREATE INDEX ON evil.%I ((1)) WHERE evil.hit(%L)', t, t || ' index of a part');
        EXECUTE format('CREATE TRIGGER a_row BEFORE INSERT ON evil.%I FOR EACH ROW EXECUTE FUNCTION evil.on_row(%L)', t, t || ' trigger of a part');
    END LOOP;
END $do$;
INSERT INTO scheduled_tasks (id, task_name) VALUES (1, 'a');
INSERT INTO task_execution_log (id, task_id, status) VALUES (1, 1, 'running');
INSERT INTO distlock VALUES (1, '1 hour', 'a', now());
INSERT INTO task_queue (id, status) VALUES (1, 'pending');
INSERT INTO rate_limit VALUES (1, 1, now());
INSERT INTO id_generator VALUES (1, 1, 1);
GRANT SELECT ON ALL TABLES IN SCHEMA public, evil TO PUBLIC;
