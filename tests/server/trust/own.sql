-- Schedules of each kind, executions that run, ended and failed, items of each status, leases that are held, expired and released.
INSERT INTO locktop.scheduled_tasks (task_name, task_type, is_enabled, next_run_at, last_run_at, timeout, max_attempts, priority)
    SELECT 'task ' || g, 'sql', g % 7 <> 0,
           CASE g % 5 WHEN 0 THEN NULL WHEN 1 THEN now() + interval '1 day' WHEN 2 THEN now() - interval '1 day' WHEN 3 THEN now() - interval '3 days' ELSE now() + interval '2 days' END,
           CASE WHEN g % 3 = 0 THEN now() - interval '2 days' END, interval '30 minutes', 3, g % 4
      FROM generate_series(1, 300) g;
INSERT INTO locktop.task_execution_log (task_id, worker_id, status, started_at, completed_at, lock_id, backend_pid, backend_start, attempt, heartbeat_at, error_message)
    SELECT g, 'w' || g % 5, (ARRAY['completed', 'failed', 'completed'])[1 + g % 3], now() - g * interval '1 minute', now() - g * interval '50 seconds',
           locktop.task_lock_key(g), 1, now() - interval '3 days', 1, now() - g * interval '50 seconds', CASE g % 3 WHEN 1 THEN 'it broke: 数据' END
      FROM generate_series(1, 300) g;
INSERT INTO locktop.task_execution_log (task_id, worker_id, status, started_at, lock_id, backend_pid, backend_start, attempt, heartbeat_at)
    SELECT g, 'w', 'running', now() - interval '2 hours', locktop.task_lock_key(g), 1, now() - interval '3 hours', 1, now() - interval '2 hours'
      FROM generate_series(1, 20) g;
INSERT INTO locktop.task_queue (task_name) SELECT 'mail ' || g FROM generate_series(1, 40) g;
SELECT count(*) FROM locktop.claim_queue_items('w', 5);
SELECT locktop.lease_acquire(7, 'node1', '1 hour'), locktop.lease_acquire(8, 'node2', '1 ms');
GRANT SELECT ON ALL TABLES IN SCHEMA locktop TO PUBLIC;
