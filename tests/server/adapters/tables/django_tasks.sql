-- django-tasks-db 0.13: names, types and indexes as its queries need them.
CREATE TABLE django_tasks_database_dbtaskresult (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), status varchar(10) NOT NULL, priority integer NOT NULL DEFAULT 0,
    task_path text NOT NULL, queue_name varchar(32) NOT NULL DEFAULT 'default', run_after timestamptz NOT NULL DEFAULT '9999-01-01', enqueued_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz, started_at timestamptz, exception_class_path text NOT NULL DEFAULT '', worker_ids jsonb NOT NULL DEFAULT '[]');
CREATE INDEX tasks_db_new_ordering_idx ON django_tasks_database_dbtaskresult (status, priority DESC, run_after, enqueued_at) WHERE status = 'READY';
