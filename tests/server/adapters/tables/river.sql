-- River, migration 6: names, types and indexes as its queries need them.
CREATE TYPE river_job_state AS ENUM ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled');
CREATE TABLE river_job (id bigserial PRIMARY KEY, state river_job_state NOT NULL DEFAULT 'available', attempt smallint NOT NULL DEFAULT 0,
    max_attempts smallint NOT NULL DEFAULT 25, attempted_at timestamptz, created_at timestamptz NOT NULL DEFAULT now(), finalized_at timestamptz,
    scheduled_at timestamptz NOT NULL DEFAULT now(), priority smallint NOT NULL DEFAULT 1, args jsonb NOT NULL DEFAULT '{}',
    attempted_by text[], errors jsonb[], kind text NOT NULL, metadata jsonb NOT NULL DEFAULT '{}', queue text NOT NULL DEFAULT 'default',
    tags varchar(255)[] NOT NULL DEFAULT '{}');
CREATE INDEX river_job_prioritized_fetching_index ON river_job (state, queue, priority, scheduled_at, id);
CREATE INDEX river_job_state_and_finalized_at_index ON river_job (state, finalized_at) WHERE finalized_at IS NOT NULL;
CREATE TABLE river_leader (name text PRIMARY KEY DEFAULT 'default', leader_id text NOT NULL, elected_at timestamptz NOT NULL, expires_at timestamptz NOT NULL);
CREATE TABLE river_queue (name text PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), metadata jsonb NOT NULL DEFAULT '{}',
    paused_at timestamptz, updated_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE river_migration (line text NOT NULL DEFAULT 'main', version bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (line, version));
INSERT INTO river_migration (version) VALUES (1), (2), (3), (4), (5), (6);
