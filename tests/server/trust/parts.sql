-- The six tables, each in two parts, of which one is in parts again.
CREATE TABLE scheduled_tasks (id integer, task_name text, is_enabled boolean, last_run_at timestamptz, next_run_at timestamptz) PARTITION BY RANGE (id);
CREATE TABLE task_execution_log (id bigint, task_id integer, status text, started_at timestamptz) PARTITION BY RANGE (id);
CREATE TABLE distlock (id integer, expired_time interval, owner text, ts timestamptz) PARTITION BY RANGE (id);
CREATE TABLE task_queue (id bigint, task_name text, status text, created_at timestamptz) PARTITION BY RANGE (id);
CREATE TABLE rate_limit (key integer, count integer, window_start timestamptz) PARTITION BY RANGE (key);
CREATE TABLE id_generator (worker_id integer, sequence integer, last_timestamp bigint) PARTITION BY RANGE (worker_id);
DO $do$
DECLARE
    t text;
    c text;
BEGIN
    FOREACH t IN ARRAY ARRAY['scheduled_tasks', 'task_execution_log', 'distlock', 'task_queue', 'rate_limit', 'id_generator'] LOOP
        c := CASE t WHEN 'rate_limit' THEN 'key' WHEN 'id_generator' THEN 'worker_id' ELSE 'id' END;
        EXECUTE format('CREATE INDEX ON %I (%I)', t, c);
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (0) TO (100)', t || '_1', t);
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (100) TO (1000) PARTITION BY RANGE (%I)', t || '_2', t, c);
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (100) TO (1000)', t || '_2_1', t || '_2');
    END LOOP;
END $do$;
INSERT INTO scheduled_tasks (id, task_name) VALUES (1, 'a'), (101, 'b');
INSERT INTO task_execution_log (id, task_id, status) VALUES (1, 1, 'running'), (101, 1, 'running');
INSERT INTO distlock VALUES (1, '1 hour', 'a', now()), (101, '1 hour', 'a', now());
INSERT INTO task_queue (id, status) VALUES (1, 'pending'), (101, 'pending');
INSERT INTO rate_limit VALUES (1, 1, now()), (101, 1, now());
INSERT INTO id_generator VALUES (1, 1, 1), (101, 1, 1);
GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;
