-- SQL as printed in "PostgreSQL分布式锁实战" (copy of 2025-12-22, sections 1.1 and 2.2 to 5), without its example calls and with its
-- comments read back from a wrong encoding: the input of the tests that show where it goes wrong. Each block begins with a line
-- "--@ name".
--@ do_transaction
-- 事务级锁（持续到事务结束）（带错误处理）
DO $$
DECLARE
    v_lock_id BIGINT := 12345;
    v_lock_acquired BOOLEAN;
BEGIN
    BEGIN
        BEGIN;
        -- 尝试获取事务级锁
        SELECT pg_try_advisory_xact_lock(v_lock_id) INTO v_lock_acquired;

        IF v_lock_acquired THEN
            RAISE NOTICE '事务级锁 % 获取成功', v_lock_id;
            -- 执行临界区代码
            -- ...
            COMMIT;  -- 自动释放
            RAISE NOTICE '事务提交，锁自动释放';
        ELSE
            ROLLBACK;
            RAISE WARNING '事务级锁 % 获取失败', v_lock_id;
        END IF;
    EXCEPTION
        WHEN OTHERS THEN
            ROLLBACK;
            RAISE WARNING '事务级锁操作失败: %', SQLERRM;
            RAISE;
    END;
END $$;
--@ queue_table
-- 任务队列表（带错误处理）
DO $$
BEGIN
    BEGIN
        IF NOT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_name = 'task_queue') THEN
            CREATE TABLE task_queue (
                id BIGSERIAL PRIMARY KEY,
                task_name VARCHAR(100),
                payload JSONB,
                status VARCHAR(20) DEFAULT 'pending',
                worker_id VARCHAR(50),
                created_at TIMESTAMPTZ DEFAULT now(),
                started_at TIMESTAMPTZ,
                completed_at TIMESTAMPTZ
            );
            RAISE NOTICE '表 task_queue 创建成功';
        ELSE
            RAISE NOTICE '表 task_queue 已存在';
        END IF;
    EXCEPTION
        WHEN duplicate_table THEN
            RAISE NOTICE '表 task_queue 已存在';
        WHEN OTHERS THEN
            RAISE WARNING '创建表失败: %', SQLERRM;
            RAISE;
    END;
END $$;

-- 创建索引（带错误处理）
DO $$
BEGIN
    BEGIN
        IF NOT EXISTS (SELECT 1 FROM pg_indexes WHERE indexname = 'idx_status') THEN
            CREATE INDEX idx_status ON task_queue(status) WHERE status = 'pending';
            RAISE NOTICE '索引 idx_status 创建成功';
        ELSE
            RAISE NOTICE '索引 idx_status 已存在';
        END IF;
    EXCEPTION
        WHEN duplicate_table THEN
            RAISE NOTICE '索引 idx_status 已存在';
        WHEN OTHERS THEN
            RAISE WARNING '创建索引失败: %', SQLERRM;
            RAISE;
    END;
END $$;
--@ consume
-- 分布式消费者
CREATE OR REPLACE FUNCTION consume_task()
RETURNS TABLE(task_id BIGINT, task_name VARCHAR, payload JSONB)
LANGUAGE plpgsql AS $$
DECLARE
    v_task_id BIGINT;
BEGIN
    -- 使用FOR UPDATE SKIP LOCKED避免锁冲突
    SELECT id INTO v_task_id
    FROM task_queue
    WHERE status = 'pending'
    ORDER BY created_at
    LIMIT 1
    FOR UPDATE SKIP LOCKED;

    IF v_task_id IS NULL THEN
        RETURN;
    END IF;

    -- 使用咨询锁防止并发
    IF NOT pg_try_advisory_lock(v_task_id) THEN
        RETURN;
    END IF;

    -- 更新状态
    UPDATE task_queue
    SET
        status = 'processing',
        worker_id = inet_client_addr()::TEXT,
        started_at = now()
    WHERE id = v_task_id
    RETURNING id, task_name, payload INTO task_id, task_name, payload;

    RETURN NEXT;

    -- 注意: 调用者需要在任务完成后调用 pg_advisory_unlock(task_id)
END;
$$;
--@ rate_table
-- 限流表（带错误处理）
DO $$
BEGIN
    BEGIN
        IF NOT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_name = 'rate_limit') THEN
            CREATE TABLE rate_limit (
                key VARCHAR(100) PRIMARY KEY,
                count INT DEFAULT 0,
                window_start TIMESTAMPTZ DEFAULT now()
            );
            RAISE NOTICE '表 rate_limit 创建成功';
        ELSE
            RAISE NOTICE '表 rate_limit 已存在';
        END IF;
    EXCEPTION
        WHEN duplicate_table THEN
            RAISE NOTICE '表 rate_limit 已存在';
        WHEN OTHERS THEN
            RAISE WARNING '创建表失败: %', SQLERRM;
            RAISE;
    END;
