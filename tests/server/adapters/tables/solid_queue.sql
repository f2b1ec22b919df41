-- Solid Queue 1.5: names, types and indexes as its queries need them.
CREATE TABLE solid_queue_jobs (id bigserial PRIMARY KEY, queue_name varchar NOT NULL, class_name varchar NOT NULL, arguments text,
    priority integer NOT NULL DEFAULT 0, active_job_id varchar, scheduled_at timestamp, finished_at timestamp, concurrency_key varchar,
    created_at timestamp NOT NULL DEFAULT now(), updated_at timestamp NOT NULL DEFAULT now());
CREATE INDEX index_solid_queue_jobs_for_filtering ON solid_queue_jobs (queue_name, finished_at);
CREATE TABLE solid_queue_ready_executions (id bigserial PRIMARY KEY, job_id bigint NOT NULL UNIQUE, queue_name varchar NOT NULL,
    priority integer NOT NULL DEFAULT 0, created_at timestamp NOT NULL DEFAULT now());
CREATE INDEX index_solid_queue_poll_by_queue ON solid_queue_ready_executions (queue_name, priority, job_id);
CREATE TABLE solid_queue_claimed_executions (id bigserial PRIMARY KEY, job_id bigint NOT NULL UNIQUE, process_id bigint,
    created_at timestamp NOT NULL DEFAULT now());
CREATE TABLE solid_queue_failed_executions (id bigserial PRIMARY KEY, job_id bigint NOT NULL UNIQUE, error text,
    created_at timestamp NOT NULL DEFAULT now());
CREATE TABLE solid_queue_scheduled_executions (id bigserial PRIMARY KEY, job_id bigint NOT NULL UNIQUE, queue_name varchar NOT NULL,
    priority integer NOT NULL DEFAULT 0, scheduled_at timestamp NOT NULL, created_at timestamp NOT NULL DEFAULT now());
CREATE INDEX index_solid_queue_dispatch_all ON solid_queue_scheduled_executions (scheduled_at, priority, job_id);
CREATE TABLE solid_queue_blocked_executions (id bigserial PRIMARY KEY, job_id bigint NOT NULL UNIQUE, queue_name varchar NOT NULL,
    priority integer NOT NULL DEFAULT 0, concurrency_key varchar NOT NULL, expires_at timestamp NOT NULL, created_at timestamp NOT NULL DEFAULT now());
CREATE INDEX index_solid_queue_blocked_executions_for_maintenance ON solid_queue_blocked_executions (expires_at, concurrency_key);
CREATE TABLE solid_queue_semaphores (id bigserial PRIMARY KEY, key varchar NOT NULL UNIQUE, value integer NOT NULL DEFAULT 1,
    expires_at timestamp NOT NULL, created_at timestamp NOT NULL DEFAULT now(), updated_at timestamp NOT NULL DEFAULT now());
CREATE INDEX index_solid_queue_semaphores_on_expires_at ON solid_queue_semaphores (expires_at);
CREATE TABLE solid_queue_processes (id bigserial PRIMARY KEY, kind varchar NOT NULL, last_heartbeat_at timestamp NOT NULL,
    supervisor_id bigint, pid integer NOT NULL, hostname varchar, metadata text, created_at timestamp NOT NULL DEFAULT now(), name varchar NOT NULL DEFAULT '');
CREATE INDEX index_solid_queue_processes_on_last_heartbeat_at ON solid_queue_processes (last_heartbeat_at);
CREATE TABLE solid_queue_pauses (id bigserial PRIMARY KEY, queue_name varchar NOT NULL UNIQUE, created_at timestamp NOT NULL DEFAULT now());
CREATE TABLE solid_queue_recurring_tasks (id bigserial PRIMARY KEY, key varchar NOT NULL UNIQUE, schedule varchar NOT NULL, command varchar,
    class_name varchar, arguments text, queue_name varchar);
