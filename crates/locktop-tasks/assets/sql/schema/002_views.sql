-- What is going on. All of these look at pg_locks, so none is for every millisecond.

-- Advisory locks with their keys put together: a bigint key has objsubid 1, a pair of integers 2.
CREATE VIEW @schema@.advisory_locks AS
SELECT l.pid,
       d.datname AS database,
       CASE l.objsubid WHEN 1 THEN l.classid::bigint << 32 | l.objid::bigint END AS lock_id,
       CASE l.objsubid WHEN 2 THEN (l.classid::bigint << 32 >> 32)::bit(32)::integer END AS key1,
       CASE l.objsubid WHEN 2 THEN l.objid::bigint::bit(32)::integer END AS key2,
       CASE WHEN l.objsubid = 1 AND l.classid::bigint >> 16 = 19540 AND d.datname = current_database()
            THEN (l.classid::bigint & 65535) << 32 | l.objid::bigint END AS task_id,
       l.mode,
       l.granted,
       l.waitstart,
       l.virtualtransaction,
       l.fastpath
  FROM pg_locks l
  LEFT JOIN pg_database d ON d.oid = l.database
 WHERE l.locktype = 'advisory';
COMMENT ON VIEW @schema@.advisory_locks IS 'Advisory locks held and awaited, with whole keys and the tasks they stand for';

-- Executions that the log has as running, and who holds the key of each.
--
-- state: running; slow, past its timeout and its key held; orphan, its key free, and its last sign of life and up_since() both longer
-- ago than orphan_grace();
-- settling, its key free for less than that; unknown, where this server cannot tell: a standby, or a key that is not the task's.
CREATE VIEW @schema@.running_tasks AS
WITH held AS MATERIALIZED (
    SELECT a.lock_id, min(a.pid) AS pid, count(*) AS holders, bool_or(a.pid IS NULL) AS prepared
      FROM @schema@.advisory_locks a
     WHERE a.granted AND a.lock_id IS NOT NULL AND a.database = current_database()
     GROUP BY a.lock_id
), up AS MATERIALIZED (
    SELECT @schema@.up_since() AS since, @schema@.orphan_grace() AS grace
)
SELECT e.id AS execution_id,
       e.task_id,
       t.task_name,
       e.worker_id,
       CASE WHEN pg_is_in_recovery() OR e.lock_id IS DISTINCT FROM 19540::bigint << 48 | e.task_id THEN 'unknown'
            WHEN h.holders > 0 AND e.started_at + t.timeout <= clock_timestamp() THEN 'slow'
            WHEN h.holders > 0 THEN 'running'
            WHEN greatest(e.started_at, e.heartbeat_at, u.since) + u.grace <= clock_timestamp() THEN 'orphan'
            ELSE 'settling' END AS state,
       e.started_at,
       clock_timestamp() - e.started_at AS duration,
       t.timeout,
       e.heartbeat_at,
       e.attempt,
       t.max_attempts,
       e.lock_id,
       h.pid AS holder_pid,
       coalesce(h.prepared, false) AS held_by_prepared,
       e.backend_pid,
       e.backend_start
  FROM @schema@.task_execution_log e
  JOIN @schema@.scheduled_tasks t ON t.id = e.task_id
  LEFT JOIN held h ON h.lock_id = e.lock_id
 CROSS JOIN up u
 WHERE e.status = 'running';
COMMENT ON VIEW @schema@.running_tasks IS
    'Executions that the log has as running, and what is true of them: running, slow, orphan, settling or unknown';

-- The locks of running tasks.
CREATE VIEW @schema@.task_locks AS
SELECT l.pid,
       l.lock_id,
       t.task_name,
       e.worker_id,
       e.started_at,
       clock_timestamp() - e.started_at AS duration,
       l.mode,
       l.granted
  FROM @schema@.advisory_locks l
  JOIN @schema@.task_execution_log e ON e.lock_id = l.lock_id
  JOIN @schema@.scheduled_tasks t ON t.id = e.task_id
 WHERE e.status = 'running' AND l.database = current_database();
COMMENT ON VIEW @schema@.task_locks IS 'Who holds or awaits the key of a running task';

-- Keys in the tasks' namespace that are held while the log has no execution. Between two looks one may be about to start or to end.
CREATE VIEW @schema@.leaked_task_locks AS
SELECT l.pid, l.lock_id, l.task_id, t.task_name, a.backend_start, a.state, a.state_change, a.application_name
  FROM @schema@.advisory_locks l
  LEFT JOIN @schema@.scheduled_tasks t ON t.id = l.task_id
  LEFT JOIN pg_stat_activity a ON a.pid = l.pid
 WHERE l.granted AND l.task_id IS NOT NULL AND a.xact_start IS NULL
   AND NOT EXISTS (SELECT FROM @schema@.task_execution_log e WHERE e.task_id = l.task_id AND e.status = 'running');
COMMENT ON VIEW @schema@.leaked_task_locks IS 'Keys of tasks held outside a transaction by a session that runs nothing';

-- Tasks that are due and that nobody has started.
CREATE VIEW @schema@.overdue_tasks AS
SELECT t.id AS task_id, t.task_name, t.task_type, t.priority, t.next_run_at, clock_timestamp() - t.next_run_at AS overdue_by
  FROM @schema@.scheduled_tasks t
 WHERE t.is_enabled AND t.next_run_at <= clock_timestamp()
   AND NOT EXISTS (SELECT FROM @schema@.task_execution_log e WHERE e.task_id = t.id AND e.status = 'running');
COMMENT ON VIEW @schema@.overdue_tasks IS 'Tasks that are due, enabled and not started';

-- Who waits for whom, as the lock manager has it.
CREATE VIEW @schema@.lock_waits AS
SELECT w.pid AS blocked_pid,
       w.usename AS blocked_user,
       b.pid AS blocking_pid,
       b.usename AS blocking_user,
       w.query AS blocked_statement,
       b.query AS blocking_statement,
       w.application_name AS blocked_application
  FROM pg_stat_activity w
 CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS blocker (pid)
  LEFT JOIN pg_stat_activity b ON b.pid = blocker.pid
 WHERE w.wait_event_type = 'Lock';
COMMENT ON VIEW @schema@.lock_waits IS 'Sessions that wait for a lock, and whom for; pid 0 is a prepared transaction';

CREATE VIEW @schema@.task_history AS
SELECT e.id AS execution_id,
       t.task_name,
       e.worker_id,
       e.status,
       e.started_at,
       e.completed_at,
       coalesce(e.completed_at, clock_timestamp()) - e.started_at AS duration,
       e.attempt,
       e.error_message,
       e.recovered_by
  FROM @schema@.task_execution_log e
  JOIN @schema@.scheduled_tasks t ON t.id = e.task_id;
COMMENT ON VIEW @schema@.task_history IS 'Executions with their durations';
