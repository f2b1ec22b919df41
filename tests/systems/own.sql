-- Tables like those of "locktop schema install".
CREATE SCHEMA locktop;
CREATE TABLE locktop.task_queue (
    id bigserial PRIMARY KEY, task_name varchar(100), payload jsonb, status varchar(20) NOT NULL DEFAULT 'pending',
    worker_id varchar(50), created_at timestamptz NOT NULL DEFAULT clock_timestamp(), started_at timestamptz,
    completed_at timestamptz, attempt integer NOT NULL DEFAULT 0, max_attempts integer NOT NULL DEFAULT 3,
    backend_pid integer, backend_start timestamptz, heartbeat_at timestamptz, error_message text);
CREATE INDEX idx_queue_pending ON locktop.task_queue (created_at, id) WHERE status = 'pending';
CREATE INDEX idx_queue_processing ON locktop.task_queue (backend_pid) WHERE status = 'processing';
CREATE INDEX idx_queue_completed ON locktop.task_queue (completed_at) WHERE status = 'completed';
CREATE INDEX idx_queue_failed ON locktop.task_queue (completed_at) WHERE status = 'failed';
CREATE TABLE locktop.rate_limit (
    key varchar(100) PRIMARY KEY, count integer NOT NULL DEFAULT 0, window_start timestamptz NOT NULL DEFAULT clock_timestamp(),
    max_requests integer, expires_at timestamptz);
CREATE INDEX idx_rate_limit_expires ON locktop.rate_limit (expires_at);
CREATE TABLE locktop.id_generator (
    worker_id integer PRIMARY KEY, sequence integer NOT NULL DEFAULT 0, last_timestamp bigint NOT NULL DEFAULT 0);
