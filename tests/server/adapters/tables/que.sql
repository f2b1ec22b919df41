-- Que 2: names, types and indexes as its queries need them.
CREATE TABLE que_jobs (priority smallint NOT NULL DEFAULT 100, run_at timestamptz NOT NULL DEFAULT now(), id bigserial PRIMARY KEY, job_class text NOT NULL,
    error_count integer NOT NULL DEFAULT 0, last_error_message text, queue text NOT NULL DEFAULT 'default', last_error_backtrace text,
    finished_at timestamptz, expired_at timestamptz, args jsonb NOT NULL DEFAULT '[]', data jsonb NOT NULL DEFAULT '{}');
CREATE INDEX que_poll_idx ON que_jobs (queue, priority, run_at, id) WHERE finished_at IS NULL AND expired_at IS NULL;
CREATE TABLE que_lockers (pid integer PRIMARY KEY, worker_count integer NOT NULL, worker_priorities integer[] NOT NULL DEFAULT '{}',
    ruby_pid integer NOT NULL, ruby_hostname text NOT NULL, queues text[] NOT NULL DEFAULT '{default}', listening boolean NOT NULL DEFAULT true);
