-- Airflow 3.3: names, types and indexes as its queries need them.
CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY);
CREATE TABLE job (id serial PRIMARY KEY, state varchar(20), job_type varchar(30), start_date timestamptz, end_date timestamptz, latest_heartbeat timestamptz, hostname varchar(500));
CREATE INDEX job_type_heart ON job (job_type, latest_heartbeat);
CREATE TABLE task_instance (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), task_id varchar(250) NOT NULL, dag_id varchar(250) NOT NULL, run_id varchar(250) NOT NULL,
    map_index integer NOT NULL DEFAULT -1, start_date timestamptz, end_date timestamptz, state varchar(20), try_number integer, hostname varchar(1000), queue varchar(256),
    priority_weight integer, queued_dttm timestamptz, last_heartbeat_at timestamptz, trigger_id integer);
CREATE INDEX ti_state ON task_instance (state);
CREATE INDEX ti_heartbeat ON task_instance (last_heartbeat_at);
