-- dramatiq-pg 0.12: names, types and indexes as its queries need them.
CREATE SCHEMA dramatiq;
CREATE TYPE dramatiq.state AS ENUM ('queued', 'consumed', 'rejected', 'done');
CREATE TABLE dramatiq.queue (message_id uuid PRIMARY KEY DEFAULT gen_random_uuid(), queue_name text NOT NULL DEFAULT 'default', state dramatiq.state, mtime timestamptz DEFAULT now(), message jsonb,
    result jsonb, result_ttl timestamptz);
CREATE INDEX queue_state_mtime_idx ON dramatiq.queue (state, mtime);
