-- The executions of the tasks that are here. One of the same task and worker that began at the same moment is the same, taken before; of
-- several alike as many as are here. None of them runs: that was looked at before.
WITH paired AS MATERIALIZED (
SELECT t.id::pg_catalog.int8 AS there, o.id AS here
  FROM ONLY $tasks AS t
  JOIN $schema.scheduled_tasks AS o ON o.task_name = t.task_name::pg_catalog.text AND o.created_at IS NOT DISTINCT FROM $task_created_at
), source AS MATERIALIZED (
SELECT e.id::pg_catalog.int8 AS id, p.here AS task_id, coalesce($worker_id, '?') AS worker_id, $status AS was, $started_at AS started_at,
       $completed_at AS completed_at, $error_message AS error_message,
       pg_catalog.row_number() OVER (PARTITION BY p.here, coalesce($worker_id, '?'), $started_at ORDER BY e.id) AS place
  FROM ONLY $log AS e
  LEFT JOIN paired AS p ON p.there = e.task_id
), present AS MATERIALIZED (
SELECT l.task_id, l.worker_id, l.started_at, pg_catalog.count(*) AS number
  FROM $schema.task_execution_log AS l
 GROUP BY l.task_id, l.worker_id, l.started_at
), judged AS MATERIALIZED (
SELECT s.*, coalesce(s.id::pg_catalog.text, '?') AS label,
       CASE WHEN s.task_id IS NULL THEN 'taskless' WHEN s.place <= p.number THEN 'here' ELSE 'fresh' END AS verdict
  FROM source AS s
  LEFT JOIN present AS p
    -- An equality, which a hash is made of: of one worker there may be many.
    ON p.task_id = s.task_id AND p.worker_id = s.worker_id AND coalesce(p.started_at, '-infinity') = coalesce(s.started_at, '-infinity')
   AND (p.started_at IS NULL) = (s.started_at IS NULL)
), fresh AS MATERIALIZED (
SELECT j.id, j.task_id, j.worker_id, j.started_at,
       CASE WHEN j.was = 'completed' THEN j.was ELSE 'failed' END AS status,
       CASE WHEN j.was = 'running' THEN pg_catalog.clock_timestamp() ELSE j.completed_at END AS completed_at,
       CASE WHEN j.was = 'running'
            THEN pg_catalog.format('adopted from %s: it was running, and no session held its key', $source_name)
            WHEN j.was IN ('completed', 'failed') THEN j.error_message
            ELSE pg_catalog.concat_ws(': ', pg_catalog.format('its status was "%s"', j.was), j.error_message) END AS error_message,
       CASE WHEN j.was = 'running' THEN 'locktop schema adopt' END AS recovered_by,
       j.was = 'running' AS was_active, (j.was IN ('running', 'completed', 'failed')) IS NOT TRUE AS was_odd,
       j.id < 1 OR EXISTS (SELECT FROM $schema.task_execution_log AS o WHERE o.id = j.id) AS clashes
  FROM judged AS j
 WHERE j.verdict = 'fresh'
)
