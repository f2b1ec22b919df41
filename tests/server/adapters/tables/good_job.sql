-- GoodJob 4.15 and later: names, types and indexes as its queries need them.
CREATE TABLE good_jobs (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), queue_name text, priority integer, serialized_params jsonb,
    scheduled_at timestamp, performed_at timestamp, finished_at timestamp, error text, created_at timestamp NOT NULL DEFAULT now(),
    updated_at timestamp NOT NULL DEFAULT now(), active_job_id uuid, job_class text, executions_count integer, locked_by_id uuid,
    locked_at timestamp, lock_type smallint);
CREATE INDEX index_good_jobs_on_scheduled_at ON good_jobs (scheduled_at) WHERE finished_at IS NULL;
CREATE INDEX index_good_jobs_on_locked_by_id ON good_jobs (locked_by_id) WHERE locked_by_id IS NOT NULL;
CREATE INDEX index_good_jobs_jobs_on_finished_at ON good_jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE TABLE good_job_processes (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), created_at timestamp NOT NULL DEFAULT now(),
    updated_at timestamp NOT NULL DEFAULT now(), state jsonb, lock_type smallint);
CREATE TABLE good_job_settings (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), key text UNIQUE, value jsonb);
