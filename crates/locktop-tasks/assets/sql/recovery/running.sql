-- What runs by the log of a schema of ours, the oldest first, one JSON object each. Times that are none (infinity) are null.
SELECT $answer
  FROM (SELECT r.execution_id, r.task_id, r.task_name, r.worker_id, r.state,
               CASE WHEN r.started_at BETWEEN '0001-01-02' AND '9999-12-30' THEN r.started_at END AS started_at,
               CASE WHEN r.heartbeat_at BETWEEN '0001-01-02' AND '9999-12-30' THEN r.heartbeat_at END AS heartbeat_at,
               CASE WHEN isfinite(r.started_at) THEN extract(epoch FROM r.duration)::double precision END AS run_seconds,
               CASE WHEN isfinite(r.timeout) THEN extract(epoch FROM r.timeout)::double precision END AS timeout_seconds,
               t.attempts + 1 AS attempt, r.max_attempts,
               CASE WHEN isfinite(t.retry_delay)
                    THEN extract(epoch FROM $schema.retry_pause(t.retry_delay, t.attempts + 1))::double precision END AS retry_seconds,
               t.schedule_cron IS NOT NULL AS is_scheduled,
               t.is_enabled IS TRUE AS is_enabled,
               r.lock_id, r.holder_pid, h.backend_start AS holder_start, r.held_by_prepared, r.backend_pid, r.backend_start,
               extract(epoch FROM $schema.orphan_grace())::double precision AS grace_seconds
          FROM $schema.running_tasks r
          JOIN $schema.scheduled_tasks t ON t.id = r.task_id
          LEFT JOIN pg_stat_get_activity(NULL) h ON h.pid = r.holder_pid
         ORDER BY r.started_at, r.execution_id) q
