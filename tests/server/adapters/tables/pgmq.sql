-- pgmq 1.5, two queues: names, types and indexes as its queries need them.
CREATE SCHEMA pgmq;
CREATE TABLE pgmq.meta (queue_name varchar UNIQUE NOT NULL, is_partitioned boolean NOT NULL, is_unlogged boolean NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE pgmq.q_mail (msg_id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, read_ct int NOT NULL DEFAULT 0, enqueued_at timestamptz NOT NULL DEFAULT now(),
    vt timestamptz NOT NULL, message jsonb, headers jsonb);
CREATE INDEX q_mail_vt_idx ON pgmq.q_mail (vt);
CREATE TABLE pgmq.q_parted (LIKE pgmq.q_mail INCLUDING DEFAULTS) PARTITION BY RANGE (msg_id);
CREATE TABLE pgmq.q_parted_p0 PARTITION OF pgmq.q_parted FOR VALUES FROM (0) TO (1000);
CREATE INDEX q_parted_vt_idx ON pgmq.q_parted (vt);
CREATE TABLE pgmq.a_mail (LIKE pgmq.q_mail, archived_at timestamptz);
