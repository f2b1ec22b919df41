-- Items of one status, through the index on them.
(SELECT $columns
   FROM $table AS t
  WHERE t.status OPERATOR(pg_catalog.=) $status
  $order
  LIMIT $limit)
