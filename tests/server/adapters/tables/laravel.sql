-- Laravel 13: src/Illuminate/Queue/Console/stubs, as its schema builder makes them.
CREATE TABLE jobs (id bigserial PRIMARY KEY, queue varchar(255) NOT NULL, payload text NOT NULL, attempts smallint NOT NULL, reserved_at integer, available_at integer NOT NULL, created_at integer NOT NULL);
CREATE INDEX jobs_queue_index ON jobs (queue);
CREATE TABLE failed_jobs (id bigserial PRIMARY KEY, uuid varchar(255) NOT NULL UNIQUE, connection varchar(255) NOT NULL, queue varchar(255) NOT NULL, payload text NOT NULL, exception text NOT NULL,
    failed_at timestamp(0) NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE job_batches (id varchar(255) PRIMARY KEY, name varchar(255) NOT NULL, total_jobs integer NOT NULL, pending_jobs integer NOT NULL, failed_jobs integer NOT NULL, failed_job_ids text NOT NULL,
    options text, cancelled_at integer, created_at integer NOT NULL, finished_at integer);
