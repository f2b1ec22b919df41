-- Procrastinate 3.10: names, types and indexes as its queries need them.
CREATE TYPE procrastinate_job_status AS ENUM ('todo', 'doing', 'succeeded', 'failed', 'cancelled', 'aborted');
CREATE TYPE procrastinate_job_event_type AS ENUM ('deferred', 'started', 'failed', 'succeeded');
CREATE TABLE procrastinate_workers (id bigserial PRIMARY KEY, last_heartbeat timestamptz NOT NULL DEFAULT now());
CREATE TABLE procrastinate_jobs (id bigserial PRIMARY KEY, queue_name varchar(128) NOT NULL, task_name varchar(128) NOT NULL, priority integer NOT NULL DEFAULT 0,
    lock text, queueing_lock text, args jsonb NOT NULL DEFAULT '{}', status procrastinate_job_status NOT NULL DEFAULT 'todo', scheduled_at timestamptz,
    attempts integer NOT NULL DEFAULT 0, abort_requested boolean NOT NULL DEFAULT false,
    worker_id bigint REFERENCES procrastinate_workers (id) ON DELETE SET NULL);
CREATE UNIQUE INDEX procrastinate_jobs_lock_idx_v1 ON procrastinate_jobs (lock) WHERE status = 'doing';
CREATE INDEX procrastinate_jobs_priority_idx_v1 ON procrastinate_jobs (priority DESC, id) WHERE status = 'todo';
CREATE TABLE procrastinate_events (id bigserial PRIMARY KEY, job_id bigint NOT NULL, type procrastinate_job_event_type, at timestamptz DEFAULT now());
CREATE INDEX procrastinate_events_job_id_fkey_v1 ON procrastinate_events (job_id);
