-- JobRunr 8: names, types and indexes as its queries need them.
CREATE TABLE jobrunr_jobs (id nchar(36) PRIMARY KEY, version int NOT NULL DEFAULT 1, jobasjson text NOT NULL DEFAULT '{}', jobsignature varchar(512) NOT NULL, state varchar(36) NOT NULL,
    createdat timestamp NOT NULL DEFAULT now(), updatedat timestamp NOT NULL DEFAULT now(), scheduledat timestamp);
CREATE INDEX jobrunr_state_idx ON jobrunr_jobs (state);
CREATE INDEX jobrunr_job_scheduled_at_idx ON jobrunr_jobs (scheduledat);
CREATE INDEX jobrunr_jobs_state_updated_idx ON jobrunr_jobs (state, updatedat);
CREATE TABLE jobrunr_backgroundjobservers (id nchar(36) PRIMARY KEY, workerpoolsize int NOT NULL, pollintervalinseconds int NOT NULL, firstheartbeat timestamp(6) NOT NULL,
    lastheartbeat timestamp(6) NOT NULL, running int NOT NULL);
