-- Absurd 0.4, one queue: names, types and indexes as its queries need them.
CREATE SCHEMA absurd;
SET search_path = absurd;
CREATE TABLE queues (queue_name text PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE "t_Mail out" (task_id uuid PRIMARY KEY, task_name text NOT NULL, max_attempts integer, enqueue_at timestamptz NOT NULL DEFAULT now(), state text NOT NULL,
    attempts integer NOT NULL DEFAULT 0, last_attempt_run uuid);
CREATE TABLE "r_Mail out" (run_id uuid PRIMARY KEY, task_id uuid NOT NULL, attempt integer NOT NULL, state text NOT NULL, claimed_by text, claim_expires_at timestamptz,
    available_at timestamptz NOT NULL, wake_event text, started_at timestamptz, failed_at timestamptz, failure_reason jsonb);
CREATE INDEX "r_Mail out_sai" ON "r_Mail out" (state, available_at);
CREATE INDEX "r_Mail out_cei" ON "r_Mail out" (claim_expires_at) WHERE state = 'running' AND claim_expires_at IS NOT NULL;
RESET search_path;
