-- The items of the queue. One of the same name, time and payload is the same, taken before; of several alike as many as are here. What is
-- pending, or is again because no session holds its key, would be worked on twice: it stays where it is while workers use those tables.
WITH source AS MATERIALIZED (
SELECT q.id::pg_catalog.int8 AS id, $task_name AS task_name, $payload AS payload, $status AS was, $worker_id AS worker_id,
       coalesce($created_at, $started_at, pg_catalog.to_timestamp(0)) AS created_at, $started_at AS started_at,
       $completed_at AS completed_at
  FROM ONLY $queue AS q
), placed AS MATERIALIZED (
SELECT s.*, pg_catalog.row_number() OVER (PARTITION BY s.task_name, s.created_at, s.payload ORDER BY s.id) AS place
  FROM source AS s
), present AS MATERIALIZED (
SELECT o.task_name::pg_catalog.text AS task_name, o.created_at, o.payload, pg_catalog.count(*) AS number
  FROM $schema.task_queue AS o
 GROUP BY 1, 2, 3
), judged AS MATERIALIZED (
SELECT s.*, coalesce(s.id::pg_catalog.text, '?') AS label,
       CASE WHEN s.place <= p.number THEN 'here'
            WHEN s.was IN ('pending', 'processing') AND NOT $enable THEN 'open'
            ELSE 'fresh' END AS verdict
  FROM placed AS s
  LEFT JOIN present AS p
    -- Equalities, which a hash is made of: of one time there may be many.
    ON p.created_at = s.created_at AND coalesce(p.task_name, '') = coalesce(s.task_name, '')
   AND coalesce(p.payload, 'null') = coalesce(s.payload, 'null') AND (p.payload IS NULL) = (s.payload IS NULL)
   AND (p.task_name IS NULL) = (s.task_name IS NULL)
), fresh AS MATERIALIZED (
SELECT j.id, j.task_name, j.payload, j.created_at,
       CASE WHEN j.was IN ('pending', 'processing') THEN 'pending' WHEN j.was = 'completed' THEN j.was ELSE 'failed' END AS status,
       CASE WHEN j.was NOT IN ('pending', 'processing') THEN j.worker_id END AS worker_id,
       CASE WHEN j.was NOT IN ('pending', 'processing') THEN j.started_at END AS started_at,
       CASE WHEN (j.was IN ('pending', 'processing')) IS NOT TRUE THEN coalesce(j.completed_at, j.started_at, j.created_at) END
           AS completed_at,
       CASE WHEN j.started_at IS NULL AND j.was = 'pending' THEN 0 ELSE 1 END AS attempt,
       CASE WHEN (j.was IN ('pending', 'processing', 'completed')) IS NOT TRUE THEN 1 ELSE 0 END AS failures,
       CASE WHEN j.was = 'processing'
            THEN pg_catalog.format('adopted from %s: worker %s had it since %s, and no session held its key', $source_name,
                                   coalesce(j.worker_id, '?'), coalesce(j.started_at::pg_catalog.text, '?'))
            WHEN (j.was IN ('pending', 'completed', 'failed')) IS NOT TRUE
            THEN pg_catalog.format('its status was "%s"', j.was) END AS error_message,
       j.was = 'processing' AS was_active,
       (j.was IN ('pending', 'processing', 'completed', 'failed')) IS NOT TRUE AS was_odd,
       j.id < 1 OR EXISTS (SELECT FROM $schema.task_queue AS o WHERE o.id = j.id) AS clashes
  FROM judged AS j
 WHERE j.verdict = 'fresh'
)
