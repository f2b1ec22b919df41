-- Delayed Job on Active Record: names, types and indexes as its queries need them.
CREATE TABLE delayed_jobs (id bigserial PRIMARY KEY, priority integer NOT NULL DEFAULT 0, attempts integer NOT NULL DEFAULT 0, handler text NOT NULL, last_error text,
    run_at timestamp DEFAULT now(), locked_at timestamp, failed_at timestamp, locked_by varchar, queue varchar);
CREATE INDEX delayed_jobs_priority ON delayed_jobs (priority, run_at);
