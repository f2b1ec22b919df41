-- Oban, migration 14, with producers: names, types and indexes as its queries need them.
CREATE TYPE oban_job_state AS ENUM ('suspended', 'available', 'scheduled', 'executing', 'retryable', 'completed', 'discarded', 'cancelled');
CREATE TABLE oban_jobs (id bigserial PRIMARY KEY, state oban_job_state NOT NULL DEFAULT 'available', queue text NOT NULL DEFAULT 'default',
    worker text NOT NULL, args jsonb NOT NULL DEFAULT '{}', errors jsonb[] NOT NULL DEFAULT '{}', attempt integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT 20, priority integer NOT NULL DEFAULT 0, inserted_at timestamp NOT NULL DEFAULT now(),
    scheduled_at timestamp NOT NULL DEFAULT now(), attempted_at timestamp, attempted_by text[], completed_at timestamp, discarded_at timestamp,
    cancelled_at timestamp, meta jsonb DEFAULT '{}', tags text[] DEFAULT '{}');
COMMENT ON TABLE oban_jobs IS '14';
CREATE INDEX oban_jobs_state_queue_priority_scheduled_at_id_index ON oban_jobs (state, queue, priority, scheduled_at, id);
CREATE INDEX oban_jobs_state_discarded_at_index ON oban_jobs (state, discarded_at);
CREATE TABLE oban_peers (name text PRIMARY KEY, node text NOT NULL, started_at timestamp NOT NULL, expires_at timestamp NOT NULL);
