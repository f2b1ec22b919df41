-- Camunda 7.19: names, types and indexes as its queries need them.
CREATE TABLE act_ru_job (id_ varchar(64) PRIMARY KEY, rev_ int, type_ varchar(255) NOT NULL, lock_exp_time_ timestamp, lock_owner_ varchar(255), exclusive_ boolean, process_def_key_ varchar(255),
    retries_ int, exception_stack_id_ varchar(64), exception_msg_ varchar(4000), duedate_ timestamp, handler_type_ varchar(255), suspension_state_ int NOT NULL DEFAULT 1, job_def_id_ varchar(64), priority_ bigint NOT NULL DEFAULT 0,
    create_time_ timestamp);
CREATE INDEX act_idx_job_job_def_id ON act_ru_job (job_def_id_);
CREATE TABLE act_ru_jobdef (id_ varchar(64) PRIMARY KEY, proc_def_key_ varchar(255), act_id_ varchar(255), suspension_state_ int);
CREATE TABLE act_ru_ext_task (id_ varchar(64) PRIMARY KEY, rev_ int NOT NULL DEFAULT 1, worker_id_ varchar(255), topic_name_ varchar(255), retries_ int, error_msg_ varchar(4000), lock_exp_time_ timestamp,
    suspension_state_ int, proc_def_key_ varchar(255), act_id_ varchar(255), priority_ bigint NOT NULL DEFAULT 0);
