-- Spring Batch: names, types and indexes as its queries need them.
CREATE TABLE batch_job_instance (job_instance_id bigint PRIMARY KEY, version bigint, job_name varchar(100) NOT NULL, job_key varchar(32) NOT NULL);
CREATE TABLE batch_job_execution (job_execution_id bigint PRIMARY KEY, version bigint, job_instance_id bigint NOT NULL REFERENCES batch_job_instance,
    create_time timestamp NOT NULL DEFAULT now(), start_time timestamp, end_time timestamp, status varchar(10), exit_code varchar(2500), exit_message varchar(2500), last_updated timestamp);
