-- pg_timetable 7.0: names and types of what is read, its domain and its keys.
CREATE SCHEMA timetable;
CREATE DOMAIN timetable.cron AS text CHECK (value = '@reboot' OR value ~ '^[@*0-9]');
CREATE TABLE timetable.chain (chain_id bigserial PRIMARY KEY, chain_name text NOT NULL UNIQUE, run_at timetable.cron, max_instances integer, timeout integer DEFAULT 0,
    live boolean DEFAULT false, self_destruct boolean DEFAULT false, exclusive_execution boolean DEFAULT false, client_name text, on_error text);
CREATE UNLOGGED TABLE timetable.active_session (client_pid bigint NOT NULL, server_pid bigint NOT NULL, client_name text NOT NULL, started_at timestamptz DEFAULT now());
CREATE UNLOGGED TABLE timetable.active_chain (chain_id bigint NOT NULL, client_name text NOT NULL, started_at timestamptz DEFAULT now());
CREATE TABLE timetable.execution_log (chain_id bigint, task_id bigint, txid bigint NOT NULL, last_run timestamptz DEFAULT now(), finished timestamptz, pid bigint,
    returncode integer, ignore_error boolean, command text, output text, client_name text NOT NULL, params text);
CREATE INDEX execution_log_chain_id_finished_idx ON timetable.execution_log (chain_id, finished);
