-- The tasks and what was run of them.

CREATE TABLE @schema@.scheduled_tasks (
    id serial PRIMARY KEY,
    task_name text NOT NULL UNIQUE,
    task_type text NOT NULL,
    -- Five fields, see cron_next; without one a task runs once when next_run_at comes.
    schedule_cron text,
    is_enabled boolean DEFAULT true,
    last_run_at timestamptz,
    next_run_at timestamptz,
    created_at timestamptz DEFAULT now(),
    -- The zone whose clocks schedule_cron speaks of.
    time_zone text NOT NULL DEFAULT 'UTC',
    -- The highest is fetched first.
    priority integer NOT NULL DEFAULT 0,
    -- Past it an execution is slow.
    timeout interval NOT NULL DEFAULT '30 minutes' CHECK (timeout > interval '0'),
    max_attempts integer NOT NULL DEFAULT 3 CHECK (max_attempts > 0),
    -- Until the second attempt; it doubles with each further one.
    retry_delay interval NOT NULL DEFAULT '10 seconds' CHECK (retry_delay >= interval '0'),
    -- Executions that failed since the task last completed or was given up.
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    -- What to do, as the task_type has it.
    payload jsonb
) WITH (fillfactor = 70);
COMMENT ON TABLE @schema@.scheduled_tasks IS 'locktop: the tasks, when each runs next, and how';

CREATE INDEX idx_tasks_fetch ON @schema@.scheduled_tasks (priority, next_run_at, id) WHERE is_enabled;
CREATE INDEX idx_tasks_due ON @schema@.scheduled_tasks (next_run_at) WHERE is_enabled;

CREATE TABLE @schema@.task_execution_log (
    id bigserial PRIMARY KEY,
    task_id int NOT NULL REFERENCES @schema@.scheduled_tasks (id),
    worker_id text NOT NULL,
    status text NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
    started_at timestamptz DEFAULT clock_timestamp(),
    completed_at timestamptz,
    error_message text,
    lock_id bigint,
    -- The session that holds the key.
    backend_pid integer,
    backend_start timestamptz,
    attempt integer NOT NULL DEFAULT 1,
    heartbeat_at timestamptz,
    -- Who closed it in the worker's place.
    recovered_by text
) WITH (fillfactor = 70);
COMMENT ON TABLE @schema@.task_execution_log IS 'locktop: one row for each execution of a task';

CREATE INDEX idx_task_log_task ON @schema@.task_execution_log (task_id, started_at DESC);
CREATE INDEX idx_task_log_status ON @schema@.task_execution_log (status, started_at DESC);
CREATE UNIQUE INDEX idx_task_log_running ON @schema@.task_execution_log (task_id) WHERE status = 'running';
