-- Chancy 0.26: names, types and indexes as its queries need them.
CREATE TABLE chancy_jobs (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), queue text NOT NULL, func text NOT NULL, kwargs jsonb NOT NULL DEFAULT '{}', state varchar(25) NOT NULL DEFAULT 'pending',
    priority integer DEFAULT 0, attempts integer DEFAULT 0, max_attempts integer NOT NULL DEFAULT 1, taken_by text, created_at timestamptz NOT NULL DEFAULT now(), started_at timestamptz,
    completed_at timestamptz, scheduled_at timestamptz NOT NULL DEFAULT now(), unique_key text, errors jsonb NOT NULL DEFAULT '[]', claim_id uuid);
CREATE INDEX chancy_idx_jobs_queue_state ON chancy_jobs (queue, state);
CREATE INDEX chancy_idx_jobs_fetch_prune ON chancy_jobs (queue, state, attempts, scheduled_at, priority DESC, id DESC) WHERE state IN ('pending', 'retrying');
CREATE UNLOGGED TABLE chancy_workers (worker_id text PRIMARY KEY, tags text[], queues text[], last_seen timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL);
CREATE UNLOGGED TABLE chancy_leader (id bigserial PRIMARY KEY, worker_id text NOT NULL UNIQUE, first_seen timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL);
CREATE TABLE chancy_queues (name text PRIMARY KEY, state text NOT NULL DEFAULT 'active', concurrency integer DEFAULT 1, resume_at timestamptz);
