-- The running executions, the longest first: through the index on (status, started_at), or the unique one on the
-- running ones.
(SELECT $columns
  FROM $log AS t
 WHERE t.status OPERATOR(pg_catalog.=) 'running'
 ORDER BY t.started_at
 LIMIT $running)
