-- DBOS, migration 125: names, types and indexes as its queries need them.
CREATE SCHEMA dbos;
SET search_path = dbos;
CREATE TABLE dbos_migrations (version bigint PRIMARY KEY);
INSERT INTO dbos_migrations VALUES (125);
CREATE TABLE workflow_status (workflow_uuid text PRIMARY KEY, status text, name text, error text, executor_id text, created_at bigint NOT NULL, updated_at bigint NOT NULL,
    application_version text, recovery_attempts bigint DEFAULT 0, queue_name text, started_at_epoch_ms bigint, priority integer NOT NULL DEFAULT 0, delay_until_epoch_ms bigint);
CREATE INDEX idx_workflow_status_pending ON workflow_status (created_at) WHERE status = 'PENDING';
CREATE INDEX idx_workflow_status_delayed ON workflow_status (delay_until_epoch_ms) WHERE status = 'DELAYED';
CREATE INDEX idx_workflow_status_failed ON workflow_status (status, created_at) WHERE status IN ('ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED');
CREATE INDEX idx_workflow_status_in_flight_v2 ON workflow_status (queue_name, status, priority, created_at) WHERE status IN ('ENQUEUED', 'PENDING');
CREATE TABLE workflow_schedules (schedule_id text PRIMARY KEY, schedule_name text NOT NULL, workflow_name text NOT NULL, schedule text NOT NULL,
    status text NOT NULL DEFAULT 'ACTIVE', queue_name text);
RESET search_path;
CREATE TABLE dbos.application_versions (version_id text PRIMARY KEY, version_name text NOT NULL, application_name text);
