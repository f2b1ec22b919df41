INSERT INTO task_execution_log (task_id, worker_id, status, started_at, completed_at, lock_id) VALUES
    (1, 'w1', 'completed', now() - interval '1 hour', now() - interval '50 minutes', 1),
    (1, 'w1', 'running', now() - interval '5 minutes', NULL, 1),
    (2, 'w2', 'failed', now() - interval '2 hours', now() - interval '1 hour', 2);
INSERT INTO distlock VALUES (1, '1 hour', 'node1', now()), (2, '1 minute', 'node2', now() - interval '1 hour');
INSERT INTO task_queue (task_name, status, worker_id, started_at) VALUES
    ('mail', 'pending', NULL, NULL), ('mail', 'processing', 'w1', now()), ('mail', 'failed', 'w1', now()),
    ('mail', 'completed', 'w1', now());
INSERT INTO rate_limit (key, count) VALUES ('api', 7), ('web', 3);
GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;
