-- More of everything than is shown, in less than 8 MB each, and in no order.
INSERT INTO distlock SELECT (g * 7919) % 5003 + 10, interval '1 hour', 'node' || g % 7, now() FROM generate_series(1, 2000) g;
INSERT INTO scheduled_tasks (task_name, task_type, next_run_at, last_run_at)
    SELECT 'task ' || (g * 7919) % 12007, 'x', now() + interval '1 day' + g * interval '1 second', now() - interval '1 day' - ((g * 31) % 9001) * interval '1 second' FROM generate_series(1, 11000) g;
INSERT INTO task_execution_log (task_id, worker_id, status, started_at, completed_at)
    SELECT 1 + (g * 31) % 2000, 'w' || g % 5, CASE WHEN g % 40 = 0 THEN 'running' WHEN g % 9 = 1 THEN 'failed' ELSE 'completed' END,
           now() - interval '1 day' - g * interval '1 second', CASE WHEN g % 40 <> 0 THEN now() - interval '1 day' END
      FROM generate_series(1, 10000) g;
INSERT INTO task_queue (task_name, status, worker_id, created_at, started_at, completed_at)
    SELECT 'mail ' || g, (ARRAY['pending', 'processing', 'failed', 'completed', 'odd'])[1 + g % 5], 'w', now() - interval '1 day' - ((g * 7919) % 30011) * interval '1 second',
           now() - interval '1 day', CASE WHEN g % 5 >= 2 THEN now() - interval '1 day' - g * interval '0.01 second' END
      FROM generate_series(1, 10000) g;
INSERT INTO rate_limit (key, count, window_start) SELECT 'key ' || (g * 7919) % 5003, g, now() - ((g * 31) % 5003) * interval '1 second' FROM generate_series(1, 2000) g;
INSERT INTO id_generator SELECT g, g, g FROM generate_series(2000, 4000) g;
