-- The tasks, and what becomes of each. The same name and time of creation is the same task, taken before. $1: schedules that are not understood.
WITH source AS MATERIALIZED (
SELECT t.id::pg_catalog.int8 AS id, t.task_name::pg_catalog.text AS task_name, $task_type AS task_type,
       nullif(pg_catalog.btrim($schedule_cron), '') AS schedule_cron,
       coalesce($is_enabled, false) AS was_enabled, $last_run_at AS last_run_at, $next_run_at AS next_run_at, $created_at AS created_at,
       coalesce($priority, 0) AS priority, $payload AS payload,
       pg_catalog.count(*) OVER (PARTITION BY t.task_name) AS namesakes
  FROM ONLY $tasks AS t
), judged AS MATERIALIZED (
SELECT s.*, coalesce(s.task_name, s.id::pg_catalog.text, '?') AS label,
       CASE WHEN s.id IS NULL OR s.task_name IS NULL OR s.task_type IS NULL THEN 'nameless'
            WHEN o.id IS NOT NULL AND o.created_at IS NOT DISTINCT FROM s.created_at THEN 'here'
            WHEN o.id IS NOT NULL THEN 'clash'
            WHEN s.namesakes > 1 THEN 'twice'
            WHEN s.schedule_cron = ANY ($1::pg_catalog.text[]) THEN 'schedule'
            ELSE 'fresh' END AS verdict
  FROM source AS s
  LEFT JOIN $schema.scheduled_tasks AS o ON o.task_name = s.task_name
), fresh AS MATERIALIZED (
SELECT j.*, j.was_enabled AND $enable AS is_enabled, j.was_enabled AS was_active, j.schedule_cron IS NULL AS was_odd,
       j.id NOT BETWEEN 1 AND 2147483647 OR EXISTS (SELECT FROM $schema.scheduled_tasks AS o WHERE o.id = j.id) AS clashes
  FROM judged AS j
 WHERE j.verdict = 'fresh'
)
