-- Where we are, and what there is of a schema. $name: its name as text.
WITH ours AS (
    SELECT n.oid, n.nspname,
           obj_description(n.oid, 'pg_namespace') LIKE 'locktop: %' AND EXISTS (
               SELECT FROM pg_class c
                WHERE c.relnamespace = n.oid AND c.relname = 'locktop_schema' AND c.relkind = 'r'
                  AND obj_description(c.oid, 'pg_class') LIKE 'locktop: %') AS is_ours
      FROM pg_namespace n
)
SELECT $answer
  FROM (SELECT clock_timestamp() AS taken_at,
               pg_is_in_recovery() AS in_recovery,
               current_user AS role,
               coalesce((SELECT CASE WHEN o.is_ours IS NOT TRUE THEN 'foreign'
                                     WHEN EXISTS (SELECT FROM pg_proc p
                                                   WHERE p.pronamespace = o.oid AND p.proname = 'recover_seen_execution') THEN 'ours'
                                     ELSE 'old' END
                           FROM ours o WHERE o.nspname = $name), 'absent') AS found,
               ARRAY(SELECT o.nspname::text FROM ours o WHERE o.is_ours ORDER BY 1 LIMIT 10) AS other_schemas,
               ARRAY(SELECT o.nspname::text
                       FROM ours o
                       JOIN pg_class t ON t.relnamespace = o.oid AND t.relname = 'scheduled_tasks' AND t.relkind IN ('r', 'p')
                       JOIN pg_class e ON e.relnamespace = o.oid AND e.relname = 'task_execution_log' AND e.relkind IN ('r', 'p')
                      WHERE NOT coalesce(o.is_ours, false)
                      ORDER BY 1 LIMIT 10) AS printed_schemas) q
