-- Quartz 2.5: names, types and indexes as its queries need them.
CREATE TABLE qrtz_triggers (sched_name varchar(120) NOT NULL, trigger_name varchar(200) NOT NULL, trigger_group varchar(200) NOT NULL,
    job_name varchar(200) NOT NULL, job_group varchar(200) NOT NULL, description varchar(250), next_fire_time bigint, prev_fire_time bigint,
    priority integer, trigger_state varchar(16) NOT NULL, trigger_type varchar(8) NOT NULL DEFAULT 'CRON', start_time bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (sched_name, trigger_name, trigger_group));
CREATE INDEX idx_qrtz_t_nft_st ON qrtz_triggers (sched_name, trigger_state, next_fire_time);
CREATE TABLE qrtz_fired_triggers (sched_name varchar(120) NOT NULL, entry_id varchar(95) NOT NULL, trigger_name varchar(200) NOT NULL,
    trigger_group varchar(200) NOT NULL, instance_name varchar(200) NOT NULL, fired_time bigint NOT NULL, sched_time bigint NOT NULL, priority integer NOT NULL,
    state varchar(16) NOT NULL, job_name varchar(200), job_group varchar(200), is_nonconcurrent boolean, requests_recovery boolean, PRIMARY KEY (sched_name, entry_id));
CREATE TABLE qrtz_scheduler_state (sched_name varchar(120) NOT NULL, instance_name varchar(200) NOT NULL, last_checkin_time bigint NOT NULL,
    checkin_interval bigint NOT NULL, PRIMARY KEY (sched_name, instance_name));
CREATE TABLE qrtz_simple_triggers (sched_name varchar(120), trigger_name varchar(200), trigger_group varchar(200), repeat_count bigint);
