-- pg-boss, schema 24 (10.4): names, types and indexes as its queries need them. Each queue has a part of its own.
CREATE SCHEMA boss;
SET search_path = boss;
CREATE TYPE job_state AS ENUM ('created', 'retry', 'active', 'completed', 'cancelled', 'failed');
CREATE TABLE version (version int PRIMARY KEY, maintained_on timestamptz);
INSERT INTO version VALUES (24);
CREATE TABLE queue (name text PRIMARY KEY, policy text, retry_limit int, partition_name text);
CREATE TABLE schedule (name text PRIMARY KEY REFERENCES queue, cron text NOT NULL, timezone text);
CREATE TABLE job (id uuid NOT NULL DEFAULT gen_random_uuid(), name text NOT NULL, priority integer NOT NULL DEFAULT 0, data jsonb, state job_state NOT NULL DEFAULT 'created',
    retry_limit integer NOT NULL DEFAULT 2, retry_count integer NOT NULL DEFAULT 0, start_after timestamptz NOT NULL DEFAULT now(), started_on timestamptz,
    singleton_key text, expire_in interval NOT NULL DEFAULT '15 minutes', created_on timestamptz NOT NULL DEFAULT now(), completed_on timestamptz, output jsonb, policy text,
    PRIMARY KEY (name, id)) PARTITION BY LIST (name);
CREATE TABLE ja PARTITION OF job FOR VALUES IN ('q');
CREATE TABLE jb PARTITION OF job FOR VALUES IN ('big');
CREATE UNIQUE INDEX job_i2 ON job (name, coalesce(singleton_key, '')) WHERE state = 'active' AND policy = 'singleton';
CREATE INDEX job_i5 ON job (name, start_after) INCLUDE (priority, created_on, id) WHERE state < 'active';
RESET search_path;
