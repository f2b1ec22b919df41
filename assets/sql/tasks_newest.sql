-- The newest executions of all tasks: through the primary key, where no other index helps.
(SELECT $columns
  FROM $log AS t
 ORDER BY t.id DESC
 LIMIT $newest)
