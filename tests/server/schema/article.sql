-- SQL as printed in "Distributed Locks with Advisory Locks" (PostgreSQL_modern Project, sections 2 to 6, of 2025-10-03), without its
-- example calls: the input of the tests that show where it goes wrong. Each block begins with a line "--@ name".
--@ tables
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
--@ acquire
-- 创建获取任务锁的函数
CREATE OR REPLACE FUNCTION try_acquire_task_lock(
    p_task_id int,
    p_worker_id text
)
RETURNS boolean AS $$
DECLARE
    v_lock_id bigint;
    v_acquired boolean;
BEGIN
    -- 使用task_id作为锁ID
    v_lock_id := p_task_id;
    
    -- 尝试获取Advisory Lock（非阻塞）
    v_acquired := pg_try_advisory_lock(v_lock_id);
    
    IF v_acquired THEN
        -- 记录任务执行日志
        INSERT INTO task_execution_log (task_id, worker_id, status, lock_id)
        VALUES (p_task_id, p_worker_id, 'running', v_lock_id);
        
        -- 更新任务的最后运行时间
        UPDATE scheduled_tasks
        SET last_run_at = now()
        WHERE id = p_task_id;
    END IF;
    
    RETURN v_acquired;
END;
$$ LANGUAGE plpgsql;
--@ release
-- 创建释放任务锁的函数
CREATE OR REPLACE FUNCTION release_task_lock(
    p_task_id int,
    p_worker_id text,
    p_status text,
    p_error_message text DEFAULT NULL
)
RETURNS void AS $$
DECLARE
    v_lock_id bigint;
BEGIN
    v_lock_id := p_task_id;
    
    -- 更新任务执行日志
    UPDATE task_execution_log
    SET status = p_status,
        completed_at = now(),
        error_message = p_error_message
    WHERE task_id = p_task_id
      AND worker_id = p_worker_id
      AND status = 'running'
      AND completed_at IS NULL;
    
    -- 释放Advisory Lock
    PERFORM pg_advisory_unlock(v_lock_id);
    
    -- 更新下次运行时间（示例：5分钟后）
    IF p_status = 'completed' THEN
        UPDATE scheduled_tasks
        SET next_run_at = now() + interval '5 minutes'
        WHERE id = p_task_id;
    END IF;
END;
$$ LANGUAGE plpgsql;
--@ fetch
-- Worker节点获取并执行任务的完整流程
CREATE OR REPLACE FUNCTION worker_fetch_and_execute_task(
    p_worker_id text
)
RETURNS TABLE (
    task_id int,
    task_name text,
    task_type text,
    acquired boolean
) AS $$
DECLARE
    v_task record;
BEGIN
    -- 查找待执行的任务
    FOR v_task IN
        SELECT id, task_name, task_type
        FROM scheduled_tasks
        WHERE is_enabled = true
          AND next_run_at <= now()
        ORDER BY next_run_at
        LIMIT 10
    LOOP
        -- 尝试获取锁
        IF try_acquire_task_lock(v_task.id, p_worker_id) THEN
            RETURN QUERY
            SELECT v_task.id, v_task.task_name, v_task.task_type, true;
            RETURN;  -- 获取到一个任务后立即返回
        END IF;
    END LOOP;
    
    -- 没有获取到任务
    RETURN QUERY
    SELECT NULL::int, NULL::text, NULL::text, false;
END;
$$ LANGUAGE plpgsql;
--@ recover
-- 创建任务超时检测函数
CREATE OR REPLACE FUNCTION check_and_recover_timeout_tasks(
    p_timeout_minutes int DEFAULT 30
)
RETURNS TABLE (
    task_id int,
    worker_id text,
    lock_released boolean
) AS $$
DECLARE
    v_timeout_task record;
    v_lock_id bigint;
BEGIN
    -- 查找超时任务
    FOR v_timeout_task IN
        SELECT 
            tel.task_id,
            tel.worker_id,
            tel.lock_id,
            tel.started_at
        FROM task_execution_log tel
        WHERE tel.status = 'running'
          AND tel.started_at < now() - (p_timeout_minutes || ' minutes')::interval
    LOOP
        -- 尝试释放锁（可能worker已释放）
        BEGIN
            PERFORM pg_advisory_unlock(v_timeout_task.lock_id);
            
            -- 更新任务状态为超时
            UPDATE task_execution_log
            SET status = 'failed',
                completed_at = now(),
                error_message = 'Task timeout after ' || p_timeout_minutes || ' minutes'
            WHERE id IN (
                SELECT id FROM task_execution_log
                WHERE task_id = v_timeout_task.task_id
                  AND worker_id = v_timeout_task.worker_id
                  AND status = 'running'
                LIMIT 1
            );
            
            RETURN QUERY
            SELECT v_timeout_task.task_id, v_timeout_task.worker_id, true;
        EXCEPTION
            WHEN OTHERS THEN
                -- 锁可能已经被释放
                RETURN QUERY
                SELECT v_timeout_task.task_id, v_timeout_task.worker_id, false;
        END;
    END LOOP;
END;
$$ LANGUAGE plpgsql;
--@ multiple
-- 批量尝试获取多个任务锁
CREATE OR REPLACE FUNCTION try_acquire_multiple_tasks(
    p_worker_id text,
    p_max_tasks int DEFAULT 3
)
RETURNS TABLE (
    task_id int,
    task_name text,
    acquired boolean
) AS $$
DECLARE
    v_task record;
    v_acquired_count int := 0;
BEGIN
    FOR v_task IN
        SELECT id, task_name
        FROM scheduled_tasks
        WHERE is_enabled = true
          AND next_run_at <= now()
        ORDER BY next_run_at
        LIMIT p_max_tasks * 2  -- 多获取一些候选
    LOOP
        IF try_acquire_task_lock(v_task.id, p_worker_id) THEN
            v_acquired_count := v_acquired_count + 1;
            
            RETURN QUERY
            SELECT v_task.id, v_task.task_name, true;
            
            EXIT WHEN v_acquired_count >= p_max_tasks;
        END IF;
    END LOOP;
END;
$$ LANGUAGE plpgsql;
--@ monitor
-- 查看任务锁的详细信息
SELECT 
    l.pid,
    l.objid AS lock_id,
    st.task_name,
    tel.worker_id,
    tel.started_at,
    now() - tel.started_at AS duration,
    l.mode,
    l.granted
FROM pg_locks l
JOIN task_execution_log tel ON l.objid = tel.lock_id
JOIN scheduled_tasks st ON tel.task_id = st.id
WHERE l.locktype = 'advisory'
  AND tel.status = 'running'
ORDER BY tel.started_at;
