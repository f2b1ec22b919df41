-- Other types for the same columns, and values at their ends.
CREATE TABLE scheduled_tasks (id bigint PRIMARY KEY, task_name varchar(200), task_type text, schedule_cron text, is_enabled boolean,
                              last_run_at timestamp, next_run_at date, priority smallint, timeout interval, max_attempts smallint, attempts bigint);
INSERT INTO scheduled_tasks VALUES
    (1, E'tab\there', E'\\N', '', true, '2024-02-29 23:59:59.999999', '2024-02-29', -1, '1 mon 2 days 03:04:05.678', 3, 0),
    (2, E'line\nfeed \\. \r "quoted", {braces}', 'x', NULL, false, 'infinity', 'infinity', NULL, '-1 year -1 day', 0, -1),
    (3, '数据同步任务 é 😀', 'x', '*/5 * * * *', NULL, '-infinity', '-infinity', 32767, '178000000 years', 3, 9223372036854775807),
    (4, '', '', '', true, NULL, NULL, -32768, NULL, NULL, NULL),
    (5, NULL, NULL, NULL, NULL, '1999-12-31 24:00:00', '1999-12-31', 0, '00:00:00.000001', 1, 1),
    (6, repeat('界', 150), repeat('y', 1000), 'x', true, '294276-12-31 23:59:59', '9999-12-31', 1, '0', 1, 1),
    (-9223372036854775808, 'NULL', 'null', 'NULL', true, now(), now() + interval '1 day', 1, '1 hour', 1, 1);
CREATE TABLE task_execution_log (id integer PRIMARY KEY, task_id smallint, worker_id varchar, status varchar(20), started_at timestamp,
                                 completed_at timestamptz, error_message text, lock_id bigint, attempt smallint);
CREATE INDEX ON task_execution_log (task_id, started_at DESC);
CREATE INDEX ON task_execution_log (status, started_at DESC);
INSERT INTO task_execution_log VALUES
    (1, 1, E'w\t1', 'running', localtimestamp - interval '5 minutes', NULL, NULL, 1, 1),
    (2, 1, 'w1', 'completed', localtimestamp - interval '2 hours', now() - interval '1 hour', E'it\nbroke', -1, NULL),
    (3, 2, NULL, 'failed', NULL, 'infinity', NULL, NULL, 32767),
    (4, 3, '', 'odd', '-infinity', NULL, NULL, 9223372036854775807, 0),
    (5, NULL, 'w', NULL, localtimestamp, NULL, NULL, NULL, NULL),
    (6, 4, 'w', 'running', '1999-12-31', '0044-03-15 00:00:00 BC', NULL, 4, 1);
CREATE TABLE distlock (id varchar, expired_time double precision, owner text, ts timestamp, token integer);
INSERT INTO distlock VALUES
    ('a', 3600, 'node1', localtimestamp, 1), ('b', 1e9, E'no\tde', localtimestamp, NULL), ('c', 2.5e10, '', '2000-01-01', -1),
    ('d', -1.5e300, NULL, NULL, 0), ('é 界', 0.1, 'x', '2200-01-01', 2147483647), ('', NULL, 'y', '-infinity', NULL),
    (E'\\N', 1e-300, E'\\N', '1990-03-15', 5), (NULL, 1, 'z', localtimestamp, 1), ('e', 30, 'w', localtimestamp - interval '1 day', 7);
CREATE TABLE task_queue (id integer PRIMARY KEY, task_name text, status text, worker_id text, created_at date, started_at timestamp,
                         completed_at timestamptz, timeout numeric, due_at timestamp, attempt bigint);
CREATE INDEX ON task_queue (status, created_at);
INSERT INTO task_queue VALUES
    (1, 'a', 'pending', NULL, current_date - 3, NULL, NULL, 1.5, localtimestamp, 1), (2, E'b\t', 'processing', 'w', current_date, localtimestamp, NULL, 'NaN', NULL, 1),
    (3, NULL, 'failed', 'w', '-infinity', 'infinity', now(), NULL, NULL, NULL), (4, 'c', NULL, NULL, NULL, NULL, NULL, 1e100, NULL, NULL),
    (5, 'd', 'odd', 'w', 'infinity', NULL, NULL, -1, NULL, 2), (6, 'e', 'completed', 'w', current_date, localtimestamp, now() - interval '10 seconds', 0, NULL, 1);
CREATE TABLE rate_limit (key bigint, count smallint, window_start timestamp, max_requests bigint, expires_at date);
INSERT INTO rate_limit VALUES (1, 1, localtimestamp, 10, 'infinity'), (-1, NULL, NULL, NULL, NULL), (NULL, 1, '-infinity', 0, '2000-01-01'),
                              (9223372036854775807, -32768, '1990-03-15', 9223372036854775807, current_date + 1);
CREATE TABLE id_generator (worker_id smallint, sequence bigint, last_timestamp bigint);
INSERT INTO id_generator VALUES (1, 9223372036854775807, -9223372036854775808), (NULL, 1, 1), (-32768, NULL, NULL), (1, 2, 3);
GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;
