-- pg_cron 1.6: names and types, its keys and its row security.
CREATE SCHEMA cron;
CREATE TABLE cron.job (jobid bigserial PRIMARY KEY, schedule text NOT NULL, command text NOT NULL, nodename text NOT NULL DEFAULT 'localhost',
    nodeport integer NOT NULL DEFAULT 5432, database text NOT NULL DEFAULT 'app', username text NOT NULL DEFAULT current_user, active boolean NOT NULL DEFAULT true, jobname text);
ALTER TABLE cron.job ENABLE ROW LEVEL SECURITY;
CREATE POLICY cron_job_policy ON cron.job USING (username = current_user);
CREATE TABLE cron.job_run_details (jobid bigint, runid bigserial PRIMARY KEY, job_pid integer, database text, username text, command text, status text,
    return_message text, start_time timestamptz, end_time timestamptz);
ALTER TABLE cron.job_run_details ENABLE ROW LEVEL SECURITY;
CREATE POLICY cron_job_run_details_policy ON cron.job_run_details USING (username = current_user);
