-- APScheduler 4.0.0a6: names, types and indexes as its queries need them.
CREATE TABLE schedules (id varchar(500) PRIMARY KEY, task_id varchar(500) NOT NULL, trigger bytea, paused boolean NOT NULL DEFAULT false, last_fire_time timestamptz, next_fire_time timestamptz,
    acquired_by varchar(500), acquired_until timestamptz);
CREATE TABLE jobs (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), task_id varchar(500) NOT NULL, schedule_id varchar(500), scheduled_fire_time timestamptz, executor varchar(500), start_deadline timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(), acquired_by varchar(500), acquired_until timestamptz);
CREATE INDEX ix_jobs_created_at ON jobs (created_at);
CREATE INDEX ix_jobs_acquired_by ON jobs (acquired_by);
CREATE INDEX ix_jobs_schedule_id ON jobs (schedule_id);
CREATE INDEX ix_jobs_task_id ON jobs (task_id);
