-- The last executions of the tasks that ran last: through the index on (task_id, started_at).
SELECT e.*
  FROM (SELECT s.id
          FROM (SELECT t.id, $last_run_at AS ran FROM $table AS t ORDER BY t.id LIMIT $schedules) AS s
         ORDER BY s.ran DESC NULLS LAST
         LIMIT $tasks) AS s
 CROSS JOIN LATERAL (
       SELECT $columns
         FROM $log AS t
        WHERE t.task_id OPERATOR(pg_catalog.=) s.id
        ORDER BY t.started_at DESC
        LIMIT $each) AS e
