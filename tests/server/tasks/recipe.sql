-- The tables of a published recipe for distributed task locks ("分布式锁实战案例", the project PostgreSQL_modern,
-- section 2.1), as they are printed there.
-- 任务定义表
CREATE TABLE scheduled_tasks (
    id serial PRIMARY KEY,
    task_name text NOT NULL UNIQUE,
    task_type text NOT NULL,
    schedule_cron text,
    is_enabled boolean DEFAULT true,
    last_run_at timestamptz,
    next_run_at timestamptz,
    created_at timestamptz DEFAULT now()
);

-- 任务执行日志表
CREATE TABLE task_execution_log (
    id bigserial PRIMARY KEY,
    task_id int NOT NULL REFERENCES scheduled_tasks(id),
    worker_id text NOT NULL,
    status text NOT NULL,  -- 'running', 'completed', 'failed'
    started_at timestamptz DEFAULT now(),
    completed_at timestamptz,
    error_message text,
    lock_id bigint
);

CREATE INDEX idx_task_log_task ON task_execution_log(task_id, started_at DESC);
CREATE INDEX idx_task_log_status ON task_execution_log(status, started_at DESC);

-- 插入示例任务
INSERT INTO scheduled_tasks (task_name, task_type, schedule_cron, next_run_at) VALUES
    ('数据同步任务', 'data_sync', '*/5 * * * *', now()),
    ('报表生成任务', 'report_gen', '0 * * * *', now()),
    ('数据清理任务', 'cleanup', '0 2 * * *', now());
