create table distlock(id int primary key,expired_time interval,owner text,ts timestamptz);
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
CREATE INDEX idx_status ON task_queue(status) WHERE status = 'pending';
CREATE TABLE rate_limit (
    key VARCHAR(100) PRIMARY KEY,
    count INT DEFAULT 0,
    window_start TIMESTAMPTZ DEFAULT now()
);
CREATE TABLE id_generator (
    worker_id INT PRIMARY KEY,
    sequence INT DEFAULT 0,
    last_timestamp BIGINT DEFAULT 0
);
INSERT INTO id_generator (worker_id) VALUES (1), (2), (3);
