CREATE TABLE pgmq.meta (queue_name varchar UNIQUE NOT NULL, is_partitioned boolean NOT NULL);
INSERT INTO pgmq.meta VALUES ('mails', false);
CREATE TABLE jobs.good_jobs (id uuid PRIMARY KEY, active_job_id uuid, serialized_params jsonb,
                             performed_at timestamp, finished_at timestamp);
INSERT INTO jobs.good_jobs VALUES ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002',
                                   '{"job_class": "MailJob"}', now(), NULL);
CREATE TABLE jobs.good_job_processes (id uuid PRIMARY KEY, state jsonb);
INSERT INTO jobs.good_job_processes VALUES ('00000000-0000-0000-0000-000000000004', '{"hostname": "web", "pid": 12}');
CREATE TABLE jobs.que_jobs (id bigint PRIMARY KEY, job_class text, run_at timestamptz);
INSERT INTO jobs.que_jobs VALUES (17, 'Charge', now());
CREATE TABLE jobs.states (id bigint PRIMARY KEY, name text, data text);
INSERT INTO jobs.states VALUES (70001, 'default', '');
GRANT USAGE ON SCHEMA jobs, pgmq TO PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA jobs, pgmq TO PUBLIC;
