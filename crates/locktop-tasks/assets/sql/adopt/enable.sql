-- Tasks that were taken before and are not enabled here go on as they are there now.
UPDATE $schema.scheduled_tasks AS o
   SET is_enabled = true, last_run_at = greatest(o.last_run_at, s.last_run_at), next_run_at = coalesce(s.next_run_at, o.next_run_at)
  FROM source AS s
 WHERE o.task_name = s.task_name AND o.created_at IS NOT DISTINCT FROM s.created_at AND s.was_enabled AND o.is_enabled IS NOT TRUE
