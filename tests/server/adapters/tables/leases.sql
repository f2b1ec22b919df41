-- ShedLock, Liquibase, Spring Integration before and after 6.5, db-scheduler: names, types and indexes as their queries need them.
CREATE TABLE shedlock (name varchar(64) PRIMARY KEY, lock_until timestamp NOT NULL, locked_at timestamp NOT NULL, locked_by varchar(255) NOT NULL);
CREATE TABLE databasechangeloglock (id integer PRIMARY KEY, locked boolean NOT NULL, lockgranted timestamp, lockedby varchar(255));
CREATE TABLE int_lock (lock_key char(36) NOT NULL, region varchar(100) NOT NULL, client_id char(36), created_date timestamp NOT NULL,
    PRIMARY KEY (lock_key, region));
CREATE TABLE new_lock (LIKE int_lock INCLUDING ALL);
ALTER TABLE new_lock ADD expired_after timestamp NOT NULL;
CREATE TABLE scheduled_tasks (task_name text NOT NULL, task_instance text NOT NULL, task_data bytea, execution_time timestamptz NOT NULL,
    picked boolean NOT NULL, picked_by text, last_success timestamptz, last_failure timestamptz, consecutive_failures integer,
    last_heartbeat timestamptz, version bigint NOT NULL, PRIMARY KEY (task_name, task_instance));
CREATE INDEX execution_time_idx ON scheduled_tasks (execution_time);
CREATE INDEX last_heartbeat_idx ON scheduled_tasks (last_heartbeat);
