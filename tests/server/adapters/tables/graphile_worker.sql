-- Graphile Worker 0.18: names, types and indexes as its queries need them.
CREATE SCHEMA graphile_worker;
SET search_path = graphile_worker;
CREATE TABLE migrations (id int PRIMARY KEY, ts timestamptz NOT NULL DEFAULT now(), breaking boolean NOT NULL DEFAULT false);
INSERT INTO migrations (id) VALUES (19), (20);
CREATE TABLE _private_tasks (id int PRIMARY KEY, identifier text NOT NULL UNIQUE);
CREATE TABLE _private_job_queues (id int PRIMARY KEY, queue_name text NOT NULL UNIQUE, locked_at timestamptz, locked_by text,
    is_available boolean GENERATED ALWAYS AS (locked_at IS NULL) STORED NOT NULL);
CREATE TABLE _private_jobs (id bigint PRIMARY KEY, job_queue_id int, task_id int NOT NULL, payload json NOT NULL DEFAULT '{}', priority smallint NOT NULL DEFAULT 0,
    run_at timestamptz NOT NULL DEFAULT now(), attempts smallint NOT NULL DEFAULT 0, max_attempts smallint NOT NULL DEFAULT 25, last_error text,
    updated_at timestamptz NOT NULL DEFAULT now(), key text UNIQUE, locked_at timestamptz, locked_by text,
    is_available boolean GENERATED ALWAYS AS (locked_at IS NULL AND attempts < max_attempts) STORED NOT NULL);
CREATE INDEX jobs_main_index ON _private_jobs (priority, run_at) INCLUDE (id, task_id, job_queue_id) WHERE is_available = true;
CREATE TABLE _private_known_crontabs (identifier text PRIMARY KEY, known_since timestamptz NOT NULL DEFAULT now(), last_execution timestamptz);
ALTER TABLE _private_jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE _private_job_queues ENABLE ROW LEVEL SECURITY;
ALTER TABLE _private_tasks ENABLE ROW LEVEL SECURITY;
ALTER TABLE _private_known_crontabs ENABLE ROW LEVEL SECURITY;
CREATE VIEW jobs AS SELECT j.id, t.identifier AS task_identifier, j.locked_at, j.locked_by FROM _private_jobs j JOIN _private_tasks t ON t.id = j.task_id;
RESET search_path;
