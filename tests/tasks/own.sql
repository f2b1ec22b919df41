-- Tables with keys of their own namespace, in schema $schema.
CREATE SCHEMA IF NOT EXISTS $schema;
CREATE TABLE $schema.scheduled_tasks (
    id bigint PRIMARY KEY,
    task_name text NOT NULL UNIQUE,
    task_type text NOT NULL,
    schedule_cron text,
    is_enabled boolean DEFAULT true,
    last_run_at timestamptz,
    next_run_at timestamptz,
    created_at timestamptz DEFAULT now(),
    priority int NOT NULL DEFAULT 0,
    timeout interval,
    max_attempts int NOT NULL DEFAULT 3,
    attempts int NOT NULL DEFAULT 0
);
CREATE TABLE $schema.task_execution_log (
    id bigserial PRIMARY KEY,
    task_id bigint NOT NULL REFERENCES $schema.scheduled_tasks(id),
    worker_id text NOT NULL,
    status text NOT NULL,
    started_at timestamptz DEFAULT now(),
    completed_at timestamptz,
    error_message text,
    lock_id bigint,
    backend_pid int,
    backend_start timestamptz,
    attempt int,
    heartbeat_at timestamptz,
    recovered_by text
);
CREATE INDEX ON $schema.task_execution_log (task_id, started_at DESC);
CREATE INDEX ON $schema.task_execution_log (status, started_at DESC);
CREATE UNIQUE INDEX ON $schema.task_execution_log (task_id) WHERE status = 'running';
INSERT INTO $schema.scheduled_tasks (id, task_name, task_type, next_run_at, timeout) VALUES
    (1, 'sync', 'sql', now() + interval '1 hour', '10 minutes'),
    (2, 'report', 'sql', now() + interval '1 hour', '30 minutes'),
    (3, 'late', 'sql', now() - interval '1 hour', NULL);
