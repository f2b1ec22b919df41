-- Hangfire.PostgreSql, schema 23: names, types and indexes as its queries need them.
CREATE SCHEMA hangfire;
SET search_path = hangfire;
CREATE TABLE schema (version int PRIMARY KEY);
INSERT INTO schema VALUES (23);
CREATE TABLE job (id bigserial PRIMARY KEY, stateid bigint, statename text, invocationdata jsonb NOT NULL, createdat timestamptz NOT NULL DEFAULT now(), expireat timestamptz);
CREATE INDEX ix_hangfire_job_statename_is_not_null ON job (statename) INCLUDE (id) WHERE statename IS NOT NULL;
CREATE TABLE jobqueue (id bigserial PRIMARY KEY, jobid bigint NOT NULL, queue text NOT NULL, fetchedat timestamptz);
CREATE INDEX ix_hangfire_jobqueue_fetchedat_queue_jobid ON jobqueue (fetchedat NULLS FIRST, queue, jobid);
CREATE TABLE state (id bigserial PRIMARY KEY, jobid bigint NOT NULL, name text NOT NULL, reason text, createdat timestamptz NOT NULL DEFAULT now(), data jsonb);
CREATE TABLE server (id text PRIMARY KEY, data jsonb, lastheartbeat timestamptz NOT NULL);
CREATE TABLE "set" (id bigserial PRIMARY KEY, key text NOT NULL, score float8 NOT NULL, value text NOT NULL, UNIQUE (key, value));
CREATE INDEX ix_hangfire_set_key_score ON "set" (key, score);
CREATE TABLE lock (resource text NOT NULL UNIQUE, updatecount integer NOT NULL DEFAULT 0, acquired timestamptz);
RESET search_path;
