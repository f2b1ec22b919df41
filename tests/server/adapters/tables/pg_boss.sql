-- pg-boss, schema 46 (12.38): names, types and indexes as its queries need them.
CREATE SCHEMA pgboss;
SET search_path = pgboss;
CREATE TYPE job_state AS ENUM ('created', 'retry', 'active', 'completed', 'cancelled', 'failed');
CREATE TABLE version (version int PRIMARY KEY, cron_on timestamptz);
INSERT INTO version VALUES (46);
CREATE TABLE queue (name text PRIMARY KEY, policy text NOT NULL DEFAULT 'standard', retry_limit int NOT NULL DEFAULT 2, table_name text NOT NULL DEFAULT 'job_common',
    deferred_count int NOT NULL DEFAULT 0, queued_count int NOT NULL DEFAULT 0, ready_count int NOT NULL DEFAULT 0, active_count int NOT NULL DEFAULT 0,
    failed_count int NOT NULL DEFAULT 0, monitor_on timestamptz);
CREATE TABLE schedule (name text REFERENCES queue, key text NOT NULL DEFAULT '', cron text NOT NULL, timezone text DEFAULT 'UTC', PRIMARY KEY (name, key));
CREATE TABLE instance (id uuid PRIMARY KEY, name text, host text NOT NULL, pid int NOT NULL, version text NOT NULL, application_name text, heartbeat_seconds int NOT NULL,
    workers jsonb NOT NULL DEFAULT '[]', started_on timestamptz NOT NULL DEFAULT now(), heartbeat_on timestamptz NOT NULL DEFAULT now(), stopped_on timestamptz);
CREATE TABLE job (id uuid NOT NULL DEFAULT gen_random_uuid(), name text NOT NULL, priority integer NOT NULL DEFAULT 0, data jsonb, state job_state NOT NULL DEFAULT 'created',
    retry_limit integer NOT NULL DEFAULT 2, retry_count integer NOT NULL DEFAULT 0, expire_seconds int NOT NULL DEFAULT 900, singleton_key text, policy text,
    start_after timestamptz NOT NULL DEFAULT now(), created_on timestamptz NOT NULL DEFAULT now(), started_on timestamptz, completed_on timestamptz, output jsonb,
    heartbeat_on timestamptz, heartbeat_seconds int, blocked boolean NOT NULL DEFAULT false, pending_dependencies int NOT NULL DEFAULT 0,
    PRIMARY KEY (name, id)) PARTITION BY LIST (name);
CREATE TABLE job_common PARTITION OF job DEFAULT;
CREATE TABLE jfeed PARTITION OF job FOR VALUES IN ('big');
CREATE INDEX job_i11 ON job (name, priority DESC, created_on, start_after) WHERE state < 'active' AND NOT blocked;
CREATE INDEX job_i14 ON job (name, state, blocked, start_after) WHERE state IN ('created', 'retry', 'active', 'failed');
CREATE INDEX job_i15 ON job (name, created_on);
RESET search_path;
