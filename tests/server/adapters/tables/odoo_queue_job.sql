-- Odoo queue_job 18: its models queue.job, queue.job.lock and queue.job.channel.
CREATE TABLE queue_job (id serial PRIMARY KEY, uuid varchar NOT NULL, state varchar NOT NULL, name varchar, model_name varchar, method_name varchar, channel varchar, priority integer, retry integer,
    max_retries integer, eta timestamp, date_created timestamp, date_enqueued timestamp, date_started timestamp, date_done timestamp, exc_name varchar, exc_message varchar, exc_info text, worker_pid integer);
CREATE INDEX queue_job__state_index ON queue_job (state);
CREATE INDEX queue_job__uuid_index ON queue_job (uuid);
CREATE INDEX queue_job__channel_index ON queue_job (channel);
CREATE TABLE queue_job_lock (id serial PRIMARY KEY, queue_job_id integer NOT NULL REFERENCES queue_job ON DELETE CASCADE);
CREATE INDEX queue_job_lock__queue_job_id_index ON queue_job_lock (queue_job_id);
CREATE TABLE queue_job_channel (id serial PRIMARY KEY, name varchar, complete_name varchar, paused boolean);