END $$;
--@ rate
-- 限流函数
CREATE OR REPLACE FUNCTION check_rate_limit(
    p_key VARCHAR,
    p_max_requests INT,
    p_window_seconds INT
)
RETURNS BOOLEAN
LANGUAGE plpgsql AS $$
DECLARE
    v_count INT;
    v_window_start TIMESTAMPTZ;
BEGIN
    -- 使用咨询锁保证原子性
    PERFORM pg_advisory_lock(hashtext(p_key)::INT);

    SELECT count, window_start INTO v_count, v_window_start
    FROM rate_limit
    WHERE key = p_key;

    IF v_count IS NULL OR v_window_start < now() - (p_window_seconds || ' seconds')::INTERVAL THEN
        -- 新窗口
        INSERT INTO rate_limit (key, count, window_start)
        VALUES (p_key, 1, now())
        ON CONFLICT (key) DO UPDATE
        SET count = 1, window_start = now();

        PERFORM pg_advisory_unlock(hashtext(p_key)::INT);
        RETURN true;
    END IF;

    IF v_count >= p_max_requests THEN
        -- 超出限制
        PERFORM pg_advisory_unlock(hashtext(p_key)::INT);
        RETURN false;
    END IF;

    -- 增加计数
    UPDATE rate_limit SET count = count + 1 WHERE key = p_key;

    PERFORM pg_advisory_unlock(hashtext(p_key)::INT);
    RETURN true;
END;
$$;
--@ id_table
-- Snowflake ID生成器（带错误处理）
DO $$
BEGIN
    BEGIN
        IF NOT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_name = 'id_generator') THEN
            CREATE TABLE id_generator (
                worker_id INT PRIMARY KEY,
                sequence INT DEFAULT 0,
                last_timestamp BIGINT DEFAULT 0
            );
            RAISE NOTICE '表 id_generator 创建成功';
        ELSE
            RAISE NOTICE '表 id_generator 已存在';
        END IF;
    EXCEPTION
        WHEN duplicate_table THEN
            RAISE NOTICE '表 id_generator 已存在';
        WHEN OTHERS THEN
            RAISE WARNING '创建表失败: %', SQLERRM;
            RAISE;
    END;
END $$;

-- 初始化worker
INSERT INTO id_generator (worker_id) VALUES (1), (2), (3);
--@ id
CREATE OR REPLACE FUNCTION generate_snowflake_id(p_worker_id INT)
RETURNS BIGINT
LANGUAGE plpgsql AS $$
DECLARE
    v_timestamp BIGINT;
    v_sequence INT;
    v_last_timestamp BIGINT;
    v_epoch BIGINT := 1609459200000; -- 2021-01-01 00:00:00
BEGIN
    -- 当前时间戳（毫秒）
    v_timestamp := (EXTRACT(EPOCH FROM now()) * 1000)::BIGINT - v_epoch;

    -- 使用咨询锁
    PERFORM pg_advisory_lock(p_worker_id);

    SELECT sequence, last_timestamp INTO v_sequence, v_last_timestamp
    FROM id_generator
    WHERE worker_id = p_worker_id;

    IF v_timestamp = v_last_timestamp THEN
        -- 同一毫秒内，递增序列号
        v_sequence := (v_sequence + 1) & 4095;  -- 12位序列号

        IF v_sequence = 0 THEN
            -- 序列号耗尽，等待下一毫秒
            PERFORM pg_sleep(0.001);
            v_timestamp := (EXTRACT(EPOCH FROM now()) * 1000)::BIGINT - v_epoch;
        END IF;
    ELSE
        -- 新的毫秒，重置序列号
        v_sequence := 0;
    END IF;

    -- 更新状态
    UPDATE id_generator
    SET sequence = v_sequence, last_timestamp = v_timestamp
    WHERE worker_id = p_worker_id;

    PERFORM pg_advisory_unlock(p_worker_id);

    -- 组装ID: 41位时间戳 + 10位worker_id + 12位序列号
    RETURN (v_timestamp << 22) | (p_worker_id << 12) | v_sequence;
END;
$$;
--@ accounts
-- 版本号乐观锁（带错误处理）
DO $$
BEGIN
    BEGIN
        IF NOT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_name = 'accounts') THEN
            CREATE TABLE accounts (
                id SERIAL PRIMARY KEY,
                username VARCHAR(50),
                balance NUMERIC(10, 2),
                version INT DEFAULT 0
            );
            RAISE NOTICE '表 accounts 创建成功';
        ELSE
            RAISE NOTICE '表 accounts 已存在';
        END IF;
    EXCEPTION
        WHEN duplicate_table THEN
            RAISE NOTICE '表 accounts 已存在';
        WHEN OTHERS THEN
            RAISE WARNING '创建表失败: %', SQLERRM;
            RAISE;
    END;
END $$;
--@ transfer_read
SELECT balance, version FROM accounts WHERE id = $1
--@ transfer_debit
                UPDATE accounts
                SET balance = balance - $1, version = version + 1
                WHERE id = $2 AND version = $3
--@ transfer_credit
                UPDATE accounts
                SET balance = balance + $1, version = version + 1
                WHERE id = $2
